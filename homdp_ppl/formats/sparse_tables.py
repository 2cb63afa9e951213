"""Large tables of transitions that the statements of a .POMDP file fill, without zeros."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from homdp_ppl.core.sparse import Sparse, of_entries, row_sums
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.formats.tables import MAX_WRITTEN, PUBLISHED, Entry, Table, sum_problems
from homdp_ppl.precision import Array

CHUNK = 2_000_000  # numbers in memory at once while rewards are averaged


class SparseTable:
    """Transitions (A, X, X) that statements fill; later entries replace earlier ones.

    Written entries are kept in order, with the time at which a statement last replaced a whole row.

    Parameters
    ----------
    name
        "T".
    sizes
        The full shape.
    path
        The file, for errors.
    """

    def __init__(self, name: str, sizes: tuple[int, ...], path: str) -> None:
        self.name, self.sizes, self.path = name, sizes, path
        self.lines: Array = np.zeros(sizes[:2], dtype=int)  # last line that set each row
        self._row, self._column, self._value = array("q"), array("q"), array("d")
        self._replaced = np.zeros(sizes[0] * sizes[1], dtype=np.int64)  # first entry that counts

    def put(self, entry: Entry, values: Any, line: int) -> None:
        """Write values, which have the shape of the axes that the entry leaves out."""
        A, X, _ = self.sizes
        states = range(X) if len(entry) < 2 or entry[1] is None else [entry[1]]
        for a in range(A) if entry[0] is None else [entry[0]]:
            for x in states:
                self.lines[a, x] = line
                self._put_row(a * X + x, entry[2:], values, x if len(entry) == 1 else None, line)

    def _put_row(self, row: int, last: Entry, values: Any, within: int | None, line: int) -> None:
        """Write one entry of a row, or replace the row, by a row ``within`` the values."""
        if last and last[0] is not None:
            self._extend(row, [last[0]], [float(values)], line)
            return
        self._replaced[row] = len(self._row)
        if within is not None and sparse.issparse(values):
            begin, end = values.indptr[within], values.indptr[within + 1]
            self._extend(row, values.indices[begin:end], values.data[begin:end], line)
            return
        given = values if within is None else values[within]
        full = np.broadcast_to(given, self.sizes[2:])
        columns = np.flatnonzero(full)
        self._extend(row, columns, full[columns], line)

    def _extend(self, row: int, columns: Iterable[int], values: Iterable[float], line: int) -> None:
        before = len(self._column)
        self._column.extend(columns)
        self._value.extend(values)
        self._row.extend([row] * (len(self._column) - before))
        if len(self._row) > MAX_WRITTEN:
            got = f"more than {MAX_WRITTEN:,} numbers written to table {self.name}"
            expected = "statements that overwrite fewer numbers"
            raise HOMDPError(self.path, [Problem(f"line {line}", got, expected)])

    def table(self) -> Sparse:
        """The transitions as (X, A, X), without zeros."""
        A, X, _ = self.sizes
        row, column = (np.frombuffer(part, np.int64) for part in (self._row, self._column))
        value = np.frombuffer(self._value, np.float64)
        kept = np.flatnonzero(np.arange(len(row)) >= self._replaced[row])
        key = row[kept] * X + column[kept]
        # the last entry of each place: np.unique finds the first one in reverse
        _, place = np.unique(key[::-1], return_index=True)
        last = kept[::-1][place]
        last = last[value[last] != 0]
        x, a = row[last] % X, row[last] // X
        return of_entries(x * A + a, column[last], value[last], (1, X, A, X))


def sparse_distributions(
    table: SparseTable, rows: tuple[Sequence[str], Sequence[str]]
) -> tuple[Sparse, list[Problem]]:
    """The rows of a sparse table, normalised, and problems for those that do not sum to one.

    Parameters
    ----------
    table
        T.
    rows
        The names of the actions and the states.
    """
    made = table.table()
    sums = row_sums(made)[0]  # (X, A)
    problems = sum_problems(table, sums.T, rows)
    off = (np.abs(sums - 1) > 1e-9) & (np.abs(sums - 1) <= PUBLISHED)
    scale = np.where(off, sums, 1.0).ravel()
    return Sparse(made.values / scale[made.pattern.rows], made.pattern), problems


def sparse_mean_reward(reward: Table, transition: Sparse, observation: Array) -> Array:
    """The mean of R over next states and observations as (A, X); see ``mean_reward``.

    Parameters
    ----------
    reward
        R.
    transition
        T(s' | s, a).
    observation
        O(o | a, s') as (A, X, Y).
    """
    R = reward.numbers  # (A, X, X, Y), any of them 1
    A, X, Y = observation.shape
    pattern = transition.pattern
    x, a, z = pattern.rows // A, pattern.rows % A, pattern.columns
    if R.shape[2:] == (1, 1):
        return np.broadcast_to(R[..., 0, 0], (A, X))
    mean = np.zeros(len(pattern.starts) - 1)
    for start in range(0, len(z), max(1, CHUNK // Y)):
        some = slice(start, start + max(1, CHUNK // Y))
        place = tuple(
            np.minimum(index[some], size - 1)
            for index, size in zip((a, x, z), R.shape, strict=False)
        )
        seen = (R[place] * observation[a[some], z[some]]).sum(-1)
        if R.shape[3] == 1:
            seen = R[place][:, 0]
        mean += np.bincount(pattern.rows[some], transition.values[some] * seen, minlength=len(mean))
    return np.clip(mean.reshape(X, A).T, R.min((2, 3)), R.max((2, 3)))
