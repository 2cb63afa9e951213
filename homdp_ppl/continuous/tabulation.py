"""Tables of worlds with finitely many states and observations on the line, which finite planners need.

The latent part is tabulated as it is; the observations fall into cells, and a policy that looks only at cells has in the table
exactly the value that it has in the world.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.declaration import ContinuousWorld
from homdp_ppl.continuous.mechanics import Parameters
from homdp_ppl.continuous.quadrature import Pieces, cut, panels
from homdp_ppl.domain import Real
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.kernels import KernelError, Tables, snap
from homdp_ppl.pomdp import POMDP, Spaces, row_problems
from homdp_ppl.precision import Array, in_x64, to_numpy


def states_on_line(world: ContinuousWorld) -> tuple[str, ...]:
    """The states; refuses worlds that have no such tables: continuous states, or observations that are not plain numbers."""
    if not isinstance(world, ContinuousWorld):
        remedy = "Fix its parameters with .at(...); finite worlds have tables, planner(world.pomdp)."
        problem = Problem("world", f"a {type(world).__name__}", "a world with observations in Real(1)", remedy)
        raise PlanningError("cells", [problem])
    X, Y = world.spaces.states, world.spaces.observations
    remedy = "planners.particle_tree serves such worlds."
    problems = []
    if isinstance(X, Real):
        problems.append(Problem("states", f"states in {X}", "finitely many states", remedy))
    if not isinstance(Y, Real) or Y.dimension > 1:
        got = f"observations in {Y}" if isinstance(Y, Real) else f"{len(Y)} observations"
        problems.append(Problem("observations", got, "observations in Real(1)", remedy))
    if problems or isinstance(X, Real):
        raise PlanningError(world.homdp.name, problems)
    return X


@in_x64
def latent_tables(world: ContinuousWorld) -> tuple[Array, Array, Array]:
    """The initial distribution (X,), transitions (X, A, X) and rewards (H, X, A) of a world with finitely many states.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp
    >>> @homdp(states=("a", "b"), observations=Real(1), actions=("stay",), horizon=3, reward=[[0.0], [1.0]])
    ... def model():
    ...     return Kernels([0.5, 0.5], lambda x, a: dist.Bernoulli(0.1 + 0.8 * x), lambda x: dist.Normal(x, 1.0))
    >>> initial, transition, reward = latent_tables(model.at())
    >>> transition[:, 0].round(3).tolist(), reward.shape
    ([[0.9, 0.1], [0.1, 0.9]], (3, 2, 1))
    """
    states = states_on_line(world)
    mechanics, domain = world.mechanics, world.spaces
    spaces = Spaces(states, ("y",), domain.actions, domain.horizon)

    def tables(parameters: Parameters) -> tuple[Array, Array, Array]:
        rho, T, _ = snap(Tables(*mechanics.latent_rows(parameters, spaces), jnp.ones((1, 1))))
        X, A = (jnp.arange(len(names)) for names in (spaces.states, spaces.actions))
        return rho, T, jax.vmap(lambda x: jax.vmap(lambda a: mechanics.reward(x, a))(A))(X)

    compiled = world.homdp.compiled.setdefault("latent tables", jax.jit(tables))
    try:
        rho, T, r = to_numpy(compiled(dict(world.parameters)))
    except KernelError as error:
        raise PlanningError(world.homdp.name, [error.problem]) from error
    problems = [*row_problems("initial", rho, spaces), *row_problems("transition", T, spaces)]
    if not np.isfinite(r).all():
        problems.append(Problem("reward", "entries that are not finite", "finite numbers"))
    if problems:
        raise PlanningError(world.homdp.name, problems)
    return rho, T, np.broadcast_to(r, (domain.horizon, *r.shape)).copy()


def cell_masses(pieces: Pieces, edges: Array) -> Array:
    """The mass of each state in each cell, (X, cells), from pieces that were cut at the edges; rows sum to one."""
    masses = pieces.masses
    table = np.zeros((len(edges) + 1, masses.shape[1]))
    np.add.at(table, cell_of(pieces, edges), masses)
    return (table / table.sum(0)).T


def cell_of(pieces: Pieces, edges: Array) -> Array:
    """The cell in which each piece lies, (P,)."""
    return np.searchsorted(edges, pieces.breaks[:-1], side="right")


def emission_table(world: ContinuousWorld, edges: ArrayLike) -> Array:
    """O(cell | x), (X, cells): cell k holds edges[k - 1] <= y < edges[k], the first and the last are unbounded.

    Parameters
    ----------
    world
        Finitely many states, observations in ``Real(1)``.
    edges
        Increasing numbers; one cell more than edges.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp
    >>> @homdp(states=("a", "b"), observations=Real(1), actions=("stay",), horizon=3, reward=[[0.0], [1.0]])
    ... def model():
    ...     return Kernels([0.5, 0.5], lambda x, a: dist.Bernoulli(0.1 + 0.8 * x), lambda x: dist.Normal(2 * x - 1, 1.0))
    >>> emission_table(model.at(), [0.0]).round(6).tolist()
    [[0.841345, 0.158655], [0.158655, 0.841345]]
    """
    states_on_line(world)
    edges = as_edges(edges)
    return cell_masses(cut(world, panels(world), edges), edges)


def quantised_pomdp(world: ContinuousWorld, edges: ArrayLike) -> POMDP:
    """The finite model of a world whose observations are seen only by their cells."""
    rho, T, r = latent_tables(world)
    return POMDP(rho, T, emission_table(world, edges), r)


def as_edges(edges: ArrayLike) -> Array:
    """Edges of cells as an array; refuses what does not increase."""
    array = np.asarray(edges, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all() or not (np.diff(array) > 0).all():
        raise PlanningError("cells", [Problem("edges", f"{array}", "increasing finite numbers")])
    return array
