"""Closed forms of Gaussian emissions with unknown means and known or unknown scales.

Known scale: mean ~ Normal(m, s). Unknown scale: precision ~ Gamma(a, b), mean ~ Normal(m, 1/sqrt(k
precision)), or the same with a variance ~ InverseGamma(a, b). The roles of the sites are inferred
from the program at a few parameter points and then certified: log prior plus log likelihood minus
the log of the claimed posterior must be the same number at all points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers

from homdp_ppl.declare.distributions import unwrap
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.statistics import Moments, Rows, Statistics, log_likelihood
from homdp_ppl.precision import Array, to_numpy

POINTS = 12  # parameter points of the certificate
CLOSE = 1e-7  # largest variation of the certificate, relative to the size of its terms


class Group(NamedTuple):
    """States that share one unknown mean and, if it is unknown, one precision."""

    states: Array  # indices
    mean: tuple[str, int]  # site, and entry of its flattened value
    spread: tuple[str, int] | None  # of the precision or variance; None if the scale is known
    inverse: bool  # whether the spread is a variance
    location: float  # m
    strength: float  # k of an unknown scale, else the prior's precision 1/s^2
    shape: float  # a
    rate: float  # b
    scale: float  # the known scale


class Updated(NamedTuple):
    """The posterior of one group, in the same family as the prior."""

    location: float
    strength: float
    shape: float
    rate: float


class GaussianForm:
    """The closed form of a declaration's sites; made by :func:`gaussian_form`."""

    def __init__(self, homdp: HOMDP, groups: list[Group]) -> None:
        self.homdp = homdp
        self.groups = groups
        self.shapes = {site.name: site.shape for site in homdp.sites}

    def update(self, data: Moments) -> Array:
        """Posterior parameters of every group, (groups, 4), each row an :class:`Updated`."""
        updated = []
        for group in self.groups:
            number, total, squares = _pooled(data, group.states)
            # the precision of one observation, in units of the strength
            precision = 1.0 if group.spread else 1 / group.scale**2
            strength = group.strength + number * precision
            location = (group.strength * group.location + precision * total) / strength
            centre = total / number if number else 0.0
            between = group.strength * number / strength * (centre - group.location) ** 2
            updated.append(
                Updated(
                    location,
                    strength,
                    group.shape + number / 2,
                    group.rate + (squares + between) / 2,
                )
            )
        return np.array(updated)

    def draws(self, key: Array, updated: Array, n: int) -> dict[str, Array]:
        """Joint draws of all sites, each (n, ...)."""
        generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        values = {
            name: np.zeros((n, int(np.prod(shape, dtype=int))))
            for name, shape in self.shapes.items()
        }
        for group, now in self._paired(updated):
            precision = np.ones(n)
            if group.spread:
                precision = generator.gamma(now.shape, 1 / now.rate, n)
                self._require_positive(group.spread[0], precision)
                values[group.spread[0]][:, group.spread[1]] = (
                    1 / precision if group.inverse else precision
                )
            noise = generator.normal(size=n)
            values[group.mean[0]][:, group.mean[1]] = now.location + noise / np.sqrt(
                now.strength * precision
            )
        return {name: value.reshape(n, *self.shapes[name]) for name, value in values.items()}

    def _require_positive(self, site: str, precision: Array) -> None:
        """Raise an error for draws of a precision that are zero in floating-point numbers."""
        if not (precision >= np.finfo(np.float64).tiny).all():
            remedy = "Use a prior with a larger shape, or more data."
            problem = Problem(
                f"site {site!r}", "a precision of 0", "positive precisions at all draws", remedy
            )
            raise InferenceError(f"posterior of {self.homdp.name}", [problem])

    def log_density(self, updated: Array, values: Mapping[str, Array]) -> Array:
        """The log density of the claimed posterior at parameter values."""
        total = jnp.zeros(())
        for group, now in self._paired(updated):
            precision = jnp.ones(())
            if group.spread:
                entry = jnp.ravel(values[group.spread[0]])[group.spread[1]]
                precision = 1 / entry if group.inverse else entry
                law = (
                    dist.InverseGamma(now.shape, now.rate)
                    if group.inverse
                    else dist.Gamma(now.shape, now.rate)
                )
                total = total + law.log_prob(entry)
            mean = jnp.ravel(values[group.mean[0]])[group.mean[1]]
            total = total + dist.Normal(
                now.location, 1 / jnp.sqrt(now.strength * precision)
            ).log_prob(mean)
        return total

    def site_means(self, updated: Array) -> dict[str, Array]:
        """Posterior means of the sites."""
        means: dict[str, Array] = {name: np.zeros(shape) for name, shape in self.shapes.items()}
        for group, now in self._paired(updated):
            means[group.mean[0]].reshape(-1)[group.mean[1]] = now.location
            if group.spread:
                exact = now.rate / (now.shape - 1) if group.inverse else now.shape / now.rate
                means[group.spread[0]].reshape(-1)[group.spread[1]] = exact if exact > 0 else np.inf
        return means

    def _paired(self, updated: Array) -> list[tuple[Group, Updated]]:
        rows = (Updated(*row) for row in updated.tolist())
        return list(zip(self.groups, rows, strict=True))


