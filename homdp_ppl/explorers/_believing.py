"""What Bayesian rules share.

The mean model and draws of the hindsight posterior, for every declared program.

Closed forms are functions of the counts, and may be traced. Other posteriors are followed by
sampling, and kept in the memory of the state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers.explorer import State, count, start
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.tracking import Tracked
from homdp_ppl.precision import Array, in_x64, namespace, to_numpy


def closed(homdp: HOMDP) -> bool:
    """Whether the whole posterior has a closed form."""
    return len(homdp.structure.conjugate.sites) == len(homdp.sites)


def believe(homdp: HOMDP, episodes: int) -> State:
    """The prior."""
    return start(homdp, episodes, None if closed(homdp) else Tracked.start(homdp))


def learn_more(state: State, episode: Episode) -> State:
    """The posterior after one more episode.

    What is sampled has a key of its own, made from the run's luck and the episode.
    """
    state = count(state, episode)
    if state.memory is None:
        return state
    key = jax.random.fold_in(jax.random.wrap_key_data(state.luck), int(state.played))
    return replace(state, memory=state.memory.update(state.counts, key))


def mean_model(state: State) -> POMDP:
    """The posterior mean of T and O."""
    homdp = state.homdp
    if state.memory is not None:
        followed: POMDP = state.memory.mean()
        return followed
    form = closed_form(homdp)
    return Stationary(*form.mean(form.concentration(state.counts)), homdp.reward).pomdp


@in_x64
def draw_models(key: Array, state: State, n: int) -> POMDP:
    """A batch of n models from the posterior."""
    homdp = state.homdp
    if state.memory is not None:
        batch: POMDP = state.memory.belief.draws(key, n)
        return batch
    form = closed_form(homdp)
    concentration = form.concentration(state.counts)
    if not len(form.conjugate.sites):
        return _repeat(Stationary(*form.reference, homdp.reward), n).pomdp

    def tables(key: Array, concentration: Array) -> Any:
        entries = jax.vmap(form.draw, in_axes=(0, None))(jax.random.split(key, n), concentration)
        return jax.vmap(form.tables)(entries)

    if namespace(concentration) is np:
        tables = homdp.cache.get(("draw models", n), lambda: jax.jit(tables))
    drawn = to_numpy(tables(key, concentration))
    repeated = _repeat(Stationary(*form.reference, homdp.reward), n)
    return repeated._replace(transition=drawn.transition, emission=drawn.emission).pomdp


def _repeat(model: Stationary, n: int) -> Stationary:
    return Stationary(*(np.broadcast_to(part, (n, *part.shape)) for part in model))
