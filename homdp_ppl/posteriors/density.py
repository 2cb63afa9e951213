"""The joint density of a program's sites and the data, on the unconstrained scale of samplers.

For finite models, counts are sufficient: a gradient takes the same time after ten episodes and
after a million. Sites with a closed-form posterior are left out, finite discrete sites are summed
over, and the other sites form the position.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from typing import Any, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax.scipy.special import logsumexp
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import constrain_fn, potential_energy

from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.forward import log_probability_of_counts
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.declare.kernels import Kernels, Tables, tabulators
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.probing import Site
from homdp_ppl.declare.reward_density import has_single, log_rewards
from homdp_ppl.errors import DataError, InferenceError, Problem
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.precision import Array

Position: TypeAlias = dict[str, Array]

CONFIGURATIONS = 4096  # largest number of joint values of the discrete sites
TRIES = 16  # a chain starts at the likeliest of this many prior draws


class Declared(Protocol):
    """The parts of a declaration that a density needs."""

    @property
    def name(self) -> str:
        """The name of the program."""

    @property
    def sites(self) -> tuple[Site, ...]:
        """Its random sites."""

    @property
    def function(self) -> Callable[[], Kernels]:
        """The user's program."""


class SiteDensity(ABC):
    """The density of a declaration's sites given data of any type.

    Use it inside :func:`homdp_ppl.x64`.

    Parameters
    ----------
    homdp
        The declaration.
    held
        Sites with a closed form, which factor out.
    """

    def __init__(self, homdp: Declared, held: tuple[str, ...]) -> None:
        self.name = homdp.name
        self.function = homdp.function
        self.held = held
        self.sites = tuple(site for site in homdp.sites if site.name not in held)
        self.free = tuple(site.name for site in self.sites if not site.discrete)
        self.configurations = self._enumerate()  # of the discrete sites, each on a leading axis

    @abstractmethod
    def weigh(self, kernels: Kernels, data: Any) -> None:
        """Add the likelihood of the data under the program's kernels as factors."""

    def potential(self, data: Any, position: Position) -> Array:
        """Minus the log density at an unconstrained position, summed over the discrete sites."""
        return -logsumexp(self.log_joint(data, position))

    def log_joint(self, data: Any, position: Position) -> Array:
        """The log density at every configuration of the discrete sites, (D,)."""
        return -jax.vmap(
            lambda discrete: potential_energy(self._model, (data, discrete), {}, position)
        )(self.configurations)

    def constrain(self, key: Array, data: Any, position: Position) -> dict[str, Array]:
        """The values of the sites at a position; discrete sites are drawn given the others."""
        several = len(self.configurations[""]) > 1
        chosen = jax.random.categorical(key, self.log_joint(data, position)) if several else 0
        discrete = jax.tree.map(lambda values: jnp.asarray(values)[chosen], self.configurations)
        values: dict[str, Array] = constrain_fn(self._model, (data, discrete), {}, position)
        return values | {name: value for name, value in discrete.items() if name}

    def start(self, key: Array, data: Any) -> tuple[Position, Array]:
        """The start of a chain: the likeliest of a few prior draws, and its potential."""
        positions = jax.vmap(self._prior_position)(jax.random.split(key, TRIES))
        potentials = jax.vmap(lambda position: self.potential(data, position))(positions)
        potentials = jnp.where(jnp.isnan(potentials), jnp.inf, potentials)
        best = jnp.argmin(potentials)
        return jax.tree.map(lambda leaf: leaf[best], positions), potentials[best]

    def _prior_position(self, key: Array) -> Position:
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            self.function()
        return {
            name: biject_to(trace[name]["fn"].support).inv(trace[name]["value"])
            for name in self.free
        }

    def _model(self, data: Any, discrete: Mapping[str, Array]) -> None:
        """The user's program with the likelihood as a factor.

        Held sites do not contribute to the density.
        """
        with (
            handlers.block(hide=list(self.held)),
            handlers.seed(rng_seed=0),
            handlers.substitute(data=dict(discrete)),
        ):
            kernels = self.function()
        self.weigh(kernels, data)

    def _enumerate(self) -> dict[str, Array]:
        """All joint values of the discrete sites.

        The entry "" numbers them, and exists also without discrete sites.
        """
        discrete = [site for site in self.sites if site.discrete]
        endless = [site.name for site in discrete if site.values < 0]
        number = prod(site.values ** prod(site.shape) for site in discrete)
        if endless or number > CONFIGURATIONS:
            many = f"{number:,}" if number < 10**12 else "more than 10^12"
            got = (
                f"{', '.join(endless)}, whose values cannot be enumerated"
                if endless
                else f"{many} joint values"
            )
            remedy = (
                "Truncate the site to a Categorical, use a plate instead of to_event, or "
                "marginalise the site in the program."
            )
            problem = Problem(
                "discrete sites",
                got,
                f"at most {CONFIGURATIONS:,} joint values",
                remedy,
            )
            raise InferenceError(f"posterior of {self.name}", [problem])
        support = self._supports([site.name for site in discrete])
        choices = [support[site.name] for site in discrete for _ in range(prod(site.shape))]
        grid = np.array(list(product(*choices))).reshape(number, -1)
        values: dict[str, Any] = {"": np.arange(number)}
        for site in discrete:
            size = prod(site.shape)
            values[site.name], grid = grid[:, :size].reshape(number, *site.shape), grid[:, size:]
        return values

    def _supports(self, names: list[str]) -> dict[str, Array]:
        if not names:
            return {}
        with handlers.trace() as trace, handlers.seed(rng_seed=0):
            self.function()
        return {
            name: np.asarray(trace[name]["fn"].enumerate_support(expand=False)).ravel()
            for name in names
        }


