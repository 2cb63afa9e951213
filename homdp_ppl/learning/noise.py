"""Random numbers of a run.

Those of the world depend on (seed, episode, step), those of the rule on (seed, rule, episode). Runs
of different rules with the same seed share the random numbers of the world (common random numbers).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple
from zlib import crc32

import jax
import numpy as np

from homdp_ppl.core.randomness import Noise, hindsight_key, noise, reward_key
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.precision import Array

PROPOSING, SAMPLING, SIMULATING = 1, 2, 3  # purposes of keys; the world's is 0


class EpisodeNoise(NamedTuple):
    """The random numbers of one episode in finite spaces."""

    proposal: Array  # the rule's key
    noise: Noise  # uniform numbers for the world and for random actions
    rewards: Array  # the world's key for rewards


class DensityNoise(NamedTuple):
    """The random numbers of one episode in real-valued spaces."""

    proposal: Array  # the rule's key
    world: Array  # (1,)  the world's key
    actions: Array  # (1, H)  uniform numbers for random actions


@partial(jax.jit, static_argnums=(3, 4))  # shared by all loops: slow to compile
def episode_noise(seed: Array, rule: Array, first: Array, n: int, horizon: int) -> EpisodeNoise:
    """The random numbers of n consecutive episodes.

    Parameters
    ----------
    seed
        A JAX key made from the seed.
    rule
        crc32 of the rule's name.
    first
        The number of the first episode.
    n, horizon
        The number of episodes and their length.
    """

    def one(episode: Array) -> EpisodeNoise:
        world = _world_key(seed, episode)
        rule_key = jax.random.fold_in(explorer_key(seed, PROPOSING, rule), episode)
        uniform = noise(world, jax.random.fold_in(rule_key, 1), horizon)
        return EpisodeNoise(jax.random.fold_in(rule_key, 0), uniform, reward_key(world))

    return jax.vmap(one)(first + np.arange(n))


@partial(jax.jit, static_argnums=3)
def density_noise(seed: Array, rule: Array, episode: Array, horizon: int) -> DensityNoise:
    """The random numbers of one real-valued episode; arguments as in :func:`episode_noise`."""
    world = _world_key(seed, episode)
    rule_key = jax.random.fold_in(explorer_key(seed, PROPOSING, rule), episode)
    actions = jax.random.uniform(jax.random.fold_in(rule_key, 1), (1, horizon))
    return DensityNoise(jax.random.fold_in(rule_key, 0), world[None], actions)


@jax.jit
def hindsight_keys(seed: Array, episodes: Array) -> Array:
    """The keys of what hindsight shows of some episodes, (n,)."""
    return jax.vmap(lambda episode: hindsight_key(reward_key(_world_key(seed, episode))))(episodes)


def _world_key(seed: Array, episode: Array) -> Array:
    """The key of the world for an episode."""
    return jax.random.fold_in(jax.random.fold_in(seed, 0), episode)


@jax.jit
def proposal_key(seed: Array, rule: Array, episode: Array) -> Array:
    """The rule's key for an episode, the same as in :func:`episode_noise`."""
    rule_key = jax.random.fold_in(explorer_key(seed, PROPOSING, rule), episode)
    return jax.random.fold_in(rule_key, 0)


@partial(jax.jit, static_argnums=1)
def explorer_key(seed: Array, purpose: int, rule: Array | np.uint32) -> Array:
    """The key of a rule for a seed: for proposing and acting, or for inference by sampling."""
    return jax.random.fold_in(jax.random.fold_in(seed, purpose), rule)


def rule_number(explorer: Explorer) -> np.uint32:
    """crc32 of the rule's name, without options."""
    return np.uint32(crc32(explorer.about.name.encode()))
