"""quantised: planning for finitely many states and real-valued observations, with a bracket around
the optimum.

    value of a policy on cells   <=   optimum over all policies on y
                                 <=   optimum of an experiment that is more informative than y

For the lower bound, the cells are the observations of a finite model, in which a policy on cells
has the same value as in the world. For the upper bound, y is replaced by a finite experiment from
which y could be simulated (_cells.py). A finite planner solves both. Cells are split where they
contribute most to the bracket (_splitting.py).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.quadrature import Pieces, cut, panels
from homdp_ppl.continuous.quantised_policy import QuantisedPolicy, cell_names
from homdp_ppl.continuous.tabulation import as_edges, cell_masses, in_units
from homdp_ppl.core.allowed import Allowed, refuse_allowed
from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.gap import gap_problems, inside_gap
from homdp_ppl.core.plan import Plan, Planner
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.latent import latent_tables, states_on_line
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.planners._cells import BLIND, UNSEEN, Spread, spread
from homdp_ppl.planners._splitting import contributions, look_ahead, split
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.auto import auto
from homdp_ppl.precision import Array

FIRST = 4  # initial number of cells, of equal mass
GAP = 1e-2  # default, for rewards in [0, 1]
INNER = 0.1  # gap of the finite planner, as a share of the requested gap
COPIES = 9  # numbers in memory per point and kind of state; measured with 2 to 8 kinds
PLAIN = 1e-4  # gap of the finite planner if no gap is requested
FEW_STATES = 2  # the upper envelope of alpha-vectors is a one-dimensional hull


@dataclass(frozen=True)
class Quantised:
    """The planner returned by :func:`quantised`.

    Learners that plan for many worlds use its finite planner with fixed cells:
    ``planner(quantised_pomdp(world, edges))``.
    """

    gap: float | None
    planner: Planner  # for finite models
    max_cells: int
    relative_gap: float | None = None

    def __call__(
        self, world: World, edges: ArrayLike | None = None, *, allowed: Allowed | None = None
    ) -> Plan:
        """Plan for a world, optionally starting with the cells between the ``edges``.

        A restriction of the actions raises PlanningError.
        """
        refuse_allowed("quantised", allowed)
        return self._plan(_line(world), edges)

    def plan_tables(self, world: World, latent: tuple[Array, Array, Array]) -> Plan:
        """Plan for other latent tables with the emission densities of a world.

        Rewards may be outside [0, 1].

        Parameters
        ----------
        world
            The world with the emission densities.
        latent
            The initial distribution (X,), transitions (X, A, X) and rewards (H, X, A).
        """
        return self._plan(_line(world)._replace(latent=latent), None)

    def _plan(self, line: _Line, edges: ArrayLike | None) -> Plan:
        started = time.perf_counter()
        _require_room(line, self.max_cells)
        first = (
            _first_edges(line.pieces, min(FIRST, self.max_cells))
            if edges is None
            else as_edges(edges)
        )
        found = _solve(line, first, self.planner)
        best, upper, rounds = found, found.upper, 1
        scale, H = line.world.homdp.rewards.scale, line.world.spaces.horizon
        gap = scale * inside_gap(self.gap, self.relative_gap, GAP, scale, H)
        while not (reason := _enough(best.less.value, upper, found, gap, self.max_cells)):
            finer = _refined(found, self.max_cells)
            if len(finer) == len(found.edges):
                reason = "no cell can be split further"
                break
            try:
                found = _solve(line, finer, self.planner)
            except PlanningError as error:
                reason = f"the planner failed with {len(finer) + 1} cells: {error.problems[0].got}"
                break
            best = found if found.less.value >= best.less.value else best
            upper, rounds = min(upper, found.upper), rounds + 1
        plan = best.plan(line.world.spaces)
        name = f"quantised with {len(best.edges) + 1} cells, {reason}; by {best.less.planner}"
        seconds = time.perf_counter() - started
        numbers = {**plan.statistics, "rounds": rounds, "seconds": seconds}
        return replace(plan, upper=upper, planner=name, statistics=numbers)


@checked
def quantised(
    gap: float | None = None,
    planner: Planner | None = None,
    max_cells: int = 256,
    *,
    relative_gap: float | None = None,
) -> Quantised:
    """A planner for worlds with finitely many states and observations in ``Real(1)``, with any
    densities.

    Parameters
    ----------
    gap
        Refine until ``upper - value`` is at most this, in the user's units. Default: 0.01 times the
        range of one reward.
    planner
        A finite planner for the lower and the upper bound. Its gaps are part of the bracket.
        Default: selected by size, with a tenth of ``gap``.
    max_cells
        Stop at this number of cells, with the bracket reached so far.
    relative_gap
        The gap as a share of the range of returns, instead of ``gap``.

    Returns
    -------
    Quantised
        A function from a world, and optionally the initial ``edges`` of cells, to a :class:`Plan`
        whose policy has the final ``edges``. Its attribute ``planner`` is the finite planner.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp
    >>> @homdp(
    ...     states=("left", "right"),
    ...     observations=Real(1),
    ...     actions=("say left", "say right"),
    ...     horizon=1,
    ...     reward=np.eye(2),
    ... )
    ... def guess():
    ...     return Kernels(
    ...         [0.5, 0.5], np.full((2, 2, 2), 0.5), lambda x: dist.Normal(2 * x - 1, 1.0)
    ...     )
    >>> plan = quantised(gap=1e-6)(guess.at())
    >>> (
    ...     plan.gap <= 1e-6,
    ...     round(plan.value, 5),
    ...     plan.policy.act([0.3], []),
    ... )  # the value is Phi(1) for the standard normal distribution
    (True, 0.84134, array([0., 1.]))
    """
    given = {"gap": gap, "relative_gap": relative_gap}
    problems = gap_problems(gap, relative_gap) or [
        Problem(name, f"{value}", "a number above 0") for name, value in given.items() if value == 0
    ]
    refuse(PlanningError, "quantised", problems + count_problems(2, max_cells=max_cells))
    inner = [None if value is None else INNER * value for value in given.values()]
    by_size = BySize(inner[0], inner[1], INNER * GAP)
    return Quantised(gap, by_size if planner is None else planner, max_cells, relative_gap)


@checked
def plan_on_cells(world: World, edges: ArrayLike, planner: Planner | None = None) -> Plan:
    """Plan with given cells, without refining them. This is cheap for many sets of parameters.

    Parameters
    ----------
    world
        A world with finitely many states and observations in ``Real(1)``.
    edges
        Edges between the cells, such as ``plan.policy.edges``.
    planner
        A finite planner. Default: selected by size.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> world = models.load("gaussian_tiger", horizon=2)
    >>> rough, fine = plan_on_cells(world, [0.0]), plan_on_cells(world, [-1.0, 0.0, 1.0])
    >>> round(rough.gap, 3), round(fine.gap, 3)
    (0.088, 0.021)
    >>> (
    ...     rough.policy.act([1.5], []),
    ...     fine.policy.act([1.5], []),
    ... )  # listen; or open left, since growls above 1 are clear enough
    (array([1., 0., 0.]), array([0., 1., 0.]))
    """
    used = BySize(None) if planner is None else planner
    found = _solve(_line(world), as_edges(edges), used)
    return found.plan(world.spaces)


@dataclass(frozen=True)
class BySize:
    """Alpha-vectors for two states, otherwise the planner selected by :func:`auto`."""

    gap: float | None
    relative_gap: float | None = None
    default: float = PLAIN  # for rewards in [0, 1]

    def __call__(self, pomdp: POMDP, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a model."""
        refuse_allowed("quantised", allowed)
        scale, few = float(pomdp.scale), len(pomdp.initial) <= FEW_STATES
        given = self.gap, self.relative_gap, self.default
        gap = scale * inside_gap(*given, scale, pomdp.horizon)
        return alpha_vectors(gap)(pomdp) if few else auto(gap)(pomdp)


