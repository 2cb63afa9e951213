"""Validation of POMDPs: shapes, rows of probabilities, finite rewards."""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Integral
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.numbers import as_numbers, masked_problems
from homdp_ppl.core.pomdp import POMDP, numbered_spaces
from homdp_ppl.core.pomdp_shapes import FULL, fit_problems, full_axes, full_shape, shape_remedy
from homdp_ppl.core.probabilities import FLOAT32, row_problems
from homdp_ppl.core.spaces import NO_TABLES, Spaces
from homdp_ppl.core.sparse import Sparse, as_dense, row_sums
from homdp_ppl.errors import DataError, PlanningError, Problem, shown, with_article
from homdp_ppl.precision import Array

SMALL = 200  # numbers; Python's functions are faster than NumPy's for such tables
FLOAT64, BOOL = np.dtype(np.float64), np.dtype(bool)


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
    raise PlanningError(subject, [Problem("model", with_article(kind), "a POMDP", remedy)])


def sizes_of(pomdp: POMDP, subject: str, batch: bool = False) -> tuple[int, int, int, int]:
    """The sizes X, Y, A and H of a model, from the shapes of its arrays.

    Parameters
    ----------
    pomdp
        The model.
    subject
        The calling function, named in the error.
    batch
        Whether extra leading axes, of candidates, are allowed.

    Raises
    ------
    PlanningError
        If the shapes are not those of a model.
    """
    numbers_of(pomdp, subject)
    try:
        shapes = tuple(map(np.shape, pomdp))
    except ValueError:  # of NumPy, for lists of different lengths
        raise PlanningError(subject, _ragged(pomdp)) from None
    problems = _shape_problems(shapes, batch)
    if problems:
        raise PlanningError(subject, problems)
    (*_, A, _), (*_, X, Y), (*_, H, _, _, _) = shapes[1:4]
    return X, Y, A, H


@lru_cache(maxsize=256)
def _shape_problems(given: tuple[tuple[int, ...], ...], batch: bool) -> tuple[Problem, ...]:
    """Report wrong shapes of a model; cached, because many models share their shapes."""
    shapes = dict(zip(FULL, given, strict=True))
    several = [
        Problem(name, f"shape {shape}", full_axes(name), shape_remedy(shape, FULL[name]))
        for name, shape in shapes.items()
        if len(shape) > len(FULL[name]) and not batch
    ]
    problems = several or fit_problems(shapes)
    leading = {shape[: len(shape) - len(FULL[name])] for name, shape in shapes.items()}
    if not problems and len(leading) > 1:
        got = ", ".join(map(str, sorted(leading)))
        problems = [Problem("model", f"leading axes {got}", "the same axes of candidates in all")]
    return tuple(problems)


def _ragged(pomdp: POMDP) -> list[Problem]:
    """Report fields that are ragged lists."""
    problems = []
    for name, part in zip(FULL, pomdp, strict=True):
        try:
            np.shape(part)
        except ValueError:
            problems.append(Problem(name, "rows of different lengths", full_axes(name)))
    return problems


def validated(pomdp: POMDP, subject: str, sparse: bool = False) -> POMDP:
    """A validated copy of one model, in contiguous float64 arrays.

    The sums of rows may differ from 1 by the rounding of float32.

    Parameters
    ----------
    pomdp
        The model.
    subject
        The calling function, named in the error.
    sparse
        Whether sparse transitions are kept, as in :func:`check_pomdp`.

    Raises
    ------
    PlanningError
        If the arrays are not one valid model; all problems are reported together.
    """
    return POMDP(
        *(
            part
            if isinstance(part, Sparse)
            else np.array(part, dtype=bool if name == "terminal" else np.float64, order="C")
            for name, part in zip(FULL, check_pomdp(pomdp, subject, sparse), strict=True)
        )
    )


def check_pomdp(pomdp: Any, subject: str, sparse: bool = False) -> POMDP:
    """Return a valid model with NumPy arrays; raise the errors of :func:`validated` otherwise.

    NumPy arrays are not copied; lists and JAX arrays are converted. Traced numbers cannot be
    checked and are accepted. Sparse transitions are made dense, if they fit into the memory budget,
    unless the caller supports them (``sparse``).
    """
    sizes = sizes_of(pomdp, subject)
    model: POMDP = pomdp
    if not _evidently_valid(model) and not _traced(model):
        problems = _number_problems(model, sizes)
        if problems:
            raise PlanningError(subject, problems)
        model = POMDP(*map(_as_array, model))
    if model.is_sparse and not sparse:
        return model._replace(transition=as_dense(model.transition, subject))
    return model


