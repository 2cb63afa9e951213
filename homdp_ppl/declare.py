"""Declarations: a decorated NumPyro program is a HOMDP; with its parameters fixed it is a World to act in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
import numpyro
from numpy.typing import ArrayLike
from numpyro import handlers
from numpyro.distributions import Distribution

from homdp_ppl.counts import Counts
from homdp_ppl.episode import Episode, as_keys, stack
from homdp_ppl.errors import DataError, DeclarationError, ParameterError, Problem
from homdp_ppl.kernels import Kernels, Tables, snap, tabulate
from homdp_ppl.parameters import check_parameters, outside_support, short, table_problems
from homdp_ppl.pomdp import POMDP, Spaces
from homdp_ppl.precision import Array, in_x64, to_numpy, x64
from homdp_ppl.probing import Prober, Site
from homdp_ppl.program import episode_program, hindsight, unrolled_program
from homdp_ppl.structure import Structure, analyse
from homdp_ppl.validation import check_reward, check_spaces, check_tables, look


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
        return self.spaces.states

    @property
    def observations(self) -> tuple[str, ...]:
        """Names of the observations."""
        return self.spaces.observations

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
        """The NumPyro model ``program(policy=None, episodes=1)``: the user's sites, and ``x``, ``y``, ``a``, ``x_last``."""
        return episode_program(self.function, self.spaces)

    @cached_property
    def unrolled(self) -> Callable[..., None]:
        """The same model with one site a step, for ``numpyro.render_model(homdp.unrolled)``; ``steps=2`` shortens the picture."""
        return unrolled_program(self.function, self.spaces)

    def with_horizon(self, horizon: int) -> HOMDP:
        """The same declaration with another horizon, if its rewards are the same at every step."""
        if (self.reward != self.reward[0]).any():
            got = "rewards that differ from step to step"
            raise DeclarationError(self.name, [Problem("horizon", got, "the same rewards at every step", "Declare it anew.")])
        spaces, problems = check_spaces(*self.spaces[:3], horizon)
        if spaces is None or problems:
            raise DeclarationError(self.name, problems)
        return replace(self, spaces=spaces, reward=np.repeat(self.reward[:1], spaces.horizon, axis=0))

    def hindsight(self, episodes: Episode | Iterable[Episode]) -> Callable[[], None]:
        """The program conditioned on revealed episodes: a NumPyro model in which exactly the user's sites are latent.

        Hand it to ``MCMC`` or ``SVI`` as it is, inside ``with homdp_ppl.x64():``.
        """
        batch = stack(episodes, self.spaces)
        return hindsight(self.program, self.function, batch.states, batch.observations, batch.actions)

    def counts(self, episodes: Episode | Iterable[Episode]) -> Counts:
        """The sufficient statistics of episodes of this model."""
        return Counts.of(episodes, self.spaces)

    def returns(self, episodes: Episode) -> Array:
        """The sum of rewards of each episode, known once the states are."""
        stack(episodes, self.spaces)
        steps = np.arange(self.horizon)
        return self.reward[steps, episodes.states[..., :-1], episodes.actions].sum(-1)

    @in_x64
    def tables(self, parameters: Mapping[str, ArrayLike]) -> POMDP:
        """The POMDP arrays at given parameters; works under ``jit`` and ``vmap`` over batches, and ``grad`` inside ``x64()``.

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
        if any(isinstance(value, jax.core.Tracer) for value in values.values()):
            remedy = "Use .tables(parameters) inside jit, vmap and grad."
            raise ParameterError(self.name, [Problem("parameters", "traced values", "numbers", remedy)])
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
        """A world drawn from the priors of the sites; factors and observed sites of the program do not weigh in."""
        keys = as_keys(key, f"{self.name}.draw")
        if keys.ndim:
            got = f"{len(keys)} keys"
            raise DataError(f"{self.name}.draw", [Problem("key", got, "one key", "[model.draw(k) for k in keys] draws several.")])
        return self.at(**self._prior(keys))

    def sample_prior(self, key: Array) -> dict[str, Array]:
        """The sites' values drawn from their priors; may be traced, inside ``x64()``."""
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            self.function()
        return {site.name: trace[site.name]["value"] for site in self.sites}

    def __repr__(self) -> str:
        X, Y, A, H = self.spaces.sizes
        summary = "; ".join(f"{part}: {phrase}" for part, phrase in self.structure.summary().items())
        sizes = ", ".join(f"{n} {word}{'s' * (n != 1)}" for n, word in ((X, "state"), (Y, "observation"), (A, "action")))
        behind = self.structure.hyperparameters()
        behind_them = f"; behind them: {', '.join(behind)}" if behind else ""
        return f"HOMDP {self.name!r}: {sizes}, horizon {H}\n  {summary}{behind_them}"

    @cached_property
    def _compiled(self) -> Callable[[dict[str, Array]], tuple[Tables, dict[str, Array]]]:
        return jax.jit(self._evaluate)

    def _evaluate(self, values: Mapping[str, Array]) -> tuple[Tables, dict[str, Array]]:
        """The tables at these parameters, and whether each parameter lies in the support of its site."""
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
    """

    homdp: HOMDP
    parameters: Mapping[str, Array]
    pomdp: POMDP = field(repr=False)

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


def homdp(
    *, states: Any, observations: Any, actions: Any, horizon: int, reward: ArrayLike | Callable[[int, int], float]
) -> Callable[[Callable[[], Kernels]], HOMDP]:
    """Declare a HOMDP: decorate a NumPyro program that returns :class:`Kernels`.

    Parameters
    ----------
    states, observations, actions
        Names, or how many there are.
    horizon
        Number of actions in an episode.
    reward
        r(x, a) in [0, 1] as an array (X, A), one a step (H, X, A), or a function of two indices.

    Returns
    -------
    callable
        A decorator that turns the program into a :class:`HOMDP`, or raises :class:`DeclarationError` with every problem.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, homdp
    >>> @homdp(states=("off", "on"), observations=("dark", "light"), actions=("wait",), horizon=2, reward=[[0.0], [1.0]])
    ... def lamp():
    ...     breaks = numpyro.sample("breaks", dist.Beta(1, 9))
    ...     return Kernels(
    ...         initial=[0.0, 1.0],
    ...         transition=lambda x, a: dist.Bernoulli(x * (1 - breaks)),
    ...         emission=[[1.0, 0.0], [0.0, 1.0]],
    ...     )
    >>> lamp
    HOMDP 'lamp': 2 states, 2 observations, 1 action, horizon 2
      T: 1 of 2 rows known, 1 row Dirichlet, conjugate; O: known; initial: known
    """

    def declare(function: Callable[[], Kernels]) -> HOMDP:
        return _declare(function, states, observations, actions, horizon, reward)

    return declare


def tabular(
    *,
    T: ArrayLike | Distribution,
    O: ArrayLike | Distribution,  # noqa: E741
    initial: ArrayLike,
    reward: ArrayLike | Callable[[int, int], float],
    horizon: int,
    states: Any = None,
    observations: Any = None,
    actions: Any = None,
    name: str = "tabular",
) -> HOMDP:
    """Declare a HOMDP by tables: each of T and O an array when it is known, or a Dirichlet prior.

    Parameters
    ----------
    T
        T(x' | x, a), shape (X, A, X): an array, or a distribution over such tables; then its site is called "T".
    O
        O(y | x), shape (X, Y), in the same manner; its site is called "O".
    initial
        The distribution of the first state, (X,).
    reward, horizon, states, observations, actions
        As in :func:`homdp`; names default to x0, y0, a0 and so on.
    name
        What to call the model.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> flat = dist.Dirichlet(np.ones((2, 1, 2)))
    >>> tabular(T=flat, O=np.eye(2), initial=[1, 0], reward=np.eye(2)[:, :1], horizon=3)
    HOMDP 'tabular': 2 states, 2 observations, 1 action, horizon 3
      T: Dirichlet, conjugate; O: known; initial: known
    """
    shapes = {"T": _shape(T), "O": _shape(O)}
    wanted = {"T": "shape (X, A, X)", "O": "shape (X, Y)"}
    bad = [Problem(n, f"shape {s}", wanted[n]) for n, s in shapes.items() if len(s) != len(wanted[n].split(","))]
    if bad:
        raise DeclarationError(name, bad)

    def table(site: str, given: ArrayLike | Distribution) -> Array:
        if not isinstance(given, Distribution):
            return given
        return numpyro.sample(site, given.to_event(len(given.batch_shape)))

    def program() -> Kernels:
        return Kernels(initial=initial, transition=table("T", T), emission=table("O", O))

    program.__name__ = name
    X, A, _ = shapes["T"]
    Y = shapes["O"][-1]
    return _declare(program, states or X, observations or Y, actions or A, horizon, reward)


def _declare(function: Callable[[], Kernels], states: Any, observations: Any, actions: Any, horizon: Any, reward: Any) -> HOMDP:
    name = getattr(function, "__name__", "homdp")
    if not callable(function):
        raise DeclarationError("homdp", [Problem("program", repr(function), "a function that returns Kernels")])
    spaces, problems = check_spaces(states, observations, actions, horizon)
    required = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    if required:
        problems.append(
            Problem("program", f"the arguments {', '.join(required)}", "a function without arguments", "Use a closure.")
        )
    if spaces is None or required:
        raise DeclarationError(name, problems)
    rewards, wrong = check_reward(reward, spaces)
    sites, sound, misshapen = look(function, spaces)
    problems += [*wrong, *misshapen]
    if not sound:
        raise DeclarationError(name, problems)
    with x64():
        prober = Prober(function, sites, spaces, sound)
        start = prober.start()
        problems += check_tables(start, spaces)
        if problems:
            raise DeclarationError(name, problems)
        return HOMDP(name, spaces, rewards, function, sites, analyse(prober, start))


def _shape(given: ArrayLike | Distribution) -> tuple[int, ...]:
    return tuple(given.shape()) if isinstance(given, Distribution) else np.shape(given)
