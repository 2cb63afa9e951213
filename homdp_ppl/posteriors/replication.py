"""Replications: statistics of episodes simulated from draws of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import noise, reward_key
from homdp_ppl.core.rollout import play
from homdp_ppl.precision import Array


class Statistics(NamedTuple):
    """Statistics of a set of episodes; several sets have a leading axis."""

    frequency: Array  # (H, Y)  share of the episodes with y_h = y
    pairs: Array  # (Y, Y)  share of the steps h < H with y_h = y and y_{h+1} = y'
    mean: Array  # ()      mean of the returns
    deviation: Array  # ()      standard deviation of the returns


@partial(jax.jit, static_argnames=("episodes", "draw"))
def replicate(
    keys: Array,
    models: POMDP,
    parameters: Mapping[str, Array],
    policy: GraphPolicy,
    episodes: int,
    draw: Callable[..., Array] | None,
) -> Statistics:
    """Statistics of a set of episodes for each model.

    Models are simulated one after the other to limit memory. If rewards are known, models share
    them; they have no axis of models and are in the user's units. Otherwise ``draw`` draws the
    rewards of an episode from the parameters, a key, states, observations and actions.
    """

    def one(given: tuple[Array, tuple[Array, Array, Array], Mapping[str, Array]]) -> Statistics:
        key, tables, values = given
        # play uses no rewards
        pomdp = POMDP(*tables, models.reward, *(part[0] for part in models[4:]))
        if draw is not None:
            pomdp = pomdp._replace(reward=models.reward[0])

        def episode(key: Array) -> tuple[Episode, Array]:
            world = jax.random.fold_in(key, 0)
            made = play(pomdp, policy, noise(world, jax.random.fold_in(key, 1), pomdp.horizon))
            if draw is None:
                return made, jnp.zeros(())
            parts = made.states, made.observations, made.actions
            return made, draw(values, reward_key(world), *parts).sum()

        made, returns = jax.vmap(episode)(jax.random.split(key, episodes))
        returns = sum_of(models.reward, made) if draw is None else returns
        described: Statistics = describe(made, returns, pomdp.emission.shape[-1])
        return described

    made: Statistics = jax.lax.map(one, (keys, models[:3], dict(parameters)))
    return made


def sum_of(reward: Array, episodes: Episode) -> Array:
    """The returns of episodes, stacked as by ``vmap``, with known rewards (H, X, Y|1, A)."""
    shown = episodes.observations if reward.shape[2] > 1 else 0
    steps = jnp.arange(episodes.actions.shape[1])
    return jnp.asarray(reward)[steps, episodes.states[:, :-1], shown, episodes.actions].sum(-1)


@partial(jax.jit, static_argnames="observations")
def describe(episodes: Episode, returns: Array, observations: int) -> Statistics:
    """The statistics of one set of episodes, stacked as by ``vmap``, with their returns."""
    seen = episodes.observations
    (K, H), Y = seen.shape, observations
    steps = jnp.arange(H)
    frequency = jnp.zeros((H, Y)).at[steps, seen].add(1.0) / K
    pairs = jnp.zeros((Y, Y)).at[seen[:, :-1], seen[:, 1:]].add(1.0) / (K * max(H - 1, 1))
    return Statistics(frequency, pairs, returns.mean(), returns.std())
