"""Random keys, the noise of an episode, and sampling from it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.errors import DataError, Problem, TracedError, shown
from homdp_ppl.precision import Array, namespace

HINDSIGHT = 2**32 - 3  # the number of the key for labels and reveals, under that for rewards
REWARDS = 2**32 - 2  # the number of the world's key for rewards; steps have smaller numbers


class Noise(NamedTuple):
    """The uniform random numbers of an episode.

    Those of the world and of the policy come from different keys.
    """

    state: Array  # (H + 1,)
    observation: Array  # (H,)
    action: Array  # (H,)


def noise(world_key: Array, policy_key: Array, horizon: int) -> Noise:
    """Draw the noise of one episode.

    The numbers of step h depend only on the keys and h. Rules with the same key therefore use
    common random numbers.
    """
    world = jax.vmap(lambda h: jax.random.uniform(jax.random.fold_in(world_key, h), (2,)))(
        jnp.arange(horizon + 1)
    )
    action = jax.vmap(lambda h: jax.random.uniform(jax.random.fold_in(policy_key, h)))(
        jnp.arange(horizon)
    )
    return Noise(world[:, 0], world[:-1, 1], action)


def reward_key(world_key: Array) -> Array:
    """The key of the rewards of an episode, from the key of the world.

    Rewards have keys of their own: random rewards change nothing else in an episode.
    """
    return jax.random.fold_in(world_key, REWARDS)


def hindsight_key(reward: Array) -> Array:
    """The key of what hindsight shows of an episode, from the key of its rewards."""
    return jax.random.fold_in(reward, HINDSIGHT)


def choose(row: Array, uniform: Array | float) -> Array:
    """Sample from probabilities with a uniform number; never an outcome of probability zero."""
    xp = namespace(row, uniform)
    below = xp.sum(xp.cumsum(row) <= uniform)
    last = xp.max(xp.where(row > 0, xp.arange(len(row)), 0))
    return xp.minimum(below, last)


def is_key(key: object) -> bool:
    """Whether a value is one or several JAX random keys, typed or old-style."""
    if not isinstance(key, jax.Array | np.ndarray):
        return False
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return True
    return key.dtype == np.uint32 and key.ndim > 0 and key.shape[-1] == 2


def number_of_keys(key: Array) -> int:
    """The number of keys in an array that :func:`is_key` accepts; old-style keys are pairs."""
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    return int(key.size) if typed else int(key.size) // 2


def as_keys(key: Array, subject: str) -> Array:
    """Convert keys, typed or old-style, to typed JAX keys.

    ``subject`` is the calling function, named in the error for invalid keys.
    """
    if is_key(key):
        typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        return key if typed else jax.random.wrap_key_data(jnp.asarray(key))
    got = shown(key)
    raise DataError(
        subject,
        [
            Problem(
                "key",
                got,
                "a JAX random key",
                "Use jax.random.key(0), or jax.random.split(key, n).",
            )
        ],
    )


def refuse_traced_key(key: Array, subject: str) -> None:
    """Raise an error for traced keys, for functions whose control flow depends on the draws."""
    if isinstance(key, jax.core.Tracer):
        remedy = "Call this function outside of jit, vmap and grad."
        problem = Problem("key", "a traced key", "a key with a value", remedy)
        raise TracedError(subject, [problem])


def as_key(key: Array, subject: str) -> Array:
    """Convert to one typed JAX key; raises an error for several keys."""
    keys = as_keys(key, subject)
    if keys.ndim:
        raise DataError(
            subject,
            [Problem("key", f"{keys.size} keys", "one key", "Call the function once per key.")],
        )
    return keys