class _Line(NamedTuple):
    """Data that are computed once for a world."""

    world: World
    states: tuple[str, ...]
    latent: tuple[Array, Array, Array]
    pieces: Pieces


class _Found(NamedTuple):
    """The bracket for given cells, and the data for refining them."""

    edges: Array
    less: Plan  # on cells; its tree can be drawn
    more: Plan  # on the more informative experiment
    upper: float
    statistics: dict[str, float]
    pieces: Pieces
    masses: Array  # (kinds, cells)
    above: Spread

    def plan(self, spaces: Spaces) -> Plan:
        """The policy on cells, for a world with these spaces."""
        graph, model = self.less.finite
        return Plan(
            QuantisedPolicy(self.edges, graph),
            self.less.value,
            self.upper,
            self.less.certified and self.more.certified,
            f"quantised with {len(self.edges) + 1} cells; by {self.less.planner}",
            self.statistics,
            spaces,
            model,
            self.less,
        )


def _line(world: World) -> _Line:
    return _Line(world, states_on_line(world), latent_tables(world), panels(world))


def _first_edges(pieces: Pieces, cells: int) -> Array:
    """Edges between cells of equal mass if all states are equally likely."""
    mass = np.cumsum(np.append(0.0, pieces.masses.mean(1)))
    return np.unique(np.interp(np.arange(1, cells) / cells * mass[-1], mass, pieces.breaks))


