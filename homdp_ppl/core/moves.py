"""Products with transition tables, dense or sparse, and draws of next states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.randomness import choose
from homdp_ppl.core.sparse import Matrix, Sparse
from homdp_ppl.core.sparsity import sparse_if_large
from homdp_ppl.precision import Array, namespace

if TYPE_CHECKING:
    from homdp_ppl.core.pomdp import POMDP


def matrix(pomdp: POMDP, h: int, a: int | None = None) -> Any:
    """T_h as a matrix for products: (X, X) for one action, (X A, X) for all actions.

    It is an array of NumPy or scipy.sparse, whichever makes products faster.
    """
    if isinstance(pomdp.transition, Sparse):
        return _sparse_matrix(pomdp.transition, h, a)
    moves = pomdp.moves(h)
    return sparse_if_large(moves.reshape(-1, len(moves)) if a is None else moves[:, a])


def expect(pomdp: POMDP, v: Array, h: Any) -> Array:
    """sum_x' T_h(x' | x, a) v(x'), (X, A), of values (X,), or (A, X) by action; can be traced."""
    if isinstance(pomdp.transition, Sparse):
        return _sparse_expect(pomdp.transition, v, h)
    moves = pomdp.moves(h)
    return moves @ v if v.ndim == 1 else namespace(pomdp, v).einsum("xaz,az->xa", moves, v)


def draw_next(pomdp: POMDP, h: Any, x: Any, a: Any, uniform: Any) -> Any:
    """The next state after action a in state x, at a uniform number in [0, 1); can be traced."""
    if not isinstance(pomdp.transition, Sparse):
        return choose(pomdp.moves(h)[x, a], uniform)
    columns, chances = sparse_row(pomdp.transition, h, x, a)
    return columns[choose(chances, uniform)]


def sparse_onward(table: Sparse, weights: Array, a: Any, h: Any) -> Array:
    """sum_x b(x) T_h(x' | x, a) of weights (..., X), for all actions (..., A, X) if a is None.

    Can be traced.
    """
    _, X, A, _ = table.pattern.shape
    if namespace(table.values, weights, h) is np and not isinstance(a, jax.Array):
        flat = np.reshape(weights, (-1, X))
        chosen = range(A) if a is None else [int(a)]
        parts = [np.asarray((_sparse_matrix(table, h, k).T @ flat.T).T) for k in chosen]
        onward: Any = np.stack(parts, axis=-2).reshape(*np.shape(weights)[:-1], len(parts), X)
        return onward if a is None else onward[..., 0, :]
    within, values = _at_step(table, h)
    state, action = within // A, within % A
    moved = jnp.asarray(weights)[..., state] * values
    onward = jnp.zeros((*moved.shape[:-1], A, X), moved.dtype)
    onward = onward.at[..., action, jnp.asarray(table.pattern.columns)].add(moved)
    return onward if a is None else onward[..., a, :]


def sparse_row(table: Sparse, h: Any, x: Any, a: Any) -> tuple[Array, Array]:
    """The next states of one row and their probabilities, padded with zeros; can be traced."""
    xp, pattern = namespace(table.values, h, x, a), table.pattern
    starts, row = xp.asarray(pattern.starts), pattern.row(h, x, a)
    place = starts[row] + np.arange(pattern.longest)
    inside = place < starts[row + 1]
    place = xp.minimum(place, len(pattern.columns) - 1)
    chances = xp.where(inside, xp.asarray(table.values)[place], 0.0)
    return xp.asarray(pattern.columns)[place], chances


def _sparse_matrix(table: Sparse, h: int, a: int | None = None) -> Matrix:
    step = h if table.pattern.shape[0] > 1 else 0
    return table.matrices[step] if a is None else table.by_action[step][a]


def _sparse_expect(table: Sparse, v: Array, h: Any) -> Array:
    _, X, A, _ = table.pattern.shape
    if namespace(table.values, v, h) is np:
        if np.ndim(v) == 1:
            return np.asarray(_sparse_matrix(table, h) @ v).reshape(X, A)
        return np.stack([_sparse_matrix(table, h, a) @ v[a] for a in range(A)], axis=1)
    within, values = _at_step(table, h)
    columns = jnp.asarray(table.pattern.columns)
    ahead = v[columns] if v.ndim == 1 else v[within % A, columns]
    return jnp.zeros(X * A, values.dtype).at[within].add(values * ahead).reshape(X, A)


def _at_step(table: Sparse, h: Any) -> tuple[Array, Array]:
    """The row (x, a) of each entry, and its value at step h, zero for other steps; for JAX."""
    steps, X, A, _ = table.pattern.shape
    rows, values = jnp.asarray(table.pattern.rows), jnp.asarray(table.values)
    if steps == 1:
        return rows, values
    return rows % (X * A), jnp.where(rows // (X * A) == h, values, 0.0)
