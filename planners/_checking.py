"""Validation of planners' options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.errors import PlanningError, Problem


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