def gaussian_form(homdp: HOMDP) -> GaussianForm | None:
    """The closed form of a declaration whose only unknowns are Gaussian emissions.

    None if it has none.
    """
    return homdp.cache.get("gaussian form", lambda: _find(homdp))


class _Point(NamedTuple):
    """The program at one parameter point."""

    values: dict[str, Array]
    priors: dict[str, tuple[Array, Array]]  # the two parameters of each prior, in the site's shape
    location: Array  # (X,)  of the emissions
    scale: Array
    log_prior: Array


def _find(homdp: HOMDP) -> GaussianForm | None:
    kinds = _kinds(homdp)
    if kinds is None:
        return None
    point = to_numpy(
        jax.jit(jax.vmap(lambda key: _probe(homdp, key)))(
            jax.random.split(jax.random.key(0), POINTS)
        )
    )
    entries = {
        (name, k): v.reshape(POINTS, -1)[:, k]
        for name, v in point.values.items()
        for k in range(v[0].size)
    }
    priors = {
        (name, k): tuple(part.reshape(POINTS, -1)[:, k] for part in pair)
        for name, pair in point.priors.items()
        for k in range(pair[0][0].size)
    }
    pairs: dict[tuple[Any, Any, bool, float], list[int]] = {}
    for x in range(point.location.shape[1]):
        mean = next(
            (
                e
                for e, v in entries.items()
                if kinds[e[0]] is dist.Normal and _same(v, point.location[:, x])
            ),
            None,
        )
        variance = point.scale[:, x] ** 2
        known = _same(variance, variance[0])
        spread = (
            None
            if known
            else next((e for e, v in entries.items() if _plays(kinds[e[0]], v, variance)), None)
        )
        if mean is None or (not known and spread is None):
            return None
        inverse = spread is not None and kinds[spread[0]] is dist.InverseGamma
        pairs.setdefault(
            (mean, spread, inverse, float(point.scale[0, x]) if known else 0.0), []
        ).append(x)
    groups = []
    for (mean, spread, inverse, scale), states in pairs.items():
        location, deviation = priors[mean]
        precision = (
            np.ones(POINTS)
            if spread is None
            else 1 / entries[spread]
            if inverse
            else entries[spread]
        )
        strength = 1 / (deviation**2 * precision)
        shape, rate = (np.zeros(POINTS),) * 2 if spread is None else priors[spread]
        if not all(_same(part, part[0]) for part in (location, strength, shape, rate)):
            return None
        m, k, a, b = (float(part[0]) for part in (location, strength, shape, rate))
        groups.append(Group(np.array(states), mean, spread, inverse, m, k, a, b, scale))
    used = [e for group in groups for e in (group.mean, group.spread) if e is not None]
    if len(set(used)) < len(used) or set(used) != set(entries):
        return None
    form = GaussianForm(homdp, groups)
    return form if _certified(form, point) else None


