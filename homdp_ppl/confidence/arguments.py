"""What radii, bonuses and rules may be asked.

Probabilities, counts and scales within their ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from homdp_ppl.errors import ParameterError, Problem

WANTED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "delta": (lambda v: 0 < v < 1, "a probability in (0, 1)"),
    "level": (lambda v: 0 < v < 1, "a probability in (0, 1)"),
    "mass": (lambda v: 0 < v < 1, "a probability in (0, 1)"),
    "epsilon": (lambda v: 0 < v < 1, "a probability in (0, 1)"),
    "q": (lambda v: 0 < v < 1, "a probability in (0, 1)"),
    "episodes": (lambda v: 1 <= v < math.inf, "a number of at least 1"),
    "size": (lambda v: 1 <= v < math.inf, "a number of at least 1"),
    "scale": (lambda v: 0 <= v < math.inf, "a number of at least 0"),
    "z": (lambda v: 0 <= v < math.inf, "a number of at least 0"),
    "draws": (lambda v: isinstance(v, int | np.integer) and v >= 1, "a whole number of at least 1"),
    "span": (lambda v: 0 <= v < math.inf, "a length of at least 0"),
    "outcomes": (lambda v: np.all(np.asarray(v) >= 1), "numbers of at least 1"),
    "c": (lambda v: 1 <= v < math.inf, "a number of at least 1"),
}


def check_arguments(subject: str, **given: Any) -> None:
    """Refuse numbers outside their range, all at once; traced ones are let through."""
    problems = [
        Problem(name, repr(value), WANTED[name][1])
        for name, value in given.items()
        if not isinstance(value, jax.core.Tracer) and not _fits(WANTED[name][0], value)
    ]
    if problems:
        raise ParameterError(subject, problems)


def _fits(test: Callable[[Any], Any], value: Any) -> bool:
    try:
        return bool(test(value))
    except (TypeError, ValueError):
        return False
