"""What a particle planner asks of a model.

Draws, densities and rewards by step, the same for finite and continuous worlds.

A finite model is played from its tables, so that the compiled search serves every finite model of
the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.core.randomness import choose
from homdp_ppl.core.spaces import Real, Space, Spaces
from homdp_ppl.declare.densities import ContinuousWorld
from homdp_ppl.declare.mechanics import Mechanics
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

_FINITE: dict[Any, dict[Any, Any]] = {}  # what has been compiled for finite models, by their sizes


class Game(NamedTuple):
    """A model as pure functions whose first argument is its parameters.

    Steps are counted from 0.
    """

    first: Callable[[Any, Array], Array]  # (parameters, key) -> x
    following: Callable[[Any, Array, Array, Array], Array]  # (parameters, key, x, a) -> x'
    observe: Callable[[Any, Array, Array], Array]  # (parameters, key, x) -> y
    log_emission: Callable[[Any, Array, Array], Array]  # (parameters, x, y) -> log O(y | x)
    reward: Callable[[Any, Array, Array, Array], Array]  # (parameters, h, x, a) -> r_h(x, a)
    domain: Spaces

    @property
    def finite(self) -> bool:
        """Whether an observation can be seen twice."""
        return not isinstance(self.domain.observations, Real)


class Played(NamedTuple):
    """A game, the parameters it is played with, and where its compiled functions are kept."""

    game: Game
    parameters: Any
    compiled: dict[Any, Any]


def as_game(world: Any) -> Played:
    """A world, finite or not, as a game; a POMDP serves as well."""
    if isinstance(world, ContinuousWorld):
        return Played(_continuous(world.mechanics), dict(world.parameters), world.homdp.compiled)
    if isinstance(world, World | POMDP):
        given = validated(world, "particle_tree") if isinstance(world, POMDP) else world.pomdp
        pomdp = given.stationary("particle_tree")
        return Played(
            _finite(Spaces(*world.spaces)),
            pomdp,
            _FINITE.setdefault(tuple(map(jnp.shape, pomdp)), {}),
        )
    remedy = "Fix a declaration's parameters with .at(...), or draw them with .draw(key)."
    raise PlanningError(
        "particle_tree", [Problem("world", f"a {type(world).__name__}", "a World", remedy)]
    )


def _continuous(mechanics: Mechanics) -> Game:
    X, Y = mechanics.domain.states, mechanics.domain.observations
    return Game(
        lambda parameters, key: _typed(mechanics.draw_first(parameters, key), X),
        lambda parameters, key, x, a: _typed(mechanics.draw_next(parameters, key, x, a), X),
        lambda parameters, key, x: _typed(mechanics.draw_observation(parameters, key, x), Y),
        mechanics.log_emission,
        lambda parameters, h, x, a: _bounded(mechanics.reward(x, a)),
        mechanics.domain,
    )


def _finite(domain: Spaces) -> Game:
    return Game(
        lambda pomdp, key: _draw(key, pomdp.initial),
        lambda pomdp, key, x, a: _draw(key, pomdp.transition[x, a]),
        lambda pomdp, key, x: _draw(key, pomdp.emission[x]),
        lambda pomdp, x, y: jnp.log(pomdp.emission[x, y]),
        lambda pomdp, h, x, a: pomdp.reward[h, x, a],
        domain,
    )


def _typed(value: Array, space: Space) -> Array:
    return value.astype(jnp.result_type(float if isinstance(space, Real) else int))


def _bounded(reward: Array) -> Array:
    """The reward, or nan where it is not in [0, 1].

    It makes everything above it nan, up to the root, where it is told.
    """
    return jnp.where((reward >= 0) & (reward <= 1), reward, jnp.nan)


def _draw(key: Array, row: Array) -> Array:
    return choose(row, jax.random.uniform(key))
