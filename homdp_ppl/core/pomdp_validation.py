"""Validation of POMDPs: one model, shapes that fit, rows of probabilities, finite rewards."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.numbers import as_numbers, masked_problems
from homdp_ppl.core.pomdp import POMDP, numbered_spaces
from homdp_ppl.core.pomdp_shapes import FULL, fit_problems, full_axes, full_shape, shape_remedy
from homdp_ppl.core.probabilities import FLOAT32, row_problems
from homdp_ppl.core.spaces import NO_TABLES
from homdp_ppl.errors import PlanningError, Problem, shown
from homdp_ppl.precision import Array


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
    numbers_of(pomdp, subject)
    try:
        shapes = tuple(map(np.shape, pomdp))
    except ValueError:  # of NumPy, for lists of different lengths
        raise PlanningError(subject, _ragged(pomdp)) from None
    problems = _shape_problems(shapes)
    if problems:
        raise PlanningError(subject, problems)
    (_, _, A, _), (_, _, X, Y), (H, *_) = shapes[1:4]
    return X, Y, A, H


@lru_cache(maxsize=256)
def _shape_problems(given: tuple[tuple[int, ...], ...]) -> tuple[Problem, ...]:
    """What is wrong with the shapes of one model; models of one size are many."""
    shapes = dict(zip(FULL, given, strict=True))
    batch = [
        Problem(name, f"shape {shape}", full_axes(name), shape_remedy(shape, FULL[name]))
        for name, shape in shapes.items()
        if len(shape) > len(FULL[name])
    ]
    return tuple(batch or fit_problems(shapes))


def _ragged(pomdp: POMDP) -> list[Problem]:
    """The fields that are nested lists without a shape."""
    problems = []
    for name, part in zip(FULL, pomdp, strict=True):
        try:
            np.shape(part)
        except ValueError:
            problems.append(Problem(name, "rows of different lengths", full_axes(name)))
    return problems


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
    return POMDP(
        *(
            np.array(part, dtype=bool if name == "terminal" else np.float64, order="C")
            for name, part in zip(FULL, check_pomdp(pomdp, subject), strict=True)
        )
    )


def check_pomdp(pomdp: Any, subject: str) -> POMDP:
    """The same model, if it is one; otherwise the errors of :func:`validated`.

    NumPy arrays are not copied; lists and JAX arrays become NumPy arrays. Numbers that JAX is
    tracing cannot be looked at and pass.
    """
    X, Y, A, H = sizes_of(pomdp, subject)
    if any(isinstance(part, jax.core.Tracer) for part in pomdp):
        traced: POMDP = pomdp
        return traced
    problems: list[Problem] = []
    for name in ("initial", "transition", "emission", "reward"):
        problems += _field_problems(name, getattr(pomdp, name), (X, Y, A, H))
    for name in ("terminal", "scale", "shift"):
        problems += masked_problems(name, getattr(pomdp, name))
    if not np.isin(np.asarray(pomdp.terminal), (0, 1)).all():
        got, expected = shown(pomdp.terminal), "True or False for each state"
        problems.append(Problem("terminal", got, expected))
    for name in ("scale", "shift"):
        number, wrong = as_numbers(name, getattr(pomdp, name), "without axes")
        problems += wrong
        if number is not None and not np.isfinite(np.asarray(number)):
            problems.append(Problem(name, shown(getattr(pomdp, name)), "a finite number"))
    if problems:
        raise PlanningError(subject, problems)
    return POMDP(*map(np.asarray, pomdp))


def _field_problems(name: str, given: Any, sizes: tuple[int, int, int, int]) -> list[Problem]:
    """What is wrong with the numbers of a table."""
    plain = type(given) is np.ndarray and given.dtype == np.float64
    table, problems = (given, []) if plain else as_numbers(name, given, full_shape(name))
    if table is None:
        return problems
    numbers = np.asarray(table)
    if name != "reward":
        return [] if _probable(numbers) else row_problems(name, numbers, numbered_spaces(*sizes))
    if np.isfinite(numbers).all():
        return []
    h, x, y, a = index = np.argwhere(~np.isfinite(numbers))[0]
    seen = f", y{y}" if numbers.shape[-2] > 1 else ""
    place = f"step {h + 1}, x{x}{seen}, a{a}"
    return [Problem("reward", f"{numbers[tuple(index)]}", "a finite number", at=place)]


def _probable(table: Array) -> bool:
    """Whether all rows are probabilities; false where anything is not a number."""
    return bool(table.min() >= 0 and np.abs(table.sum(-1) - 1).max() <= FLOAT32)
