"""Dynamics: draws, rewards and log densities of a model as pure functions of its numbers.

Rollouts, likelihoods, particle beliefs and Gymnasium environments use these functions. All may be
traced; call them inside :func:`homdp_ppl.x64`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import Distribution

from homdp_ppl.core.cache import Cache
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import choose
from homdp_ppl.core.spaces import Real, Space, Spaces
from homdp_ppl.declare.conditional import Laws, laws
from homdp_ppl.declare.kernels import Kernels, tabulators
from homdp_ppl.declare.rewards import RewardFunction
from homdp_ppl.precision import Array

Parameters: TypeAlias = Mapping[str, Array]
# the first argument of dynamics: the arrays of a finite model, or the values of the sites
Numbers: TypeAlias = POMDP | Parameters


@final
@dataclass(frozen=True, eq=False)
class Dynamics:
    """Draws, rewards and log densities of a model at given numbers. Steps start at 0.

    Attributes
    ----------
    spaces
        States, observations, actions and the horizon.
    laws
        The kernels at given numbers.
    reward
        r_h(x, y, a) in [0, 1], from (numbers, h, x, y, a).
    cache
        Compiled functions of these dynamics.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, x64
    >>> world = models.load("tiger")
    >>> with x64():
    ...     x = world.dynamics.first(world.numbers, jax.random.key(0))
    ...     log = world.dynamics.log_emission(world.numbers, x, x)
    >>> int(x), round(float(log), 4)
    (0, -0.1625)
    """

    spaces: Spaces
    laws: Callable[[Any], Laws]
    reward: Callable[[Any, Array | int, Array, Array, Array], Array]
    cache: Cache = field(default_factory=Cache)

    def first(self, numbers: Numbers, key: Array) -> Array:
        """Draw x_1."""
        return _typed(self.laws(numbers).initial().sample(key), self.spaces.states)

    def following(self, numbers: Numbers, key: Array, x: Array, a: Array) -> Array:
        """Draw x_{h+1} given x_h and a_h."""
        return _typed(self.laws(numbers).transition(x, a).sample(key), self.spaces.states)

    def observe(self, numbers: Numbers, key: Array, x: Array) -> Array:
        """Draw y_h given x_h."""
        return _typed(self.laws(numbers).emission(x).sample(key), self.spaces.observations)

    def log_initial(self, numbers: Numbers, x: Array) -> Array:
        """The log density rho(x)."""
        return self.laws(numbers).initial().log_prob(x)

    def log_transition(self, numbers: Numbers, x: Array, a: Array, following: Array) -> Array:
        """The log density T(x' | x, a)."""
        return self.laws(numbers).transition(x, a).log_prob(following)

    def log_emission(self, numbers: Numbers, x: Array, y: Array) -> Array:
        """The log density O(y | x)."""
        return self.laws(numbers).emission(x).log_prob(y)

    def log_likelihood(
        self, numbers: Numbers, states: Array, observations: Array, actions: Array
    ) -> Array:
        """Log density of the states and observations of one episode.

        It does not depend on the policy that chose the actions.
        """
        T = jax.vmap(lambda x, a, z: self.log_transition(numbers, x, a, z))(
            states[:-1], actions, states[1:]
        )
        O = jax.vmap(lambda x, y: self.log_emission(numbers, x, y))(states[:-1], observations)  # noqa: E741
        return self.log_initial(numbers, states[0]) + jnp.sum(T) + jnp.sum(O)

    def latent_rows(self, numbers: Numbers, spaces: Spaces) -> tuple[Array, Array]:
        """The tables rho (X,) and T (X, A, X) of a model whose states, those of ``spaces``, are
        finitely many.
        """
        given = self.laws(numbers)
        make = tabulators(Kernels(given.initial(), given.transition, given.emission), spaces)
        return make["initial"](), make["transition"]()


def program_dynamics(
    function: Callable[[], Kernels], spaces: Spaces, reward: RewardFunction
) -> Dynamics:
    """The dynamics of a program; their numbers are the values of its sites.

    Parameters
    ----------
    function
        The user's program.
    spaces
        Its spaces.
    reward
        r_h(x, y, a) in [0, 1].
    """

    def at(numbers: Parameters) -> Laws:
        with (
            handlers.block(),
            handlers.seed(rng_seed=0),
            handlers.substitute(data=dict(numbers)),
        ):
            return laws(function(), spaces)

    return Dynamics(spaces, at, lambda numbers, h, x, y, a: reward(h, x, y, a))


@cache
def table_dynamics(states: int, observations: int, actions: int, horizon: int) -> Dynamics:
    """The dynamics of finite models; their numbers are a :class:`POMDP`.

    All models of the same sizes use one object, so that they share compiled code.
    """
    X, Y, A = (
        tuple(f"{letter}{k}" for k in range(n))
        for letter, n in (("x", states), ("y", observations), ("a", actions))
    )
    spaces = Spaces(X, Y, A, horizon)
    return Dynamics(spaces, _table_laws, _table_reward)


def _table_reward(pomdp: POMDP, h: Array | int, x: Array, y: Array, a: Array) -> Array:
    return pomdp.reward[h, x, y if pomdp.rewards_by_observation else 0, a]


def _table_laws(pomdp: POMDP) -> Laws:
    return Laws(
        lambda: _Row(pomdp.initial, ()),
        lambda x, a: _Row(pomdp.transition, (0, x, a)),
        lambda x: _Row(pomdp.emission, (0, 0, x)),
    )


class _Row(Distribution):  # type: ignore[misc]
    """A row of a table; :func:`choose` picks the outcome of a draw."""

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, table: Array, index: tuple[Array | int, ...]) -> None:
        self.table, self.index = jnp.asarray(table), index
        super().__init__()

    @property
    def support(self) -> Any:
        return dist.constraints.integer_interval(0, self.table.shape[-1] - 1)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        row, uniform = self.table[self.index], jax.random.uniform(key, sample_shape)
        if not sample_shape:
            return choose(row, uniform)
        drawn = jax.vmap(lambda u: choose(row, u))(uniform.ravel())
        return drawn.reshape(sample_shape)

    def log_prob(self, value: Array) -> Array:
        return jnp.log(self.table[(*self.index, value)])


def _typed(value: Array, space: Space) -> Array:
    return value.astype(jnp.result_type(float if isinstance(space, Real) else int))
