"""A declared program as pure functions of its parameters.

Draws and log densities of states and observations.

These are what everything else is made of: rollouts, likelihoods of whole classes, particle beliefs.
All may be traced; call them inside :func:`homdp_ppl.x64`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import jax
import jax.numpy as jnp
from numpyro import handlers

from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.conditional import Laws, laws
from homdp_ppl.declare.kernels import Kernels, tabulators
from homdp_ppl.precision import Array

Parameters: TypeAlias = Mapping[str, Array]


class Mechanics:
    """How a program moves and what it shows, at given parameters.

    Parameters
    ----------
    function
        The user's program.
    domain
        Its spaces.
    reward
        r(x, a).
    """

    def __init__(
        self,
        function: Callable[[], Kernels],
        domain: Spaces,
        reward: Callable[[Array, Array], Array],
    ) -> None:
        self.function = function
        self.domain = domain
        self.reward = reward

    def laws(self, parameters: Parameters) -> Laws:
        """The kernels at given parameters."""
        with (
            handlers.block(),
            handlers.seed(rng_seed=0),
            handlers.substitute(data=dict(parameters)),
        ):
            return laws(self.function(), self.domain)

    def draw_first(self, parameters: Parameters, key: Array) -> Array:
        """x_1."""
        return self.laws(parameters).initial().sample(key)

    def draw_next(self, parameters: Parameters, key: Array, x: Array, a: Array) -> Array:
        """x_{h+1} given x_h and a_h."""
        return self.laws(parameters).transition(x, a).sample(key)

    def draw_observation(self, parameters: Parameters, key: Array, x: Array) -> Array:
        """y_h given x_h."""
        return self.laws(parameters).emission(x).sample(key)

    def log_transition(self, parameters: Parameters, x: Array, a: Array, following: Array) -> Array:
        """The log density T(x' | x, a)."""
        return self.laws(parameters).transition(x, a).log_prob(following)

    def log_emission(self, parameters: Parameters, x: Array, y: Array) -> Array:
        """The log density O(y | x)."""
        return self.laws(parameters).emission(x).log_prob(y)

    def latent_rows(self, parameters: Parameters, spaces: Spaces) -> tuple[Array, Array]:
        """The tables rho (X,) and T (X, A, X), where there are finitely many states.

        Those of ``spaces``.
        """
        given = self.laws(parameters)
        make = tabulators(Kernels(given.initial(), given.transition, given.emission), spaces)
        return make["initial"](), make["transition"]()

    def log_likelihood(
        self, parameters: Parameters, states: Array, observations: Array, actions: Array
    ) -> Array:
        """Log density of one episode's states and observations.

        The policy that chose the actions does not weigh in.
        """
        T = jax.vmap(lambda x, a, z: self.log_transition(parameters, x, a, z))(
            states[:-1], actions, states[1:]
        )
        O = jax.vmap(lambda x, y: self.log_emission(parameters, x, y))(states[:-1], observations)  # noqa: E741
        first = self.laws(parameters).initial().log_prob(states[0])
        return first + jnp.sum(T) + jnp.sum(O)
