"""Adaptive quadrature of emission densities on the real line, to twelve digits.

Fejér's second rule with 15 points contains the rule with 7 points. If the two disagree on a panel,
the panel is halved. The first panels come from draws; the tails beyond them have panels that double
in width. The total mass must be one, which shows that no part of a density was missed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution

from homdp_ppl.core.probabilities import FLOAT32
from homdp_ppl.declare.dynamics import Dynamics, Parameters
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array, in_x64, to_numpy

ORDER = 15  # points per panel; every second one belongs to the rule with 7
DRAWS, QUANTILES, DOUBLINGS = 256, 17, 40
LOCAL = 1e-13  # largest difference of the two rules on a panel that is not halved
TAIL = 1e-13  # largest mass of a state beyond either end of the partition
TOTAL = 1e-8  # largest difference between the mass of a state and one
HALVINGS, ATTEMPTS, MAX_PANELS = 100, 6, 50_000
# smallest width of a panel relative to its position, so that float64 can resolve its points
THINNEST = 1e-13
# points per compiled call; the last call is padded, so that only one shape is compiled
BATCH = 1024


def _fejer(n: int) -> tuple[Array, Array]:
    angle = np.arange(1, n + 1) * np.pi / (n + 1)
    odd = np.arange(1, n + 1, 2)
    weights = 4 * np.sin(angle) / (n + 1) * (np.sin(np.outer(angle, odd)) / odd).sum(1)
    return -np.cos(angle), weights


NODES, FINE = _fejer(ORDER)
ROUGH = np.zeros(ORDER)
ROUGH[1::2] = _fejer(ORDER // 2)[1]


class Pieces(NamedTuple):
    """A partition of the line that is fine enough for integration, with the log densities at its
    points.
    """

    breaks: Array  # (P + 1,)  ends of the pieces
    points: Array  # (P, 15)
    # (P, 15, kinds)  log p(y | x), -inf outside the support; states with the same density have the
    # same kind
    log: Array
    first: Array  # (kinds,)  the first state of each kind
    kind: Array  # (X,)  the kind of each state
    # bound on the total error of the masses of a state: differences of the rules, plus the missing
    # mass
    error: float

    def integrate(self, values: Array) -> tuple[Array, Array]:
        """Integrals over each piece of a function given at its points, (P, 15, ...).

        Returns the results of the rules with 15 and with 7 points.
        """
        return _integrals(np.diff(self.breaks) / 2, values)

    @property
    def masses(self) -> Array:
        """The mass of each state on each piece, (P, X)."""
        return self.integrate(np.exp(self.log))[0][:, self.kind]


@in_x64
def log_densities(world: World, points: Array) -> Array:
    """Log densities of every state at many points, (..., X); -inf outside the support."""
    compiled = world.dynamics.cache.get("densities", lambda: jax.jit(_densities(world.dynamics)))
    flat = np.asarray(points, dtype=np.float64).ravel()
    filled = np.concatenate([flat, np.full(-len(flat) % BATCH, flat[0])]).reshape(-1, BATCH)
    log = np.concatenate([np.asarray(compiled(dict(world.parameters), some)) for some in filled])[
        : len(flat)
    ]
    bad = np.argwhere(np.isnan(log))
    if len(bad):
        k, x = bad[0]
        remedy = (
            "Check for a distribution parameter outside its domain. NumPyro may also be unable "
            "to compute the density there."
        )
        problem = Problem(
            "emission",
            f"a density that is nan at y = {flat[k]:.6g}",
            "a number",
            remedy,
            _name(world, x),
        )
        raise PlanningError(world.homdp.name, [problem])
    return log.reshape(*np.shape(points), -1)


def _densities(dynamics: Dynamics) -> Any:
    def density(parameters: Parameters, x: Array, y: Array) -> Array:
        law = dynamics.laws(parameters).emission(x, 0, 0)
        log = law.log_prob(y)
        lost = (
            jnp.isnan(log) & (_bounds(law) == y).any()
        )  # a transform has no inverse at the ends of its support
        return jnp.where(law.support(y) & ~lost, log, -jnp.inf)

    states = jnp.arange(len(dynamics.spaces.states))
    return lambda parameters, points: jax.vmap(
        lambda y: jax.vmap(lambda x: density(parameters, x, y))(states)
    )(points)


def _bounds(law: Distribution) -> Array:
    """The two ends of a distribution's support, nan if it has none."""
    return jnp.array(
        [getattr(law.support, name, jnp.nan) for name in ("lower_bound", "upper_bound")],
        dtype=float,
    )


def panels(world: World) -> Pieces:
    """Panels on which the emission densities of a world with finitely many states are integrated.

    Raises :class:`PlanningError` with the state and the missing mass if the total mass of a density
    is not one.
    """
    ends, points, log, mass, apart = _adapted(world, _first_panels(world))
    for _ in range(ATTEMPTS):
        if (np.abs(1 - mass.sum(0)) <= TOTAL).all():
            break
        if mass.any():  # the points of a panel may miss a jump close to its end
            shown = mass.max(-1) > 0
            ends = ends[np.append(shown, False) | np.append(False, shown)]
            ends, points, log, mass, apart = _adapted(
                world, np.union1d(ends, (ends[:-1] + ends[1:]) / 2)
            )
    problems = _mass_problems(world, 1 - mass.sum(0))
    if problems:
        raise PlanningError(world.homdp.name, problems)
    before, after = np.cumsum(mass, 0).max(-1), np.cumsum(mass[::-1], 0)[::-1].max(-1)
    kept = (before > TAIL) & (after > TAIL)
    breaks = np.append(ends[:-1][kept], ends[1:][kept][-1])
    _, first, kind = np.unique(
        log[kept].reshape(-1, log.shape[-1]), axis=1, return_index=True, return_inverse=True
    )
    error = float((apart.sum(0) + np.abs(1 - mass[kept].sum(0))).max())
    return Pieces(breaks, points[kept], log[kept][..., first], first, kind, error)


