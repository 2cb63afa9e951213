"""HOMDP, a declared program, and World: the same with its parameters fixed.

How they are declared is in decorator.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike
from numpyro import handlers

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode, stack
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import as_key
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.kernels import Kernels, Tables, snap, tabulate
from homdp_ppl.declare.parameters import (
    check_parameters,
    outside_support,
    refuse_traced,
    short,
    table_problems,
)
from homdp_ppl.declare.probing import Site
from homdp_ppl.declare.program import episode_program, hindsight, unrolled_program
from homdp_ppl.declare.structure import Structure
from homdp_ppl.declare.validation import check_spaces
from homdp_ppl.errors import DeclarationError, ParameterError, Problem
from homdp_ppl.precision import Array, in_x64, to_numpy


@dataclass(frozen=True, eq=False, repr=False)
class HOMDP:
    """A declared Hindsight Observable MDP. Made by :func:`homdp` and :func:`tabular`.

    Attributes
    ----------
    name
        The program's name.
    spaces
        Names of states, observations and actions, and the horizon.
    reward
        r_h(x, a) as an array (H, X, A).
    function
        The user's program.
    sites
        Its random sites: what is unknown.
    structure
        Which rows are known or conjugate, and which entries can be non-zero.
    compiled
        What has been compiled for this declaration (samplers, say), shared with its other horizons.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=3,
    ... )
    >>> [site.name for site in lamp.sites], lamp.states
    (['T'], ('x0', 'x1'))
    >>> lamp.with_horizon(5)
    HOMDP 'tabular': 2 states, 2 observations, 1 action, horizon 5
      T: Dirichlet, conjugate; O: known; initial: known
    """

    name: str
    spaces: Spaces
    reward: Array
    function: Callable[[], Kernels]
    sites: tuple[Site, ...]
    structure: Structure
    compiled: dict[Any, Any] = field(default_factory=dict)

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the latent states."""
        return self.spaces.names[0]

    @property
    def observations(self) -> tuple[str, ...]:
        """Names of the observations."""
        return self.spaces.names[1]

    @property
    def actions(self) -> tuple[str, ...]:
        """Names of the actions."""
        return self.spaces.actions

    @property
    def horizon(self) -> int:
        """Number of actions in an episode."""
        return self.spaces.horizon

    @cached_property
    def program(self) -> Callable[..., None]:
        """The NumPyro model ``program(policy=None, episodes=1)``.

        The user's sites, and ``x``, ``y``, ``a``, ``x_last``.
        """
        return episode_program(self.function, self.spaces)

    @cached_property
    def unrolled(self) -> Callable[..., None]:
        """The same model with one site a step, for ``numpyro.render_model(homdp.unrolled)``.

        ``steps=2`` shortens the picture.
        """
        return unrolled_program(self.function, self.spaces)

    def with_horizon(self, horizon: int) -> HOMDP:
        """The same declaration with another horizon, if its rewards are the same at every step."""
        if (self.reward != self.reward[0]).any():
            got = "rewards that differ from step to step"
            raise DeclarationError(
                self.name,
                [Problem("horizon", got, "the same rewards at every step", "Declare it anew.")],
            )
        spaces, problems = check_spaces(*self.spaces[:3], horizon)
        if spaces is None or problems:
            raise DeclarationError(self.name, problems)
        return replace(
            self, spaces=spaces, reward=np.repeat(self.reward[:1], spaces.horizon, axis=0)
        )

    def hindsight(self, episodes: Episode | Iterable[Episode]) -> Callable[[], None]:
        """The program conditioned on revealed episodes.

        A NumPyro model in which exactly the user's sites are latent.

        Hand it to ``MCMC`` or ``SVI`` as it is, inside ``with homdp_ppl.x64():``.
        """
        batch = stack(episodes, self.spaces)
        return hindsight(
            self.program, self.function, batch.states, batch.observations, batch.actions
        )

    def counts(self, episodes: Episode | Iterable[Episode]) -> Counts:
        """The sufficient statistics of episodes of this model."""
        return Counts.of(episodes, self.spaces)

    def returns(self, episodes: Episode | Iterable[Episode]) -> Array:
        """The sum of rewards of each episode, known once the states are."""
        batch = stack(episodes, self.spaces)
        total = self.reward[np.arange(self.horizon), batch.states[:, :-1], batch.actions].sum(-1)
        return (
            total.reshape(np.shape(episodes.actions)[:-1])[()]
            if isinstance(episodes, Episode)
            else total
        )

    @in_x64
    def tables(self, parameters: Mapping[str, ArrayLike]) -> POMDP:
        """The POMDP arrays at given parameters.

        Works under ``jit`` and ``vmap`` over batches, and ``grad`` inside ``x64()``.

        Parameters
        ----------
        parameters
            A value for every site, by name. Support is not checked here; :meth:`at` does.
        """
        tables, _ = self._compiled(check_parameters(self.name, self.sites, parameters))
        return to_numpy(POMDP(*tables, self.reward))

    @in_x64
    def at(self, /, **parameters: ArrayLike) -> World:
        """A world with these parameters; refuses unknown, missing or out-of-support values.

        Examples
        --------
        >>> from homdp_ppl import models
        >>> models.load("tiger").homdp.at(accuracy=0.7).pomdp.emission
        array([[0.7, 0.3],
               [0.3, 0.7]])
        """
        values = check_parameters(self.name, self.sites, parameters)
        refuse_traced(self.name, values, "Use .tables(parameters) inside jit, vmap and grad.")
        tables, inside = self._compiled(values)
        outside = [name for name in values if not np.all(inside[name])]
        problems = outside_support(self.function, {name: values[name] for name in outside})
        problems = problems or table_problems(to_numpy(tables), self.structure.support, self.spaces)
        if problems:
            raise ParameterError(f"{self.name}.at", problems)
        parameters = {name: np.asarray(value) for name, value in values.items()}
        return World(self, parameters, POMDP(*to_numpy(tables), self.reward))

    @in_x64
    def draw(self, key: Array) -> World:
        """A world drawn from the priors of the sites.

        Factors and observed sites of the program do not weigh in.
        """
        return self.at(**self._prior(as_key(key, f"{self.name}.draw")))

    def sample_prior(self, key: Array) -> dict[str, Array]:
        """The sites' values drawn from their priors; may be traced, inside ``x64()``."""
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            self.function()
        return {site.name: trace[site.name]["value"] for site in self.sites}

    def __repr__(self) -> str:
        X, Y, A, H = self.spaces.sizes
        summary = "; ".join(
            f"{part}: {phrase}" for part, phrase in self.structure.summary().items()
        )
        sizes = ", ".join(
            f"{n} {word}{'s' * (n != 1)}"
            for n, word in ((X, "state"), (Y, "observation"), (A, "action"))
        )
        behind = self.structure.hyperparameters()
        alone = f"; moves no row by itself: {', '.join(behind)}" if behind else ""
        return f"HOMDP {self.name!r}: {sizes}, horizon {H}\n  {summary}{alone}"

    @cached_property
    def _compiled(self) -> Callable[[dict[str, Array]], tuple[Tables, dict[str, Array]]]:
        return jax.jit(self._evaluate)

    def _evaluate(self, values: Mapping[str, Array]) -> tuple[Tables, dict[str, Array]]:
        """The tables at these parameters, and whether each parameter lies in the support of its
        site.
        """
        with handlers.trace() as trace, handlers.seed(rng_seed=0), handlers.substitute(data=values):
            kernels = self.function()
        inside = {name: trace[name]["fn"].support(values[name]) for name in values}
        return snap(tabulate(kernels, self.spaces)), inside

    @cached_property
    def _prior(self) -> Callable[[Array], dict[str, Array]]:
        return jax.jit(self.sample_prior)


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A HOMDP with its parameters fixed: something to act in.

    Attributes
    ----------
    homdp
        The declaration.
    parameters
        The value of each site.
    pomdp
        The arrays.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=3,
    ... )
    >>> world = lamp.at(T=[[[1.0, 0.0]], [[0.25, 0.75]]])
    >>> world.pomdp.transition[1, 0], world.homdp is lamp
    (array([0.25, 0.75]), True)
    """

    homdp: HOMDP
    parameters: Mapping[str, Array]
    pomdp: POMDP

    @property
    def spaces(self) -> Spaces:
        """Names of states, observations and actions, and the horizon."""
        return self.homdp.spaces

    def with_horizon(self, horizon: int) -> World:
        """The same world with another horizon, if its rewards are the same at every step."""
        model = self.homdp.with_horizon(horizon)
        return World(model, self.parameters, self.pomdp._replace(reward=model.reward))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={short(value)}" for name, value in self.parameters.items())
        return f"World {self.homdp.name!r} at {values or 'no parameters'}"
