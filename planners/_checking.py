"""What planners refuse: options that make no sense, and models that are none.

A model has the shapes of one model, rows that are probabilities, and rewards that are numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from homdp_ppl.core.pomdp import FLOAT32, POMDP, numbers_of, row_problems
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

AXES = {"initial": "X", "transition": "XAX", "emission": "XY", "reward": "HXA"}


def count_problems(least: int, **counts: Any) -> list[Problem]:
    """What is wrong with options, by name, that must be whole numbers of at least so much."""
    return [
        _option(name, value, f"a whole number of at least {least}")
        for name, value in counts.items()
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least
    ]


def number_problems(**numbers: Any) -> list[Problem]:
    """What is wrong with options, by name, that must be finite numbers and not negative."""
    return [
        _option(name, value, "a number that is not negative")
        for name, value in numbers.items()
        if not isinstance(value, int | float | np.number) or not 0 <= value < math.inf
    ]


def _option(name: str, value: Any, expected: str) -> Problem:
    if isinstance(value, POMDP):
        return Problem(name, "a POMDP", expected, "Make the planner first: planner()(pomdp).")
    return Problem(name, repr(value), expected)


def refuse(planner: str, problems: list[Problem]) -> None:
    """Raise a planning error if there is any problem."""
    if problems:
        raise PlanningError(planner, problems)


def sizes_of(pomdp: POMDP, planner: str) -> tuple[int, int, int, int]:
    """X, Y, A and H of one model, looking at shapes alone; refuses what is none.

    Parameters
    ----------
    pomdp
        The model.
    planner
        Who asks, for the error.
    """
    shapes = dict(zip(AXES, map(np.shape, numbers_of(pomdp, planner)), strict=True))
    problems = [
        Problem(name, f"shape {shape}", f"the axes {', '.join(AXES[name])}", _remedy(name, shape))
        for name, shape in shapes.items()
        if len(shape) != len(AXES[name]) or 0 in shape
    ]
    refuse(planner, problems)
    size = dict(
        zip(
            "XYAH", (*shapes["emission"], shapes["transition"][1], shapes["reward"][0]), strict=True
        )
    )
    fitting = {name: tuple(size[axis] for axis in axes) for name, axes in AXES.items()}
    unfit = [name for name in AXES if shapes[name] != fitting[name]]
    refuse(
        planner,
        [
            Problem(
                name, f"shape {shapes[name]}", f"shape {fitting[name]}: {', '.join(AXES[name])}"
            )
            for name in unfit
        ],
    )
    return size["X"], size["Y"], size["A"], size["H"]


def checked(pomdp: POMDP, planner: str) -> POMDP:
    """A copy of one model in contiguous float64 arrays; refuses what is none.

    Rows may miss a sum of one by as much as float32 makes them.

    Parameters
    ----------
    pomdp
        The model.
    planner
        Who asks, for the error.
    """
    sizes_of(pomdp, planner)
    model = POMDP(*(np.array(part, dtype=np.float64, order="C") for part in pomdp))
    problems = [
        problem
        for name in ("initial", "transition", "emission")
        if not _probable(getattr(model, name))
        for problem in row_problems(name, getattr(model, name), model.spaces)
    ]
    if not np.isfinite(model.reward).all():
        h, x, a = np.argwhere(~np.isfinite(model.reward))[0]
        problems.append(
            Problem(
                "reward",
                f"{model.reward[h, x, a]}",
                "a finite number",
                at=f"step {h + 1}, x{x}, a{a}",
            )
        )
    refuse(planner, problems)
    return model


def _probable(table: Array) -> bool:
    """Whether all rows are probabilities; false where anything is not a number."""
    return bool((table >= 0).all() and (np.abs(table.sum(-1) - 1) <= FLOAT32).all())


def _remedy(name: str, shape: tuple[int, ...]) -> str:
    if 0 in shape:
        return "There must be at least one of each."
    if name == "reward" and len(shape) == 2:
        return "Repeat it for every step: np.repeat(reward[None], horizon, axis=0)."
    return "Plan the models of a batch one by one."
