"""HOMDP, the class of declarations; decorator.py has the functions that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final
from uuid import uuid4

import jax
import numpy as np
from numpy.typing import ArrayLike
from numpyro import handlers

from homdp_ppl.core.allowed import Allowed
from homdp_ppl.core.cache import Cache, shared_cache
from homdp_ppl.core.checked import check_fields, checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episode_validation import excluded_problems, incomplete_problems
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.form import Form
from homdp_ppl.core.hindsight_form import HindsightForm
from homdp_ppl.core.pomdp import POMDP, assembled
from homdp_ppl.core.randomness import as_key
from homdp_ppl.core.spaces import Spaces, describe, no_tables, require_finite
from homdp_ppl.declare.clue_likelihood import evidence_of
from homdp_ppl.declare.dynamics import (
    Dynamics,
    Numbers,
    program_dynamics,
    table_dynamics,
)
from homdp_ppl.declare.fingerprint import fingerprint
from homdp_ppl.declare.hindsight_kernels import RevealUnit, form_of
from homdp_ppl.declare.hindsight_program import hindsight_with_gaps
from homdp_ppl.declare.hindsight_validation import revealed_problems
from homdp_ppl.declare.kernels import (
    Context,
    Kernels,
    Planned,
    context_of,
    snap,
    snap_table,
    tabulate,
    tabulators,
)
from homdp_ppl.declare.notebook import homdp_html
from homdp_ppl.declare.parameters import (
    check_parameters,
    outside_support,
    refuse_traced,
    table_problems,
)
from homdp_ppl.declare.probing import Site
from homdp_ppl.declare.program import episode_program, hindsight, unrolled_program
from homdp_ppl.declare.returns import returns, rewards_of
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.declare.sizes import declared_size_problems
from homdp_ppl.declare.structure import Structure
from homdp_ppl.declare.validation import as_horizon
from homdp_ppl.declare.world import World
from homdp_ppl.errors import DataError, DeclarationError, ParameterError, Problem, shown
from homdp_ppl.precision import Array, in_x64, to_numpy, x64

__all__ = ["HOMDP", "World"]

LARGE = 100_000  # numbers in the tables of a known model that are not worth compiling


@final
@dataclass(frozen=True, eq=False, repr=False)
class HOMDP:
    """A declared Hindsight Observable MDP. Create one with :func:`homdp` or :func:`tabular`.

    Members that need finite tables (``structure``, ``tables``, ``counts``) raise
    :class:`SpacesError` if states or observations are real-valued.

    Attributes
    ----------
    name
        The program's name.
    spaces
        States, observations and actions, and the horizon.
    rewards
        The rewards, scaled to [0, 1], with the units in which they were declared.
    function
        The user's program.
    sites
        The random sites of the program: its unknown parameters.
    allowed
        Which actions are allowed after a history; None if all are.
    reveal_unit
        Whether ``revealed`` in :class:`Kernels` is a probability per step or per episode.

    Two declarations are equal if they have the same :attr:`fingerprint`.

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
    rewards: Rewards
    function: Callable[[], Kernels]
    sites: tuple[Site, ...]
    allowed: Allowed | None = None
    reveal_unit: RevealUnit = "step"
    _structure: Structure | None = None
    _probe: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        check_fields(self, "HOMDP")

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

    @property
    def reward(self) -> Any:
        """The rewards in the user's units; minus the costs if costs were declared.

        An array (H, X, A), or (H, X, Y, A) if they depend on the observation. If a space is
        real-valued, the declared array or function. None if rewards are random: their means depend
        on the parameters, see ``world.pomdp``.
        """
        return self.rewards.declared

    @property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest possible reward in the user's units."""
        return self.rewards.bounds

    @property
    def structure(self) -> Structure:
        """Which rows are known or conjugate, and which entries can be non-zero."""
        if self._structure is None:
            raise no_tables(self.spaces, self.name, "structure")
        return self._structure

    @cached_property
    def form(self) -> Form:
        """The form of the tables: on what their rows depend."""
        law = self.rewards.law
        return self.structure.form._replace(
            reward=None if law is None else law.form, hindsight=self.hindsight_form
        )

    @cached_property
    def hindsight_form(self) -> HindsightForm | None:
        """The form of declared labels and of the mechanism of reveals; None if there are none."""
        return None if self._structure is None else form_of(self.structure.tables, self.reveal_unit)

    @checked
    def model_of(self, tables: Sequence[Array]) -> POMDP:
        """The POMDP with these tables and the declared rewards; can be traced.

        Parameters
        ----------
        tables
            Initial distribution, transitions and emissions in the declared :attr:`form` and, if
            rewards are random, their table. Leading axes, the same in all tables, are candidates.
        """
        require_finite(self.spaces, self.name, "model_of")
        form, law = self.form, self.rewards.law
        shapes = list(form.tables)
        if law is not None:
            shapes.append(self.structure.tables["reward"].reference.shape)
        given = list(tables)
        ends = [
            part.shape[-len(shape) :] if isinstance(part, np.ndarray | jax.Array) else ()
            for part, shape in zip(given, shapes, strict=False)
        ]
        if len(given) != len(shapes) or ends != shapes:
            expected = f"{len(shapes)} arrays whose last axes are {tuple(shapes)}"
            problem = Problem("tables", shown(tables, 80), expected)
            raise ParameterError(f"{self.name}.model_of", [problem])
        units = self.rewards.scale, self.rewards.shift
        rewards: Any = self.rewards.table
        if law is None:
            batch = np.shape(given[0])[:-1]
            rewards = np.broadcast_to(rewards, (*batch, *rewards.shape)) if batch else rewards
        else:
            rewards = self.rewards.means(given[3], self.horizon)
        return assembled(form, given[:3], rewards, self.spaces.ends, units)

    @cached_property
    def context(self) -> Context:
        """On what the kernels depend apart from the state and the action taken in it."""
        if self.spaces.finite:
            return Context(self.form.moves_by_step, len(self.form.emission) > 2)
        found: list[Context] = []

        def run(key: Array) -> None:
            with handlers.block(), handlers.seed(rng_seed=key):
                found.append(context_of(self.function()))

        with x64():
            jax.eval_shape(run, jax.random.key(0))  # without computing anything
        return found[0]

    @cached_property
    def fingerprint(self) -> str:
        """A digest of names, spaces, horizon, rewards, sites and the program's results at probe
        points.
        """
        table = self.rewards.table
        # the probes cover rewards that are functions or random
        rewards = np.zeros(0) if table is None else _without_observation(table)
        return fingerprint(self.name, self.spaces, self.sites, self._probe, rewards, *self._units)

    @cached_property
    def cache(self) -> Cache:
        """Compiled functions. Equal finite declarations share them, also across horizons."""
        if not self.spaces.finite:  # probes may miss differences in regions that are rarely visited
            return Cache()
        rewards: Array = np.zeros(0)  # the probes cover rewards that are functions or random
        if self.rewards.table is not None:
            table = self.rewards.table
            rewards = _without_observation(table if self.rewards.by_step else table[:1])
        return shared_cache(
            fingerprint(self.name, self.spaces[:3], self.sites, self._probe, rewards, *self._units)
        )

    @cached_property
    def dynamics(self) -> Dynamics:
        """Draws, mean rewards and log densities as pure functions of :meth:`numbers`."""
        if self.rewards.function is None:
            return table_dynamics(*self.spaces.sizes)
        return program_dynamics(self.function, self.spaces, self.rewards.function)

    @cached_property
    def program(self) -> Callable[..., None]:
        """The NumPyro model ``program(policy=None, episodes=1)``.

        It has the user's sites and the sites ``x``, ``y``, ``a`` and ``x_last``, and ``r`` if
        rewards are random, ``z`` and ``z_last`` if labels are declared, ``m`` and ``m_last`` if a
        mechanism of reveals is declared. If a space is real-valued, actions are uniform.
        """
        return episode_program(self.function, self.spaces, self.reveal_unit)

    @cached_property
    def unrolled(self) -> Callable[..., None]:
        """The same model with one site per step, for ``numpyro.render_model(homdp.unrolled)``.

        ``steps=2`` shortens the picture.
        """
        require_finite(self.spaces, self.name, "unrolled")
        return unrolled_program(self.function, self.spaces, self.reveal_unit)

    def with_horizon(self, horizon: int) -> HOMDP:
        """The same declaration with another horizon, if its rewards are the same at every step."""
        finite, problems = self.spaces.finite, list[Problem]()
        if self.rewards.by_step:
            got = "rewards that differ between steps"
            remedy = "Declare the model again with rewards for the new horizon."
            problems.append(Problem("horizon", got, "the same rewards at every step", remedy))
        form = self.hindsight_form
        stepwise = form is not None and form.by_step
        if finite and (self.form.moves_by_step or self.form.shows_by_step or stepwise):
            got = "tables that depend on the step"
            remedy = "Declare the model again with the new horizon."
            problems.append(Problem("horizon", got, "the same tables at every step", remedy))
        if problems:
            raise DeclarationError(self.name, problems)
        spaces = self.spaces._replace(horizon=as_horizon(horizon, problems))
        pattern = None if self._structure is None else self._structure.pattern
        problems += declared_size_problems(spaces, pattern)
        if problems:
            raise DeclarationError(self.name, problems)
        return replace(self, spaces=spaces, rewards=self.rewards.with_horizon(spaces.horizon))

    @checked
    def hindsight(
        self, episodes: Episode | Episodes | Iterable[Episode | Episodes]
    ) -> Callable[[], None]:
        """The program conditioned on revealed episodes.

        This is a NumPyro model in which only the user's sites are latent. Pass it to ``MCMC`` or
        ``SVI`` inside ``with homdp_ppl.x64():``. Missing states are summed over by the forward
        recursion; the likelihood is then a factor.
        """
        possible = self._possible(episodes, "hindsight")
        form = self.hindsight_form
        if self.spaces.finite and (incomplete_problems(possible) or (form and form.matters)):
            return hindsight_with_gaps(self, evidence_of(self, possible))
        batch = possible.to_horizon(self.spaces, f"{self.name}.hindsight")
        rewards = None if self.rewards.law is None else rewards_of(self, possible)
        return hindsight(self.program, self.function, batch, rewards)

    @checked
    def counts(self, episodes: Episode | Episodes | Iterable[Episode | Episodes]) -> Counts:
        """The sufficient statistics of episodes of this model."""
        require_finite(self.spaces, self.name, "counts")
        return Counts.of(self._possible(episodes, "counts"), self)

    @checked
    def returns(self, episodes: Episode | Episodes | Iterable[Episode | Episodes]) -> Array:
        """The sum of rewards of each episode up to its end, in the user's units.

        A single Episode gives one number. Raises :class:`DataError` for rewards outside the
        declared range and, if rewards are random, for rewards that were not recorded.
        """
        return returns(self, episodes)

    @checked
    def rewards_of(self, episodes: Episode | Episodes | Iterable[Episode | Episodes]) -> Array:
        """The reward of each step in the user's units, (episodes, H), 0 after the end.

        A single Episode gives one row. If rewards are random, these are the recorded ones, and NaN
        where there is none.

        Examples
        --------
        >>> from homdp_ppl import Episode, models
        >>> tiger = models.load("tiger", horizon=2).homdp
        >>> episode = Episode.of(["growl left"] * 2, ["listen", "open right"], ["left"] * 3, tiger)
        >>> tiger.rewards_of(episode)
        array([0.9, 1. ])
        """
        return rewards_of(self, episodes)

    @in_x64
    def tables(self, parameters: Mapping[str, ArrayLike]) -> POMDP:
        """The POMDP arrays at given parameters.

        Works under ``jit`` and ``vmap``, and under ``grad`` inside ``x64()``.

        Parameters
        ----------
        parameters
            A value for every site, by name. Supports are not checked here; :meth:`at` checks them.
        """
        return to_numpy(self.model_of(self.short_tables(parameters)))

    @in_x64
    def short_tables(self, parameters: Mapping[str, ArrayLike]) -> Planned:
        """The tables at given parameters in their declared form; may be traced."""
        require_finite(self.spaces, self.name, "tables")
        tables, _ = self._compiled(check_parameters(self.name, self.sites, parameters))
        return tables

    @in_x64
    def counted_tables(self, parameters: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """The tables whose counts are sufficient, by name; may be traced.

        If there are several sensors, these are the tables of the sensors instead of their product.
        """
        values = check_parameters(self.name, self.sites, parameters)
        with handlers.seed(rng_seed=0), handlers.substitute(data=values):
            make = tabulators(self.function(), self.spaces)
        return {name: snap_table(make[name]()) for name in self.structure.conjugate.sources}

    def numbers(self, parameters: Mapping[str, ArrayLike]) -> Numbers:
        """The first argument of :attr:`dynamics`: the tables of a finite model, or parameters."""
        if self.spaces.finite:
            return self.tables(parameters)
        return check_parameters(self.name, self.sites, parameters)

    @in_x64
    def at(self, /, **parameters: ArrayLike) -> World:
        """The world with these parameters.

        Raises :class:`ParameterError` for unknown or missing sites and values outside the support.

        Examples
        --------
        >>> from homdp_ppl import models
        >>> models.load("tiger").homdp.at(accuracy=0.7).pomdp.shows(0)
        array([[0.7, 0.3],
               [0.3, 0.7]])
        """
        values = check_parameters(self.name, self.sites, parameters)
        traceable = ".tables(parameters)" if self.spaces.finite else ".dynamics"
        refuse_traced(self.name, values, f"Use {traceable} inside jit, vmap and grad.")
        tables, inside = self._compiled(values) if self.spaces.finite else (None, self._run(values))
        outside = [name for name in values if not np.all(inside[name])]
        problems = outside_support(self.function, {name: values[name] for name in outside})
        if tables is not None and not problems:
            possible = {name: table.support for name, table in self.structure.tables.items()}
            problems = table_problems(
                to_numpy(tables), possible, self.spaces, self.rewards, self.form
            )
        if problems:
            raise ParameterError(f"{self.name}.at", problems)
        pomdp = None if tables is None else self.model_of(to_numpy(tables))
        return World(self, to_numpy(values), pomdp)

    @in_x64
    def draw(self, key: Array) -> World:
        """A world drawn from the priors of the sites.

        Factors and observed sites of the program are ignored.
        """
        prior = self.cache.get("prior", lambda: jax.jit(self.sample_prior))
        values = prior(as_key(key, f"{self.name}.draw"))
        return self.at(**values) if self.spaces.finite else World(self, to_numpy(values))

    @checked
    def sample_prior(self, key: Array) -> dict[str, Array]:
        """Draw values of the sites from their priors. It may be traced, inside ``x64()``."""
        key = as_key(key, "sample_prior")
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            self.function()
        return {site.name: trace[site.name]["value"] for site in self.sites}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HOMDP) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        X, Y, A, H, _ = self.spaces
        sizes = ", ".join(
            describe(space, word)
            for space, word in ((X, "state"), (Y, "observation"), (A, "action"))
        )
        units = "" if self.rewards.identity else f", {self.rewards!r}"
        return f"HOMDP {self.name!r}: {sizes}, horizon {H}{units}\n  {self._summary()}"

    def _repr_html_(self) -> str:
        return homdp_html(self)

    def _possible(
        self, episodes: Episode | Episodes | Iterable[Episode | Episodes], asked: str
    ) -> Episodes:
        """Validate episodes; steps that the declaration excludes raise :class:`DataError`."""
        batch = Episodes.of(episodes, self)
        if self._structure is not None:
            problems = excluded_problems(batch, self._structure.support, self.form, self.spaces)
            problems += revealed_problems(self, batch)
            if problems:
                raise DataError(f"{self.name}.{asked}", problems)
        return batch

    def _summary(self) -> str:
        if not self.spaces.finite:
            return f"unknown: {', '.join(site.name for site in self.sites) or 'nothing'}"
        phrases = self.structure.summary().items()
        behind = self.structure.hyperparameters()
        indirect = f"; affects no row directly: {', '.join(behind)}" if behind else ""
        summary = "; ".join(f"{part}: {phrase}" for part, phrase in phrases) + indirect
        return "\n  ".join([summary, *self.structure.reasons(self.spaces)])

    @property
    def _units(self) -> tuple[Any, ...]:
        """What else identifies the rewards: their units if they are scaled, and their law."""
        units = () if self.rewards.identity else (self.rewards.scale, self.rewards.shift)
        law = self.rewards.law
        if self.reveal_unit != "step":
            units = (*units, self.reveal_unit)
        if law is None:
            return units
        outcomes = np.zeros(0) if law.form.outcomes is None else law.form.outcomes
        return (*units, law.takes, outcomes, self.rewards.recorded)

    @property
    def _compiled(self) -> Callable[[dict[str, Array]], tuple[Planned, dict[str, Array]]]:
        if self._structure is not None and not self.sites:
            numbers = sum(np.size(table) for table in self.structure.reference)
            if numbers > LARGE:  # compilation would compute all tables, slowly
                return self._evaluate
        return self.cache.get("evaluate", lambda: jax.jit(self._evaluate))

    def _evaluate(self, values: Mapping[str, Array]) -> tuple[Planned, dict[str, Array]]:
        """The tables at these parameters, and whether each is in the support of its site."""
        with handlers.trace() as trace, handlers.seed(rng_seed=0), handlers.substitute(data=values):
            kernels = self.function()
        inside = {name: trace[name]["fn"].support(values[name]) for name in values}
        return snap(tabulate(kernels, self.spaces)), inside

    def _run(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Run the program, to find whether each of these parameters is in its site's support."""
        with handlers.trace() as trace, handlers.seed(rng_seed=0), handlers.substitute(data=values):
            self.function()
        return {name: trace[name]["fn"].support(values[name]) for name in values}


def _without_observation(table: Array) -> Array:
    """Rewards (H, X, Y, A), or (H, X, A) if they do not depend on the observation."""
    return table if table.shape[2] > 1 else table[:, :, 0]
