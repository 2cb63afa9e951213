"""The tree of a particle search as arrays of rows, and how rows are read and written inside
compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from homdp_ppl.core.spaces import Real, Space, Spaces, shape_of
from homdp_ppl.precision import Array


class Sizes(NamedTuple):
    """What a search is compiled for."""

    simulations: int  # at most so many
    observations: int  # of a branch, at most so many
    particles: int  # of each belief in the tree
    rollouts: int  # states of a new belief from which uniform actions are simulated
    heuristic: (
        Callable[[Array, Array], Array] | None
    )  # in their place: from (h, x) to the value of what remains


class Constants(NamedTuple):
    """What may differ from search to search."""

    exploration: float  # of the upper confidence bounds, in units of the remaining steps
    k: float  # a branch of n visits has at most ceil(k n^alpha) observations
    alpha: float


class Tree(NamedTuple):
    """Beliefs and branches in rows; row 0 is the root.

    Simulation i makes belief i + 1, and branch i + 1 if it is the first to take an action. A branch
    is what an action at a belief leads to: particles of the next state, and the observations that
    were drawn from them.
    """

    weights: Array  # (N, n)  of a belief, for the particles of its origin
    origin: Array  # (N,)  the branch that a belief came from
    reward: Array  # (N, A)  expected at a belief
    quality: Array  # (N, A)  value of an action at a belief
    visits: Array  # (N, A)
    value: Array  # (N,)  of a belief
    branch: Array  # (N, A)  that an action leads to; -1 when it was never taken
    particles: Array  # (N, n, ...)  of a branch
    seen: Array  # (N, C, ...)  observations of a branch
    child: Array  # (N, C)  the belief after each
    share: Array  # (N, C)  of each in the mean over them, up to a factor; 0 when there is none
    went: Array  # (N, C)  how often each was followed


class Step(NamedTuple):
    """One step of a descent; a path is an array of them."""

    belief: Array
    action: Array
    branch: Array
    slot: Array  # of the observation


class Stop(NamedTuple):
    """Where a descent has come to."""

    depth: Array
    belief: Array
    path: Step  # (H,) each
    new_branch: Array  # whether the last action was never taken before
    new_belief: Array  # whether the last observation was never seen before
    observation: Array  # the last one, if it is new, the branch is not, and the model is finite


class Leaf(NamedTuple):
    """The belief at the end of a descent, and the branch it comes from."""

    particles: Array  # (n, ...)
    observation: Array
    share: Array
    weights: Array  # (n,)
    reward: Array  # (A,)
    value: Array


class Change(NamedTuple):
    """What a simulation changes at one step of its path."""

    quality: Array
    visits: Array
    value: Array
    went: Array


def empty_tree(domain: Spaces, sizes: Sizes) -> Tree:
    """Rows for as many simulations as there may be."""
    N, n, A, C = sizes.simulations + 1, sizes.particles, len(domain.actions), sizes.observations
    X, Y = domain.states, domain.observations
    return Tree(
        weights=jnp.zeros((N, n)),
        origin=jnp.zeros(N, int),
        reward=jnp.zeros((N, A)),
        quality=jnp.zeros((N, A)),
        visits=jnp.zeros((N, A)),
        value=jnp.zeros(N),
        branch=jnp.full((N, A), -1, int),
        particles=jnp.zeros((N, n, *shape_of(X)), _kind(X)),
        seen=jnp.zeros((N, C, *shape_of(Y)), _kind(Y)),
        child=jnp.zeros((N, C), int),
        share=jnp.zeros((N, C)),
        went=jnp.zeros((N, C)),
    )


def tree_bytes(domain: Spaces, sizes: Sizes) -> int:
    """How much memory the rows need; nothing is allocated."""
    return sum(
        leaf.size * leaf.dtype.itemsize
        for leaf in jax.eval_shape(lambda: empty_tree(domain, sizes))
    )


def get(array: Array, *index: Any) -> Array:
    """An entry, or a row of the axes that follow; index -1 reads anything."""
    rest = array.shape[len(index) :]
    sizes = (*(1 for _ in index), *rest)
    return jax.lax.dynamic_slice(
        array, (*index, *(0 for _ in rest)), sizes, allow_negative_indices=False
    ).reshape(rest)


def put(array: Array, value: Any, *index: Any) -> Array:
    """The array with another entry or row.

    Unlike a scatter it is written in place inside a loop.
    """
    new = jnp.asarray(value, array.dtype)
    block = new.reshape(*(1 for _ in index), *new.shape)
    start = (*index, *(0 for _ in new.shape))
    return jax.lax.dynamic_update_slice(array, block, start, allow_negative_indices=False)


def at_step(path: Any, depth: Array) -> Any:
    """One step of a path."""
    return jax.tree.map(lambda column: get(column, depth), path)


def with_step(path: Any, step: Any, depth: Array) -> Any:
    """A path with another step."""
    return jax.tree.map(lambda column, value: put(column, value, depth), path, step)


def _kind(space: Space) -> type:
    return float if isinstance(space, Real) else int
