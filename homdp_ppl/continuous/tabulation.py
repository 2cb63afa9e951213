"""Finite tables for worlds with finitely many states and observations in Real(1).

The latent part is tabulated exactly, and observations are grouped into cells. A policy that depends
on cells only has the same value in the tables as in the world.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.quadrature import Pieces, cut, panels
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.declare.latent import latent_tables, states_on_line
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array


def cell_masses(pieces: Pieces, edges: Array) -> Array:
    """The mass of each state in each cell, (X, cells), from pieces that are cut at the edges.

    Rows sum to one.
    """
    masses = pieces.masses
    table = np.zeros((len(edges) + 1, masses.shape[1]))
    np.add.at(table, cell_of(pieces, edges), masses)
    return (table / table.sum(0)).T


def cell_of(pieces: Pieces, edges: Array) -> Array:
    """The cell of each piece, (P,)."""
    return np.searchsorted(edges, pieces.breaks[:-1], side="right")


def emission_table(world: World, edges: ArrayLike) -> Array:
    """O(cell | x), (X, cells). Cell k contains edges[k - 1] <= y < edges[k]; the first and the last
    cell are unbounded.

    Parameters
    ----------
    world
        A world with finitely many states and observations in ``Real(1)``.
    edges
        Increasing numbers. There is one cell more than edges.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp
    >>> @homdp(
    ...     states=("a", "b"),
    ...     observations=Real(1),
    ...     actions=("stay",),
    ...     horizon=3,
    ...     reward=[[0.0], [1.0]],
    ... )
    ... def model():
    ...     return Kernels(
    ...         [0.5, 0.5],
    ...         lambda x, a: dist.Bernoulli(0.1 + 0.8 * x),
    ...         lambda x: dist.Normal(2 * x - 1, 1.0),
    ...     )
    >>> emission_table(model.at(), [0.0]).round(6).tolist()
    [[0.841345, 0.158655], [0.158655, 0.841345]]
    """
    states_on_line(world)
    edges = as_edges(edges)
    return cell_masses(cut(world, panels(world), edges), edges)


def quantised_pomdp(world: World, edges: ArrayLike) -> POMDP:
    """The finite model of a world in which only the cell of each observation is seen."""
    rho, T, r = latent_tables(world)
    return in_units(world, Stationary(rho, T, emission_table(world, edges), r).pomdp)


def in_units(world: World, model: POMDP) -> POMDP:
    """The model with the units of a world's rewards."""
    rewards = world.homdp.rewards
    return model._replace(scale=np.array(rewards.scale), shift=np.array(rewards.shift))


def as_edges(edges: ArrayLike) -> Array:
    """Edges of cells as an array; raises :class:`PlanningError` if they do not increase."""
    array, problems = as_numbers("edges", edges, "shape (K,)")
    if array is not None and not (
        array.ndim == 1 and np.isfinite(array).all() and (np.diff(array) > 0).all()
    ):
        problems = [Problem("edges", f"{array}", "increasing finite numbers")]
    if array is None or problems:
        raise PlanningError("cells", problems)
    return np.asarray(array, dtype=np.float64)
