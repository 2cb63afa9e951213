"""Running a declared program at chosen points of its parameters' support: how we learn what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import biject_to

from homdp_ppl.kernels import Kernels, tabulators
from homdp_ppl.pomdp import Spaces
from homdp_ppl.precision import Array

POINTS = 8  # parameter points a question is asked at
WIDTH = 2.0  # points are uniform in (-WIDTH, WIDTH) on the unconstrained scale, as NumPyro initialises its chains


class Site(NamedTuple):
    """A random site of the user's program."""

    name: str
    shape: tuple[int, ...]
    moves: tuple[int, ...]  # shape of its unconstrained coordinates
    discrete: bool


class Probe(NamedTuple):
    """What a program shows at ``POINTS`` parameter points; every array has them as its leading axis."""

    tables: dict[str, Array]  # "initial", "transition", "emission"
    log_prior: Array  # ()  log density of all the user's sites, observed ones and factors included
    parameters: dict[str, Array]  # the value of each site
    rows: dict[str, Array]  # the Dirichlet rows (..., d) of the sites that have them, Beta as (b, 1 - b)
    concentrations: dict[str, Array]  # (..., d) of those rows


class Prober:
    """A program compiled once, to be run at many points. Call it inside :func:`homdp_ppl.x64`.

    Parameters
    ----------
    function
        The user's program.
    sites
        Its random sites.
    spaces
        The declared names.
    kernels
        Which of its kernels to tabulate.
    """

    def __init__(
        self, function: Callable[[], Kernels], sites: tuple[Site, ...], spaces: Spaces, kernels: tuple[str, ...]
    ) -> None:
        self.sites = sites
        self.spaces = spaces
        self._generator = np.random.default_rng(0)
        self._run = jax.jit(jax.vmap(lambda moves: _probe(function, spaces, kernels, moves), axis_size=POINTS))

    def points(self, *names: str) -> dict[str, Array]:
        """New random coordinates for the named sites."""
        return {site.name: self._coordinates(site) for site in self.sites if site.name in names}

    def __call__(self, points: Mapping[str, Array]) -> Probe:
        """Run the program at coordinates of all its sites."""
        shown: Probe = jax.device_get(self._run(dict(points)))
        return shown

    def _coordinates(self, site: Site) -> Array:
        shape = (POINTS, *site.moves)
        if site.discrete:
            return self._generator.integers(0, 2**31 - 1, shape)
        return self._generator.uniform(-WIDTH, WIDTH, shape)


def _probe(function: Callable[[], Kernels], spaces: Spaces, kernels: tuple[str, ...], moves: dict[str, Array]) -> Probe:
    def place(site: dict[str, Any]) -> Array | None:
        if site["type"] != "sample" or site["is_observed"]:
            return None
        return _constrain(site["fn"], moves[site["name"]])

    with handlers.trace() as trace, handlers.seed(rng_seed=0), handlers.substitute(substitute_fn=place):
        returned = function()
    samples = {name: site for name, site in trace.items() if site["type"] == "sample"}
    log_prior = sum((jnp.sum(site["fn"].log_prob(site["value"])) for site in samples.values()), jnp.zeros(()))
    unknown = {name: site for name, site in samples.items() if not site["is_observed"]}
    dirichlet = {name: _dirichlet(site["fn"], site["value"]) for name, site in unknown.items()}
    found = {name: pair for name, pair in dirichlet.items() if pair is not None}
    make = tabulators(returned, spaces)
    return Probe(
        tables={name: make[name]() for name in kernels},
        log_prior=log_prior,
        parameters={name: site["value"] for name, site in unknown.items()},
        rows={name: pair[0] for name, pair in found.items()},
        concentrations={name: pair[1] for name, pair in found.items()},
    )


def _constrain(fn: Any, moves: Array) -> Array:
    """A value of a site from its unconstrained coordinates."""
    if not fn.support.is_discrete:
        return biject_to(fn.support)(moves)
    if fn.has_enumerate_support and not fn.event_shape:
        values = jnp.ravel(fn.enumerate_support(expand=False))
        return values[moves % len(values)]
    return fn.sample(jax.random.fold_in(jax.random.key(0), jnp.sum(moves)))


def _dirichlet(fn: Any, value: Array) -> tuple[Array, Array] | None:
    """A site's Dirichlet rows and their concentrations, both (..., d); None if it is no Dirichlet or Beta."""
    base = fn
    while isinstance(base, dist.Independent | dist.ExpandedDistribution):
        base = base.base_dist
    if isinstance(base, dist.Dirichlet):
        return value, jnp.broadcast_to(base.concentration, jnp.shape(value))
    if isinstance(base, dist.Beta):
        pair = jnp.stack(jnp.broadcast_arrays(base.concentration1, base.concentration0), -1)
        return jnp.stack([value, 1 - value], -1), jnp.broadcast_to(pair, (*jnp.shape(value), 2))
    return None
