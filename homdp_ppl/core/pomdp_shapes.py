"""Conversion of POMDP arrays from short forms to full ranks, with checks of all shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.sparse import Sparse
from homdp_ppl.errors import HOMDPError, PlanningError, Problem, shown
from homdp_ppl.memory import NUMBER, count, memory_problems
from homdp_ppl.precision import Array

RANKS = {
    "initial": {1: "X"},
    "transition": {3: "XAX", 4: "HXAX"},
    "emission": {2: "XY", 3: "BXY", 4: "HBXY"},  # B is A + 1
    "reward": {2: "XA", 3: "HXA", 4: "HXYA"},
    "terminal": {1: "X"},
}
# the full ranks; B is A + 1, and axes in lower case may have size 1
FULL = {
    "initial": "X",
    "transition": "hXAX",
    "emission": "hbXY",
    "reward": "HXyA",
    "terminal": "X",
    "scale": "",
    "shift": "",
}
STATIONARY = {"initial": "X", "transition": "XAX", "emission": "XY", "reward": "HXA"}
NOT_EMPTY = "A model has at least one state, observation, action and step."
SHORT_FORMS = "Use POMDP.of(initial, transition, emission, reward, horizon) for short forms."
OPTIONAL = {"transition": "H", "emission": "HB", "reward": "Y"}  # axes of rank 4 that may be 1


class Arrays(NamedTuple):
    """The arrays of a POMDP in full ranks."""

    initial: Array
    transition: Array | Sparse
    emission: Array
    reward: Array
    terminal: Array


def arrays_of(
    initial: Any, transition: Any, emission: Any, reward: Any, horizon: Any, terminal: Any
) -> Arrays:
    """Convert arrays in short form to full ranks.

    Raises
    ------
    PlanningError
        If ranks or sizes do not fit; all problems are reported together.
    """
    passed = {
        "initial": initial,
        "transition": transition,
        "emission": emission,
        "reward": reward,
        **({} if terminal is None else {"terminal": terminal}),
    }
    read: dict[str, tuple[Any, list[Problem]]] = {
        name: (table, []) if isinstance(table, Sparse) else as_numbers(name, table, _forms(name))
        for name, table in passed.items()
    }
    given = {name: table for name, (table, _) in read.items() if table is not None}
    problems = [problem for _, wrong in read.values() for problem in wrong]
    problems += [*_rank_problems(given), *_horizon_problems(horizon)]
    ends = given.get("terminal")
    if isinstance(ends, np.ndarray) and not np.isin(ends, (0, 1)).all():
        problems.append(Problem("terminal", shown(terminal), "True or False for each state"))
    if not problems:
        sizes, problems = _sizes(given, horizon)
        problems += _size_problems(given, sizes)
        problems += _memory_problems(sizes)
    if problems:
        raise PlanningError("POMDP", problems)
    rewards = given["reward"]
    if rewards.ndim == 2:
        rewards = rewards[None].repeat(sizes["H"], axis=0)
    return Arrays(
        given["initial"],
        given["transition"]
        if isinstance(given["transition"], Sparse)
        else given["transition"][(None,) * (4 - given["transition"].ndim)],
        given["emission"][(None,) * (4 - given["emission"].ndim)],
        rewards if rewards.ndim == 4 else rewards[:, :, None],
        given.get("terminal", np.zeros(given["initial"].shape)).astype(bool),
    )


def fit_problems(shapes: Mapping[str, tuple[int, ...]]) -> list[Problem]:
    """Report full shapes of POMDP arrays that do not fit together.

    Extra leading axes are those of a batch of candidates.

    Parameters
    ----------
    shapes
        The shape of each field.
    """
    wrong = [
        Problem(name, f"shape {shape}", full_axes(name), shape_remedy(shape, FULL[name]))
        for name, shape in shapes.items()
        if len(shape) < len(FULL[name]) or 0 in shape
    ]
    if wrong:
        return wrong
    last = {name: shape[len(shape) - len(FULL[name]) :] for name, shape in shapes.items()}
    (X, Y), A, H = last["emission"][2:], last["transition"][2], last["reward"][0]
    size = {"X": X, "Y": Y, "A": A, "H": H, "B": A + 1}
    for name, axes in FULL.items():
        pairs = list(zip(last[name], axes, strict=True))
        if any(n != size[axis.upper()] and not (axis.islower() and n == 1) for n, axis in pairs):
            fitting = tuple(
                1 if axis.islower() and n == 1 else size[axis.upper()] for n, axis in pairs
            )
            expected = f"shape {fitting}: {full_axes(name)}"
            wrong.append(Problem(name, f"shape {shapes[name]}", expected))
    return wrong


def full_tables(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert tables of a stationary model from short form to full ranks; None is left out.

    Raises
    ------
    PlanningError
        If a table is not an array of numbers, or has too few axes.
    """
    tables: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, table in given.items():
        if isinstance(table, Sparse):
            tables[name] = table
            continue
        numbers, wrong = (None, []) if table is None else as_numbers(name, table, full_shape(name))
        problems += wrong
        if numbers is None:
            continue
        if numbers.ndim < len(STATIONARY[name]):
            expected = f"shape {_written(STATIONARY[name])}"
            problems.append(Problem(name, f"shape {numbers.shape}", expected))
        else:
            tables[name] = _at_full_rank(name, numbers)
    if problems:
        raise PlanningError("with_tables", problems)
    return tables


