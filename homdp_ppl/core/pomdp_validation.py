"""Validation of POMDPs: shapes, rows of probabilities, finite rewards."""

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
    """Return a POMDP unchanged; raise a PlanningError with a remedy for anything else.

    ``subject`` is the planner or function named in the error.
    """
    if isinstance(model, POMDP):
        return model
    kind = type(model).__name__
    remedies = {
        "World": "Pass its arrays: world.pomdp.",
        "HOMDP": "Fix its parameters first: model.at(...).pomdp.",
    }
    remedy = remedies.get(kind, "")
    if remedy and not model.spaces.finite:
        kind, remedy = f"{kind} with real-valued spaces", NO_TABLES
    raise PlanningError(subject, [Problem("model", f"a {kind}", "a POMDP", remedy)])


def sizes_of(pomdp: POMDP, subject: str) -> tuple[int, int, int, int]:
    """The sizes X, Y, A and H of one model, from the shapes of its arrays.

    Parameters
    ----------
    pomdp
        The model.
    subject
        The calling function, named in the error.

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
    """Report wrong shapes of one model; cached, because many models share their shapes."""
    shapes = dict(zip(FULL, given, strict=True))
    batch = [
        Problem(name, f"shape {shape}", full_axes(name), shape_remedy(shape, FULL[name]))
        for name, shape in shapes.items()
        if len(shape) > len(FULL[name])
    ]
    return tuple(batch or fit_problems(shapes))


def _ragged(pomdp: POMDP) -> list[Problem]:
    """Report fields that are ragged lists."""
    problems = []
    for name, part in zip(FULL, pomdp, strict=True):
        try:
            np.shape(part)
        except ValueError:
            problems.append(Problem(name, "rows of different lengths", full_axes(name)))
    return problems


def validated(pomdp: POMDP, subject: str) -> POMDP:
    """A validated copy of one model, in contiguous float64 arrays.

    The sums of rows may differ from 1 by the rounding of float32.

    Parameters
    ----------
    pomdp
        The model.
    subject
        The calling function, named in the error.

    Raises
    ------
    PlanningError
        If the arrays are not one valid model; all problems are reported together.
    """
    return POMDP(
        *(
            np.array(part, dtype=bool if name == "terminal" else np.float64, order="C")
            for name, part in zip(FULL, check_pomdp(pomdp, subject), strict=True)
        )
    )


def check_pomdp(pomdp: Any, subject: str) -> POMDP:
    """Return a valid model with NumPy arrays; raise the errors of :func:`validated` otherwise.

    NumPy arrays are not copied; lists and JAX arrays are converted. Traced numbers cannot be
    checked and are accepted.
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
        elif number is not None and name == "scale" and np.asarray(number) <= 0:
            problems.append(Problem(name, shown(pomdp.scale), "a positive number"))
    if problems:
        raise PlanningError(subject, problems)
    return POMDP(*map(np.asarray, pomdp))


def _field_problems(name: str, given: Any, sizes: tuple[int, int, int, int]) -> list[Problem]:
    """Report invalid numbers of a table."""
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
    """Whether all rows are probabilities; False if there is any NaN."""
    return bool(table.min() >= 0 and np.abs(table.sum(-1) - 1).max() <= FLOAT32)
