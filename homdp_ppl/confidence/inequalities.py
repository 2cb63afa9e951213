"""Concentration inequalities: Weissman, Hoeffding and empirical Bernstein.

These are pure array functions: NumPy numbers give NumPy arrays, and traced numbers are traced.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np

from homdp_ppl.core.arguments import broadcast_problems, check_arguments, refuse
from homdp_ppl.errors import ParameterError
from homdp_ppl.precision import Array, in_x64, namespace


@in_x64
def weissman(n: Array | int, outcomes: Array | int, level: Array | float) -> Array:
    """An eps with P(||p-hat - p||_1 >= eps) <= level for p-hat from n draws.

    It is sqrt(2 log((2^d - 2) / level) / n), at most 2.

    Weissman et al., "Inequalities for the L1 deviation of the empirical distribution" (2003),
    Theorem 2.1 with phi >= 2.

    Parameters
    ----------
    n
        Number of draws; 0 gives 2.
    outcomes
        The number d of possible outcomes; 1 gives 0.
    level
        Allowed probability of error.

    Examples
    --------
    >>> round(float(weissman(200, 2, 0.05)), 6)  # sqrt(2 log(40) / 200)
    0.192065
    """
    _check_numbers("weissman", n=n, outcomes=outcomes, level=level)
    xp, of_outcomes = namespace(n, outcomes, level), namespace(outcomes)
    d = of_outcomes.asarray(outcomes, dtype=np.float64)
    plural = of_outcomes.maximum(d, 2)
    # log(2^d - 2) without overflow
    subsets = plural * math.log(2) + of_outcomes.log1p(-(2 ** (1 - plural)))
    return xp.where(d > 1, capped(xp, 1, 2 * (subsets - xp.log(level)), n, 2), 0.0)


@in_x64
def hoeffding(n: Array | int, span: float, level: float) -> Array:
    """An eps with P(|mean - expectation| >= eps) <= level.

    It is span sqrt(log(2 / level) / (2 n)), at most span.

    Hoeffding, "Probability inequalities for sums of bounded random variables" (1963), Theorem 2,
    both tails.

    Parameters
    ----------
    n
        Number of independent values; 0 gives the span.
    span
        Length of the interval that contains the values.
    level
        Allowed probability of error.

    Examples
    --------
    >>> round(float(hoeffding(50, 1.0, 0.1)), 6)
    0.173082
    """
    _check_numbers("hoeffding", n=n, span=span, level=level)
    xp = namespace(n, span, level)
    return capped(xp, span, xp.log(2 / level) / 2, n, span)


@in_x64
def bernstein(n: Array | int, variance: Array | float, span: float, level: float) -> Array:
    """The empirical Bernstein bound on |mean - expectation|, at most span.

    It is sqrt(2 V L / n) + 7 span L / (3 (n - 1)) with L = log(4 / level): Maurer and Pontil,
    "Empirical Bernstein bounds and sample variance penalization" (2009), Theorem 4, which has log(2
    / level) for one tail of values in [0, 1]; here each of the two tails has level / 2.

    Parameters
    ----------
    n, span, level
        As in :func:`hoeffding`; a single value gives the span too.
    variance
        V, the sample variance with n - 1 in the denominator.

    Examples
    --------
    >>> round(float(bernstein(1000, 0.01, 1.0, 0.1)), 6)
    0.017205
    """
    _check_numbers("bernstein", n=n, variance=variance, span=span, level=level)
    xp = namespace(n, variance, span, level)
    n = xp.asarray(n)
    log = xp.log(4 / level)
    counted = xp.where(n > 1, n, 2)
    bound = xp.sqrt(2 * variance * log / counted) + 7 * span * log / (3 * (counted - 1))
    return xp.where(n > 1, xp.minimum(bound, span), span)


def capped(
    xp: ModuleType, scale: Array | float, numerator: Array | float, n: Array | int, cap: float
) -> Array:
    """min(scale sqrt(numerator / n), cap); at n = 0 the cap, for every scale."""
    n = xp.asarray(n)
    root = scale * xp.sqrt(numerator / xp.where(n > 0, n, 1))
    return xp.where(n > 0, xp.minimum(root, cap), cap)


def _check_numbers(subject: str, **given: Any) -> None:
    """Raise :class:`ParameterError` for numbers outside their ranges, and for arrays that cannot be
    broadcast together.
    """
    check_arguments(subject, **given)
    refuse(ParameterError, subject, broadcast_problems(**given))
