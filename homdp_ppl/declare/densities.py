"""Declarations with continuous spaces: the same decorated program, without tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike
from numpyro import handlers

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.randomness import as_key
from homdp_ppl.core.spaces import Spaces, describe
from homdp_ppl.declare.density_program import episode_program
from homdp_ppl.declare.density_validation import (
    as_reward,
    as_space,
    reward_problems,
    trials,
    try_out,
)
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.mechanics import Mechanics
from homdp_ppl.declare.parameters import check_parameters, outside_support, refuse_traced, short
from homdp_ppl.declare.playing import Steps, play
from homdp_ppl.declare.probing import Site
from homdp_ppl.declare.program import hindsight
from homdp_ppl.declare.validation import as_horizon, as_names, check_program, look
from homdp_ppl.errors import DataError, DeclarationError, ParameterError, Problem
from homdp_ppl.precision import Array, in_x64, to_numpy


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousHOMDP:
    """A declared HOMDP with continuous states or observations. Made by :func:`homdp_ppl.homdp`.

    Attributes
    ----------
    name
        The program's name.
    spaces
        States, observations and actions, and the horizon.
    function
        The user's program.
    reward
        r(x, a) as a function that JAX can trace.
    sites
        Its random sites: what is unknown.
    compiled
        What has been compiled for this declaration.

    Examples
    --------
    >>> import jax.numpy as jnp, numpyro, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp
    >>> @homdp(
    ...     states=Real(1),
    ...     observations=Real(1),
    ...     actions=2,
    ...     horizon=1,
    ...     reward=lambda x, a: jnp.exp(-(x**2)),
    ... )
    ... def walk():
    ...     push = numpyro.sample("push", dist.Normal(0.0, 1.0))
    ...     return Kernels(
    ...         dist.Normal(0.0, 1.0),
    ...         lambda x, a: dist.Normal(x + a * push, 1.0),
    ...         lambda x: dist.Normal(x, 1.0),
    ...     )
    >>> walk
    HOMDP 'walk': states in R, observations in R, 2 actions, horizon 1
      unknown: push
    """

    name: str
    spaces: Spaces
    function: Callable[[], Kernels]
    reward: Callable[[Array, Array], Array]
    sites: tuple[Site, ...]
    compiled: dict[Any, Any] = field(default_factory=dict)

    @property
    def horizon(self) -> int:
        """Number of actions in an episode."""
        return self.spaces.horizon

    @cached_property
    def mechanics(self) -> Mechanics:
        """Draws and log densities as pure functions of the parameters."""
        return Mechanics(self.function, self.spaces, self.reward)

    @cached_property
    def program(self) -> Callable[..., None]:
        """The NumPyro model ``program(episodes=1)``.

        The user's sites, ``x``, ``y``, ``a``, ``x_last``; actions are uniform.
        """
        return episode_program(self.function, self.spaces)

    def hindsight(self, episodes: Episode | Iterable[Episode]) -> Callable[[], None]:
        """The program conditioned on revealed episodes.

        A NumPyro model in which exactly the user's sites are latent.
        """
        batch = Episodes.of(episodes, self).require_complete(f"{self.name}.hindsight")
        return hindsight(
            self.program, self.function, batch.states, batch.observations, batch.actions
        )

    def with_horizon(self, horizon: int) -> ContinuousHOMDP:
        """The same declaration with another horizon."""
        problems: list[Problem] = []
        steps = as_horizon(horizon, problems)
        if problems:
            raise DeclarationError(self.name, problems)
        return replace(self, spaces=self.spaces._replace(horizon=steps), compiled={})

    @in_x64
    def returns(self, episodes: Episode | Iterable[Episode]) -> Array:
        """The sum of rewards of each episode; refuses rewards outside [0, 1]."""
        batch = Episodes.of(episodes, self).require_revealed(f"{self.name}.returns")
        if "rewards" not in self.compiled:
            self.compiled["rewards"] = jax.jit(jax.vmap(jax.vmap(self.reward)))
        rewards = np.asarray(self.compiled["rewards"](batch.states[:, :-1], batch.actions))
        if not batch.full_length:
            rewards = np.where(batch.steps, rewards, 0.0)
        problems = reward_problems(rewards, batch, self.spaces)
        if problems:
            raise DataError(f"{self.name}.returns", problems)
        total = rewards.sum(-1)
        return total[0] if isinstance(episodes, Episode) else total

    @in_x64
    def at(self, /, **parameters: ArrayLike) -> ContinuousWorld:
        """A world with these parameters; refuses unknown, missing or out-of-support values."""
        values = check_parameters(self.name, self.sites, parameters)
        refuse_traced(
            self.name, values, "JAX can trace .mechanics, whose functions take parameters."
        )
        with handlers.trace() as trace, handlers.seed(rng_seed=0), handlers.substitute(data=values):
            self.function()
        outside = [name for name in values if not np.all(trace[name]["fn"].support(values[name]))]
        problems = outside_support(self.function, {name: values[name] for name in outside})
        if problems:
            raise ParameterError(f"{self.name}.at", problems)
        return ContinuousWorld(self, to_numpy(values))

    @in_x64
    def draw(self, key: Array) -> ContinuousWorld:
        """A world drawn from the priors of the sites."""
        if "prior" not in self.compiled:
            self.compiled["prior"] = jax.jit(self.sample_prior)
        return ContinuousWorld(
            self, to_numpy(self.compiled["prior"](as_key(key, f"{self.name}.draw")))
        )

    def sample_prior(self, key: Array) -> dict[str, Array]:
        """The sites' values drawn from their priors; may be traced, inside ``x64()``."""
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            self.function()
        return {site.name: trace[site.name]["value"] for site in self.sites}

    def __repr__(self) -> str:
        X, Y, A, H = self.spaces
        sizes = (
            f"{describe(X, 'state')}, {describe(Y, 'observation')}, "
            f"{describe(A, 'action')}, horizon {H}"
        )
        unknown = ", ".join(site.name for site in self.sites) or "nothing"
        return f"HOMDP {self.name!r}: {sizes}\n  unknown: {unknown}"


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousWorld:
    """A continuous HOMDP with its parameters fixed: something to act in.

    Made by ``at`` and ``draw`` of its declaration.

    Attributes
    ----------
    homdp
        The declaration.
    parameters
        The value of each site.

    Examples
    --------
    >>> import jax, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp, rollout, uniform_policy
    >>> @homdp(
    ...     states=Real(1), observations=Real(1), actions=2, horizon=1, reward=lambda x, a: a / 2
    ... )
    ... def walk():
    ...     return Kernels(
    ...         dist.Normal(0.0, 1.0),
    ...         lambda x, a: dist.Normal(x + a, 1.0),
    ...         lambda x: dist.Normal(x, 1.0),
    ...     )
    >>> world = walk.at().with_horizon(3)
    >>> rollout(
    ...     jax.random.key(0), world, uniform_policy(world)
    ... ).states.shape  # real numbers; one after the last action, too
    (4,)
    """

    homdp: ContinuousHOMDP
    parameters: Mapping[str, Array]

    @property
    def spaces(self) -> Spaces:
        """States, observations and actions, and the horizon."""
        return self.homdp.spaces

    @property
    def mechanics(self) -> Mechanics:
        """Draws and log densities as pure functions of the parameters."""
        return self.homdp.mechanics

    def play(self, keys: Array, policy: Policy, luck: Array | None = None) -> Episodes:
        """Episodes of a policy, one a key; :func:`homdp_ppl.rollout` calls it.

        Random actions may have a luck of their own.
        """
        if "steps" not in self.homdp.compiled:
            self.homdp.compiled["steps"] = Steps(self.mechanics)
        return play(keys, self.homdp.compiled["steps"], self.parameters, policy, luck)

    def with_horizon(self, horizon: int) -> ContinuousWorld:
        """The same world with another horizon."""
        return ContinuousWorld(self.homdp.with_horizon(horizon), self.parameters)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={short(value)}" for name, value in self.parameters.items())
        return f"World {self.homdp.name!r} at {values or 'no parameters'}"


def declare_continuous(
    function: Callable[[], Kernels],
    states: Any,
    observations: Any,
    actions: Any,
    horizon: Any,
    reward: Any,
) -> ContinuousHOMDP:
    """A continuous HOMDP; every problem of its declaration is told at once."""
    name = getattr(function, "__name__", "homdp")
    problems: list[Problem] = []
    X = as_space("states", states, "x", problems)
    Y = as_space("observations", observations, "y", problems)
    domain = Spaces(
        X, Y, as_names("actions", actions, "a", problems), as_horizon(horizon, problems)
    )
    misused = check_program(function)
    if misused or not all(domain[:3]):
        raise DeclarationError(name, [*problems, *misused])
    rewards, wrong = as_reward(reward, domain)
    sites, _, misshapen = look(function, lambda kernels: trials(kernels, domain))
    problems += [*wrong, *misshapen]
    model = ContinuousHOMDP(name, domain, function, rewards, sites)
    problems = problems or try_out(model.mechanics, model.sample_prior)
    if problems:
        raise DeclarationError(name, problems)
    return model
