"""Confidence sequences: intervals for a probability that hold at all times at once.

For k successes in n draws and a Beta(a, b) mixture, the ratio

    B(k + a, n - k + b) / B(a, b) / (p^k (1 - p)^(n - k))

is a non-negative martingale with mean 1 at the true p. By Ville's inequality, it ever exceeds
1 / level with probability at most ``level``. The interval contains the p for which it does not.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.scipy.special
import numpy as np
import scipy.special

from homdp_ppl.core.arguments import (
    between_problems,
    broadcast_problems,
    number_problems,
    probability_problems,
    refuse,
)
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array, in_x64, namespace

HALVINGS = 52  # bisection steps: the ends are exact up to rounding


class Interval(NamedTuple):
    """The ends of intervals.

    Examples
    --------
    >>> Interval(low=np.array(0.25), high=np.array(0.5)).width
    np.float64(0.25)
    """

    low: Array
    high: Array

    @property
    def width(self) -> Array:
        """The lengths of the intervals."""
        return self.high - self.low


@in_x64
def confidence_sequence(
    successes: Array | float,
    n: Array | int,
    level: Array | float = 0.1,
    a: Array | float = 0.5,
    b: Array | float = 0.5,
) -> Interval:
    """An interval for a probability; with probability 1 - level it contains p after every draw.

    It is the set of all p with

        k log p + (n - k) log(1 - p) >= log B(k + a, n - k + b) - log B(a, b) - log(1 / level).

    Draws must be independent given the past, but it may depend on the data when the next draw is
    made and when you look at the interval: there is no number of draws in the bound. Can be traced.

    Parameters
    ----------
    successes
        k, at most n. It need not be an integer: sums of values in [0, 1] are valid too, and then
        the interval is for their mean.
    n
        The number of draws; 0 gives [0, 1].
    level
        Allowed probability that p is ever outside.
    a, b
        The parameters of the mixture. A mixture that is concentrated around p makes the interval
        shorter, but every mixture is valid. The default is Jeffreys' Beta(1/2, 1/2).

    Examples
    --------
    >>> interval = confidence_sequence(30, 100, level=0.1)
    >>> round(float(interval.low), 4), round(float(interval.high), 4)
    (0.1731, 0.4519)
    >>> confidence_sequence(np.array([0, 3]), np.array([0, 3])).high
    array([1., 1.])
    """
    _check(successes, n, level, a, b)
    return mixture_interval(successes, n, level, a, b)


def mixture_interval(successes: Any, n: Any, level: Any, a: Any, b: Any) -> Interval:
    """:func:`confidence_sequence` without validation."""
    xp = namespace(successes, n, level, a, b)
    given = (xp.asarray(each) * 1.0 for each in (successes, n, level, a, b))
    k, draws, level, a, b = xp.broadcast_arrays(*given)
    others = draws - k
    least = _log_beta(xp, k + a, others + b) - _log_beta(xp, a, b) + xp.log(level)
    middle = xp.where(draws > 0, k / xp.where(draws > 0, draws, 1.0), 0.5)

    def halve(ends: tuple[Array, Array]) -> tuple[Array, Array]:
        inside, outside = ends
        p = (inside + outside) / 2
        kept = _times_log(xp, k, p) + _times_log(xp, others, 1 - p) >= least
        return xp.where(kept, p, inside), xp.where(kept, outside, p)

    # the ends that are returned are outside: rounding never makes an interval too short
    inside = xp.stack([middle, middle])
    outside = xp.stack([xp.zeros_like(middle), xp.ones_like(middle)])
    low, high = _repeat(xp, halve, (inside, outside))[1]
    return Interval(low, high)


def _repeat(xp: ModuleType, halve: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
    if xp is not np:
        traced: tuple[Array, Array] = jax.lax.fori_loop(0, HALVINGS, lambda _, e: halve(e), ends)
        return traced
    for _ in range(HALVINGS):
        ends = halve(ends)
    return ends


def _times_log(xp: ModuleType, n: Array, p: Array) -> Array:
    """N log p, and 0 if n = 0."""
    positive = (n > 0) & (p > 0)
    log = xp.log(xp.where(positive, p, 1.0))
    return xp.where(n > 0, xp.where(p > 0, n * log, -xp.inf), 0.0)


def _log_beta(xp: ModuleType, a: Array, b: Array) -> Array:
    log_gamma = scipy.special.gammaln if xp is np else jax.scipy.special.gammaln
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def _check(successes: Any, n: Any, level: Any, a: Any, b: Any) -> None:
    problems = number_problems(successes=successes, n=n) + probability_problems(level=level)
    problems += between_problems(0.0, np.inf, a=a, b=b)
    problems = problems or broadcast_problems(successes=successes, n=n, level=level, a=a, b=b)
    traced = any(isinstance(each, jax.core.Tracer) for each in (successes, n))
    if not problems and not traced and np.any(np.asarray(successes) > np.asarray(n)):
        problems.append(Problem("successes", "more successes than draws", "at most n"))
    refuse(ParameterError, "confidence_sequence", problems)
