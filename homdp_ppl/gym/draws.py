"""Random draws of states and observations in an environment.

Finite worlds use tables and NumPy only. Other worlds use densities and JAX.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, Protocol, final

import jax
import numpy as np

from homdp_ppl.core.spaces import Real, shape_of
from homdp_ppl.declare.model import World
from homdp_ppl.precision import Array, in_x64


class Draws(Protocol):
    """Draws of states and observations, and rewards; steps are counted from 0."""

    def first(self, generator: np.random.Generator) -> Any:
        """x_1."""

    def observe(self, generator: np.random.Generator, state: Any, action: int, step: int) -> Any:
        """y_h; the action is the previous one, and the number of actions at the first step."""

    def move(self, generator: np.random.Generator, state: Any, action: int, step: int) -> Any:
        """x_{h+1}."""

    def reward(self, step: int, state: Any, observation: Any, action: int) -> float:
        """r_h(x, y, a) in the user's units; steps are counted from 0."""

    def ends(self, state: Any) -> bool:
        """Whether the state is terminal."""


@final
class TableDraws:
    """Draws of a finite world; its tables are copied."""

    def __init__(self, world: World) -> None:
        pomdp = world.pomdp
        self._initial, self._transition, self._emission = map(_cumulative, pomdp[:3])
        self._reward = pomdp.to_user(pomdp.reward, 1)
        self._terminal = pomdp.terminal.tolist()

    def first(self, generator: np.random.Generator) -> int:
        """x_1."""
        return bisect_right(self._initial, generator.random())

    def observe(self, generator: np.random.Generator, state: int, action: int, step: int) -> int:
        """y_h."""
        steps, actions, *_ = self._emission.shape  # axes of size 1 broadcast
        row = self._emission[step if steps > 1 else 0, action if actions > 1 else 0, state]
        return bisect_right(row, generator.random())

    def move(self, generator: np.random.Generator, state: int, action: int, step: int) -> int:
        """x_{h+1}."""
        row = self._transition[step if len(self._transition) > 1 else 0, state, action]
        return bisect_right(row, generator.random())

    def reward(self, step: int, state: int, observation: int, action: int) -> float:
        """r_h(x, y, a) in the user's units."""
        seen = observation if self._reward.shape[2] > 1 else 0
        return float(self._reward[step, state, seen, action])

    def ends(self, state: int) -> bool:
        """Whether the state is terminal."""
        return bool(self._terminal[state])


@final
class KeyedDraws:
    """Draws of a world with densities; each uses a key from the generator's next number."""

    def __init__(self, world: World) -> None:
        dynamics = world.dynamics
        self._numbers, self._spaces = world.numbers, world.spaces
        self._rewards = world.homdp.rewards
        self._first, self._observe, self._move, self._reward = dynamics.cache.get(
            "draws",
            lambda: (
                jax.jit(dynamics.first),
                jax.jit(dynamics.observe),
                jax.jit(dynamics.following),
                jax.jit(dynamics.reward),
            ),
        )

    @in_x64
    def first(self, generator: np.random.Generator) -> Any:
        """x_1."""
        return self._plain(self._first(self._numbers, _key(generator)), self._spaces.states)

    @in_x64
    def observe(self, generator: np.random.Generator, state: Any, action: int, step: int) -> Any:
        """y_h; always a vector for real observations, as Gymnasium expects."""
        drawn = self._observe(self._numbers, _key(generator), state, action, step)
        seen = self._plain(drawn, self._spaces.observations)
        return np.atleast_1d(seen) if isinstance(self._spaces.observations, Real) else seen

    @in_x64
    def move(self, generator: np.random.Generator, state: Any, action: int, step: int) -> Any:
        """x_{h+1}."""
        drawn = self._move(self._numbers, _key(generator), state, action, step)
        return self._plain(drawn, self._spaces.states)

    @in_x64
    def reward(self, step: int, state: Any, observation: Any, action: int) -> float:
        """r_h(x, y, a) in the user's units."""
        seen = np.reshape(observation, shape_of(self._spaces.observations))
        inside = float(self._reward(self._numbers, step, state, seen, action))
        return float(self._rewards.to_user(inside, 1))

    def ends(self, state: Any) -> bool:
        """Whether the state is terminal: never, in worlds with densities."""
        return False

    def _plain(self, value: Array, space: Any) -> Any:
        return np.asarray(value) if isinstance(space, Real) else int(value)


def draws_of(world: World) -> Draws:
    """The draws of a world: from its tables if it is finite, which needs no JAX."""
    return TableDraws(world) if world.spaces.finite else KeyedDraws(world)


def _key(generator: np.random.Generator) -> Array:
    return jax.random.key(int(generator.integers(2**63)))


def _cumulative(rows: Array) -> Array:
    """Cumulative sums of probability rows.

    They are exactly 1 from the last possible outcome on, so that rounding never selects an
    impossible outcome. The number of entries at or below a uniform number is the outcome, as in
    ``choose``.
    """
    size = rows.shape[-1]
    last = size - 1 - np.argmax(rows[..., ::-1] > 0, axis=-1)
    return np.where(np.arange(size) >= last[..., None], 1.0, rows.cumsum(-1))
