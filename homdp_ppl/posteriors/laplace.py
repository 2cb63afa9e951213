"""Laplace's approximation with a calibration check.

The approximation is a normal distribution at the mode of the unconstrained sites. It is faster than
NUTS, but its error is unknown. Therefore its draws are weighted by the true density, and the check
estimates which share of the true posterior its 90% intervals contain.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.data import impossible
from homdp_ppl.posteriors.density import Density, SiteDensity
from homdp_ppl.precision import Array, to_numpy

BATCH = 64  # draws whose densities are computed at the same time
STEPS = 200  # of damped Newton, at most
ROUNDING = 1e-12  # relative to the potential: smaller gradients are zero up to rounding
INTERVAL = 0.9
COVERAGE_ERROR = 0.02  # largest error of the mass in each tail, which should be (1 - INTERVAL) / 2
EFFICIENCY = 0.3  # smallest share of effective draws for which the check is reliable

# z, damping, whether the gradient is zero, and the number of steps
Carry: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]


class Calibration(NamedTuple):
    """The calibration of Laplace's approximation against the true density."""

    efficiency: float  # share of effective draws after weighting
    lower: float  # worst true mass below the 90% intervals; 0.05 if exact
    upper: float  # worst true mass above them

    @property
    def passed(self) -> bool:
        """Whether quantiles of the approximation can be used."""
        tail = (1 - INTERVAL) / 2
        return (
            self.efficiency >= EFFICIENCY
            and max(abs(self.lower - tail), abs(self.upper - tail)) <= COVERAGE_ERROR
        )


class Approximation(NamedTuple):
    """Draws of the sites from the approximation."""

    samples: dict[str, Array]  # (draws, ...)
    calibration: Calibration


class Laplace:
    """The compiled approximation for a declaration."""

    def __init__(self, density: SiteDensity, draws: int) -> None:
        if len(density.configurations[""]) > 1:
            problem = Problem(
                "laplace",
                "a program with discrete sites",
                "continuous sites only",
                'Use method="nuts".',
            )
            raise InferenceError(f"posterior of {density.name}", [problem])
        self.density = density
        self.draws = draws
        self._fit: Any = jax.jit(self._approximate)

    def fit(self, key: Array, data: Any) -> Approximation:
        """Find the mode, draw, and weight the draws by the true density.

        The data are plain arrays, as for the density.
        """
        samples, z, log_weights, slope, start = to_numpy(self._fit(key, data))
        if not np.isfinite(start):
            raise impossible(self.density.name)
        if not np.isfinite(slope) or slope > 1e-3 or not np.isfinite(log_weights).any():
            got = f"a gradient of {slope:.3g} after {STEPS} Newton steps, or a singular Hessian"
            problem = Problem("laplace", got, "a mode", 'Use method="nuts".')
            raise InferenceError(f"posterior of {self.density.name}", [problem])
        return Approximation(samples, _calibration(z, log_weights))

    def _approximate(
        self, key: Array, data: Any
    ) -> tuple[dict[str, Array], Array, Array, Array, Array]:
        start, energy = self.density.start(jax.random.fold_in(key, 0), data)
        first, unravel = ravel_pytree(start)

        def potential(z: jax.Array) -> Array:
            return self.density.potential(data, unravel(z))

        mode = _minimise(potential, first)
        factor = jnp.linalg.cholesky(jax.hessian(potential)(mode))
        noise = jax.random.normal(jax.random.fold_in(key, 1), (self.draws, len(first)))
        z = mode + jax.vmap(lambda e: jax.scipy.linalg.solve_triangular(factor.T, e))(noise)
        log_weights = -jax.lax.map(potential, z, batch_size=BATCH) + 0.5 * jnp.sum(noise**2, axis=1)
        samples = jax.vmap(lambda position: self.density.constrain(key, data, unravel(position)))(z)
        return samples, z, log_weights, jnp.max(jnp.abs(jax.grad(potential)(mode))), energy


def _minimise(potential: Any, start: jax.Array) -> jax.Array:
    """Newton's method; the damping grows after failed steps and shrinks after successful ones.

    It ends early when the gradient is zero up to rounding.
    """

    def unfinished(carry: Carry) -> jax.Array:
        _, _, done, steps = carry
        return ~done & (steps < STEPS)

    def step(carry: Carry) -> Carry:
        z, damping, _, steps = carry
        slope, curvature = jax.grad(potential)(z), jax.hessian(potential)(z)
        scale = jnp.maximum(jnp.abs(jnp.diagonal(curvature)), 1.0)
        candidate = z - jnp.linalg.solve(curvature + damping * jnp.diag(scale), slope)
        now = potential(z)
        better = potential(candidate) < now
        return (
            jnp.where(better, candidate, z),
            jnp.where(better, damping / 4, jnp.minimum(damping * 4, 1e12)),
            jnp.max(jnp.abs(slope)) <= ROUNDING * (1 + jnp.abs(now)),
            steps + 1,
        )

    first = (start, jnp.ones(()), jnp.zeros((), bool), jnp.zeros((), int))
    z: jax.Array = jax.lax.while_loop(unfinished, step, first)[0]
    return z


def _calibration(z: Array, log_weights: Array) -> Calibration:
    """True mass outside the 90% intervals of all unconstrained coordinates, importance-weighted."""
    weights = np.exp(np.where(np.isnan(log_weights), -np.inf, log_weights) - np.nanmax(log_weights))
    weights /= weights.sum()
    tail = (1 - INTERVAL) / 2
    low, high = np.quantile(z, [tail, 1 - tail], axis=0)
    below, above = weights @ (z < low), weights @ (z > high)
    worst = [float(masses[np.argmax(np.abs(masses - tail))]) for masses in (below, above)]
    return Calibration(float(1 / np.sum(weights**2) / len(z)), *worst)


def laplace(homdp: HOMDP, held: tuple[str, ...], draws: int) -> Laplace:
    """Laplace's approximation of a declaration, compiled once."""
    name = ("laplace", held, draws)
    return homdp.cache.get(name, lambda: Laplace(Density(homdp, held), draws))
