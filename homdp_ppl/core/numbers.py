"""Conversion of user input (lists, NumPy and JAX arrays, data frames) to arrays of numbers.

Masked entries are missing data. Where every number is needed, they are reported as problems. The
values stored under a mask are never used.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import jax
import numpy as np

from homdp_ppl.errors import Problem, shown
from homdp_ppl.precision import Array

LISTED = 8  # masked entries that are reported individually
KINDS = "biuf"  # NumPy's kinds of real numbers
FILL = "Fill in the missing entries, or remove their rows."


def as_numbers(where: str, given: Any, expected: str) -> tuple[Array | None, list[Problem]]:
    """Convert a value to an array of real numbers; returns the array or None, and the problems.

    JAX arrays, traced or not, are returned unchanged; everything else is converted to float64.

    Parameters
    ----------
    where
        The name of the argument.
    given
        The value.
    expected
        A description of the expected shape.

    Examples
    --------
    >>> as_numbers("reward", [[0, 1]], "shape (X, A)")
    (array([[0., 1.]]), [])
    >>> print(*as_numbers("reward", ["a", "b"], "shape (X, A)")[1])
    reward: got ['a', 'b']; expected numbers of shape (X, A)
    """
    problems = masked_problems(where, given)
    if problems:
        return None, problems
    if isinstance(given, jax.Array):
        kind = "f" if jax.numpy.issubdtype(given.dtype, np.floating) else _kind(given)
        return (
            (given, []) if kind in tuple(KINDS) else (None, [_no_numbers(where, given, expected)])
        )
    try:
        found = np.asarray(given)
        missing = found.dtype.kind == "O" and any(value is None for value in found.ravel())
        readable = found.dtype.kind in KINDS + "O" and not missing
        numbers = found.astype(np.float64) if readable else None
    except (TypeError, ValueError, OverflowError):  # ragged lists, objects, huge integers
        numbers = None
    if numbers is None:
        return None, [_no_numbers(where, given, expected)]
    return numbers, []


def _kind(array: jax.Array) -> str:
    """NumPy's letter for the type of an array; random keys have none."""
    return str(getattr(array.dtype, "kind", "none"))


def masked_problems(where: str, given: Any) -> list[Problem]:
    """Report the masked entries of an array that must not have any."""
    if not isinstance(given, np.ma.MaskedArray) or not np.ma.is_masked(given):
        return []
    places = np.argwhere(np.ma.getmaskarray(given))
    problems = [
        Problem(where, "a masked entry", "a number", FILL, ", ".join(map(str, place)))
        for place in places[:LISTED]
    ]
    more = len(places) - LISTED
    if more > 0:
        problems.append(Problem(where, f"{more:,} more masked entries", "numbers", FILL))
    return problems


def _no_numbers(where: str, given: Any, expected: str) -> Problem:
    return Problem(where, shown(given), f"numbers of {expected}")


def is_number(value: Any) -> bool:
    """Whether a value is one real number; NaN is accepted."""
    if isinstance(value, jax.core.Tracer):
        return False
    if isinstance(value, int) and abs(value) >= 2**1023:  # no float
        return False
    if isinstance(value, jax.Array | np.ndarray):
        return value.ndim == 0 and getattr(value.dtype, "kind", "none") in ("i", "u", "f")
    return isinstance(value, Real) and not isinstance(value, bool)
