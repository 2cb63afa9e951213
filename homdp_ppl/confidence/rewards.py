"""Confidence sets for the means of unknown or random rewards.

Each row of the reward law, (step,) state, (observation,) action, has one mean. It is estimated by
the average of the recorded rewards. Means, radii and spans are for rewards in [0, 1]. Rows of
terminal states are known: they earn 0 in the user's units.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.reward_counts import RewardCounts
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.spaces import after_end
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array, namespace


def unknown_rewards(homdp: HOMDP, known: bool = True) -> Array:
    """Which rows of the reward law have to be learned, (H|1, X, Y|1, A); none if it is known.

    Parameters
    ----------
    homdp
        The declaration.
    known
        Whether rows that depend on no site are known.
    """
    law = homdp.rewards.law
    if law is None:
        return np.zeros((1, 1, 1, 1), dtype=bool)
    used = ~after_end(law.form.shape, homdp.spaces)
    return used & ~homdp.structure.tables["reward"].known if known else used


def reward_cells(homdp: HOMDP) -> int:
    """The number of pairs of a reward row and its visits in one episode; 0 if rewards are known."""
    law = homdp.rewards.law
    if law is None:
        return 0
    used = ~after_end(law.form.shape, homdp.spaces)
    return int(law.form.steps(homdp.horizon)[used].sum())


def reward_radius(
    homdp: HOMDP, counts: Counts, level: float, scale: float = 1.0, known: bool = True
) -> Array | float:
    """Hoeffding's radius of the mean of every reward row, (H|1, X, Y|1, A); 0 if it is known.

    It is scale sqrt(log(2 / level) / (2 n)), at most 1, after n recorded rewards.

    Parameters
    ----------
    homdp, counts
        The declaration and the data.
    level
        Allowed probability of error for one row and one number of rewards.
    scale
        A factor for the square root, but not for the cap.
    known
        Whether rows that depend on no site have radius 0.
    """
    if homdp.rewards.law is None:
        return 0.0
    require_bounded(homdp)
    n = recorded(counts).number
    xp = namespace(n, level)
    root = scale * xp.sqrt(xp.log(2 / level) / 2 / xp.where(n > 0, n, 1))
    radius = xp.where(n > 0, xp.minimum(root, 1.0), 1.0)
    return xp.where(unknown_rewards(homdp, known), radius, 0.0)


def empirical_rewards(homdp: HOMDP, counts: Counts, known: bool = True) -> Array:
    """The average of the recorded rewards of every row, (H, X, Y|1, A), in [0, 1].

    Rows without recorded rewards have the middle of their possible outcomes, or of the range.
    Arguments are as in :func:`reward_radius`.
    """
    law, rewards = homdp.rewards.law, homdp.rewards
    assert law is not None
    seen, table = recorded(counts), homdp.structure.tables["reward"]
    xp = namespace(seen.number)
    middle: Array = np.full(law.form.shape, 0.5 * rewards.scale + rewards.shift)
    if law.form.outcomes is not None:
        middle = (table.support * law.form.outcomes).sum(-1) / np.maximum(table.support.sum(-1), 1)
    average = xp.where(
        seen.number > 0, seen.total / xp.where(seen.number > 0, seen.number, 1), middle
    )
    exact = law.mean(table.reference)
    means = xp.where(unknown_rewards(homdp, known), average, exact)
    inside = xp.clip((means - rewards.shift) / rewards.scale, 0.0, 1.0)
    return xp.broadcast_to(inside, (homdp.horizon, *inside.shape[1:]))


def with_optimistic_rewards(model: POMDP, radius: Array | float) -> POMDP:
    """The model with the radius added to its rewards, at most 1, the largest possible mean.

    Parameters
    ----------
    model
        The model.
    radius
        Of the mean rewards, (H|1, X, Y|1, A); 0.0 if they are known.
    """
    if isinstance(radius, float) and radius == 0:
        return model
    return model._replace(
        reward=namespace(model.reward, radius).minimum(model.reward + radius, 1.0)
    )


def recorded(counts: Counts) -> RewardCounts:
    """The statistics of recorded rewards; :func:`check_counts` ensures that they exist."""
    return cast(RewardCounts, counts.rewards)


def require_bounded(homdp: HOMDP) -> None:
    """Raise :class:`ParameterError` if random rewards may leave the declared range."""
    law = homdp.rewards.law
    if law is None or law.bounded:
        return
    low, high = homdp.rewards.bounds
    got = f"a reward law with values outside of [{low:g}, {high:g}]"
    remedy = (
        "Use a law on this range, such as dist.Beta or dist.TruncatedNormal, or a rule without "
        "radii from counts, such as posterior_sampling."
    )
    expected = "a law whose values are in reward_range, for rules with frequentist radii"
    raise ParameterError(homdp.name, [Problem("reward", got, expected, remedy)])
