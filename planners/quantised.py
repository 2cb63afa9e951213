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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.quadrature import Pieces, cut, panels
from homdp_ppl.continuous.quantised_policy import QuantisedPolicy, cell_names
from homdp_ppl.continuous.tabulation import as_edges, cell_masses
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.latent import latent_tables, states_on_line
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.planners._cells import UNSEEN, Spread, spread
from homdp_ppl.planners._checking import count_problems, number_problems, refuse
from homdp_ppl.planners._splitting import contributions, look_ahead, split
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.auto import FEW_STATES, auto
from homdp_ppl.precision import Array

FIRST = 4  # cells to begin with, of equal mass
INNER = 0.1  # the part of the gap that a planner of a finite model may keep
PLAIN = 1e-4  # what it may keep where no gap is asked for


class QuantisedPlan(NamedTuple):
    """A policy on cells, with what is known about its quality among all policies that see the
    numbers themselves.

    ``value <= optimum <= upper``, up to quadrature: by how much that may be off is in
    ``statistics``, and ``upper`` includes it.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import plan_on_cells
    >>> plan = plan_on_cells(models.load("gaussian_tiger", horizon=2), edges=[0.0])
    >>> round(plan.value, 4), round(plan.upper, 4)
    (1.8481, 1.9365)
    >>> plan.less.spaces.observations  # what the policy sees of a number
    ('y < 0', '0 <= y')
    """

    policy: QuantisedPolicy
    value: float  # the policy's value in the world
    upper: float  # bound of the optimum over all policies that depend on the history of numbers
    planner: str  # who planned, how many cells, and why it stopped
    statistics: Mapping[str, float]
    less: Plan  # on cells: its tree can be drawn
    more: Plan  # on the experiment that says more

    @property
    def gap(self) -> float:
        """How far the policy may be from the optimum."""
        return self.upper - self.value

    @property
    def edges(self) -> Array:
        """Where one cell ends and the next begins."""
        return self.policy.edges

    def __repr__(self) -> str:
        return (
            f"Plan by {self.planner}: value {self.value:.6g} (at most {self.gap:.2g} "
            f"below the optimum), {self.policy!r}"
        )


@dataclass(frozen=True)
class Quantised:
    """Plans for worlds with finitely many states and observations on the line.

    Made by :func:`quantised`.

    Learners that plan for many worlds use its finite planner on cells found once:
    ``planner(quantised_pomdp(world, edges))``.
    """

    gap: float
    planner: Callable[[POMDP], Plan]  # for finite models
    max_cells: int

    def __call__(self, world: World, edges: ArrayLike | None = None) -> QuantisedPlan:
        """Plan for a world, from the cells between the ``edges`` on if they are given."""
        return self._plan(_line(world), edges)

    def with_tables(self, world: World, latent: tuple[Array, Array, Array]) -> QuantisedPlan:
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

    def _plan(self, line: _Line, edges: ArrayLike | None) -> QuantisedPlan:
        started = time.perf_counter()
        first = (
            _first_edges(line.pieces, min(FIRST, self.max_cells))
            if edges is None
            else as_edges(edges)
        )
        found = _solve(line, first, self.planner)
        best, rounds = found.plan, 1
        while not (reason := _enough(best, found.plan, self.gap, self.max_cells)):
            finer = _refined(found, self.max_cells)
            if len(finer) == len(found.plan.edges):
                reason = "no cell can be split any more"
                break
            try:
                found = _solve(line, finer, self.planner)
            except PlanningError as error:
                reason = f"the planner refused {len(finer) + 1} cells: {error.problems[0].got}"
                break
            best, rounds = _better(best, found.plan), rounds + 1
        numbers = {**best.statistics, "rounds": rounds, "seconds": time.perf_counter() - started}
        told = f"quantised with {len(best.edges) + 1} cells, {reason}; by {best.less.planner}"
        return best._replace(planner=told, statistics=numbers)


def quantised(
    gap: float = 1e-2, planner: Callable[[POMDP], Plan] | None = None, max_cells: int = 256
) -> Quantised:
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
        :class:`QuantisedPlan`; its ``planner`` is the finite one.

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
    refuse("quantised", problems + count_problems(2, max_cells=max_cells))
    return Quantised(gap, _by_size(INNER * gap) if planner is None else planner, max_cells)


def plan_on_cells(
    world: World, edges: ArrayLike, planner: Callable[[POMDP], Plan] | None = None
) -> QuantisedPlan:
    """Plan on given cells, without refining them: cheap for one set of parameters after the other.

    Parameters
    ----------
    world
        Finitely many states, observations in ``Real(1)``.
    edges
        Where one cell ends and the next begins, such as ``plan.edges``.
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
    return _solve(
        _line(world), as_edges(edges), _by_size(PLAIN) if planner is None else planner
    ).plan


def _by_size(gap: float) -> Callable[[POMDP], Plan]:
    """Vectors for two states, however many observations there are.

    Else what :func:`auto` chooses.
    """
    vectors, other = alpha_vectors(gap), auto(gap)
    return lambda pomdp: (vectors if len(pomdp.initial) <= FEW_STATES else other)(pomdp)


class _Line(NamedTuple):
    """What is worked out once for a world."""

    world: World
    states: tuple[str, ...]
    latent: tuple[Array, Array, Array]
    pieces: Pieces


class _Found(NamedTuple):
    """A plan on cells, and what it takes to refine them."""

    plan: QuantisedPlan
    pieces: Pieces
    masses: Array  # (kinds, cells)
    above: Spread


def _line(world: World) -> _Line:
    return _Line(world, states_on_line(world), latent_tables(world), panels(world))


def _first_edges(pieces: Pieces, cells: int) -> Array:
    """Edges between cells of equal mass, where all states are equally likely."""
    mass = np.cumsum(np.append(0.0, pieces.masses.mean(1)))
    return np.unique(np.interp(np.arange(1, cells) / cells * mass[-1], mass, pieces.breaks))


def _solve(line: _Line, edges: Array, planner: Callable[[POMDP], Plan]) -> _Found:
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
    name = f"quantised with {len(edges) + 1} cells; by {less.planner}"
    policy = QuantisedPolicy(edges, less.policy)
    plan = QuantisedPlan(policy, less.value, more.upper + allowance, name, statistics, less, more)
    return _Found(plan, pieces, masses[pieces.first], above)


def _enough(best: QuantisedPlan, last: QuantisedPlan, gap: float, max_cells: int) -> str:
    """Why to stop, if at all."""
    left_open = last.less.gap + last.more.gap
    if best.gap <= gap:
        return f"the gap of {gap:g} is reached"
    if len(last.edges) + 1 >= max_cells:
        return f"max_cells is reached before the gap of {gap:g}"
    if last.gap - left_open <= INNER * gap:
        return f"the finite planner leaves {left_open:.2g} open, which keeps the gap above {gap:g}"
    return ""


def _refined(found: _Found, max_cells: int) -> Array:
    """Edges of finer cells."""
    plan = found.plan
    score, steps = contributions(
        look_ahead(plan.less, plan.more, found.pieces.kind), found.masses, found.above
    )
    return split(found.pieces, plan.edges, steps, score, max_cells - len(plan.edges) - 1)


def _better(one: QuantisedPlan, other: QuantisedPlan) -> QuantisedPlan:
    """The policy with the larger value, and the smaller of two upper bounds."""
    better = other if other.value >= one.value else one
    return better._replace(upper=min(one.upper, other.upper))
