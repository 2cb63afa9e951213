"""Read runs from the journals of a study, as untrusted data.

Every journal must belong to its place in the study, and agree with itself and with the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.pomdp import TIE
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import DataError
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.blocks import Block
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.records import DamageError
from homdp_ppl.storage.whole_journal import read_journal
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.observing import joint_spaces
from homdp_ppl.study.reveals import OBSERVATION, split_reveal
from homdp_ppl.study.specification import Unit
from homdp_ppl.study.units import check_identity, to_record

Runs: TypeAlias = dict[tuple[str, str, str], list[Saved]]  # by model, prior and rule, one per seed

KINDS: dict[str, type] = {  # the entries of the first record of a journal
    "model": str,
    "learner": str,
    "explorer": str,
    "soundness": str,
    "seed": int,
    "episodes": int,
    "horizon": int,
    "episodes_per_round": int,
    "optimum": float,
    "scale": float,
    "shift": float,
    "foresight": int,
    "estimated": int,
    "slack": float,
    "loop": str,
    "study": str,
    "unit": list,
    "reveal": str,
}
OPTIONAL = ("reveal",)  # only in runs with missing states
OWN = (
    "seed",
    "unit",
    "soundness",
    "explorer",
    "learner",
    "episodes_per_round",
    "loop",
    "reveal",
    "foresight",
)
EXACT = 1e-6  # relative to horizon or optimum: how far values may exceed the optimum by rounding
REMEDY = "Copy the journal again from the original study, or remove it and resume."


def read_run(directory: StudyDirectory, unit: Unit, seed: int) -> Saved | None:
    """Read a run from its journal; None if it has no rounds yet.

    Parameters
    ----------
    directory
        The directory of the study.
    unit
        The unit of the run.
    seed
        The seed of the run.

    Raises
    ------
    StorageError
        The journal is damaged, belongs to another run, or contradicts itself.
    """
    path = directory.journal_path(unit, seed)
    if not Journal.begun(path):
        return None
    described, blocks = read_journal(path)
    if described is None:
        return None
    check_identity(path, described, directory.identity(unit, seed))
    _check_description(path, described)
    if not blocks:
        return None
    try:
        record = reduce(add, [to_record(block.arrays) for block in blocks])
    except (DataError, ValueError) as error:
        raise StorageError(path, " ".join(str(error).split()), "the record of a run") from None
    run = Saved(described, record, {"all": _seconds(path, blocks)})
    spaces = directory.manifest.spaces(unit.model)
    if spaces is not None and split_reveal(unit.rule).reveal == OBSERVATION:
        spaces = joint_spaces(spaces, 1)
    _check_record(path, run, spaces)
    return run


@checked
def read_runs(directory: StudyDirectory) -> Runs:
    """Read all runs that have begun, in the order of the study.

    Nothing is imported. Every journal is validated: it must be undamaged, belong to its place, and
    agree with the others.

    Parameters
    ----------
    directory
        The directory of the study.

    Returns
    -------
    dict
        The saved runs by model, prior and rule, one per seed.

    Examples
    --------
    >>> import tempfile
    >>> from homdp_ppl import study
    >>> with tempfile.TemporaryDirectory() as out:
    ...     _ = study.compare(
    ...         "tiger", ["uniform"], episodes=3, seeds=2, out=out, workers=1, horizon=2
    ...     )
    ...     runs = read_runs(study.StudyDirectory.open(out))
    >>> list(runs), [len(run.values) for run in runs["tiger", "declared", "uniform"]]
    ([('tiger', 'declared', 'uniform')], [3, 3])
    """
    runs: Runs = {}
    first: dict[tuple[str, ...], Mapping[str, Any]] = {}  # facts that must agree, by place
    for unit, seed, path in directory.journals():
        run = read_run(directory, unit, seed)
        if run is None:
            continue
        runs.setdefault((unit.model, unit.prior, unit.rule), []).append(run)
        # the optimum belongs to the world, but an estimated one differs between seeds
        world = {k: v for k, v in run.about.items() if k not in OWN}
        rule = {k: v for k, v in run.about.items() if k in OWN and k not in ("seed", "unit")}
        if run.estimated:
            del world["optimum"], world["slack"]
        for place, facts in ((unit[:2], world), (unit[:3], rule)):
            expected = first.setdefault(tuple(map(str, place)), facts)
            other = [name for name in expected if facts.get(name) != expected[name]]
            if other or len(facts) != len(expected):
                raise StorageError(
                    path,
                    f"{', '.join(f'{name} {facts.get(name)!r}' for name in other)}",
                    f"{', '.join(f'{expected[name]!r}' for name in other)} as in other journals",
                    REMEDY,
                )
    return runs


def run_is_complete(run: Saved) -> bool:
    """Whether a run is complete."""
    return len(run.values) == int(run.about["episodes"]) // run.episodes_per_round


def is_complete(directory: StudyDirectory, unit: Unit) -> bool:
    """Whether all runs of a unit are complete and their journals undamaged."""
    for seed in unit.seeds:
        try:
            run = read_run(directory, unit, seed)
        except DamageError:  # resuming renames the damaged file
            return False
        if run is None or not run_is_complete(run):
            return False
    return True


def _check_description(path: Path, described: Mapping[str, Any]) -> None:
    needed = {name: kind for name, kind in KINDS.items() if name not in OPTIONAL}
    needed |= {name: KINDS[name] for name in OPTIONAL if name in described}
    wrong = [name for name, kind in needed.items() if not _is_a(described.get(name), kind)]
    wrong += [name for name in described if name not in KINDS]
    if not wrong:
        sizes = described["episodes_per_round"], described["slack"]
        wrong += ["episodes_per_round"] if sizes[0] not in (1, described["horizon"]) else []
        wrong += [] if described["scale"] > 0 else ["scale"]
        least = -EXACT * described["horizon"] * described["scale"]
        wrong += ["slack"] if sizes[1] < least else []
        wrong += [name for name in ("foresight", "estimated") if described[name] not in (0, 1)]
    if wrong:
        got = ", ".join(f"{name[:40]} {str(described.get(name))[:40]!r}" for name in wrong)
        raise StorageError(path, f"a run with {got}", "a valid description of a run", REMEDY)


def _is_a(value: Any, kind: type) -> bool:
    if kind is float:  # may be infinite for planners without a certificate
        return type(value) in (int, float) and not math.isnan(value)
    return type(value) is kind


def _check_record(path: Path, run: Saved, spaces: Spaces | None) -> None:
    """Raise StorageError for numbers that contradict the description of the run."""
    record, rounds, per_round = run.record, len(run.values), run.episodes_per_round
    episodes, horizon = rounds * per_round, run.horizon
    wrong = []
    if rounds > int(run.about["episodes"]) // per_round or len(run.played) != episodes:
        wrong.append(f"{rounds} rounds and {len(run.played)} episodes")
    kinds = {"values": "f", "optimistic": "f", "planned": "b", "plans": "i", "played": "f"}
    kinds["rewards"] = "f"
    steps = dict.fromkeys(("observations", "actions", "rewards"), horizon)
    for name, column in record.columns.items():
        shape = {**steps, "states": horizon + 1}.get(name)
        real = spaces is None and name in ("observations", "states")
        kind = kinds.get(name, "if" if real else "i")
        if (
            column.dtype.kind not in kind
            or column.ndim > 3
            or column.shape[1:2] != (() if shape is None else (shape,))
        ):
            wrong.append(f"{name} of type {column.dtype} and shape {column.shape}")
    if not wrong:
        wrong += _wrong_numbers(run, spaces)
    if wrong:
        raise StorageError(path, "; ".join(wrong), "a record that fits the run", REMEDY)


def _wrong_numbers(run: Saved, spaces: Spaces | None) -> list[str]:
    record, wrong = run.record, []
    if not (np.isfinite(run.values).all() and np.isfinite(run.played).all()):
        wrong.append("values that are not finite")
    low, high = run.return_range
    rounding = max(EXACT, TIE) * max(high - low, abs(run.optimum))
    highest = run.values.max(initial=-np.inf)
    if not run.about["foresight"]:  # a collector that sees the state may exceed the optimum
        highest = max(highest, run.played.max(initial=-np.inf))
    if not run.estimated and highest > run.optimum + rounding:
        bound = f"{run.optimum:.6g} (with a custom planner: its upper bound is wrong)"
        wrong.append(f"a value of {highest:.6g} above the optimum {bound}")
    if spaces is not None:
        sizes = {"states": spaces.states, "observations": spaces.observations}
        for name, names in {**sizes, "actions": spaces.actions}.items():
            column = getattr(record, name)
            if column.ndim != 2 or ((column < 0) | (column >= len(names))).any():
                wrong.append(f"{name} outside the model")
    return wrong


def _seconds(path: Path, blocks: Sequence[Block]) -> float:
    found = [block.facts.get("seconds") for block in blocks]
    if not all(type(seconds) is float and 0 <= seconds < math.inf for seconds in found):
        raise StorageError(path, "a block without seconds", "seconds for each block", REMEDY)
    return float(sum(seconds for seconds in found if seconds))