class Density(SiteDensity):
    """The density of a finite declaration's sites given counts.

    Parameters
    ----------
    homdp
        The declaration.
    held
        Sites with a closed form, which factor out.
    """

    def __init__(self, homdp: HOMDP, held: tuple[str, ...]) -> None:
        super().__init__(homdp, held)
        self._homdp = homdp
        self._entries = moving_entries(homdp, closed=bool(held))

    def weigh(self, kernels: Kernels, data: Counts) -> None:
        """Add the counts as factors."""
        table, numbers = tabulators(kernels, self._homdp.spaces), counted(self._homdp, data)
        for where, places in self._entries.items():
            if len(places[0]):
                seen, chance = numbers[where][places], table[where]()[places]
                numpyro.factor(f"counts of {where}", log_probability_of_counts(seen, chance))
        if has_single(data.rewards):
            single: Any = data.rewards.single  # type: ignore[union-attr]
            logs = log_rewards(kernels.reward, self._homdp, single)
            numpyro.factor("single rewards", logs)


@checked
def log_likelihood(tables: Tables, counts: Counts) -> Array:
    """Log probability of the counted transitions, emissions and first states under tables.

    The tables have the same form as the counts, after leading batch axes if there are any.

    Examples
    --------
    >>> from homdp_ppl import Counts
    >>> coin = Tables(np.ones(1), np.ones((1, 1, 1)), np.array([[0.75, 0.25]]))
    >>> round(
    ...     float(log_likelihood(coin, Counts(np.array([[[4]]]), np.array([[3, 1]])))), 6
    ... )  # 3 log(3/4) + log(1/4)
    -2.249341
    """
    total: Array = np.zeros(())
    for where in ("transition", "emission", "initial"):
        seen, chance = getattr(counts, where), getattr(tables, where)
        if seen is None:
            continue
        _check_table(where, chance, seen, np.ndim(seen))
        seen, chance = np.asarray(seen), np.asarray(chance)
        with np.errstate(divide="ignore"):
            total = total + np.where(
                seen > 0, seen * np.log(np.where(seen > 0, chance, 1.0)), 0.0
            ).sum(axis=tuple(range(-seen.ndim, 0)))
    return total


def _countable(numbers: Any) -> bool:
    return bool(((numbers >= 0) & (numbers < np.inf)).all())


def _check_table(where: str, chances: Any, seen: Any, rank: int) -> None:
    """Raise an error for tables and counts that are not numbers or have incompatible shapes."""
    problems: list[Problem] = []
    arrays = []
    for name, given in ((f"tables.{where}", chances), (f"counts.{where}", seen)):
        numbers, wrong = as_numbers(name, given, f"with {rank} axes")
        if numbers is not None and not _countable(np.asarray(numbers)):
            wrong = [Problem(name, "nan, inf or negative numbers", "finite, at least 0")]
        arrays.append(numbers)
        problems += wrong
    if not problems:
        of_tables, of_counts = (np.asarray(array).shape for array in arrays)
        if of_counts != of_tables[-rank:] or len(of_counts) != rank or 0 in of_counts:
            got = f"counts of shape {of_counts} for tables of shape {of_tables}"
            problems.append(Problem(where, got, f"equal sizes of the last {rank} axes"))
    if problems:
        raise DataError("log_likelihood", problems)


def moving_entries(homdp: HOMDP, closed: bool) -> dict[str, tuple[Array, ...]]:
    """The indices of table entries that depend on the sampled sites.

    Parameters
    ----------
    homdp
        The declaration.
    closed
        Whether to leave out rows with a closed form.
    """
    places: dict[str, tuple[Array, ...]] = {}
    for name, source in homdp.structure.conjugate.sources.items():
        support, _, known = homdp.structure.tables[name]
        sampled = (source < 0).all(-1, keepdims=True) | (not closed)
        places[name] = np.nonzero(support & ~known[..., None] & sampled)
    return places