def _require_room(line: _Line, cells: int) -> None:
    """Raise PlanningError if the densities on this number of cells do not fit in memory."""
    pieces = len(line.pieces.points) + 2**BLIND * cells
    numbers = COPIES * pieces * line.pieces.points[0].size * len(line.pieces.first)
    got = f"{count(cells)} cells for {count(len(line.states))} states"
    needed = NUMBER * (numbers + cells * len(line.states))
    require_memory(PlanningError, "quantised", "max_cells", got, needed, "Use fewer cells.")


def _solve(line: _Line, edges: Array, planner: Planner) -> _Found:
    """The bracket for given cells."""
    started = time.perf_counter()
    _require_room(line, len(edges) + 1)
    world, (rho, T, r), pieces = line.world, line.latent, cut(line.world, line.pieces, edges)
    masses, above = cell_masses(pieces, edges), spread(line.world, pieces, edges)
    H = world.spaces.horizon
    less = planner(in_units(world, Stationary(rho, T, masses, r).pomdp)).named(
        Spaces(line.states, cell_names(edges), world.spaces.actions, H)
    )
    more = planner(in_units(world, Stationary(rho, T, above.emission, r).pomdp))
    scale = world.homdp.rewards.scale
    allowance = scale * H**2 * float(np.ptp(r)) * (pieces.error + UNSEEN)
    statistics = {
        "cells": len(edges) + 1,
        "corners": above.emission.shape[1],
        "revealed": float(above.revealed.sum(0).max()),
        "quadrature": allowance,
        "seconds": time.perf_counter() - started,
    }
    upper, seen = more.upper + allowance, masses[pieces.first]
    return _Found(edges, less, more, upper, statistics, pieces, seen, above)


def _enough(value: float, upper: float, last: _Found, gap: float, max_cells: int) -> str:
    """The reason to stop, or an empty text."""
    left_open = last.less.gap + last.more.gap
    if upper - value <= gap:
        return f"the gap of {gap:g} is reached"
    if len(last.edges) + 1 >= max_cells:
        return f"max_cells is reached before the gap of {gap:g}"
    if last.upper - last.less.value - left_open <= INNER * gap:
        return f"the finite planner's gap of {left_open:.2g} keeps the total gap above {gap:g}"
    return ""


def _refined(found: _Found, max_cells: int) -> Array:
    """Edges of finer cells."""
    score, steps = contributions(
        look_ahead(found.less, found.more, found.pieces.kind), found.masses, found.above
    )
    return split(found.pieces, found.edges, steps, score, max_cells - len(found.edges) - 1)
