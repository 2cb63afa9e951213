"""Prober, which runs a declared program at chosen parameter points to find its structure.

Points are stratified. Each coordinate of a continuous site covers the middle and both tails of its
prior (on the unconstrained scale, around the prior's mean). Each coordinate of a finite discrete
site covers all values. Properties that hold at all points are assumed to hold everywhere; a
condition that is true only in a far tail can be missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import biject_to, constraints

from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.distributions import in_domain, unwrap
from homdp_ppl.declare.kernels import Kernels, tabulators
from homdp_ppl.precision import Array

QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}  # the program runs only a few times, so compile time dominates
POINTS = 16  # parameter points in one run
FURTHER, CHEAP = 4, 20_000  # further runs that search for invalid rows; largest tables for them
WIDTH = 1.5  # unconstrained scale of a prior whose variance is unknown


class Site(NamedTuple):
    """A random site of the user's program."""

    name: str
    shape: tuple[int, ...]
    moves: tuple[int, ...]  # shape of its unconstrained coordinates
    # number of values of a finite discrete site; 0 if it is continuous, -1 if discrete and infinite
    values: int

    @property
    def discrete(self) -> bool:
        """Whether its values are integers."""
        return self.values != 0


class Probe(NamedTuple):
    """Results of a program at ``POINTS`` parameter points, the leading axis of every array.

    A program without sites has one point.
    """

    tables: dict[str, Array]  # "initial", "transition", "emission"
    log_prior: Array  # ()  log density of all user sites, including observed sites and factors
    parameters: dict[str, Array]  # the value of each site
    rows: dict[
        str, Array
    ]  # the Dirichlet rows (..., d) of the sites that have them, Beta as (b, 1 - b)
    concentrations: dict[str, Array]  # (..., d) of those rows


