"""Episodes one by one at draws of the parameters: log likelihoods and replications.

An episode is the unit: given the parameters, episodes are independent and their steps are not.
Policies do not matter, because their probabilities do not depend on the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.infer.util import log_density

from homdp_ppl.core.clue_building import clues_of
from homdp_ppl.core.clues import likelihoods
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.forward import Rows, log_likelihood_of_gaps, log_probability_of_counts
from homdp_ppl.core.gaps import GapTree
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.clue_likelihood import known_rewards
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.precision import Array, in_x64, to_numpy


class Batch(NamedTuple):
    """Episodes as arrays."""

    states: Array  # (N, H + 1)
    observations: Array  # (N, H)
    actions: Array  # (N, H)
    taken: Array  # (N, H)  whether the episode has this step
    possible: Array | None  # (N, H + 1, X)  the states that are possible, if some are not revealed


class Replications(NamedTuple):
    """States and observations, each drawn given the recorded state and action before it."""

    states: Array  # (n, N, H + 1)
    observations: Array  # (n, N, H)


@in_x64
def log_likelihoods(homdp: HOMDP, values: Mapping[str, Array], n: int, data: Episodes) -> Array:
    """The log density of each episode at n values of the sites, (n, episodes)."""
    compiled = _compiled(homdp, "log likelihood of episodes", _log_likelihood)
    return to_numpy(compiled(jnp.arange(n), dict(values), _batch(homdp, data)))


@in_x64
def replications(
    homdp: HOMDP, key: Array, values: Mapping[str, Array], n: int, data: Episodes
) -> Replications:
    """One replication of each revealed episode at each of n values of the sites."""
    compiled = _compiled(homdp, "replications of episodes", _replicated)
    return to_numpy(compiled(jax.random.split(key, n), dict(values), _batch(homdp, data)))


@in_x64
def log_joint(
    homdp: HOMDP, values: Mapping[str, Array], n: int, data: tuple[Counts, GapTree | None] | None
) -> Array:
    """The log density of the sites, and of counts and gaps if given, at n values, (n,)."""
    compiled = _compiled(homdp, "log density of sites and counts", _log_joint)
    return to_numpy(compiled(jnp.arange(n), dict(values), data))


def _compiled(homdp: HOMDP, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one draw and of data, compiled for many draws."""

    def run(keys: Array, values: Mapping[str, Array], data: Any) -> Any:
        return jax.lax.map(lambda draw: function(homdp, *draw, data), (keys, values))

    return homdp.cache.get((name, homdp.horizon), lambda: jax.jit(run))


def _batch(homdp: HOMDP, data: Episodes) -> Batch:
    reached = np.arange(data.horizon + 1) <= data.length[:, None]
    possible = None
    if not data.revealed[reached].all():
        X = homdp.form.sizes[0]
        known = data.revealed & reached
        hidden = reached & ~known
        rewards = known_rewards(homdp)
        clues, place, _ = clues_of(data, homdp.form, homdp.spaces.ends, hidden, rewards)
        possible = clues.known[place] > 0
        possible[known] = np.arange(X) == data.states[known][:, None]
    return Batch(data.states, data.observations, data.actions, data.steps, possible)


def _log_likelihood(homdp: HOMDP, _: Array, values: Mapping[str, Array], data: Batch) -> Array:
    dynamics, numbers = homdp.dynamics, homdp.numbers(values)
    if data.possible is not None and isinstance(numbers, POMDP):
        return jax.vmap(partial(_forward, numbers))(
            data.possible, data.observations, data.actions, _previous(homdp, data), data.taken
        )

    def step(h: Array, x: Array, a: Array, before: Array, y: Array, following: Array) -> Array:
        moved = dynamics.log_transition(numbers, x, a, h, following)
        return moved + dynamics.log_emission(numbers, x, before, h, y)

    x = data.states
    steps = _mapped(step)(
        _steps(data), x[:, :-1], data.actions, _previous(homdp, data), data.observations, x[:, 1:]
    )
    first = jax.vmap(partial(dynamics.log_initial, numbers))(x[:, 0])
    return first + jnp.where(data.taken, steps, 0.0).sum(-1)


def _forward(
    pomdp: POMDP, possible: Array, seen: Array, actions: Array, previous: Array, taken: Array
) -> Array:
    """The log density of one episode, summed over hidden states by the forward recursion."""

    def step(carry: Any, at: Any) -> tuple[Any, None]:
        weights, log = carry
        h, y, a, before, real, after = at
        T = pomdp.transition[jnp.minimum(h, len(pomdp.transition) - 1), :, a]
        shows = pomdp.emission[jnp.minimum(h, len(pomdp.emission) - 1)]
        likelihood = shows[jnp.minimum(before, len(shows) - 1), :, y]
        moved = ((weights * likelihood) @ T) * after
        total = moved.sum()
        scaled = moved / jnp.where(total > 0, total, 1.0)
        return (jnp.where(real, scaled, weights), log + jnp.where(real, jnp.log(total), 0.0)), None

    start = pomdp.initial * possible[0]
    inputs = (jnp.arange(len(actions)), seen, actions, previous, taken, possible[1:])
    (_, log), _ = jax.lax.scan(step, (start / start.sum(), jnp.log(start.sum())), inputs)
    return log


def _replicated(homdp: HOMDP, key: Array, values: Mapping[str, Array], data: Batch) -> Replications:
    dynamics, numbers = homdp.dynamics, homdp.numbers(values)
    N, H = data.actions.shape
    starts, moves, sights = (
        jax.random.split(part, shape)
        for part, shape in zip(jax.random.split(key, 3), ((N,), (N, H), (N, H)), strict=True)
    )
    before, h = data.states[:, :-1], _steps(data)
    first = jax.vmap(partial(dynamics.first, numbers))(starts)
    following = _mapped(partial(dynamics.following, numbers))(moves, before, data.actions, h)
    seen = _mapped(partial(dynamics.observe, numbers))(sights, before, _previous(homdp, data), h)
    return Replications(jnp.concatenate([first[:, None], following], axis=1), seen)


def _log_joint(
    homdp: HOMDP, _: Array, values: Mapping[str, Array], data: tuple[Counts, GapTree | None] | None
) -> Array:
    program = handlers.seed(homdp.function, rng_seed=0)
    total: Array = log_density(program, (), {}, dict(values))[0]
    if data is None:
        return total
    (counts, tree), tables = data, homdp.short_tables(values)
    named = homdp.counted_tables(values)
    for name, seen in counted(homdp, counts).items():
        total = total + log_probability_of_counts(seen, named[name])
    if tree is None:
        return total
    clues = likelihoods(tree.gaps.clues, homdp.form, named)
    rows = Rows(tables.initial, tables.transition, tables.emission, homdp.form, clues)
    return total + log_likelihood_of_gaps(rows, tree)


def _mapped(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function at every step of every episode."""
    return jax.vmap(jax.vmap(function))


def _steps(data: Batch) -> Array:
    return jnp.broadcast_to(jnp.arange(data.actions.shape[1]), data.actions.shape)


def _previous(homdp: HOMDP, data: Batch) -> Array:
    """The action before each step; at the first step, the number of actions."""
    none = jnp.full((len(data.actions), 1), len(homdp.actions), dtype=data.actions.dtype)
    return jnp.concatenate([none, data.actions[:, :-1]], axis=1)
