"""From short forms of a POMDP's arrays to its fixed ranks, with every wrong shape reported."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

RANKS = {
    "initial": {1: "X"},
    "transition": {3: "XAX", 4: "HXAX"},
    "emission": {2: "XY", 3: "BXY", 4: "HBXY"},  # B is A + 1
    "reward": {2: "XA", 3: "HXA", 4: "HXYA"},
    "terminal": {1: "X"},
}
OPTIONAL = {"transition": "H", "emission": "HB", "reward": "Y"}  # may be 1 where they are written


class Arrays(NamedTuple):
    """The arrays of a POMDP in full ranks."""

    initial: Array
    transition: Array
    emission: Array
    reward: Array
    terminal: Array


def arrays_of(
    initial: Any, transition: Any, emission: Any, reward: Any, horizon: Any, terminal: Any
) -> Arrays:
    """The full ranks of arrays in short form.

    Raises
    ------
    PlanningError
        If ranks or sizes do not fit; all problems at once.
    """
    given = {
        "initial": _array(initial),
        "transition": _array(transition),
        "emission": _array(emission),
        "reward": _array(reward),
    }
    if terminal is not None:
        given["terminal"] = np.asarray(terminal, dtype=bool)
    problems = [*_rank_problems(given), *_horizon_problems(horizon)]
    if not problems:
        sizes, problems = _sizes(given, horizon)
        problems += _size_problems(given, sizes)
    if problems:
        raise PlanningError("POMDP", problems)
    rewards = given["reward"]
    if rewards.ndim == 2:
        rewards = rewards[None].repeat(sizes["H"], axis=0)
    return Arrays(
        given["initial"],
        given["transition"][(None,) * (4 - given["transition"].ndim)],
        given["emission"][(None,) * (4 - given["emission"].ndim)],
        rewards if rewards.ndim == 4 else rewards[:, :, None],
        given.get("terminal", np.zeros(given["initial"].shape, dtype=bool)),
    )


def _array(table: Any) -> Array:
    return table if isinstance(table, jax.Array) else np.asarray(table, dtype=np.float64)


def _rank_problems(given: dict[str, Array]) -> list[Problem]:
    problems = []
    for name, table in given.items():
        if table.ndim not in RANKS[name]:
            forms = [_written(axes) for axes in RANKS[name].values()]
            expected = "shape " + " or ".join(forms)
            problems.append(Problem(name, f"shape {table.shape}", expected))
        elif 0 in table.shape:
            remedy = "There must be at least one of each."
            problems.append(Problem(name, f"shape {table.shape}", "no empty axis", remedy))
    return problems


def _horizon_problems(horizon: Any) -> list[Problem]:
    if horizon is None or (isinstance(horizon, int | np.integer) and horizon >= 1):
        return []
    return [Problem("horizon", repr(horizon), "a whole number of at least 1")]


def _sizes(given: dict[str, Array], horizon: int | None) -> tuple[dict[str, int], list[Problem]]:
    """H, X, Y and A as most arrays say; a problem where H is not said anywhere."""
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
    remedy = "Write horizon=..., or give one table per step."
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