def _as_array(part: Any) -> Any:
    if isinstance(part, Sparse):
        return Sparse(np.asarray(part.values, dtype=np.float64), part.pattern)
    return np.asarray(part)


def check_candidates(pomdp: Any, subject: str) -> POMDP:
    """Like :func:`check_pomdp`, for several models along leading axes, or one without them."""
    sizes_of(pomdp, subject, batch=True)
    candidates: POMDP = pomdp
    if _evidently_valid(candidates) or _traced(candidates):
        return candidates
    arrays = POMDP(  # masked arrays keep their masks
        *(part if isinstance(part, Sparse) else np.asanyarray(part) for part in candidates)
    )
    for place in np.ndindex(arrays.initial.shape[:-1]):
        check_pomdp(POMDP(*(part[place] for part in arrays)), subject, sparse=True)
    return POMDP(*map(_as_array, arrays))


def check_parameters(parameters: Any, subject: str) -> None:
    """Raise the errors of :func:`check_candidates` for models among the parameters of a backup."""
    parts = parameters if isinstance(parameters, tuple) else ()
    for part in (parameters, *parts):
        if isinstance(part, POMDP):
            check_candidates(part, subject)


def spaces_of(model: Any, subject: str) -> Spaces:
    """The spaces of a model; the numbers of a POMDP are validated.

    Raises
    ------
    DataError
        If the model has no spaces.
    PlanningError
        If it is an invalid POMDP.
    """
    if isinstance(model, POMDP):
        return check_pomdp(model, subject, sparse=True).spaces
    spaces = getattr(model, "spaces", None)
    if isinstance(spaces, Spaces) and all(isinstance(part, tuple) for part in spaces[:3]):
        steps = spaces.horizon
        if isinstance(steps, Integral) and not isinstance(steps, bool) and steps >= 1:
            return spaces
        expected = "an integer of at least 1"
        raise DataError(subject, [Problem("horizon", shown(steps), expected)])
    remedy = 'Load a model by its name: models.load("tiger").' if isinstance(model, str) else ""
    expected = "a HOMDP, a World, a POMDP or Spaces"
    raise DataError(subject, [Problem("model", shown(model), expected, remedy)])


def _number_problems(pomdp: POMDP, sizes: tuple[int, int, int, int]) -> list[Problem]:
    """Report invalid numbers of a model."""
    problems: list[Problem] = []
    for name in ("initial", "transition", "emission", "reward"):
        problems += _field_problems(name, getattr(pomdp, name), sizes)
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
    return problems


def _traced(pomdp: POMDP) -> bool:
    return any(isinstance(part, jax.core.Tracer) for part in jax.tree.leaves(tuple(pomdp)))


def _evidently_valid(pomdp: POMDP) -> bool:
    """Whether a model of plain NumPy arrays is valid; False if this needs a closer look.

    Almost all models pass this test, which allocates little and calls NumPy a few times.
    """
    *numbers, terminal, scale, shift = pomdp
    for part in numbers:
        kept = part.values if isinstance(part, Sparse) else part
        if type(kept) is not np.ndarray or kept.dtype is not FLOAT64:
            return False
    for part in (scale, shift):  # numbers, if a model was taken from several
        if type(part) not in (np.ndarray, np.float64) or part.dtype is not FLOAT64:
            return False
    *tables, reward = numbers
    return (
        type(terminal) is np.ndarray
        and terminal.dtype is BOOL
        and all(map(_probable, tables))
        and bool(np.isfinite(reward).all())
        and all(map(_finite, (scale, shift)))
        and bool((scale > 0).all())
    )


def _field_problems(name: str, given: Any, sizes: tuple[int, int, int, int]) -> list[Problem]:
    """Report invalid numbers of a table."""
    if isinstance(given, Sparse):
        return [] if _probable(given) else row_problems(name, given, numbered_spaces(*sizes))
    table, problems = as_numbers(name, given, full_shape(name))
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


def _finite(part: Array) -> bool:
    """Whether a number, or one number per candidate, is finite."""
    return bool(np.isfinite(part).all()) if part.ndim else math.isfinite(part)


def _probable(table: Any) -> bool:
    """Whether all rows are probabilities; False if there is any NaN."""
    low, high = 1 - FLOAT32, 1 + FLOAT32
    if isinstance(table, Sparse):
        sums, values = row_sums(table), np.asarray(table.values)
        return bool(values.min() >= 0 and sums.min() >= low and sums.max() <= high)
    if table.size <= SMALL:
        negative = min(table.ravel().tolist()) < 0  # misses NaN, which the sums do not
        return not negative and all(low <= s <= high for s in table.sum(-1).ravel().tolist())
    if not table.min() >= 0:
        return False
    sums = table.sum(-1)
    return bool(sums.min() >= low and sums.max() <= high)
