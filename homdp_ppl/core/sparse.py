"""Sparse transition tables: the possible next states of each row and their probabilities, by rows.

The places of the entries are static, so that JAX traces the probabilities only. Cost and memory
are proportional to the number of stored entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.randomness import choose
from homdp_ppl.errors import PlanningError, Problem, shown
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array, namespace

SHARE, LARGE = 0.2, 1_000_000  # larger tables with a smaller share of non-zeros become sparse
AXES = "(X, A, K) or (H, X, A, K): the next states of each row, -1 for none"
Matrix: TypeAlias = Any  # scipy.sparse.csr_array


@final
@dataclass(frozen=True, eq=False, repr=False)
class Pattern:
    """The places of the stored entries of a table (H or 1, X, A, X), in order.

    Patterns compare and hash by their entries.
    """

    columns: Array  # (N,)  the next state of each entry, increasing in each row
    starts: Array  # (rows + 1,)  the first entry of each row; rows are (step, x, a), flat
    shape: tuple[int, int, int, int]

    @cached_property
    def rows(self) -> Array:
        """The flat row of each entry, (N,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def longest(self) -> int:
        """The largest number of entries of a row."""
        return int(np.diff(self.starts).max())

    @cached_property
    def digest(self) -> str:
        """A digest of the places."""
        parts = (self.columns.tobytes(), self.starts.tobytes(), repr(self.shape).encode())
        return sha256(b"".join(parts)).hexdigest()

    @cached_property
    def slots(self) -> Array:
        """The place of each entry in a table that is padded to the longest row, (N,)."""
        within = np.arange(len(self.columns)) - self.starts[self.rows]
        return self.rows * self.longest + within

    @property
    def padded(self) -> tuple[int, ...]:
        """The shape of a padded table: (X, A, longest), with a step axis if there are steps."""
        shape = (*self.shape[:3], self.longest)
        return shape if shape[0] > 1 else shape[1:]

    def pad(self, values: Array) -> Array:
        """The values of the entries (..., N) as a padded table; can be traced."""
        flat = (*values.shape[:-1], (len(self.starts) - 1) * self.longest)
        if namespace(values) is np:
            table: Any = np.zeros(flat, values.dtype)
            table[..., self.slots] = values
        else:
            table = jnp.zeros(flat, values.dtype).at[..., self.slots].set(values)
        return table.reshape(*values.shape[:-1], *self.padded)

    def entries(self, table: Array) -> Array:
        """The values (..., N) of the entries of a padded table; the inverse of :meth:`pad`."""
        batch = table.shape[: table.ndim - len(self.padded)]
        return table.reshape(*batch, -1)[..., self.slots]

    def values_of(self, table: Any) -> Array:
        """The values (..., N) of the entries in a table of full shape, sparse or dense."""
        if isinstance(table, Sparse) and table.pattern == self:
            return table.values
        X = self.shape[3]
        dense = table.dense() if isinstance(table, Sparse) else table
        flat = dense.reshape(*dense.shape[:-4], -1)
        return flat[..., self.rows * X + self.columns]

    def following(self, index: Sequence[int]) -> list[int]:
        """The index of an entry of a padded table, with its next state instead of its place."""
        *row, place = map(int, index)
        first = self.starts[np.ravel_multi_index(row, self.padded[:-1])]
        return [*row, int(self.columns[first + place])]

    def dense_rows(self, table: Array, h: Any, x: Any, a: Any) -> Array:
        """Rows of a padded table as probabilities of all states, (..., X); can be traced."""
        row = self._row(h, x, a)
        starts, columns = jnp.asarray(self.starts), jnp.asarray(self.columns)
        place = starts[row][..., None] + np.arange(self.longest)
        place = jnp.minimum(place, len(self.columns) - 1)
        chances = jnp.reshape(table, (-1, self.longest))[row]  # zero beyond the end of a row
        rows = jnp.zeros((chances.size // self.longest, self.shape[3]), chances.dtype)
        index = np.arange(len(rows))[:, None], columns[place].reshape(-1, self.longest)
        rows = rows.at[index].add(chances.reshape(-1, self.longest))
        return rows.reshape(*chances.shape[:-1], -1)

    def slot(self, h: Any, x: Any, a: Any, following: Any) -> Array:
        """The place of next states in their padded rows; ``longest`` if they are not stored."""
        xp = namespace(h, x, a, following)
        # states that are not revealed have any number
        row = xp.clip(self._row(h, x, a), 0, len(self.starts) - 2)
        place = xp.asarray(self.starts)[row][..., None] + np.arange(self.longest)
        inside = place < xp.asarray(self.starts)[row + 1][..., None]
        columns = xp.asarray(self.columns)[xp.minimum(place, len(self.columns) - 1)]
        found = inside & (columns == xp.asarray(following)[..., None])
        return xp.where(found.any(-1), found.argmax(-1), self.longest)

    def _row(self, h: Any, x: Any, a: Any) -> Any:
        steps, X, A, _ = self.shape
        return ((h if steps > 1 else 0) * X + x) * A + a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and (self is other or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)


@final
@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False, repr=False)
class Sparse:
    """A transition table that stores only its possible next states.

    Create one with :meth:`rows` or :meth:`of`, and use it in place of a table in :class:`Kernels`,
    :func:`tabular` or ``POMDP.of``. Results do not depend on the storage, up to rounding; cost and
    memory are proportional to the number of entries. Functions that need a dense table make one if
    it fits into the memory budget.

    Attributes
    ----------
    values
        The probability of each entry, (..., N). Extra leading axes are candidates.
    pattern
        The places of the entries.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Sparse
    >>> ring = Sparse.rows(  # one step ahead or stay, on 1,000 cells
    ...     columns=np.stack([np.arange(1000), (np.arange(1000) + 1) % 1000], axis=-1)[:, None],
    ...     probabilities=np.full((1000, 1, 2), 0.5),
    ... )
    >>> ring
    Sparse(1000 states, 1 action, 2,000 entries)
    >>> ring.dense()[0, 999, 0, [0, 1, 999]]
    array([0.5, 0. , 0.5])
    """

    values: Array
    pattern: Pattern

    @classmethod
    def rows(cls, columns: Any, probabilities: Any) -> Sparse:
        """A table from the next states of each row and their probabilities.

        Parameters
        ----------
        columns
            Next states, integers of shape (X, A, K) or (H, X, A, K), -1 where a row has fewer.
        probabilities
            Their probabilities, of the same shape; JAX may trace them. Probabilities of the same
            next state of a row are added, and those of -1 are ignored.
        """
        table, problems = as_numbers("probabilities", probabilities, f"shape {AXES}")
        places = np.asarray(columns)
        fits = places.ndim in (3, 4) and places.dtype.kind in "iu" and 0 not in places.shape
        if not fits:
            problems = [Problem("columns", shown(columns, 80), f"integers of shape {AXES}")]
        elif table is not None and table.shape != places.shape:
            got = f"shape {table.shape}"
            problems = [Problem("probabilities", got, f"shape {places.shape}, as the columns")]
        elif places.max() >= places.shape[-3] or places.min() < -1:
            states = f"states in 0..{places.shape[-3] - 1}, or -1 for none"
            problems = [Problem("columns", f"{places.min()}..{places.max()}", states)]
        if table is None or problems:
            raise PlanningError("Sparse.rows", problems)
        places = places[(None,) * (4 - places.ndim)]
        row = np.repeat(np.arange(np.prod(places.shape[:3])), places.shape[3])
        kept = np.flatnonzero(places.ravel() >= 0)
        shape = (*places.shape[:3], places.shape[1])
        return cls.of_entries(row[kept], places.ravel()[kept], table.reshape(-1)[kept], shape)

    @classmethod
    def of_entries(cls, row: Array, column: Array, values: Array, shape: Any) -> Sparse:
        """A table of a full shape from entries in any order; duplicates are added.

        Rows are numbered by step, state and action. Values may be traced.
        """
        steps, X, A, _ = shape
        key, group = np.unique(np.asarray(row) * X + column, return_inverse=True)
        number = np.bincount(key // X, minlength=steps * X * A)
        return cls(_summed(values, group, len(key)), _pattern(key % X, number, shape))

    @classmethod
    def of(cls, table: Any) -> Sparse:
        """A table from a dense one, or from one sparse matrix per action.

        Parameters
        ----------
        table
            An array (X, A, X) or (H, X, A, X), or a list with one (X, X) matrix of scipy.sparse
            per action. Duplicate entries are added, and zeros are left out.
        """
        if isinstance(table, cls):
            return table
        if isinstance(table, Sequence) and table and all(map(sparse.issparse, table)):
            return cls._of_matrices(table)
        numbers, problems = as_numbers("table", table, "shape (X, A, X) or (H, X, A, X)")
        dense = np.zeros(0) if numbers is None else np.asarray(numbers)
        if not problems and (dense.ndim not in (3, 4) or dense.shape[-1] != dense.shape[-3]):
            problems = [Problem("table", f"shape {dense.shape}", "shape (X, A, X) or (H, X, A, X)")]
        if problems:
            raise PlanningError("Sparse.of", problems)
        dense = dense[(None,) * (4 - dense.ndim)]
        flat = dense.reshape(-1, dense.shape[-1])
        row, column = np.nonzero(flat)
        number = np.bincount(row, minlength=len(flat))
        return cls(flat[row, column], _pattern(column, number, dense.shape))

    @classmethod
    def _of_matrices(cls, matrices: Sequence[Matrix]) -> Sparse:
        A, (X, _) = len(matrices), matrices[0].shape
        if any(matrix.shape != (X, X) for matrix in matrices):
            got = ", ".join(str(matrix.shape) for matrix in matrices)
            raise PlanningError("Sparse.of", [Problem("table", got, f"shape {(X, X)} of each")])
        entries = [matrix.tocoo() for matrix in matrices]
        row = np.concatenate([each.row.astype(np.int64) * A + a for a, each in enumerate(entries)])
        column = np.concatenate([each.col for each in entries])
        value = np.concatenate([each.data for each in entries]).astype(np.float64)
        joined = sparse.coo_array((value, (row, column)), shape=(X * A, X)).tocsr()
        joined.eliminate_zeros()
        joined.sort_indices()
        number = np.diff(joined.indptr)
        return cls(joined.data, _pattern(joined.indices, number, (1, X, A, X)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense table, (..., H or 1, X, A, X)."""
        return (*self.values.shape[:-1], *self.pattern.shape)

    @property
    def ndim(self) -> int:
        """The number of axes of the dense table."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The type of the probabilities."""
        return self.values.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, place: Any) -> Sparse:
        """The tables of some candidates; steps, states and actions cannot be selected."""
        index = place if isinstance(place, tuple) else (place,)
        if len(index) > self.values.ndim - 1:
            remedy = "Use the methods of POMDP, or .dense()."
            expected = f"an index of at most {self.values.ndim - 1} axes of candidates"
            raise PlanningError("Sparse", [Problem("index", shown(place, 80), expected, remedy)])
        return Sparse(self.values[place], self.pattern)

    def dense(self, subject: str = "Sparse.dense") -> Array:
        """The dense table, (..., H or 1, X, A, X), if it fits into the memory budget."""
        size = int(np.prod(self.shape, dtype=object))
        _, X, A, _ = self.pattern.shape
        got = f"a dense table of {count(X)} states and {count(A)} actions"
        remedy = "Use functions that support sparse tables; see docs/howto/large_models.md."
        require_memory(PlanningError, subject, "transition", got, NUMBER * size, remedy)
        X, batch = self.shape[-1], self.values.shape[:-1]
        place = self.pattern.rows * X + self.pattern.columns
        number = (len(self.pattern.starts) - 1) * X
        if namespace(self.values) is np:
            flat: Any = np.zeros((*batch, number))
            flat[..., place] = self.values
        else:
            flat = jnp.zeros((*batch, number), self.dtype).at[..., place].set(self.values)
        return flat.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.dense(), dtype=dtype)

    @cached_property
    def matrices(self) -> list[Matrix]:
        """T_h of each step as a matrix of scipy.sparse with one row per state and action."""
        steps, X, A, _ = self.pattern.shape
        ends = self.pattern.starts[:: X * A]
        return [
            sparse.csr_array(
                (
                    np.asarray(self.values)[ends[h] : ends[h + 1]],
                    self.pattern.columns[ends[h] : ends[h + 1]],
                    self.pattern.starts[h * X * A : (h + 1) * X * A + 1] - ends[h],
                ),
                shape=(X * A, X),
            )
            for h in range(steps)
        ]

    @cached_property
    def by_action(self) -> list[list[Matrix]]:
        """T_h(x'|x, a) of each step and action as matrices (X, X)."""
        A = self.pattern.shape[2]
        return [[matrix[a::A] for a in range(A)] for matrix in self.matrices]

    def matrix(self, h: int, a: int | None = None) -> Matrix:
        """T_h as a matrix of scipy.sparse: (X, X) for one action, (X A, X) for all actions."""
        step = h if self.pattern.shape[0] > 1 else 0
        return self.matrices[step] if a is None else self.by_action[step][a]

    def onward(self, weights: Array, a: Any, h: Any) -> Array:
        """sum_x b(x) T_h(x' | x, a) of weights (..., X), for all actions (..., A, X) if a is None.

        Can be traced.
        """
        _, X, A, _ = self.pattern.shape
        if namespace(self.values, weights, h) is np and not isinstance(a, jax.Array):
            flat = np.reshape(weights, (-1, X))
            chosen = range(A) if a is None else [int(a)]
            parts = [np.asarray((self.matrix(h, k).T @ flat.T).T) for k in chosen]
            onward: Any = np.stack(parts, axis=-2).reshape(*np.shape(weights)[:-1], len(parts), X)
            return onward if a is None else onward[..., 0, :]
        within, values = self._step(h)
        state, action = within // A, within % A
        columns = jnp.asarray(self.pattern.columns)
        moved = jnp.asarray(weights)[..., state] * values
        onward = jnp.zeros((*moved.shape[:-1], A, X), moved.dtype)
        onward = onward.at[..., action, columns].add(moved)
        return onward if a is None else onward[..., a, :]

    def expect(self, v: Array, h: Any) -> Array:
        """sum_x' T_h(x' | x, a) v(x'), (X, A), for v (X,), or (A, X) by action; can be traced."""
        _, X, A, _ = self.pattern.shape
        if namespace(self.values, v, h) is np:
            if np.ndim(v) == 1:
                return np.asarray(self.matrix(h) @ v).reshape(X, A)
            return np.stack([self.matrix(h, a) @ v[a] for a in range(A)], axis=1)
        within, values = self._step(h)
        columns = jnp.asarray(self.pattern.columns)
        ahead = v[columns] if v.ndim == 1 else v[within % A, columns]
        return jnp.zeros(X * A, values.dtype).at[within].add(values * ahead).reshape(X, A)

    def _step(self, h: Any) -> tuple[Array, Array]:
        """The row (x, a) of each entry, and its value at step h, zero for other steps; traced."""
        steps, X, A, _ = self.pattern.shape
        rows, values = jnp.asarray(self.pattern.rows), jnp.asarray(self.values)
        if steps == 1:
            return rows, values
        return rows % (X * A), jnp.where(rows // (X * A) == h, values, 0.0)

    def row(self, h: Any, x: Any, a: Any) -> tuple[Array, Array]:
        """The next states of one row and their probabilities, padded with zeros; can be traced."""
        xp = namespace(self.values, h, x, a)
        starts, row = xp.asarray(self.pattern.starts), self.pattern._row(h, x, a)
        place = starts[row] + np.arange(self.pattern.longest)
        inside = place < starts[row + 1]
        place = xp.minimum(place, len(self.pattern.columns) - 1)
        chances = xp.where(inside, xp.asarray(self.values)[place], 0.0)
        return xp.asarray(self.pattern.columns)[place], chances

    def draw(self, h: Any, x: Any, a: Any, uniform: Any) -> Any:
        """The next state at a uniform number in [0, 1); can be traced."""
        columns, chances = self.row(h, x, a)
        return columns[choose(chances, uniform)]

    def sums(self) -> Array:
        """The sum of each row, (..., H or 1, X, A)."""
        batch = self.values.shape[:-1]
        flat = np.reshape(np.asarray(self.values), (-1, self.values.shape[-1]))
        number = len(self.pattern.starts) - 1
        sums = [np.bincount(self.pattern.rows, each, minlength=number) for each in flat]
        return np.reshape(sums, (*batch, *self.pattern.shape[:3]))

    def tree_flatten(self) -> tuple[tuple[Array], Pattern]:
        """For JAX."""
        return (self.values,), self.pattern

    @classmethod
    def tree_unflatten(cls, pattern: Pattern, values: tuple[Array]) -> Sparse:
        """For JAX."""
        return cls(values[0], pattern)

    def __repr__(self) -> str:
        steps, X, A, _ = self.pattern.shape
        by_step = f"{steps} steps, " if steps > 1 else ""
        sizes = f"{by_step}{X} states, {A} action{'s' * (A != 1)}"
        return f"Sparse({sizes}, {len(self.pattern.columns):,} entries)"


def absorbing(table: Sparse, ends: Array) -> Sparse:
    """The table with the given states (X,) of booleans absorbing; can be traced."""
    steps, X, A, _ = table.shape
    pattern, states = table.pattern, np.flatnonzero(ends)
    kept = np.flatnonzero(~ends[pattern.rows // A % X])
    row = (np.arange(steps)[:, None, None] * X + states[:, None]) * A + np.arange(A)
    xp = namespace(table.values)
    return Sparse.of_entries(
        np.concatenate([pattern.rows[kept], row.ravel()]),
        np.concatenate([pattern.columns[kept], np.tile(np.repeat(states, A), steps)]),
        xp.concatenate([table.values[kept], xp.ones(row.size)]),
        table.shape,
    )


def as_dense(table: Any, subject: str) -> Array:
    """A table as an array; raises an error that names ``subject`` if it does not fit in memory."""
    dense: Array = table.dense(subject) if isinstance(table, Sparse) else table
    return dense


def stored(table: Any) -> int:
    """The number of numbers that a table stores."""
    kept = table.values if isinstance(table, Sparse) else table
    return int(np.prod(np.shape(kept), dtype=object))


def is_sparse(entries: int, size: int) -> bool:
    """Whether a table of this size with so many non-zeros is stored as a sparse one."""
    return size > LARGE and entries < SHARE * size


def _pattern(columns: Array, number: Array, shape: Any) -> Pattern:
    starts = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
    steps, X, A, Z = map(int, shape)
    return Pattern(np.ascontiguousarray(columns, np.int64), starts, (steps, X, A, Z))


def _summed(values: Array, group: Array, size: int) -> Array:
    """The sum of the values of each group."""
    if namespace(values) is np:
        return np.bincount(group, values, minlength=size)
    return jnp.zeros(size, values.dtype).at[group].add(values)