def _at_full_rank(name: str, table: Array) -> Array:
    if name == "transition":
        return table[..., None, :, :, :]
    if name == "emission":
        return table[..., None, None, :, :]
    return table[..., :, :, None, :] if name == "reward" else table


def check_index(
    what: str,
    index: Any,
    size: int,
    error: type[HOMDPError] = PlanningError,
    subject: str = "POMDP",
) -> None:
    """Raise an error for an index out of range.

    NumPy would count negative indices from the end, and JAX would clamp.
    """
    if type(index) is int and 0 <= index < size:  # almost always
        return
    whole = isinstance(index, int | np.integer) and not isinstance(index, bool)
    if whole and 0 <= index < size:
        return
    if (isinstance(index, jax.Array) and jnp.issubdtype(index.dtype, jnp.integer)) or (
        isinstance(index, np.ndarray) and _inside(index, size)
    ):
        return
    raise error(subject, [Problem(what, shown(index), f"an index in 0..{size - 1}")])


def _inside(index: np.ndarray[Any, Any], size: int) -> bool:
    return index.dtype.kind in "iu" and bool(((index >= 0) & (index < size)).all())


def full_axes(name: str) -> str:
    """Describe the axes of an array."""
    return f"the axes {_axes(name)}" if FULL[name] else "a number"


def full_shape(name: str) -> str:
    """Describe the shape of an array."""
    return f"shape ({_axes(name)})"


def _axes(name: str) -> str:
    words = {"h": "H or 1", "b": "A + 1 or 1", "y": "Y or 1"}
    return ", ".join(words.get(axis, axis) for axis in FULL[name])


def shape_remedy(shape: tuple[int, ...], axes: str) -> str:
    """The remedy for an array of another rank, or without entries."""
    if 0 in shape:
        return NOT_EMPTY
    if len(shape) > len(axes):
        return "For a batch of models, plan for one model at a time."
    return SHORT_FORMS


def _memory_problems(sizes: dict[str, int]) -> list[Problem]:
    """Report rewards that do not fit in memory: there is one table per step."""
    X, A, H = (sizes[axis] for axis in "XAH")
    got = f"{count(H)} steps with {count(X)} states and {count(A)} actions"
    return memory_problems("horizon", got, NUMBER * H * X * A, "Use a shorter horizon.")


def _rank_problems(given: dict[str, Array]) -> list[Problem]:
    problems = []
    for name, table in given.items():
        if table.ndim not in RANKS[name]:
            problems.append(Problem(name, f"shape {table.shape}", _forms(name)))
        elif 0 in table.shape:
            problems.append(Problem(name, f"shape {table.shape}", "no empty axis", NOT_EMPTY))
    return problems


def _forms(name: str) -> str:
    return "shape " + " or ".join(_written(axes) for axes in RANKS[name].values())


def _horizon_problems(horizon: Any) -> list[Problem]:
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
    if horizon is None or (whole and horizon >= 1):
        return []
    return [Problem("horizon", shown(horizon), "an integer of at least 1")]


def _sizes(given: dict[str, Array], horizon: int | None) -> tuple[dict[str, int], list[Problem]]:
    """The sizes H, X, Y and A that the arrays imply; a problem if none implies H."""
    X, Y = given["emission"].shape[-2:]
    A = given["transition"].shape[-2]
    steps = horizon
    if steps is None and given["reward"].ndim > 2:
        steps = given["reward"].shape[0]
    for name in ("transition", "emission"):
        if steps is None and given[name].ndim == 4 and given[name].shape[0] > 1:
            steps = given[name].shape[0]
    if steps is not None:
        return {"H": int(steps), "X": X, "Y": Y, "A": A, "B": A + 1}, []
    remedy = "Pass horizon=..., or one table per step."
    missing = Problem("horizon", "no array with a step axis", "the number of steps", remedy)
    return {"H": 1, "X": X, "Y": Y, "A": A, "B": A + 1}, [missing]


def _size_problems(given: dict[str, Array], sizes: dict[str, int]) -> list[Problem]:
    problems = []
    for name, table in given.items():
        axes = RANKS[name][table.ndim]
        optional = OPTIONAL.get(name, "") if table.ndim == 4 else ""
        fits = all(
            n == sizes[axis] or (n == 1 and axis in optional)
            for n, axis in zip(table.shape, axes, strict=True)
        )
        if not fits:
            fitting = tuple(sizes[axis] for axis in axes)
            expected = f"shape {fitting}: {_written(axes)[1:-1]}"
            problems.append(Problem(name, f"shape {table.shape}", expected))
    return problems


def _written(axes: str) -> str:
    words = [{"B": "A + 1"}.get(axis, axis) for axis in axes]
    return f"({', '.join(words)}{',' * (len(words) == 1)})"
