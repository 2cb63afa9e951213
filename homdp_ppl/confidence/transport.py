"""The transport bound: how much the mean of a function can grow within a box of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.core.arguments import broadcast_problems, refuse
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array, in_x64, namespace

ROUNDING = 1e-12  # relative error of sums of probabilities; every lam is sound


@in_x64
def transport_bound(up: Array, down: Array, high: Array, low: Array) -> Array:
    """A bound on (p - p-hat) . g over p near p-hat and functions g between ``low`` and ``high``.

    The distributions p have p-hat_i - down_i <= p_i <= p-hat_i + up_i and the same sum as p-hat.
    The bound is the dual of this transport problem,

        D = min over lam of sum_i max(up_i (high_i - lam), down_i (lam - low_i)).

    With high = low = g it is the exact maximum of (p - p-hat) . g. With high = 1 and low = 0 it
    bounds the total variation. The minimum is at a kink lam_i = (up_i high_i + down_i low_i) /
    (up_i + down_i), which is found by sorting. Can be traced.

    Parameters
    ----------
    up, down
        How far each entry can move, (..., d), not negative.
    high, low
        Bounds on the function, (..., d).

    Examples
    --------
    >>> up, down, g = np.array([0.1, 0.2]), np.array([0.2, 0.1]), np.array([0.0, 3.0])
    >>> round(float(transport_bound(up, down, g, g)), 6)  # 0.2 moves from 0 to 3
    0.6
    >>> round(float(transport_bound(up, down, np.ones(2), np.zeros(2))), 6)
    0.2
    """
    _check(up, down, high, low)
    return transport(up, down, high, low)


def transport(up: Array, down: Array, high: Array, low: Array) -> Array:
    """:func:`transport_bound` without validation."""
    xp = namespace(up, down, high, low)
    up, down, high, low = xp.broadcast_arrays(up, down, high, low)
    weight = up + down
    free = weight > 0
    kink = xp.where(free, (up * high + down * low) / xp.where(free, weight, 1.0), xp.inf)
    order = xp.argsort(kink, axis=-1)
    # the slope of the sum is -sum(up) on the left, and each kink adds its weight
    risen = xp.cumsum(xp.take_along_axis(weight, order, axis=-1), axis=-1)
    first = (risen >= (1 - ROUNDING) * up.sum(-1, keepdims=True)).argmax(-1)[..., None]
    best = xp.take_along_axis(order, first, axis=-1)
    lam = xp.take_along_axis(kink, best, axis=-1)
    lam = xp.where(xp.isfinite(lam), lam, 0.0)  # only if nothing can move
    return xp.maximum(up * (high - lam), down * (lam - low)).sum(-1)


def _check(*given: Any) -> None:
    names = ("up", "down", "high", "low")
    problems = []
    for name, value in zip(names, given, strict=True):
        numbers, wrong = as_numbers(name, value, "numbers of shape (..., d)")
        problems += wrong
        if numbers is None or wrong:
            continue
        if numbers.ndim == 0 or not numbers.shape[-1]:
            problems.append(Problem(name, f"shape {numbers.shape}", "shape (..., d)"))
        elif not isinstance(numbers, np.ndarray):
            continue  # may be traced
        elif not np.isfinite(numbers).all():
            problems.append(Problem(name, "entries that are not finite", "finite numbers"))
        elif name in ("up", "down") and (numbers < 0).any():
            problems.append(Problem(name, "negative entries", "non-negative numbers"))
    problems = problems or broadcast_problems(**dict(zip(names, given, strict=True)))
    refuse(ParameterError, "transport_bound", problems)
