"""Random draws of states and observations in an environment.

Finite worlds use tables and NumPy only. Other worlds use densities and JAX.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Protocol, final

import jax
import numpy as np
from numpyro import handlers

from homdp_ppl.core.spaces import Real, shape_of
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.reward_law import reward_distribution
from homdp_ppl.precision import Array, in_x64


class Draws(Protocol):
    """Draws of states and observations, and rewards; steps are counted from 0."""

    def first(self, generator: np.random.Generator) -> Any:
        """x_1."""

    def observe(self, generator: np.random.Generator, state: Any, action: int, step: int) -> Any:
        """y_h; the action is the previous one, and the number of actions at the first step."""

    def move(self, generator: np.random.Generator, state: Any, action: int, step: int) -> Any:
        """x_{h+1}."""

    def reward(
        self,
        generator: np.random.Generator,
        step: int,
        state: Any,
        observation: Any,
        action: int,
    ) -> float:
        """r_h(x, y, a) in the user's units, drawn if it is random; steps are counted from 0."""

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
        self._outcomes: Array = np.zeros(0)
        self._chances: Array = np.zeros(0)
        self._law: _Law | None = None
        law = world.homdp.rewards.law
        if law is not None and law.form.outcomes is not None:
            tables: Any = world.homdp.short_tables(world.parameters)
            self._outcomes = law.form.outcomes
            self._chances = _cumulative(np.asarray(tables.reward))
        elif law is not None:
            self._law = _Law(world)

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

    def reward(
        self,
        generator: np.random.Generator,
        step: int,
        state: int,
        observation: int,
        action: int,
    ) -> float:
        """r_h(x, y, a) in the user's units, drawn if it is random."""
        if self._law is not None:
            return self._law.draw(generator, step, state, observation, action)
        seen = observation if self._reward.shape[2] > 1 else 0
        if not self._outcomes.size:
            return float(self._reward[step, state, seen, action])
        row = (step if len(self._outcomes) > 1 else 0, state, seen, action)
        return float(self._outcomes[row][bisect_right(self._chances[row], generator.random())])

    def ends(self, state: int) -> bool:
        """Whether the state is terminal."""
        return bool(self._terminal[state])


@final
class _Law:
    """Draws of rewards with a density, by JAX."""

    def __init__(self, world: World) -> None:
        self._world = world

    @in_x64
    def draw(
        self, generator: np.random.Generator, step: int, state: int, seen: int, action: int
    ) -> float:
        """A reward in the user's units."""
        homdp = self._world.homdp
        one = homdp.cache.get("draw one reward", lambda: jax.jit(_one_reward(homdp)))
        return float(one(dict(self._world.parameters), _key(generator), step, state, seen, action))


def _one_reward(homdp: HOMDP) -> Callable[..., Array]:
    def draw(
        parameters: Mapping[str, Array], key: Array, h: Array, x: Array, y: Array, a: Array
    ) -> Array:
        with handlers.block(), handlers.seed(rng_seed=0), handlers.substitute(data=parameters):
            law = reward_distribution(homdp.function().reward, homdp.spaces)
        return law(h, x, y, a).sample(key)

    return draw


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
    def reward(
        self,
        generator: np.random.Generator,
        step: int,
        state: Any,
        observation: Any,
        action: int,
    ) -> float:
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
