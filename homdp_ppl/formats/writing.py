"""Write models as .POMDP files, without loss of precision."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.core.probabilities import pomdp_problems
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.formats.grammar import KINDS
from homdp_ppl.formats.reading import null_name
from homdp_ppl.formats.words import LARGEST, RESERVED
from homdp_ppl.precision import Array
from homdp_ppl.storage.atomic import atomic_write

FIRST = "# Written by homdp_ppl. Nothing is observed before the first action."
MEANS = "# rewards: means of random rewards"
HEADER = (
    "# Written by homdp_ppl. The first state is observed before the first action; "
    "tools that act first do not see this observation."
)


@checked_but("model")
def write_pomdp(
    model: HOMDP | World | POMDP, path: str | os.PathLike[str], discount: float = 1.0
) -> None:
    """Write a model as a .POMDP file (Cassandra's format).

    :func:`homdp_ppl.read_pomdp` returns the same numbers and names.

    Numbers are written with all digits. Names that the format does not allow are changed (letters,
    digits, ``_`` and ``-`` are kept), and a comment gives the full name;
    :func:`homdp_ppl.read_pomdp` restores it, other tools ignore it. The horizon is not part of the
    format, and terminal states are written as the absorbing states that they are. The file is
    written atomically.

    If observations depend on the previous action, the last observation must be one that is seen
    with certainty before the first action and never later. It is not part of the file;
    :func:`homdp_ppl.read_pomdp` adds it again.

    The format has no random rewards: their means are written, and a comment says so. Optimal
    policies and values are the same.

    Parameters
    ----------
    model
        A world, POMDP arrays, or a declaration without unknown parameters. Transitions, emissions
        and rewards must be the same at every step, and rewards must not depend on the observation.
    path
        The file to write.
    discount
        The discount to write, for solvers that need one below 1.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from homdp_ppl import models, write_pomdp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_pomdp(models.load("tiger"), Path(folder) / "tiger.POMDP")
    ...     text = (Path(folder) / "tiger.POMDP").read_text()
    >>> for line in text.splitlines()[1:9]:
    ...     print(line)
    # actions: open_left stands for "open left"
    # actions: open_right stands for "open right"
    # observations: growl_left stands for "growl left"
    # observations: growl_right stands for "growl right"
    discount: 1
    values: reward
    states: left right
    actions: listen open_left open_right
    """
    atomic_write(Path(path), pomdp_text(model, discount).encode())


def pomdp_text(model: HOMDP | World | POMDP, discount: float = 1.0) -> str:
    """The text that :func:`write_pomdp` writes."""
    tables = _tables(model)
    if not 0 <= discount <= 1:
        raise HOMDPError("write_pomdp", [Problem("discount", repr(discount), "a number in [0, 1]")])
    states, observations, actions = model.spaces.names
    seen = observations[: tables.observation.shape[-1]]
    names = {"states": states, "actions": actions, "observations": seen}
    written = {kind: _legal(names[kind], KINDS[kind]) for kind in KINDS}
    notes = [*_notes(names, written), *_first_note(observations, seen, written["observations"])]
    declared = model.homdp if isinstance(model, World) else model
    if isinstance(declared, HOMDP) and declared.rewards.law is not None:
        notes.append(MEANS)
    header = HEADER if len(seen) == len(observations) else FIRST
    lines = [header, *notes, f"discount: {_digits(discount)}", "values: reward"]
    for kind, letter in KINDS.items():
        counted = _counted(names[kind], letter)
        lines.append(f"{kind}: {len(names[kind]) if counted else ' '.join(written[kind])}")
    return "\n".join([*lines, "start:", _row(tables.start), *_entries(tables)]) + "\n"


class _Tables(NamedTuple):
    """The numbers of a file."""

    start: Array  # (X,)
    transition: Array  # (X, A, X)
    observation: Array  # (A, X, Y), or (1, X, Y) if it does not depend on the action
    reward: Array  # (X, A)


def _tables(model: HOMDP | World | POMDP) -> _Tables:
    """The tables of a model; raises an error with all reasons why it cannot be written."""
    if isinstance(model, HOMDP):
        if model.sites:
            unknown = ", ".join(site.name for site in model.sites)
            remedy = "Write a world instead: fix the parameters with .at(...) or .draw(key)."
            raise HOMDPError(
                "write_pomdp",
                [Problem(model.name, f"unknown parameters {unknown}", "numbers", remedy)],
            )
        model = model.at()
    arrays = model.pomdp if isinstance(model, World) else model
    if not isinstance(arrays, POMDP):
        raise HOMDPError(
            "write_pomdp", [Problem("model", type(model).__name__, "a World, a POMDP or a HOMDP")]
        )
    arrays = POMDP(*map(np.asarray, check_pomdp(arrays, "write_pomdp")))
    problems = pomdp_problems(arrays, model.spaces)
    rewards = arrays.to_user(arrays.reward, 1)
    if not (np.abs(rewards) <= LARGEST).all():
        expected = f"numbers between {-LARGEST:g} and {LARGEST:g}"
        problems.append(Problem("reward", "entries that are nan or too large", expected))
    problems = problems or _dependence(arrays)
    if problems:
        raise HOMDPError("write_pomdp", problems)
    emission = arrays.emission[0]
    if len(emission) > 1:
        emission = emission[:1] if _equal(emission) else emission[:-1, :, :-1]
    return _Tables(arrays.initial, arrays.transition[0], emission, rewards[0, :, 0])


def _dependence(arrays: POMDP) -> list[Problem]:
    """Report tables that depend on something for which the format has no place."""
    problems = []
    steps = {name: getattr(arrays, name) for name in ("transition", "emission", "reward")}
    for name, table in steps.items():
        if not _equal(table):
            got, expected = "a table that depends on the step", "the same table at every step"
            problems.append(Problem(name, got, expected, "Include the step in the state."))
    if not (arrays.reward == arrays.reward[:, :, :1]).all():
        got = "rewards that depend on the observation before the action"
        remedy = "Include the observation in the state."
        problems.append(Problem("reward", got, "rewards of states and actions", remedy))
    emission = arrays.emission[0]
    null = (emission[-1, :, -1] == 1).all() and not emission[:-1, :, -1].any()
    if not _equal(emission) and not null:
        remedy = (
            "The format has no observation before the first action. Show an extra observation, the "
            "last one, with certainty before the first action and never later; or include the "
            "previous action in the state."
        )
        got = "a first observation that differs from the later ones"
        problems.append(Problem("emission", got, "no first observation", remedy))
    return problems


def _equal(tables: Array) -> bool:
    """Whether all tables along the first axis are equal."""
    return bool((tables == tables[:1]).all())


def _entries(tables: _Tables) -> Iterator[str]:
    for a in range(tables.transition.shape[1]):
        yield f"\nT: {a}"
        yield from map(_row, tables.transition[:, a])
    for a, shows in enumerate(tables.observation):
        yield f"\nO: {a if len(tables.observation) > 1 else '*'}"
        yield from map(_row, shows)
    yield ""
    for x, a in np.argwhere(tables.reward):
        yield f"R: {a} : {x} : * : * {_digits(tables.reward[x, a])}"


def _row(numbers: Array) -> str:
    return " ".join(map(_digits, numbers))


def _digits(number: Array | float) -> str:
    """The shortest decimal that reads back as the same float64."""
    return repr(float(number)).removesuffix(".0")


def _legal(names: Sequence[str], letter: str) -> tuple[str, ...]:
    """Distinct names that the format allows; legal names are not changed."""
    made = {name for name in names if _is_legal(name)}
    changed = []
    for k, name in enumerate(names):
        legal = name
        if not _is_legal(name):
            legal = re.sub(r"[^A-Za-z0-9_-]", "_", name)
            legal = legal if legal[0].isalpha() else f"{letter}_{legal}"
            while legal in made or legal in RESERVED:
                legal = f"{legal}_{k}"
        made.add(legal)
        changed.append(legal)
    return tuple(changed)


def _counted(names: Sequence[str], letter: str) -> bool:
    """Whether these are the names that the reader gives to numbered things."""
    return tuple(names) == tuple(f"{letter}{k}" for k in range(len(names)))


def _is_legal(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) is not None and name not in RESERVED


def _first_note(
    observations: Sequence[str], seen: Sequence[str], written: Sequence[str]
) -> Iterator[str]:
    """The comment by which the reader knows the observation before the first action."""
    # the reader does not see the names of observations if the file gives only their number
    place = null_name(() if _counted(seen, KINDS["observations"]) else written)
    for name in observations[len(seen) :]:
        yield f"# observations: {place} stands for {json.dumps(name)}"


def _notes(names: dict[str, tuple[str, ...]], written: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """The comments from which the reader restores names."""
    for kind in KINDS:
        for name, legal in zip(names[kind], written[kind], strict=True):
            if name != legal:
                yield f"# {kind}: {legal} stands for {json.dumps(name)}"