class Prober:
    """A program that is compiled once and run at many points. Use it inside ``homdp_ppl.x64()``.

    Parameters
    ----------
    function
        The user's program.
    sites
        Its random sites.
    spaces
        The declared names.
    kernels
        The kernels to tabulate.
    """

    def __init__(
        self,
        function: Callable[[], Kernels],
        sites: tuple[Site, ...],
        spaces: Spaces,
        kernels: tuple[str, ...],
    ) -> None:
        self.sites = sites
        self.spaces = spaces
        self._generator = np.random.default_rng(0)
        probe = jax.vmap(
            lambda moves, given, free: _probe(function, spaces, kernels, moves, given, free)
        )
        self._run = jax.jit(probe, compiler_options=QUICK)

    def start(self) -> Probe:
        """Run the program with different values of all sites."""
        return self._probe(self._placeholders(), [site.name for site in self.sites], 0)

    def _placeholders(self) -> dict[str, Array]:
        """Values of the sites that are not read, because all sites change."""
        return {
            site.name: np.zeros((POINTS, *site.shape), dtype=int if site.discrete else float)
            for site in self.sites
        }

    def further_points(self) -> Iterator[Probe]:
        """Run the program at further points with different values of all sites, if it is cheap."""
        X, Y, A, _ = self.spaces.sizes
        if not self.sites or X * A * X + X * Y > CHEAP:
            return
        given = self._placeholders()
        kept, self._generator = self._generator, np.random.default_rng(1)
        try:
            for _ in range(FURTHER):
                yield self._probe(given, [site.name for site in self.sites], 0)
        finally:
            self._generator = kept

    def move(self, given: Mapping[str, Array], names: Sequence[str]) -> Iterator[Probe]:
        """Change the named sites from given parameter points and keep the others.

        It yields as many runs as are needed to cover all discrete values.
        """
        values = max([site.values for site in self.sites if site.name in names], default=0)
        for turn in range(max(1, -(-values // POINTS))):
            yield self._probe(given, names, turn)

    def _probe(self, given: Mapping[str, Array], names: Sequence[str], turn: int) -> Probe:
        moves = {site.name: self._coordinates(site, turn) for site in self.sites}
        free = {site.name: np.full(POINTS, site.name in names) for site in self.sites}
        # a program without sites is the same at all points
        index = {"": np.arange(POINTS if self.sites else 1)}
        with jax.core.eval_context():  # works also if the declaration is inside a user's jit
            shown: Probe = jax.device_get(self._run(moves | index, dict(given), free))
        return shown

    def _coordinates(self, site: Site, turn: int) -> Array:
        """The strata, or the values of a discrete site, in another order for each coordinate."""
        order = self._generator.permuted(np.tile(np.arange(POINTS), (*site.moves, 1)), axis=-1)
        order = np.moveaxis(order, -1, 0)
        if site.discrete:
            return order + turn * POINTS
        level = (order + self._generator.uniform(0.2, 0.8, order.shape)) / POINTS
        return np.log(level / (1 - level))  # logistic quantiles, from about -4 to 4


def _probe(
    function: Callable[[], Kernels],
    spaces: Spaces,
    kernels: tuple[str, ...],
    moves: dict[str, Array],
    given: dict[str, Array],
    free: dict[str, Array],
) -> Probe:
    def place(site: dict[str, Any]) -> Array | None:
        name = site["name"]
        if site["type"] != "sample" or site["is_observed"]:
            return None
        return jnp.where(free[name], _constrain(site["fn"], moves[name]), given[name])

    with (
        handlers.trace() as trace,
        handlers.seed(rng_seed=0),
        handlers.substitute(substitute_fn=place),
    ):
        returned = function()
    samples = {name: site for name, site in trace.items() if site["type"] == "sample"}
    unknown = {name: site for name, site in samples.items() if not site["is_observed"]}
    dirichlet = {name: _dirichlet(site["fn"], site["value"]) for name, site in unknown.items()}
    found = {name: pair for name, pair in dirichlet.items() if pair is not None}
    make = tabulators(returned, spaces)
    return Probe(
        tables={name: make[name]() for name in kernels},
        log_prior=log_prior(trace),
        parameters={name: site["value"] for name, site in unknown.items()},
        rows={name: pair[0] for name, pair in found.items()},
        concentrations={name: pair[1] for name, pair in found.items()},
    )


def log_prior(trace: Mapping[str, dict[str, Any]]) -> Array:
    """The log density of all sites of a trace, including observed sites and factors."""
    samples = (site for site in trace.values() if site["type"] == "sample")
    return sum((_log_density(site) for site in samples), jnp.zeros(()))


def _log_density(site: dict[str, Any]) -> Array:
    density = jnp.where(in_domain(site["fn"]), jnp.sum(site["fn"].log_prob(site["value"])), jnp.nan)
    return density if site["scale"] is None else density * site["scale"]


def _constrain(fn: Any, moves: Array) -> Array:
    """The value of a site at the given coordinates."""
    if isinstance(unwrap(fn).support, type(constraints.simplex)):
        return _on_simplex(fn, moves)
    if not fn.support.is_discrete:
        middle, spread = _location(fn, moves)
        return biject_to(fn.support)(middle + spread * moves)
    if fn.has_enumerate_support and not fn.event_shape:
        values = jnp.ravel(fn.enumerate_support(expand=False))
        return values[moves % len(values)]
    return fn.sample(jax.random.fold_in(jax.random.key(0), jnp.sum(moves)))


def _on_simplex(fn: Any, moves: Array) -> Array:
    """Probabilities around the prior's mean, none of them far below the others.

    A stick-breaking transform would make the last of many parts vanish.
    """
    try:
        middle = jnp.log(fn.mean)
    except (NotImplementedError, AttributeError):
        middle = jnp.zeros(moves.shape[-1] + 1)
    last = jnp.zeros((*moves.shape[:-1], 1))
    return jax.nn.softmax(middle + WIDTH * jnp.concatenate([moves, last], axis=-1))


def _location(fn: Any, moves: Array) -> tuple[Array, Array]:
    """The location and scale of a prior on the unconstrained scale.

    They are its transformed mean, and its standard deviation times the slope of the transform.
    """
    try:
        mean, deviation = jnp.asarray(fn.mean, dtype=moves.dtype), jnp.sqrt(fn.variance)
        transform = biject_to(fn.support)
        middle = transform.inv(mean)
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return jnp.zeros_like(moves), jnp.full_like(moves, WIDTH)
    spread = jnp.full_like(moves, WIDTH)
    if middle.shape == jnp.shape(mean):  # one coordinate per value: the delta method
        spread = deviation * jnp.abs(jax.jvp(transform.inv, (mean,), (jnp.ones_like(mean),))[1])
    known = jnp.isfinite(middle) & jnp.isfinite(spread) & (spread > 0)
    return jnp.where(known, middle, 0.0), jnp.where(known, spread, WIDTH)


def _dirichlet(fn: Any, value: Array) -> tuple[Array, Array] | None:
    """A site's Dirichlet rows and their concentrations, both (..., d).

    None if it is neither a Dirichlet nor a Beta.
    """
    base = unwrap(fn)
    if isinstance(base, dist.Dirichlet):
        return value, jnp.broadcast_to(base.concentration, jnp.shape(value))
    if isinstance(base, dist.Beta):
        pair = jnp.stack(jnp.broadcast_arrays(base.concentration1, base.concentration0), -1).astype(
            value.dtype
        )
        return jnp.stack([value, 1 - value], -1), jnp.broadcast_to(pair, (*jnp.shape(value), 2))
    return None
