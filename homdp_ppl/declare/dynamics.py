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
from homdp_ppl.core.moves import sparse_row
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import choose
from homdp_ppl.core.spaces import Real, Space, Spaces
from homdp_ppl.core.sparse import Sparse
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
    ...     log = world.dynamics.log_emission(world.numbers, x, 3, 0, x)
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

    def following(self, numbers: Numbers, key: Array, x: Array, a: Array, h: Array | int) -> Array:
        """Draw x_{h+1} given x_h and a_h."""
        return _typed(self.laws(numbers).transition(x, a, h).sample(key), self.spaces.states)

    def observe(
        self, numbers: Numbers, key: Array, x: Array, a: Array | int, h: Array | int
    ) -> Array:
        """Draw y_h given x_h and the previous action, which is the number of actions at first."""
        return _typed(self.laws(numbers).emission(x, a, h).sample(key), self.spaces.observations)

    def log_initial(self, numbers: Numbers, x: Array) -> Array:
        """The log density rho(x)."""
        return self.laws(numbers).initial().log_prob(x)

    def log_transition(
        self, numbers: Numbers, x: Array, a: Array, h: Array | int, following: Array
    ) -> Array:
        """The log density T_h(x' | x, a)."""
        return self.laws(numbers).transition(x, a, h).log_prob(following)

    def log_emission(
        self, numbers: Numbers, x: Array, a: Array | int, h: Array | int, y: Array
    ) -> Array:
        """The log density O_h(y | x, a) after the previous action, the number of actions at
        first.
        """
        return self.laws(numbers).emission(x, a, h).log_prob(y)

    def log_likelihood(
        self, numbers: Numbers, states: Array, observations: Array, actions: Array
    ) -> Array:
        """Log density of the states and observations of one episode.

        It does not depend on the policy that chose the actions.
        """
        h = jnp.arange(len(actions))
        T = jax.vmap(lambda x, a, h, z: self.log_transition(numbers, x, a, h, z))(
            states[:-1], actions, h, states[1:]
        )
        previous = jnp.concatenate([jnp.full(1, len(self.spaces.actions)), actions[:-1]])
        seen: Any = jax.vmap(lambda x, a, h, y: self.log_emission(numbers, x, a, h, y))
        O = seen(states[:-1], previous, h, observations)  # noqa: E741
        return self.log_initial(numbers, states[0]) + jnp.sum(T) + jnp.sum(O)

    def latent_rows(self, numbers: Numbers, spaces: Spaces) -> tuple[Array, Array]:
        """The tables rho (X,) and T (X, A, X) of a model whose states, those of ``spaces``, are
        finitely many.
        """
        given = self.laws(numbers)
        moves = Kernels(given.initial(), lambda x, a: given.transition(x, a, 0), ())
        make = tabulators(moves, spaces)
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
        lambda x, a, h: (
            _SparseRow(pomdp.transition, (h, x, a))
            if isinstance(pomdp.transition, Sparse)
            else _Row(pomdp.transition, (_step(pomdp.transition, h), x, a))
        ),
        lambda x, a, h: _Row(
            pomdp.emission,
            (_step(pomdp.emission, h), a if pomdp.emission.shape[-3] > 1 else 0, x),
        ),
    )


def _step(table: Array, h: Array | int) -> Array | int:
    return h if table.shape[-4] > 1 else 0


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


class _SparseRow(Distribution):  # type: ignore[misc]
    """A row of a sparse table, at an index (h, x, a)."""

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, table: Sparse, index: tuple[Array | int, ...]) -> None:
        self.states, self.columns, self.chances = table.shape[-1], *sparse_row(table, *index)
        super().__init__()

    @property
    def support(self) -> Any:
        return dist.constraints.integer_interval(0, self.states - 1)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        uniform = jax.random.uniform(key, sample_shape)
        drawn = jax.vmap(lambda u: choose(self.chances, u))(uniform.ravel())
        return jnp.asarray(self.columns)[drawn].reshape(sample_shape)

    def log_prob(self, value: Array) -> Array:
        same = jnp.asarray(value)[..., None] == self.columns
        return jnp.log(jnp.where(same, self.chances, 0.0).sum(-1))


def _typed(value: Array, space: Space) -> Array:
    return value.astype(jnp.result_type(float if isinstance(space, Real) else int))
