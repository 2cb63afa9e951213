"""Bounds on the value of the behaviour from logged returns, without a model."""

from __future__ import annotations

import jax
import numpy as np

from homdp_ppl.confidence.sequences import Interval
from homdp_ppl.core.arguments import check_arguments, refuse
from homdp_ppl.core.checked import TRACED, checked
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.errors import DataError, Problem, TracedError
from homdp_ppl.precision import Array

MOST = 0.75  # the largest bet


@checked
def returns_interval(returns: Array, low: float, high: float, delta: float = 0.1) -> Interval:
    """An interval for the mean of returns, by an empirical Bernstein bound for martingales.

    With probability 1 - delta it contains the mean, for every law on [low, high]: Waudby-Smith and
    Ramdas, "Estimating means of bounded random variables by betting", Theorem 2. The n-th return is
    weighted by a bet that depends on the variance of the returns before it. If the policy changed
    over time, the interval is for the mean of its values with these weights.

    Parameters
    ----------
    returns
        The return of each episode, in the order of the log, (n,).
    low, high
        The range of possible returns.
    delta
        Allowed probability of error.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = returns_interval(np.array([1.0, 2.0] * 200), low=0.0, high=4.0)
    >>> low.round(2), high.round(2)
    (np.float64(1.41), np.float64(1.59))
    """
    check_arguments("returns_interval", delta=delta)
    numbers, problems = as_numbers("returns", returns, "returns of episodes, (n,)")
    if numbers is None or problems or numbers.ndim != 1 or not len(numbers):
        found = f"shape {np.shape(returns)}"
        problems = problems or [Problem("returns", found, "returns of episodes, (n,)")]
        refuse(DataError, "returns_interval", problems)
    assert numbers is not None
    refuse_traced(numbers)
    low, high = _number(low), _number(high)
    if not (np.isfinite([low, high]).all() and low < high):
        problem = Problem("low, high", f"{low:g} and {high:g}", "finite numbers, low < high")
        refuse(DataError, "returns_interval", [problem])
    inside = (np.asarray(numbers, dtype=np.float64) - low) / (high - low)
    slack = 1e-9
    if not ((inside >= -slack) & (inside <= 1 + slack)).all():
        got = f"{numbers.min():g} to {numbers.max():g}"
        refuse(DataError, "returns_interval", [Problem("returns", got, f"{low:g} to {high:g}")])
    centre, radius = _bernstein(np.clip(inside, 0.0, 1.0), delta)
    ends = np.clip([centre - radius, centre + radius], 0.0, 1.0)
    return Interval(*(low + (high - low) * ends))


def refuse_traced(returns: Array) -> None:
    """Raise an error for traced values."""
    if isinstance(returns, jax.core.Tracer):
        problem = Problem("returns", "traced JAX values", "numbers", TRACED)
        raise TracedError("returns_interval", [problem])


def _number(value: float) -> float:
    """A number as a float; NaN if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return float("nan")


def _bernstein(x: Array, delta: float) -> tuple[float, float]:
    """The weighted mean of x in [0, 1], and the radius."""
    n, log = len(x), float(np.log(2 / delta))
    number = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x)) / (number + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (number + 1)
    mean_before = np.concatenate([[0.5], mean[:-1]])
    variance_before = np.concatenate([[0.25], variance[:-1]])
    bet = np.minimum(np.sqrt(2 * log / (n * variance_before)), MOST)
    cost = 4 * (x - mean_before) ** 2 * (-np.log1p(-bet) - bet) / 4
    return float((bet * x).sum() / bet.sum()), float((log + cost.sum()) / bet.sum())
