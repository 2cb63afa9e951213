"""What a study found, rebuilt from its journals.

Runs, one netCDF file, and a digest of everything that happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import reduce
from hashlib import sha256
from operator import add
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from homdp_ppl.core.checked import checked
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.learning.record import Record
from homdp_ppl.precision import Array
from homdp_ppl.storage.atomic import atomic_write
from homdp_ppl.storage.journal import Journal, read_journal
from homdp_ppl.storage.records import DamageError
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.specification import Unit
from homdp_ppl.study.units import to_record

Runs: TypeAlias = dict[tuple[str, str, str], list[Saved]]  # by model, prior and rule, one a seed
COLUMNS = ("value", "optimistic", "gap", "regret", "was_optimistic")


def read_run(path: Path) -> Saved | None:
    """A run from its journal; None if it has not begun, or has no rounds yet."""
    if not Journal.begun(path):
        return None
    described, blocks = read_journal(path)
    if described is None or not blocks:
        return None
    record = reduce(add, [to_record(block.arrays) for block in blocks])
    return Saved(
        described, record, {"all": float(sum(block.facts.get("seconds", 0.0) for block in blocks))}
    )


@checked
def read_runs(directory: StudyDirectory) -> Runs:
    """All runs that have begun, in the order of the study.

    Parameters
    ----------
    directory
        Where the study lives.

    Returns
    -------
    dict
        By model, prior and rule: runs as they were saved, one a seed.

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
    for unit, _, path in directory.journals():
        run = read_run(path)
        if run is not None:
            runs.setdefault((unit.model, unit.prior, unit.rule), []).append(run)
    return runs


def is_whole(run: Saved) -> bool:
    """Whether a run is at its end."""
    return len(run.values) >= int(run.about["episodes"]) // run.episodes_per_round


def is_complete(directory: StudyDirectory, unit: Unit) -> bool:
    """Whether all runs of a unit are at their end, in journals that are whole."""
    for seed in unit.seeds:
        try:
            run = read_run(directory.journal_path(unit, seed))
        except DamageError:  # who goes on with it sets it aside
            return False
        if run is None or not is_whole(run):
            return False
    return True


@checked
def digest(directory: StudyDirectory) -> str:
    """A number for everything that happened.

    Another value, another step of another episode, and it is another.

    Seconds and numbers of plans are not in it.

    Parameters
    ----------
    directory
        Where the study lives.

    Examples
    --------
    >>> import tempfile
    >>> from homdp_ppl import study
    >>> def done(out):
    ...     return study.compare(
    ...         "tiger", ["uniform"], episodes=3, seeds=2, out=out, workers=1, horizon=2
    ...     ).directory
    >>> with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
    ...     digest(done(one)) == digest(done(other))  # asked again, the same happens again
    True
    """
    total = sha256()
    for unit, seed, path in directory.journals():
        run = read_run(path)
        total.update(repr((unit.model, unit.prior, unit.rule, seed, run is not None)).encode())
        if run is not None:
            for column in fields(Record):
                if column.name != "plans":
                    total.update(np.ascontiguousarray(getattr(run.record, column.name)).tobytes())
    return total.hexdigest()


def to_dataset(directory: StudyDirectory, runs: Runs) -> xr.Dataset:
    """All runs with labelled axes: model, prior, rule, seed, round.

    Not a number where nothing was run or is still to run.

    Examples
    --------
    In a study's directory: ``xarray.open_dataset("results.nc").regret.sel(model="tiger",
    rule="greedy").isel(round=-1)``.
    """
    study = directory.study
    rounds = max((len(run.values) for several in runs.values() for run in several), default=0)
    shape = len(study.models), len(study.priors), len(study.explorers), study.seeds
    table = {name: np.full((*shape, rounds), np.nan) for name in COLUMNS}
    once = {
        name: np.full(shape, np.nan)
        for name in ("optimum", "seconds", "episodes_per_round", "estimated")
    }
    for (model, prior, rule), several in runs.items():
        for run in several:
            at = (
                study.models.index(model),
                study.priors.index(prior),
                study.explorers.index(rule),
                int(run.about["seed"]),
            )
            for name, values in _columns(run).items():
                table[name][at][: len(values)] = values
            numbers = (
                run.optimum,
                run.seconds["all"],
                run.episodes_per_round,
                run.about["estimated"],
            )
            for name, number in zip(once, numbers, strict=True):
                once[name][at] = number
    axes = ("model", "prior", "rule", "seed")
    variables: dict[str, Any] = {name: ((*axes, "round"), values) for name, values in table.items()}
    variables |= {name: (axes, values) for name, values in once.items()}
    places = {
        "model": list(study.models),
        "prior": list(study.priors),
        "rule": list(study.explorers),
        "seed": np.arange(study.seeds),
        "round": np.arange(1, rounds + 1),
    }
    about = {
        "episodes": study.episodes,
        "planner": study.planner,
        **{k: str(v) for k, v in directory.about.items()},
    }
    return xr.Dataset(variables, places, {**about, "digest": digest(directory)})


def write_results(directory: StudyDirectory, runs: Runs) -> Path:
    """Write ``results.nc``, whole or not at all."""
    path = directory.path / "results.nc"
    dataset = to_dataset(directory, runs)
    atomic_write(path, lambda beside: dataset.to_netcdf(beside, engine="scipy"))
    return path


def _columns(run: Saved) -> Mapping[str, Array]:
    return dict(
        zip(
            COLUMNS,
            (run.values, run.optimistic, run.gaps, run.regret, run.was_optimistic),
            strict=True,
        )
    )
