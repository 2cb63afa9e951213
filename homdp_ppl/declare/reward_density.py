"""The log density of single recorded rewards, for laws that have no table of outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from homdp_ppl.core.reward_counts import RewardCounts
from homdp_ppl.declare.reward_law import reward_distribution
from homdp_ppl.precision import Array, in_x64

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP

SMALLEST = 64  # minimal number of rows of padded data


class Single(NamedTuple):
    """Recorded rewards, padded so that growing data cause few compilations."""

    row: Array  # (n,)  flat index of (h, x, y, a)
    reward: Array  # (n,)
    weight: Array  # (n,)  0 for padding


def padded(single: Array) -> Single:
    """Pad single rewards, (n, 2), to a power of two with copies of the first one."""
    n = len(single)
    size = max(SMALLEST, 1 << max(n - 1, 0).bit_length())
    index = np.where(np.arange(size) < n, np.arange(size), 0)
    rows = single[index] if n else np.zeros((size, 2))
    return Single(rows[:, 0].astype(np.int64), rows[:, 1], (np.arange(size) < n).astype(np.float64))


def log_rewards(kernel: Any, homdp: HOMDP, data: Single) -> Array:
    """The log density of recorded rewards under a reward kernel; can be traced."""
    law = homdp.rewards.law
    assert law is not None
    at = reward_distribution(kernel, homdp.spaces)

    def one(row: Array, reward: Array) -> Array:
        h, x, y, a = jnp.unravel_index(row, law.form.shape)
        return at(h, x, y, a).log_prob(reward)

    logs = jax.vmap(one)(jnp.asarray(data.row), jnp.asarray(data.reward))
    return jnp.sum(jnp.where(data.weight > 0, data.weight * logs, 0.0))


@in_x64
def log_rewards_at(homdp: HOMDP, parameters: Mapping[str, Array], data: Array) -> Array:
    """The log density of single rewards (n, 2) at many values of the sites, (draws,)."""

    def at(values: Mapping[str, Array], data: Single) -> Array:
        with handlers.block(), handlers.seed(rng_seed=0), handlers.substitute(data=dict(values)):
            kernel = homdp.function().reward
        return log_rewards(kernel, homdp, data)

    compiled = homdp.cache.get("log rewards", lambda: jax.jit(jax.vmap(at, in_axes=(0, None))))
    return np.asarray(compiled(dict(parameters), padded(data)))


def has_single(counts: RewardCounts | None) -> bool:
    """Whether the statistics contain single rewards."""
    return counts is not None and counts.single is not None
