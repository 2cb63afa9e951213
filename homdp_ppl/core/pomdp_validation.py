"""Validation of POMDPs: one model, shapes that fit, rows of probabilities, finite rewards."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.probabilities import FLOAT32, row_problems
from homdp_ppl.core.spaces import NO_TABLES
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

# B is A + 1; axes in lower case may be 1
AXES = {
    "initial": "X",
    "transition": "hXAX",
    "emission": "hbXY",
    "reward": "HXyA",
    "terminal": "X",
    "scale": "",
    "shift": "",
}


def numbers_of(model: Any, subject: str) -> POMDP:
    """The arrays that a planner, or whoever is the ``subject``, was handed.

    Refuses other models, and says where theirs are.
    """
    if isinstance(model, POMDP):
        return model
    kind = type(model).__name__
    remedies = {
        "World": "Pass its numbers: world.pomdp.",
        "HOMDP": "Fix its parameters first: model.at(...).pomdp.",
    }
    remedy = remedies.get(kind, "")
    if remedy and not model.spaces.finite:
        kind, remedy = f"{kind} with real-valued spaces", NO_TABLES
    raise PlanningError(
        subject, [Problem("model", f"a {kind}", "a POMDP, which is arrays", remedy)]
    )


def sizes_of(pomdp: POMDP, subject: str) -> tuple[int, int, int, int]:
    """X, Y, A and H of one model, from its shapes alone.

    Parameters
    ----------
    pomdp
        The model.
    subject
        Who asks, for the error.

    Raises
    ------
    PlanningError
        If the shapes are not those of one model.
    """
    shapes = dict(zip(AXES, map(np.shape, numbers_of(pomdp, subject)), strict=True))
    problems = [
        Problem(name, f"shape {shape}", _expected(name), _remedy(shape, AXES[name]))
        for name, shape in shapes.items()
        if len(shape) != len(AXES[name]) or 0 in shape
    ]
    if problems:
        raise PlanningError(subject, problems)
    (X, Y), A, H = shapes["emission"][2:], shapes["transition"][2], shapes["reward"][0]
    size = {"X": X, "Y": Y, "A": A, "H": H, "B": A + 1}
    problems = []
    for name, axes in AXES.items():
        fits = all(
            n == size[axis.upper()] or (axis.islower() and n == 1)
            for n, axis in zip(shapes[name], axes, strict=True)
        )
        if not fits:
            fitting = tuple(
                1 if axis.islower() and n == 1 else size[axis.upper()]
                for n, axis in zip(shapes[name], axes, strict=True)
            )
            expected = f"shape {fitting}: {_expected(name)}"
            problems.append(Problem(name, f"shape {shapes[name]}", expected))
    if problems:
        raise PlanningError(subject, problems)
    return X, Y, A, H


def validated(pomdp: POMDP, subject: str) -> POMDP:
    """A copy of one model in contiguous float64 arrays.

    Rows may miss a sum of one by as much as float32 makes them.

    Parameters
    ----------
    pomdp
        The model.
    subject
        Who asks, for the error.

    Raises
    ------
    PlanningError
        If the arrays are not one model; all problems at once.
    """
    sizes_of(pomdp, subject)
    model = POMDP(
        *(
            np.array(part, dtype=bool if name == "terminal" else np.float64, order="C")
            for name, part in zip(AXES, pomdp, strict=True)
        )
    )
    problems = [
        problem
        for name in ("initial", "transition", "emission")
        if not _probable(getattr(model, name))
        for problem in row_problems(name, getattr(model, name), model.spaces)
    ]
    if not np.isfinite(model.reward).all():
        h, x, y, a = index = np.argwhere(~np.isfinite(model.reward))[0]
        seen = f", y{y}" if model.rewards_by_observation else ""
        number, place = model.reward[tuple(index)], f"step {h + 1}, x{x}{seen}, a{a}"
        problems.append(Problem("reward", f"{number}", "a finite number", at=place))
    if problems:
        raise PlanningError(subject, problems)
    return model


def _probable(table: Array) -> bool:
    """Whether all rows are probabilities; false where anything is not a number."""
    return bool((table >= 0).all() and (np.abs(table.sum(-1) - 1) <= FLOAT32).all())


def _expected(name: str) -> str:
    words = {"h": "H or 1", "b": "A + 1 or 1", "y": "Y or 1"}
    axes = ", ".join(words.get(axis, axis) for axis in AXES[name])
    return f"the axes {axes}" if axes else "a number"


def _remedy(shape: tuple[int, ...], axes: str) -> str:
    if 0 in shape:
        return "There must be at least one of each."
    if len(shape) > len(axes):
        return "Plan the models of a batch one by one."
    return "POMDP.of(initial, transition, emission, reward, horizon) accepts short forms."
