"""Beliefs as weighted particles: a bootstrap filter in log space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from homdp_ppl.declare.dynamics import Dynamics
from homdp_ppl.precision import Array

RESAMPLE = 0.5  # resample if the effective number is below this share of the particles
LARGEST = 1e300  # replaces an infinite log density


class Belief(NamedTuple):
    """Weighted particles, with diagnostics of the last update."""

    particles: Array  # (n, ...)
    weights: Array  # (n,)  sum to 1
    effective: Array  # ()  1 / sum of squared weights after the observation, before resampling
    depleted: Array  # ()  whether no particle explains the observation


def normalised(before: Array, log_likelihood: Array) -> tuple[Array, Array]:
    """Weights by Bayes' rule, and whether all particles are impossible: then weights are unchanged.

    Parameters
    ----------
    before
        Weights that sum to 1, (n,).
    log_likelihood
        Log density of the observation at each particle, (n,); NaN counts as impossible.
    """
    score = jnp.log(before) + jnp.nan_to_num(
        log_likelihood, nan=-jnp.inf, posinf=LARGEST, neginf=-jnp.inf
    )
    best = jnp.max(score)
    depleted = best == -jnp.inf
    scaled = jnp.where(depleted, before, jnp.exp(score - best))
    return scaled / jnp.sum(scaled), depleted


def systematic(key: Array, weights: Array, n: int) -> Array:
    """Systematic resampling: n indices in proportion to weights, from one uniform number.

    Each index occurs n times its normalised weight, rounded down or up.
    """
    upto = jnp.cumsum(weights)
    points = (jnp.arange(n) + jax.random.uniform(key)) / n * upto[-1]
    method = "compare_all" if n * len(weights) <= 2**16 else "scan"
    found = jnp.searchsorted(upto, points, side="right", method=method)
    return jnp.minimum(found, jnp.max(jnp.where(weights > 0, jnp.arange(len(weights)), 0)))


def make_filter(
    dynamics: Dynamics, size: int
) -> tuple[Callable[..., Belief], Callable[..., Belief]]:
    """Two pure functions: the belief after the first observation, and its update.

    They are ``first(parameters, key, y)`` and ``update(parameters, key, belief, a, y, h)``, where y
    is the observation of step h, after action a.
    """
    none = len(dynamics.spaces.actions)

    def weigh(
        parameters: Any, key: Array, predicted: tuple[Array, Array], a: Any, h: Any, y: Array
    ) -> Belief:
        particles, before = predicted
        likelihood = jax.vmap(lambda x: dynamics.log_emission(parameters, x, a, h, y))(particles)
        weights, depleted = normalised(before, likelihood)
        effective = 1 / jnp.sum(weights**2)
        chosen = systematic(key, weights, size)
        few = effective < RESAMPLE * size
        kept = jnp.where(few, chosen, jnp.arange(size))
        return Belief(particles[kept], jnp.where(few, 1 / size, weights), effective, depleted)

    def first(parameters: Any, key: Array, y: Array) -> Belief:
        moving, resampling = jax.random.split(key)
        particles = jax.vmap(lambda k: dynamics.first(parameters, k))(
            jax.random.split(moving, size)
        )
        return weigh(parameters, resampling, (particles, jnp.full(size, 1 / size)), none, 0, y)

    def update(parameters: Any, key: Array, belief: Belief, a: Array, y: Array, h: Array) -> Belief:
        moving, resampling = jax.random.split(key)
        keys = jax.random.split(moving, size)
        particles = jax.vmap(lambda k, x: dynamics.following(parameters, k, x, a, h - 1))(
            keys, belief.particles
        )
        return weigh(parameters, resampling, (particles, belief.weights), a, h, y)

    return first, update
