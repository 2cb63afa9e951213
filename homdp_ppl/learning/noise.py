"""Random numbers of a run: the world's from (seed, episode, step), the rule's from (seed, rule,
episode).

Rules that share a seed share the random numbers of the world, whatever they do.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple
from zlib import crc32

import jax
import numpy as np

from homdp_ppl.core.randomness import Noise, noise
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.precision import Array

PROPOSING, SAMPLING, SIMULATING = 1, 2, 3  # purposes of keys; the world's is 0


class EpisodeNoise(NamedTuple):
    """Everything random about one episode in finite spaces."""

    proposal: Array  # the rule's key
    noise: Noise  # uniform numbers of the world, and of random actions


class DensityNoise(NamedTuple):
    """Everything random about one episode in real-valued spaces."""

    proposal: Array  # the rule's key
    world: Array  # (1,)  the world's key
    actions: Array  # (1, H)  uniform numbers for random actions


@partial(jax.jit, static_argnums=(3, 4))  # one for all loops: slow to compile
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
        How many episodes, and their length.
    """

    def one(episode: Array) -> EpisodeNoise:
        world = jax.random.fold_in(jax.random.fold_in(seed, 0), episode)
        own = jax.random.fold_in(explorer_key(seed, PROPOSING, rule), episode)
        uniform = noise(world, jax.random.fold_in(own, 1), horizon)
        return EpisodeNoise(jax.random.fold_in(own, 0), uniform)

    return jax.vmap(one)(first + np.arange(n))


@partial(jax.jit, static_argnums=3)
def density_noise(seed: Array, rule: Array, episode: Array, horizon: int) -> DensityNoise:
    """The random numbers of one episode in real-valued spaces; arguments as above."""
    world = jax.random.fold_in(jax.random.fold_in(seed, 0), episode)
    own = jax.random.fold_in(explorer_key(seed, PROPOSING, rule), episode)
    actions = jax.random.uniform(jax.random.fold_in(own, 1), (1, horizon))
    return DensityNoise(jax.random.fold_in(own, 0), world[None], actions)


@jax.jit
def proposal_key(seed: Array, rule: Array, episode: Array) -> Array:
    """The rule's key before an episode, the same as in :func:`episode_noise`."""
    own = jax.random.fold_in(explorer_key(seed, PROPOSING, rule), episode)
    return jax.random.fold_in(own, 0)


@partial(jax.jit, static_argnums=1)
def explorer_key(seed: Array, purpose: int, rule: Array | np.uint32) -> Array:
    """The key of a rule under a seed, for proposing and acting or for inference by sampling."""
    return jax.random.fold_in(jax.random.fold_in(seed, purpose), rule)


def rule_number(explorer: Explorer) -> np.uint32:
    """crc32 of the rule's name; options do not enter."""
    return np.uint32(crc32(explorer.about.name.encode()))
