"""quantised: planning for finitely many states and observations on the line, with a bracket around
the optimum.

    value of a policy on cells   <=   optimum over all policies on y
                                 <=   optimum of an experiment that says more than y

Below, the cells are the observations of a finite model, in which the policy has exactly its value
in the true one. Above, y is replaced by a finite experiment from which y could be simulated
(_cells.py). Any finite planner solves both; cells are split where the bracket is widest
(_splitting.py).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.quadrature import Pieces, cut, panels
from homdp_ppl.continuous.quantised_policy import QuantisedPolicy, cell_names
from homdp_ppl.continuous.tabulation import as_edges, cell_masses
from homdp_ppl.core.arguments import count_problems, number_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.plan import Plan, Planner
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.latent import latent_tables, states_on_line
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.planners._cells import UNSEEN, Spread, spread
from homdp_ppl.planners._splitting import contributions, look_ahead, split
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.auto import FEW_STATES, auto
from homdp_ppl.precision import Array

FIRST = 4  # cells to begin with, of equal mass
INNER = 0.1  # the part of the gap that a planner of a finite model may keep
PLAIN = 1e-4  # what it may keep where no gap is asked for


@dataclass(frozen=True)
class Quantised:
    """Plans for worlds with finitely many states and observations on the line.

    Made by :func:`quantised`.

    Learners that plan for many worlds use its finite planner on cells found once:
    ``planner(quantised_pomdp(world, edges))``.
    """

    gap: float
    planner: Planner  # for finite models
    max_cells: int

    def __call__(self, world: World, edges: ArrayLike | None = None) -> Plan:
        """Plan for a world, from the cells between the ``edges`` on if they are given."""
        return self._plan(_line(world), edges)

    def plan_tables(self, world: World, latent: tuple[Array, Array, Array]) -> Plan:
        """Plan for other latent tables with the emission densities of a world.

        Rewards may lie outside [0, 1].

        Parameters
        ----------
        world
            Whose observations are made.
        latent
            The initial distribution (X,), transitions (X, A, X) and rewards (H, X, A).
        """
        return self._plan(_line(world)._replace(latent=latent), None)

    def _plan(self, line: _Line, edges: ArrayLike | None) -> Plan:
        started = time.perf_counter()
        first = (
            _first_edges(line.pieces, min(FIRST, self.max_cells))
            if edges is None
            else as_edges(edges)
        )
        found = _solve(line, first, self.planner)
        best, upper, rounds = found, found.upper, 1
        while not (reason := _enough(best.less.value, upper, found, self.gap, self.max_cells)):
            finer = _refined(found, self.max_cells)
            if len(finer) == len(found.edges):
                reason = "no cell can be split any more"
                break
            try:
                found = _solve(line, finer, self.planner)
            except PlanningError as error:
                reason = f"the planner refused {len(finer) + 1} cells: {error.problems[0].got}"
                break
            best = found if found.less.value >= best.less.value else best
            upper, rounds = min(upper, found.upper), rounds + 1
        plan = best.plan(line.world.spaces)
        name = f"quantised with {len(best.edges) + 1} cells, {reason}; by {best.less.planner}"
        seconds = time.perf_counter() - started
        numbers = {**plan.statistics, "rounds": rounds, "seconds": seconds}
        return replace(plan, upper=upper, planner=name, statistics=numbers)


@checked
def quantised(gap: float = 1e-2, planner: Planner | None = None, max_cells: int = 256) -> Quantised:
    """A planner for worlds with finitely many states and observations in ``Real(1)``, any
    densities.

    Parameters
    ----------
    gap
        Refine until ``upper - value`` is at most this.
    planner
        A finite planner, which plans for the cells and for the experiment above them; by default
        one that is chosen by size, with a tenth of the gap. What it leaves open is part of the
        bracket.
    max_cells
        Stop at so many cells, with the bracket reached so far.

    Returns
    -------
    Quantised
        A function from a world, and if wished the ``edges`` of cells to begin with, to a
        :class:`Plan` whose policy has the final ``edges``; its ``planner`` is the finite one.

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
    ... )  # the normal distribution up to 1
    (True, 0.84134, array([0., 1.]))
    """
    problems = number_problems(gap=gap) or (
        [Problem("gap", f"{gap}", "a number above 0")] if gap == 0 else []
    )
    refuse(PlanningError, "quantised", problems + count_problems(2, max_cells=max_cells))
    return Quantised(gap, BySize(INNER * gap) if planner is None else planner, max_cells)


@checked
def plan_on_cells(world: World, edges: ArrayLike, planner: Planner | None = None) -> Plan:
    """Plan on given cells, without refining them: cheap for one set of parameters after the other.

    Parameters
    ----------
    world
        Finitely many states, observations in ``Real(1)``.
    edges
        Where one cell ends and the next begins, such as ``plan.policy.edges``.
    planner
        A finite planner, by default one that is chosen by size.

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
    ... )  # listen; or open left, for growls above 1 are clear enough
    (array([1., 0., 0.]), array([0., 1., 0.]))
    """
    found = _solve(_line(world), as_edges(edges), BySize(PLAIN) if planner is None else planner)
    return found.plan(world.spaces)


@dataclass(frozen=True)
class BySize:
    """Vectors for two states, however many observations there are.

    Else what :func:`auto` chooses.
    """

    gap: float

    def __call__(self, pomdp: POMDP) -> Plan:
        """Plan for a model."""
        few = len(pomdp.initial) <= FEW_STATES
        return alpha_vectors(self.gap)(pomdp) if few else auto(self.gap)(pomdp)


class _Line(NamedTuple):
    """What is worked out once for a world."""

    world: World
    states: tuple[str, ...]
    latent: tuple[Array, Array, Array]
    pieces: Pieces


class _Found(NamedTuple):
    """The bracket on given cells, and what it takes to refine them."""

    edges: Array
    less: Plan  # on cells: its tree can be drawn
    more: Plan  # on the experiment that says more
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
    """Edges between cells of equal mass, where all states are equally likely."""
    mass = np.cumsum(np.append(0.0, pieces.masses.mean(1)))
    return np.unique(np.interp(np.arange(1, cells) / cells * mass[-1], mass, pieces.breaks))


def _solve(line: _Line, edges: Array, planner: Planner) -> _Found:
    """The bracket on given cells."""
    started = time.perf_counter()
    world, (rho, T, r), pieces = line.world, line.latent, cut(line.world, line.pieces, edges)
    masses, above = cell_masses(pieces, edges), spread(line.world, pieces, edges)
    H = world.spaces.horizon
    less = planner(Stationary(rho, T, masses, r).pomdp).named(
        Spaces(line.states, cell_names(edges), world.spaces.actions, H)
    )
    more = planner(Stationary(rho, T, above.emission, r).pomdp)
    allowance = H**2 * float(np.ptp(r)) * (pieces.error + UNSEEN)
    statistics = {
        "cells": len(edges) + 1,
        "corners": above.emission.shape[1],
        "told": float(above.told.sum(0).max()),
        "quadrature": allowance,
        "seconds": time.perf_counter() - started,
    }
    upper, seen = more.upper + allowance, masses[pieces.first]
    return _Found(edges, less, more, upper, statistics, pieces, seen, above)


def _enough(value: float, upper: float, last: _Found, gap: float, max_cells: int) -> str:
    """Why to stop, if at all."""
    left_open = last.less.gap + last.more.gap
    if upper - value <= gap:
        return f"the gap of {gap:g} is reached"
    if len(last.edges) + 1 >= max_cells:
        return f"max_cells is reached before the gap of {gap:g}"
    if last.upper - last.less.value - left_open <= INNER * gap:
        return f"the finite planner leaves {left_open:.2g} open, which keeps the gap above {gap:g}"
    return ""


def _refined(found: _Found, max_cells: int) -> Array:
    """Edges of finer cells."""
    score, steps = contributions(
        look_ahead(found.less, found.more, found.pieces.kind), found.masses, found.above
    )
    return split(found.pieces, found.edges, steps, score, max_cells - len(found.edges) - 1)
