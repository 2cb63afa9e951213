"""Write models as .POMDP files, without loss of precision."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.core.pomdp_validation import sizes_of
from homdp_ppl.core.probabilities import pomdp_problems
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.formats.grammar import KINDS
from homdp_ppl.formats.words import LARGEST, RESERVED
from homdp_ppl.precision import Array
from homdp_ppl.storage.atomic import atomic_write

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
    format. The file is written atomically.

    Parameters
    ----------
    model
        A world, POMDP arrays, or a declaration without unknown parameters. Rewards must be the same
        at every step.
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
    arrays = _arrays(model)
    if not 0 <= discount <= 1:
        raise HOMDPError("write_pomdp", [Problem("discount", repr(discount), "a number in [0, 1]")])
    states, observations, actions = model.spaces.names
    names = {"states": states, "actions": actions, "observations": observations}
    written = {kind: _legal(names[kind], KINDS[kind]) for kind in KINDS}
    lines = [HEADER, *_notes(names, written), f"discount: {_digits(discount)}", "values: reward"]
    for kind, letter in KINDS.items():
        counted = names[kind] == tuple(f"{letter}{k}" for k in range(len(names[kind])))
        lines.append(f"{kind}: {len(names[kind]) if counted else ' '.join(written[kind])}")
    return "\n".join([*lines, "start:", _row(arrays.initial), *_entries(arrays)]) + "\n"


def _arrays(model: HOMDP | World | POMDP) -> Stationary:
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
    short = _short(arrays)
    problems = pomdp_problems(short, model.spaces)
    if not (np.abs(short.reward) <= LARGEST).all():
        problems.append(
            Problem(
                "reward",
                "entries that are nan or too large",
                f"numbers between {-LARGEST:g} and {LARGEST:g}",
            )
        )
    elif (short.reward != short.reward[0]).any():
        remedy = "The format has one reward table for all steps: include the step in the state."
        problems.append(
            Problem(
                "reward",
                "rewards that differ between steps",
                "the same rewards at every step",
                remedy,
            )
        )
    if problems:
        raise HOMDPError("write_pomdp", problems)
    return short


def _short(arrays: POMDP) -> Stationary:
    """The tables of a model; the format has one of each kind for all steps."""
    sizes_of(arrays, "write_pomdp")
    arrays = arrays._replace(reward=arrays.to_user(np.asarray(arrays.reward), 1))
    short = arrays.stationary("write_pomdp", "Include the step and the action in the state.")
    return Stationary(*(np.asarray(table, dtype=np.float64) for table in short))


def _entries(arrays: Stationary) -> Iterator[str]:
    _, transition, emission, reward = arrays
    for a in range(transition.shape[1]):
        yield f"\nT: {a}"
        yield from map(_row, transition[:, a])
    yield "\nO: *"
    yield from map(_row, emission)
    yield ""
    for x, a in np.argwhere(reward[0]):
        yield f"R: {a} : {x} : * : * {_digits(reward[0, x, a])}"


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


def _is_legal(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) is not None and name not in RESERVED


def _notes(names: dict[str, tuple[str, ...]], written: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """The comments from which the reader restores names."""
    for kind in KINDS:
        for name, legal in zip(names[kind], written[kind], strict=True):
            if name != legal:
                yield f"# {kind}: {legal} stands for {json.dumps(name)}"
