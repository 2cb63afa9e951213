"""Shared parts of Bayesian rules: the mean model and draws of the hindsight posterior.

Closed-form posteriors are functions of the counts and can be traced. Other posteriors are updated
by sampling and kept in the memory of the state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import jax
import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.clue_likelihood import known_rewards
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import ParameterError
from homdp_ppl.explorers.state import (
    State,
    check_declaration,
    count,
    init_state,
    refuse_real_spaces,
)
from homdp_ppl.posteriors import posterior
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.particles import Particles, Reweighted, follow
from homdp_ppl.posteriors.tracking import Tracked
from homdp_ppl.precision import Array, in_x64, namespace, to_numpy


def closed(homdp: HOMDP) -> bool:
    """Whether the whole posterior has a closed form."""
    return len(homdp.structure.conjugate.sites) == len(homdp.sites)


def init_belief(homdp: HOMDP, episodes: int | None) -> State:
    """The state of a Bayesian rule before the first episode, with the prior.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> state = init_belief(models.load("tiger", horizon=2).homdp, episodes=None)
    >>> int(state.played), state.memory is None  # a closed form needs only the counts
    (0, True)
    """
    check_declaration("init_belief", homdp, episodes)
    if not homdp.spaces.finite:
        return init_state(homdp, episodes, posterior(homdp, []))
    return init_state(homdp, episodes, None if closed(homdp) else Tracked.start(homdp))


def init_tables(homdp: HOMDP, episodes: int | None) -> State:
    """As :func:`init_belief`, for finitely many states and observations only."""
    refuse_real_spaces(homdp)
    return init_belief(homdp, episodes)


def update_belief(state: State, episode: Episode) -> State:
    """The state with the posterior after one more episode.

    The random key for inference by sampling is derived from the key data of the state and the
    number of the episode.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> episode = rollout(jax.random.key(0), world, uniform_policy(world))
    >>> int(update_belief(init_belief(world.homdp, None), episode).counts.visits.sum())
    2
    """
    # count raises an error for anything but a state
    if isinstance(state, State) and isinstance(state.memory, Particles | Reweighted):
        return _update_followed(state, episode)
    before, state = state, count(state, episode)
    if state.memory is None:
        return state
    if state.counts is None:
        return _update_density(before, state, episode)
    data = cast(jax.Array, state.key_data)
    key = jax.random.fold_in(jax.random.wrap_key_data(data), int(state.played))
    return replace(state, memory=state.memory.update(state.counts, key))


@in_x64
def _update_followed(state: State, episode: Episode) -> State:
    """The state of a rule that follows episodes with gaps."""
    homdp = state.homdp
    new = Evidence.of(Episodes.of(episode, homdp), homdp, known_rewards(homdp))
    data, played = cast(jax.Array, state.key_data), state.played + 1
    key = jax.random.fold_in(jax.random.wrap_key_data(data), int(played))
    memory = state.memory.update(new, key)
    return replace(state, counts=state.counts + new.counts, played=played, memory=memory)


@in_x64
def with_gaps(state: State) -> State:
    """The initial state of a Bayesian rule for episodes with missing states.

    The counts of the state are then those of the revealed steps, and its memory is the posterior.
    """
    if not state.homdp.sites:  # nothing to learn
        return replace(state, coin=True)
    data = cast(jax.Array, state.key_data)
    key = jax.random.fold_in(jax.random.wrap_key_data(data), 0)
    return replace(state, memory=follow(state.homdp, key))


@in_x64
def _update_density(before: State, state: State, episode: Episode) -> State:
    data = cast(jax.Array, state.key_data)
    key = jax.random.fold_in(jax.random.wrap_key_data(data), int(before.played))
    return replace(state, memory=state.memory.update(episode, key))


@checked
def mean_model(state: State) -> POMDP:
    """The posterior mean of T and O; can be traced if the posterior has a closed form.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> state = init_belief(models.load("tiger", horizon=2).homdp, episodes=None)
    >>> mean_model(state).shows(0)[0]  # the accuracy is Beta(8, 2)
    array([0.8, 0.2])
    """
    homdp = state.homdp
    if state.memory is not None:
        followed: POMDP = state.memory.mean()
        return followed
    form = closed_form(homdp)
    return homdp.model_of(form.mean(form.concentration(state.counts)))


@checked
@in_x64
def draw_models(key: Array, state: State, n: int) -> POMDP:
    """Draw n models from the posterior; can be traced if it has a closed form.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models
    >>> state = init_belief(models.load("tiger", horizon=2).homdp, episodes=None)
    >>> draw_models(jax.random.key(0), state, 3).emission.shape  # three candidates
    (3, 1, 1, 2, 2)
    """
    homdp = state.homdp
    refuse(ParameterError, "draws", count_problems(n=n))
    key = as_key(key, "draw_models")
    pattern = homdp.structure.pattern
    sizes = draw_problems("draws", n, homdp.sites, homdp.spaces, pattern=pattern)
    refuse(ParameterError, "draws", sizes)
    if state.memory is not None:
        batch: POMDP = state.memory.draws(key, n)
        return batch
    form = closed_form(homdp)
    concentration = form.concentration(state.counts)
    if not len(form.conjugate.sites):
        return homdp.model_of([_repeat(table, n) for table in form.reference])

    def tables(key: Array, concentration: Array) -> Any:
        entries = jax.vmap(form.draw, in_axes=(0, None))(jax.random.split(key, n), concentration)
        return jax.vmap(form.tables)(entries)

    if namespace(concentration) is np:
        tables = homdp.cache.get(("draw models", n), lambda: jax.jit(tables))
    return homdp.model_of(to_numpy(tables(key, concentration)))


def _repeat(table: Array, n: int) -> Array:
    return np.broadcast_to(table, (n, *table.shape))
