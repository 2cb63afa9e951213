"""Playing continuous models.

Episodes of uniform actions in one program, and of any policy step by step.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.policy import Policy, Trajectory, ask
from homdp_ppl.core.randomness import choose
from homdp_ppl.declare.mechanics import Mechanics, Parameters
from homdp_ppl.precision import Array, in_x64, to_numpy


def simulate(mechanics: Mechanics, parameters: Parameters, key: Array) -> Episode:
    """One episode with uniform actions, as a pure function; may be traced."""
    A, H = len(mechanics.domain.actions), mechanics.domain.horizon

    def step(x: Array, h: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        keys = jax.random.split(jax.random.fold_in(key, h), 3)
        y = mechanics.draw_observation(parameters, keys[0], x)
        a = jax.random.randint(keys[1], (), 0, A)
        return mechanics.draw_next(parameters, keys[2], x, a), (x, y, a)

    first = mechanics.draw_first(parameters, jax.random.fold_in(key, H))
    last, (states, observations, actions) = jax.lax.scan(step, first, jnp.arange(H))
    return Episode(Trajectory(observations, actions), jnp.concatenate([states, last[None]]))


class Steps:
    """The steps of an episode, compiled for batches."""

    def __init__(self, mechanics: Mechanics) -> None:
        self.domain = mechanics.domain

        def observe(parameters: Parameters, key: Array, x: Array) -> tuple[Array, Array]:
            seen = mechanics.draw_observation(parameters, jax.random.fold_in(key, 0), x)
            return seen, jax.random.uniform(jax.random.fold_in(key, 1))

        def move(parameters: Parameters, key: Array, x: Array, a: Array) -> Array:
            return mechanics.draw_next(parameters, jax.random.fold_in(key, 2), x, a)

        self._first = jax.jit(jax.vmap(mechanics.draw_first, in_axes=(None, 0)))
        self._observe = jax.jit(jax.vmap(observe, in_axes=(None, 0, 0)))
        self._move = jax.jit(jax.vmap(move, in_axes=(None, 0, 0, 0)))

    def first(self, *given: Any) -> Array:
        """x_1, from parameters and keys."""
        return np.asarray(self._first(*given))

    def observe(self, *given: Any) -> tuple[Array, Array]:
        """y_h and the luck of a random action, from parameters, keys and states."""
        seen, noise = to_numpy(self._observe(*given))
        return seen, noise

    def move(self, *given: Any) -> Array:
        """x_{h+1}, from parameters, keys, states and actions."""
        return np.asarray(self._move(*given))


@in_x64
def play(
    keys: Array, steps: Steps, given: Parameters, policy: Policy, luck: Array | None = None
) -> Episodes:
    """Episodes of a policy that is asked step by step, one a key.

    It is handed copies of what may be seen.

    The luck of random actions, (episodes, H), comes from the keys too unless it is given.
    """
    domain, parameters = steps.domain, dict(given)
    streams = jax.vmap(lambda key: jax.random.split(key, domain.horizon + 1))(keys)
    x = steps.first(parameters, streams[:, 0])
    states, observations = [x], []
    actions: list[Array] = []
    for h in range(domain.horizon):
        y, noise = steps.observe(parameters, streams[:, h + 1], x)
        noise = noise if luck is None else luck[:, h]
        observations.append(y)
        chances = [
            ask(policy, _history(observations, k), _history(actions, k), domain)
            for k in range(len(keys))
        ]
        actions.append(
            np.array(
                [int(choose(row, u)) for row, u in zip(chances, noise, strict=True)], dtype=int
            )
        )
        x = steps.move(parameters, streams[:, h + 1], x, actions[-1])
        states.append(x)
    return Episodes(np.stack(observations, 1), np.stack(actions, 1), np.stack(states, 1))


def _history(values: list[Array], k: int) -> Array:
    return np.array([value[k] for value in values])
