"""What the formulas may be asked: positive whole numbers, and numbers between stated ends."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from homdp_ppl.errors import ParameterError, Problem

PROBABILITY = (1e-300, 1.0)  # delta strictly between; a smaller one overflows 1 / delta
ACCURACY = (1e-12, float("inf"))
TOLD = {PROBABILITY: "a number above 0 and below 1", ACCURACY: "a number above 1e-12"}


def check(
    subject: str,
    between: Mapping[str, tuple[Any, tuple[float, float]]] | None = None,
    **counts: Any,
) -> tuple[int, ...]:
    """The counts as numbers that cannot overflow.

    Refuses what is no count, and numbers outside their interval, all at once.

    Parameters
    ----------
    subject
        The function that was asked.
    between
        For each name the number, and the ends it must lie strictly between.
    counts
        Whole numbers of at least 1.
    """
    problems = [
        Problem(name, repr(value), "a whole number of at least 1")
        for name, value in counts.items()
        if not isinstance(value, Integral) or int(value) < 1
    ]
    problems += [
        Problem(
            name,
            repr(value),
            TOLD.get((low, high), f"a number strictly between {low:g} and {high:g}"),
        )
        for name, (value, (low, high)) in (between or {}).items()
        if not isinstance(value, Real) or not low < float(value) < high
    ]
    if problems:
        raise ParameterError(subject, problems)
    return tuple(int(value) for value in counts.values())
