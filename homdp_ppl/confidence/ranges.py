"""Ranges of values: what an agent that sees the state can gain at most and at least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.sets import Box, Sets, check_sets
from homdp_ppl.confidence.transport import transport
from homdp_ppl.core.checked import checked
from homdp_ppl.precision import Array, in_x64, namespace


class Ranges(NamedTuple):
    """Bounds on the remaining return of every policy from each state, for rewards in [0, 1].

    If all rows are in their sets, the value of every policy from every history with state x at step
    h is between ``low[h, x]`` and ``high[h, x]``. If the reward depends on the observation, the
    entries with an axis Y are for a known observation y_h; otherwise this axis has size 1.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> from homdp_ppl.confidence import confidence_sets
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> ranges = value_ranges(confidence_sets(tiger, Counts.zero(tiger)))
    >>> ranges.high_action[1, 0, 0]  # the last step, with the tiger on the left
    array([0.9, 0. , 1. ])
    """

    high: Array  # (H, X)            M_h(x)
    low: Array  # (H, X)            m_h(x)
    high_seen: Array  # (H, X, Y|1)       M_h(x, y)
    low_seen: Array  # (H, X, Y|1)       m_h(x, y)
    high_action: Array  # (H, X, Y|1, A)    Mq_h(x, y, a)


@checked
@in_x64
def value_ranges(sets: Sets) -> Ranges:
    """The largest and smallest values of an agent that sees the state, over all models in the sets.

    With M_{H+1} = m_{H+1} = 0 and :func:`transport_bound` D,

        M_h(x) = max_a [r_h(x, a) + T-hat M_{h+1} + D(up, down, M_{h+1}, M_{h+1})],
        m_h(x) = min_a [r_h(x, a) + T-hat m_{h+1} - D(up, down, -m_{h+1}, -m_{h+1})].

    If the reward depends on the observation, the maximum and minimum are also over the possible
    observations. An unknown mean reward is at the upper or lower end of its interval.

    Parameters
    ----------
    sets
        The result of :func:`confidence_sets`.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> from homdp_ppl.confidence import confidence_sets
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> ranges = value_ranges(confidence_sets(tiger, Counts.zero(tiger)))
    >>> ranges.high.tolist(), ranges.low.tolist()  # open the right or the wrong door each time
    ([[2.0, 2.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])
    """
    check_sets(sets, "value_ranges")
    model, xp = sets.centre, namespace(sets)
    X, _, A = model.sizes
    high = low = xp.zeros(X)
    rows: list[tuple[Array, ...]] = []
    for h in reversed(range(model.horizon)):
        best, worst = xp.zeros((X, A)), xp.zeros((X, A))
        if h + 1 < model.horizon:
            moves = sets.moves(h)
            best, worst = largest_mean(moves, high), -largest_mean(moves, -low)
        rewards = sets.reward.low[h], sets.reward.high[h]  # (X, Y|1, A)
        low_action, high_action = rewards[0] + worst[:, None], rewards[1] + best[:, None]
        high_seen, low_seen = high_action.max(-1), low_action.min(-1)  # (X, Y|1)
        possible = _possible(sets, h) if rewards[0].shape[1] > 1 else np.ones((X, 1), dtype=bool)
        high = xp.where(possible, high_seen, -xp.inf).max(-1)
        low = xp.where(possible, low_seen, xp.inf).min(-1)
        rows.append((high, low, high_seen, low_seen, high_action))
    return Ranges(*(xp.stack(column[::-1]) for column in zip(*rows, strict=True)))


def largest_mean(box: Box, g: Array) -> Array:
    """The largest p . g over the distributions p of a box; the last axis is summed."""
    mean = (box.centre * g).sum(-1)
    if isinstance(box.up, np.ndarray) and not box.up.any():
        return mean  # known rows
    return mean + transport(box.up, box.down, g, g)


def _possible(sets: Sets, h: int) -> Array:
    """Which observations are possible at step h in some model of the sets, (X, Y)."""
    emission = sets.centre.emission + sets.up.emission
    at_step = emission[min(h, len(emission) - 1)]
    return (at_step > 0).any(0)