def _adapted(world: World, ends: Array) -> tuple[Array, ...]:
    """Halve panels until the rules agree.

    Returns their ends, points, log densities, masses, and the differences of the two rules.
    """
    left, right = ends[:-1], ends[1:]
    found: list[tuple[Array, ...]] = []
    for k in range(HALVINGS):
        points, log = _at(world, left, right)
        fine, rough = _integrals((right - left) / 2, np.exp(log))
        apart = np.abs(fine - rough)
        wide = right - left > THINNEST * np.maximum(np.abs(left), np.abs(right))
        open_ = (apart.max(-1) > LOCAL) & wide & (k + 1 < HALVINGS)
        found.append(tuple(part[~open_] for part in (left, right, points, log, fine, apart)))
        if not open_.any():
            break
        if sum(len(part[0]) for part in found) + open_.sum() > MAX_PANELS:
            got, remedy = (
                f"a density that {MAX_PANELS:,} panels do not resolve",
                "The density must be smooth except for a few jumps.",
            )
            raise PlanningError(
                world.homdp.name,
                [Problem("emission", got, "a density that can be integrated", remedy)],
            )
        middle = (left[open_] + right[open_]) / 2
        left, right = np.concatenate([left[open_], middle]), np.concatenate([middle, right[open_]])
    parts = [np.concatenate(part) for part in zip(*found, strict=True)]
    left, right, *others = (part[np.argsort(parts[0])] for part in parts)
    return np.append(left, right[-1]), *others


def _integrals(half: Array, values: Array) -> tuple[Array, Array]:
    fine, rough = (np.einsum("k,p,pk...->p...", weights, half, values) for weights in (FINE, ROUGH))
    return fine, rough


def _at(world: World, left: Array, right: Array) -> tuple[Array, Array]:
    points = (left + right)[:, None] / 2 + (right - left)[:, None] / 2 * NODES
    return points, log_densities(world, points)


@in_x64
def _first_panels(world: World) -> Array:
    """Ends of panels: quantiles of draws of each state, the ends of its support, and tails whose
    panels double in width.
    """

    def draws_and_bounds(parameters: Parameters, x: Array, key: Array) -> tuple[Array, Array]:
        law = world.dynamics.laws(parameters).emission(x, 0, 0)
        return law.sample(key, (DRAWS,)), _bounds(law)

    X = len(world.spaces.states)
    compiled = world.dynamics.cache.get(
        "draws and bounds", lambda: jax.jit(jax.vmap(draws_and_bounds, in_axes=(None, 0, None)))
    )
    one_key = jax.random.key(0)  # one for all: states with the same density then add no panels
    draws, ends = to_numpy(compiled(dict(world.parameters), np.arange(X), one_key))
    within = np.quantile(draws, np.linspace(0, 1, QUANTILES), axis=1).ravel()
    far = 2.0**DOUBLINGS * max(np.ptp(within), 1e-6 * max(1.0, float(np.abs(within).max())))
    return _graded(
        np.concatenate([within, ends[np.isfinite(ends)], [within.min() - far, within.max() + far]])
    )


def _graded(ends: Array) -> Array:
    """Add ends, so that no panel is much wider than its neighbours.

    A narrow part of a density may extend beyond its last draw.
    """
    fewer, ends = np.zeros(0), np.unique(ends)
    while len(ends) > len(fewer):
        fewer, width = ends, np.diff(ends)
        before, after = np.append(np.inf, width[:-1]), np.append(width[1:], np.inf)
        places = np.where(before <= after, ends[:-1] + 2 * before, ends[1:] - 2 * after)
        ends = np.union1d(ends, places[width > 3 * np.minimum(before, after)])
    return ends


def _mass_problems(world: World, missing: Array) -> list[Problem]:
    spiky = (
        "The density must be normalised, without atoms, without spikes that its draws miss, and "
        "without poles inside its support."
    )
    rounded = (
        f"{spiky} Arrays that JAX creates outside homdp_ppl.x64() are float32: use NumPy "
        f"arrays instead."
    )
    remedy = rounded if np.abs(missing).max() < FLOAT32 else spiky
    return [
        Problem(
            "emission",
            f"a density whose mass differs from one by {missing[x]:.3g}",
            "a mass of one",
            remedy,
            _name(world, x),
        )
        for x in np.flatnonzero(~(np.abs(missing) <= TOTAL))
    ]


def cut(world: World, pieces: Pieces, edges: Array) -> Pieces:
    """The same partition, with cuts at the edges that lie inside it."""
    inside = edges[(edges > pieces.breaks[0]) & (edges < pieces.breaks[-1])]
    breaks = np.union1d(pieces.breaks, inside)
    old = np.searchsorted(pieces.breaks, breaks[:-1], side="right") - 1
    uncut = (breaks[:-1] == pieces.breaks[old]) & (breaks[1:] == pieces.breaks[old + 1])
    points, log = pieces.points[old], pieces.log[old]
    if not uncut.all():
        points[~uncut], all_states = _at(world, breaks[:-1][~uncut], breaks[1:][~uncut])
        log[~uncut] = all_states[..., pieces.first]
    return pieces._replace(breaks=breaks, points=points, log=log)


def _name(world: World, x: Any) -> str:
    return str(world.spaces.states[x])
