"""Sparse transition tables: the possible next states of each row and their probabilities, by rows.

The places of the entries are static, so that JAX traces the probabilities only. Cost and memory
are proportional to the number of stored entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.errors import PlanningError, Problem, TracedError, shown
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array, namespace

SHARE, LARGE = 0.2, 1_000_000  # larger tables with a smaller share of non-zeros become sparse
AXES = "(X, A, K) or (H, X, A, K): the next states of each row, -1 for none"
Matrix: TypeAlias = Any  # scipy.sparse.csr_array


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
        given, wrong = as_numbers("columns", columns, f"shape {AXES}")
        known = given is not None and not isinstance(given, jax.core.Tracer)
        places = np.asarray(given) if known else np.zeros(0)
        whole = places.ndim in (3, 4) and 0 not in places.shape and (places % 1 == 0).all()
        if wrong or not whole:
            problems = wrong or [
                Problem("columns", shown(columns, 80), f"integers of shape {AXES}")
            ]
        elif table is not None and table.shape != places.shape:
            got = f"shape {table.shape}"
            problems += [Problem("probabilities", got, f"shape {places.shape}, as the columns")]
        elif places.max() >= places.shape[-3] or places.min() < -1:
            states = f"states in 0..{places.shape[-3] - 1}, or -1 for none"
            problems = [Problem("columns", f"{places.min()}..{places.max()}", states)]
        if table is None or problems:
            raise PlanningError("Sparse.rows", problems)
        places = places[(None,) * (4 - places.ndim)].astype(np.int64)
        row = np.repeat(np.arange(np.prod(places.shape[:3])), places.shape[3])
        kept = np.flatnonzero(places.ravel() >= 0)
        shape = (*places.shape[:3], places.shape[1])
        values = table.reshape(-1)[kept]
        _require_finite("Sparse.rows", "probabilities", values)
        return of_entries(row[kept], places.ravel()[kept], values, shape)

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
        if isinstance(table, jax.core.Tracer):
            remedy = "Use Sparse.rows, whose probabilities may be traced."
            got = "traced JAX values"
            raise TracedError("Sparse.of", [Problem("table", got, "numbers", remedy)])
        numbers, problems = as_numbers("table", table, "shape (X, A, X) or (H, X, A, X)")
        dense = np.zeros(0) if numbers is None else np.asarray(numbers)
        if not problems and (dense.ndim not in (3, 4) or dense.shape[-1] != dense.shape[-3]):
            problems = [Problem("table", f"shape {dense.shape}", "shape (X, A, X) or (H, X, A, X)")]
        if problems:
            raise PlanningError("Sparse.of", problems)
        _require_finite("Sparse.of", "table", dense)
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
        _require_finite("Sparse.of", "table", value)
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
        values, columns, starts = np.asarray(self.values), self.pattern.columns, self.pattern.starts
        parts = [
            (
                values[ends[h] : ends[h + 1]],
                columns[ends[h] : ends[h + 1]],
                starts[h * X * A : (h + 1) * X * A + 1] - ends[h],
            )
            for h in range(steps)
        ]
        return [sparse.csr_array(part, shape=(X * A, X)) for part in parts]

    @cached_property
    def by_action(self) -> list[list[Matrix]]:
        """T_h(x'|x, a) of each step and action as matrices (X, X)."""
        A = self.pattern.shape[2]
        return [[matrix[a::A] for a in range(A)] for matrix in self.matrices]

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


def of_entries(row: Array, column: Array, values: Array, shape: tuple[int, ...]) -> Sparse:
    """A table of a full shape from entries in any order; duplicates are added.

    Rows are numbered by step, state and action. Values may be traced.
    """
    steps, X, A, _ = shape
    key, group = np.unique(np.asarray(row) * X + column, return_inverse=True)
    number = np.bincount(key // X, minlength=steps * X * A)
    return Sparse(_summed(values, group, len(key)), _pattern(key % X, number, shape))


def absorbing(table: Sparse, ends: Array) -> Sparse:
    """The table with the given states (X,) of booleans absorbing; can be traced."""
    steps, X, A, _ = table.shape
    pattern, states = table.pattern, np.flatnonzero(ends)
    kept = np.flatnonzero(~ends[pattern.rows // A % X])
    row = (np.arange(steps)[:, None, None] * X + states[:, None]) * A + np.arange(A)
    xp = namespace(table.values)
    return of_entries(
        np.concatenate([pattern.rows[kept], row.ravel()]),
        np.concatenate([pattern.columns[kept], np.tile(np.repeat(states, A), steps)]),
        xp.concatenate([table.values[kept], xp.ones(row.size)]),
        table.shape,
    )


def values_of(table: Any, pattern: Pattern) -> Array:
    """The values (..., N) of the entries of a pattern in a table of full shape."""
    if isinstance(table, Sparse) and table.pattern == pattern:
        return table.values
    dense = as_dense(table, "Sparse")
    flat: Array = dense.reshape(*dense.shape[:-4], -1)
    return flat[..., pattern.rows * pattern.shape[3] + pattern.columns]


def row_sums(table: Sparse) -> Array:
    """The sum of each row, (..., H or 1, X, A)."""
    batch = table.values.shape[:-1]
    flat = np.reshape(np.asarray(table.values), (-1, table.values.shape[-1]))
    number = len(table.pattern.starts) - 1
    sums = [np.bincount(table.pattern.rows, each, minlength=number) for each in flat]
    return np.reshape(sums, (*batch, *table.pattern.shape[:3]))


def as_dense(table: Any, subject: str) -> Array:
    """A table as an array; raises an error that names ``subject`` if it does not fit in memory."""
    dense: Array = table.dense(subject) if isinstance(table, Sparse) else table
    return dense


def chosen(table: Sparse) -> Any:
    """The table as it is if it is large and most of its entries are zero, else as an array.

    The array has no step axis if there is one step. Can be traced.
    """
    if is_sparse(len(table.pattern.columns), int(np.prod(table.pattern.shape, dtype=object))):
        return table
    dense = table.dense("Sparse")
    return dense if len(dense) > 1 else dense[0]


def stored(table: Any) -> int:
    """The number of numbers that a table stores."""
    kept = table.values if isinstance(table, Sparse) else table
    return int(np.prod(np.shape(kept), dtype=object))


def is_sparse(entries: int, size: int) -> bool:
    """Whether a table of this size with so many non-zeros is stored as a sparse one."""
    return size > LARGE and entries < SHARE * size


def _require_finite(subject: str, where: str, values: Array) -> None:
    """Raise an error for NaN and infinity, unless the values are traced."""
    if not isinstance(values, jax.core.Tracer) and not np.isfinite(np.asarray(values)).all():
        problem = Problem(where, "entries that are NaN or infinite", "probabilities")
        raise PlanningError(subject, [problem])


def _pattern(columns: Array, number: Array, shape: Any) -> Pattern:
    starts = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
    steps, X, A, Z = map(int, shape)
    return Pattern(np.ascontiguousarray(columns, np.int64), starts, (steps, X, A, Z))


def _summed(values: Array, group: Array, size: int) -> Array:
    """The sum of the values of each group."""
    if namespace(values) is np:
        return np.bincount(group, values, minlength=size)
    return jnp.zeros(size, values.dtype).at[group].add(values)
