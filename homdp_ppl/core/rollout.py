"""Simulation of episodes: compiled for policy graphs, step by step for other policies."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.barrier import separated
from homdp_ppl.core.episode import Ended, Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy, check_policy
from homdp_ppl.core.moves import draw_next
from homdp_ppl.core.policy import Policy, Trajectory, ask
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import (
    Noise,
    as_keys,
    choose,
    hindsight_key,
    is_key,
    noise,
    number_of_keys,
    refuse_traced_key,
    reward_key,
)
from homdp_ppl.core.spaces import Spaces, shape_of
from homdp_ppl.errors import DataError, Problem, with_article
from homdp_ppl.memory import NUMBER, count, memory_problems
from homdp_ppl.precision import Array, in_x64, namespace, to_numpy

COPIES = 4  # of an episode: noise and values, each in JAX and in NumPy


@runtime_checkable
class Playable(Protocol):
    """A world in which episodes can be simulated."""

    @property
    def spaces(self) -> Spaces:
        """States, observations, actions and the horizon."""

    def play(self, keys: Array, policy: Policy, actions: Array | None = None) -> Episodes:
        """Simulate one episode per key; ``actions`` are uniform numbers for random actions."""


@runtime_checkable
class Revealing(Playable, Protocol):
    """A world that says what hindsight reveals of its episodes."""

    def reveal(self, keys: Array, episodes: Episodes) -> Episodes:
        """Simulated episodes as hindsight shows them; the keys are those of the episodes."""


def play(pomdp: POMDP, policy: GraphPolicy, noise: Noise) -> Episode:
    """One episode as a pure function of the model, the policy and the noise; can be traced.

    The result always has H steps: after a terminal state the model stays in it.
    :func:`steps_taken` counts the steps before.
    """
    _, _, A = pomdp.sizes
    pomdp = jax.tree.map(jnp.asarray, pomdp)  # traced steps cannot index NumPy arrays

    def step(
        carry: tuple[Array, Array, Array], inputs: tuple[Array, Noise]
    ) -> tuple[tuple[Array, Array, Array], tuple[Array, ...]]:
        state, node, action = carry
        h, u = inputs
        previous = jnp.where(h == 0, A, action)  # index A: before the first action
        observation = choose(pomdp.shows(h, previous)[state], u.observation)
        node = jnp.where(h == 0, policy.first(observation), policy.next(node, action, observation))
        action = choose(policy.probabilities[node], u.action)
        following = draw_next(pomdp, h, state, action, u.state)
        return (following, node, action), (state, observation, action)

    first = choose(pomdp.initial, noise.state[0])
    start: tuple[Array, Array, Array] = (
        first,
        jnp.zeros_like(policy.start[0]),
        jnp.zeros_like(first),
    )
    later = Noise(noise.state[1:], noise.observation, noise.action)
    inputs: tuple[Array, Noise] = (jnp.arange(pomdp.horizon), later)
    (last, _, _), (states, observations, actions) = jax.lax.scan(step, start, inputs)
    return Episode(Trajectory(observations, actions), jnp.append(states, last))


def steps_taken(states: Array, terminal: Array) -> Array:
    """The number of steps before the first terminal state, H if there is none; can be traced.

    Parameters
    ----------
    states
        x_1 .. x_{H+1} along the last axis, (..., H + 1).
    terminal
        Whether each state is terminal, (X,).
    """
    xp = namespace(states, terminal)
    over = xp.asarray(terminal)[states]
    return xp.where(over.any(-1), over.argmax(-1), states.shape[-1] - 1)


@jax.jit
def _play_many(keys: Array, pomdp: POMDP, policy: GraphPolicy, actions: Array | None) -> Episode:
    return jax.vmap(lambda each: play(pomdp, policy, each))(_noise(keys, pomdp.horizon, actions))


def _noise(keys: Array, horizon: int, actions: Array | None) -> Noise:
    """Draw the noise of each episode; the noise of actions, (episodes, H), may be given."""
    drawn = jax.vmap(lambda key: noise(*_split(key), horizon))(keys)
    return drawn if actions is None else drawn._replace(action=actions)


def _split(key: Array) -> tuple[Array, Array]:
    """The keys of the world and of the policy."""
    return jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)


@in_x64
def hindsight_keys(keys: Array) -> Array:
    """The keys of what hindsight shows of episodes, from the keys of the episodes."""
    return jax.vmap(lambda key: hindsight_key(reward_key(_split(key)[0])))(keys)


@in_x64
def reward_keys(keys: Array) -> Array:
    """The keys of the rewards of episodes, from the keys of the episodes."""
    return jax.vmap(lambda key: reward_key(_split(key)[0]))(keys)


@in_x64
def rollout(key: Array, world: Playable, policy: Policy) -> Any:  # Episode or Episodes
    """Simulate a policy in a world; finished episodes contain what hindsight reveals.

    These are the latent states, unless the declaration has labels, which are revealed instead, or
    says which states are revealed.

    Parameters
    ----------
    key
        A JAX random key for one episode, or a one-dimensional array with one key per episode.
    world
        A declaration with its parameters fixed.
    policy
        Any :class:`Policy`. The simulation of a :class:`GraphPolicy` is compiled once per number
        of keys; other policies are called step by step.

    Returns
    -------
    Episode or Episodes
        An :class:`Episode` for one key, :class:`Episodes` for an array of keys. Values are indices,
        or real numbers where a space is :class:`Real`. An episode that reaches a terminal state
        has fewer steps, and ``ended`` is "terminal".

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> rollout(jax.random.key(0), world, uniform_policy(world)).states.shape
    (5,)
    """
    if is_key(key) and isinstance(
        getattr(world, "spaces", None), Spaces
    ):  # before the keys are copied
        refuse(DataError, "rollout", episode_problems("key", number_of_keys(key), world.spaces))
    keys = as_keys(key, "rollout")
    refuse_traced_key(keys, "rollout")
    if keys.ndim > 1:
        got, expected = f"keys of shape {keys.shape}", "one key, or a one-dimensional array of keys"
        raise DataError("rollout", [Problem("key", got, expected, "Pass keys.reshape(-1).")])
    keys, single = keys.reshape(-1), not keys.ndim
    played = rollout_many(keys, world, policy)
    episodes = world.reveal(keys, played) if isinstance(world, Revealing) else played
    return episodes[0] if single else episodes


@in_x64
def rollout_many(keys: Array, world: Playable, policy: Policy) -> Episodes:
    """Simulate one episode per key of an array, (n,), with all latent states."""
    if not isinstance(world, Playable):
        remedy = "Fix its parameters with .at(...), or draw them with .draw(key)."
        raise DataError(
            "rollout", [Problem("world", with_article(type(world).__name__), "a World", remedy)]
        )
    check_policy(policy, world)
    refuse(DataError, "rollout", episode_problems("key", len(keys), world.spaces))
    return world.play(keys, policy)


def episode_problems(where: str, episodes: int, spaces: Spaces) -> list[Problem]:
    """Report a number of episodes that does not fit in memory."""
    width = sum(math.prod(shape_of(space)) for space in spaces[:2]) + 1
    got = f"{count(episodes)} episodes of {count(spaces.horizon)} steps"
    needed = COPIES * NUMBER * episodes * (spaces.horizon + 1) * width
    return memory_problems(where, got, needed, "Simulate fewer episodes at a time.")


@in_x64
def play_tables(
    keys: Array, pomdp: POMDP, policy: Policy, spaces: Spaces, actions: Array | None = None
) -> Episodes:
    """Simulate one episode per key in a finite model.

    The noise of random actions, (episodes, H), is drawn from the keys unless it is given.
    """
    if type(policy) is GraphPolicy:  # a subclass may have another act
        compiled = to_numpy(_play_many(keys, pomdp, policy, actions))
        parts = compiled.observations, compiled.actions, compiled.states
        return cut_at_end(Episodes(*parts), np.asarray(pomdp.terminal))
    drawn = to_numpy(_noise(keys, spaces.horizon, actions))
    rows = zip(*drawn, strict=True)
    with separated(policy) as isolated:
        played = [play_by_asking(pomdp, isolated, Noise(*row), spaces) for row in rows]
    return Episodes.of(played, spaces)


def cut_at_end(played: Episodes, terminal: Array) -> Episodes:
    """Episodes of H steps, each cut at its first terminal state."""
    if not terminal.any():
        return played
    return Episodes(
        played.observations,
        played.actions,
        played.states,
        rewards=played.rewards,
        length=steps_taken(played.states, terminal),
        ended=np.where(terminal[played.states].any(-1), "terminal", "horizon"),
        behaviour=played.behaviour,
    )


def play_by_asking(pomdp: POMDP, policy: Policy, noise: Noise, spaces: Spaces) -> Episode:
    """Simulate one episode with a policy that is called at every step.

    The episode ends at a terminal state. The policy receives copies of the observations and actions
    so far. Because this frame contains the state, custom policies must be wrapped by
    :func:`homdp_ppl.core.barrier.separated`.
    """
    state = int(choose(pomdp.initial, noise.state[0]))
    states, observations = [state], []
    actions: list[int] = []
    for h in range(pomdp.horizon):
        if pomdp.terminal[state]:
            break
        shows = pomdp.shows(h, actions[-1] if actions else None)
        observations.append(int(choose(shows[state], noise.observation[h])))
        chances = ask(policy, observations, actions, spaces)
        actions.append(int(choose(chances, noise.action[h])))
        state = int(draw_next(pomdp, h, state, actions[-1], noise.state[h + 1]))
        states.append(state)
    seen = Trajectory(np.array(observations, dtype=int), np.array(actions, dtype=int))
    ended: Ended = "terminal" if pomdp.terminal[state] else "horizon"
    return Episode(seen, np.array(states), ended=ended)