def _kinds(homdp: HOMDP) -> dict[str, type] | None:
    """The family of each site's prior, if all of them can be part of a Gaussian closed form."""
    found: dict[str, type] = {}

    def run(key: Array) -> None:
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            homdp.function()
        samples = {name: site for name, site in trace.items() if site["type"] == "sample"}
        found.update(
            {
                name: type(unwrap(site["fn"]))
                for name, site in samples.items()
                if not site["is_observed"]
            }
        )
        if len(found) < len(samples):
            found["observed"] = object

    jax.eval_shape(run, jax.random.key(0))
    allowed = all(kind in (dist.Normal, dist.Gamma, dist.InverseGamma) for kind in found.values())
    return found if found and allowed else None


def _probe(homdp: HOMDP, key: Array) -> _Point:
    with handlers.trace() as trace, handlers.seed(rng_seed=key):
        homdp.function()
    sites = {site.name: trace[site.name] for site in homdp.sites}
    values = {name: site["value"] for name, site in sites.items()}
    priors = {}
    for name, site in sites.items():
        law = unwrap(site["fn"])
        pair = (
            (law.loc, law.scale) if isinstance(law, dist.Normal) else (law.concentration, law.rate)
        )
        priors[name] = tuple(jnp.broadcast_to(part, jnp.shape(site["value"])) for part in pair)
    rules = homdp.dynamics.laws(values)

    def emission(x: Array) -> tuple[Array, Array]:
        law = unwrap(rules.emission(x, 0, 0))
        return jnp.broadcast_to(law.loc, ()), jnp.broadcast_to(law.scale, ())

    location, scale = jax.vmap(emission)(jnp.arange(len(homdp.spaces.states)))
    log_prior = sum(
        (jnp.sum(site["fn"].log_prob(site["value"])) for site in sites.values()), jnp.zeros(())
    )
    return _Point(values, priors, location, scale, log_prior)  # type: ignore[arg-type]


def _certified(form: GaussianForm, point: _Point) -> bool:
    """Whether prior times likelihood is the claimed posterior up to a constant, on synthetic data.

    The transitions must not depend on the sites.
    """
    X, A = len(form.homdp.spaces.states), len(form.homdp.spaces.actions)
    number = np.arange(1.0, X + 1)
    data = Moments(number, number * np.linspace(-1.3, 2.1, X), 0.7 * number)
    nothing = Rows(tuple(np.zeros(1, dtype=int) for _ in range(3)), np.zeros(1))
    everything = Rows(  # all transitions
        tuple(
            axis.ravel()
            for axis in np.meshgrid(np.arange(X), np.arange(A), np.arange(X), indexing="ij")
        ),
        np.ones(X * A * X),
    )
    updated = form.update(data)

    def difference(values: dict[str, Array], log_prior: Array) -> tuple[Array, Array]:
        rules = form.homdp.dynamics.laws(values)
        starts = Rows((np.arange(X),), np.ones(X))
        moves = jax.vmap(lambda x, a, z: rules.transition(x, a, 0).log_prob(z))(*everything.values)
        first = jax.vmap(lambda x: rules.initial().log_prob(x))(*starts.values)
        likelihood = log_likelihood(
            rules, Statistics(nothing._replace(values=nothing.values[:1]), nothing, data)
        )
        return log_prior + likelihood - form.log_density(updated, values), jnp.append(moves, first)

    constants, fixed = to_numpy(jax.jit(jax.vmap(difference))(point.values, point.log_prior))
    size = np.abs(point.log_prior).max() + np.abs(constants).max() + 1
    still = np.array_equal(fixed, np.broadcast_to(fixed[0], fixed.shape), equal_nan=True)
    return bool(np.ptp(constants) <= CLOSE * size and still)


def _same(first: Array, second: Array) -> bool:
    return bool(np.allclose(first, second, rtol=1e-12, atol=0))


def _plays(kind: type, values: Array, variance: Array) -> bool:
    """Whether a site is the precision or the variance of an emission."""
    return (kind is dist.Gamma and _same(values * variance, np.ones(POINTS))) or (
        kind is dist.InverseGamma and _same(values, variance)
    )


def _pooled(data: Moments, states: Array) -> tuple[float, float, float]:
    """Number, sum and centred squares of several states, pooled."""
    number, total = data.number[states], data.total[states]
    centre = total.sum() / max(number.sum(), 1)
    squares = data.squares[states] + number * (total / np.maximum(number, 1) - centre) ** 2
    return float(number.sum()), float(total.sum()), float(squares.sum())
