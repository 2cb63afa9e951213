"""Simulation of models without tables: uniform actions in one scan, or any policy step by step."""

from __future__ import annotations

from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.barrier import separated
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.policy import Policy, Trajectory, ask
from homdp_ppl.core.randomness import choose
from homdp_ppl.declare.dynamics import Dynamics, Numbers
from homdp_ppl.precision import Array, in_x64, to_numpy


def simulate(dynamics: Dynamics, numbers: Numbers, key: Array) -> Episode:
    """One episode with uniform actions, as a pure function; may be traced."""
    A, H = len(dynamics.spaces.actions), dynamics.spaces.horizon

    def step(
        carry: tuple[Array, Array], h: Array
    ) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        x, previous = carry
        keys = jax.random.split(jax.random.fold_in(key, h), 3)
        y = dynamics.observe(numbers, keys[0], x, previous, h)
        a = jax.random.randint(keys[1], (), 0, A)
        return (dynamics.following(numbers, keys[2], x, a, h), a), (x, y, a)

    # this key does not depend on the horizon
    first = dynamics.first(numbers, jax.random.fold_in(key, 2**32 - 1))
    start: tuple[Array, Array] = first, jnp.array(A, dtype=jnp.result_type(int))
    (last, _), (states, observations, actions) = jax.lax.scan(step, start, jnp.arange(H))
    return Episode(Trajectory(observations, actions), jnp.concatenate([states, last[None]]))


@final
class Steps:
    """The steps of an episode, compiled for batches."""

    def __init__(self, dynamics: Dynamics) -> None:
        def observe(
            numbers: Numbers, key: Array, x: Array, a: Array, h: Array
        ) -> tuple[Array, Array]:
            seen = dynamics.observe(numbers, jax.random.fold_in(key, 0), x, a, h)
            return seen, jax.random.uniform(jax.random.fold_in(key, 1))

        def move(numbers: Numbers, key: Array, x: Array, a: Array, h: Array) -> Array:
            return dynamics.following(numbers, jax.random.fold_in(key, 2), x, a, h)

        self._first = jax.jit(jax.vmap(dynamics.first, in_axes=(None, 0)))
        self._observe = jax.jit(jax.vmap(observe, in_axes=(None, 0, 0, 0, None)))
        self._move = jax.jit(jax.vmap(move, in_axes=(None, 0, 0, 0, None)))

    def first(self, *given: Any) -> Array:
        """x_1, from numbers and keys."""
        return np.asarray(self._first(*given))

    def observe(self, *given: Any) -> tuple[Array, Array]:
        """y_h and a uniform number for a random action, from numbers, keys, states,
        previous actions and the step.
        """
        seen, noise = to_numpy(self._observe(*given))
        return seen, noise

    def move(self, *given: Any) -> Array:
        """x_{h+1}, from numbers, keys, states, actions and the step."""
        return np.asarray(self._move(*given))


@in_x64
def play(
    keys: Array, dynamics: Dynamics, numbers: Numbers, policy: Policy, noise: Array | None = None
) -> Episodes:
    """Play one episode per key; the policy is called at every step.

    It receives copies of the observations and actions so far. ``noise`` has the uniform numbers for
    random actions, (episodes, H); by default they come from the keys.
    """
    spaces, steps = dynamics.spaces, dynamics.cache.get("steps", lambda: Steps(dynamics))
    streams = jax.vmap(lambda key: jax.random.split(key, spaces.horizon + 1))(keys)
    x = steps.first(numbers, streams[:, 0])
    states, observations = [x], []
    actions: list[Array] = []
    previous = np.full(len(keys), len(spaces.actions))
    with separated(policy) as asked:
        for h in range(spaces.horizon):
            y, own = steps.observe(numbers, streams[:, h + 1], x, previous, h)
            uniform = own if noise is None else noise[:, h]
            observations.append(y)
            chances = [
                ask(asked, _history(observations, k), _history(actions, k), spaces)
                for k in range(len(keys))
            ]
            chosen = [int(choose(row, u)) for row, u in zip(chances, uniform, strict=True)]
            previous = np.array(chosen, dtype=int)
            actions.append(previous)
            x = steps.move(numbers, streams[:, h + 1], x, previous, h)
            states.append(x)
    return Episodes(np.stack(observations, 1), np.stack(actions, 1), np.stack(states, 1))


def _history(values: list[Array], k: int) -> Array:
    return np.array([value[k] for value in values])
