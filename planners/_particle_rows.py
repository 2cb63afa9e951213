"""The tree of a particle search as arrays, and access to their rows inside compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from homdp_ppl.core.spaces import Real, Space, Spaces, shape_of
from homdp_ppl.precision import Array


class Sizes(NamedTuple):
    """Static sizes and functions of a compiled search."""

    simulations: int  # largest number
    observations: int  # largest number per branch
    particles: int  # per belief in the tree
    rollouts: int  # states of a new belief from which uniform actions are simulated
    # replaces rollouts: a function from (h, x) to the remaining value
    heuristic: Callable[[Array, Array], Array] | None


class Constants(NamedTuple):
    """Parameters of a search that do not require a new compilation."""

    exploration: float  # weight of the upper confidence bounds, in units of the remaining steps
    k: float  # a branch with n visits has at most ceil(k n^alpha) observations
    alpha: float


class Tree(NamedTuple):
    """Beliefs and branches as rows; row 0 is the root.

    Simulation i creates belief i + 1, and branch i + 1 if it is the first to take an action. A
    branch is the result of an action at a belief: particles of the next state, and observations
    that were drawn from them.
    """

    weights: Array  # (N, n)  of a belief, for the particles of its origin
    origin: Array  # (N,)  the branch of a belief
    reward: Array  # (N, A)  expected reward at a belief
    quality: Array  # (N, A)  value of an action at a belief
    visits: Array  # (N, A)
    value: Array  # (N,)  of a belief
    branch: Array  # (N, A)  the branch of an action; -1 if it was never taken
    particles: Array  # (N, n, ...)  of a branch
    seen: Array  # (N, C, ...)  observations of a branch
    child: Array  # (N, C)  the belief after each observation
    share: Array  # (N, C)  weight of each observation, not normalised; 0 for empty slots
    went: Array  # (N, C)  how often each observation was followed


class Step(NamedTuple):
    """One step of a descent. A path is an array of steps."""

    belief: Array
    action: Array
    branch: Array
    slot: Array  # column of the observation


class Stop(NamedTuple):
    """The current position of a descent."""

    depth: Array
    belief: Array
    path: Step  # (H,) each
    new_branch: Array  # whether the last action is taken for the first time
    new_belief: Array  # whether the last observation is seen for the first time
    # the last observation, if it is new in an old branch and the model is finite
    observation: Array


class Leaf(NamedTuple):
    """The belief at the end of a descent, and its branch."""

    particles: Array  # (n, ...)
    observation: Array
    share: Array
    weights: Array  # (n,)
    reward: Array  # (A,)
    value: Array


class Change(NamedTuple):
    """The changes of a simulation at one step of its path."""

    quality: Array
    visits: Array
    value: Array
    went: Array


def empty_tree(domain: Spaces, sizes: Sizes) -> Tree:
    """A tree with rows for the largest number of simulations."""
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
    """Memory of a tree, in bytes; nothing is allocated."""
    return sum(
        leaf.size * leaf.dtype.itemsize
        for leaf in jax.eval_shape(lambda: empty_tree(domain, sizes))
    )


def get(array: Array, *index: Any) -> Array:
    """An entry, or a row of the remaining axes; the result for index -1 is arbitrary."""
    rest = array.shape[len(index) :]
    sizes = (*(1 for _ in index), *rest)
    return jax.lax.dynamic_slice(
        array, (*index, *(0 for _ in rest)), sizes, allow_negative_indices=False
    ).reshape(rest)


def put(array: Array, value: Any, *index: Any) -> Array:
    """The array with an entry or row replaced. XLA does this in place in loops, unlike scatters."""
    new = jnp.asarray(value, array.dtype)
    block = new.reshape(*(1 for _ in index), *new.shape)
    start = (*index, *(0 for _ in new.shape))
    return jax.lax.dynamic_update_slice(array, block, start, allow_negative_indices=False)


def at_step(path: Any, depth: Array) -> Any:
    """One step of a path."""
    return jax.tree.map(lambda column: get(column, depth), path)


def with_step(path: Any, step: Any, depth: Array) -> Any:
    """A path with one step replaced."""
    return jax.tree.map(lambda column, value: put(column, value, depth), path, step)


def _kind(space: Space) -> type:
    return float if isinstance(space, Real) else int
