"""Tables that the statements of a .POMDP file fill, with wildcards.

Later entries replace earlier ones, and rows must sum to one. Sizes are checked before anything is
allocated.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol, TypeAlias

import numpy as np

from homdp_ppl.core.probabilities import LISTED_ROWS, normalised
from homdp_ppl.declare.sizes import PROBED, SMALLER
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.memory import require_memory
from homdp_ppl.precision import Array

Entry: TypeAlias = Sequence[
    int | None
]  # one index per axis, None for all indices; missing axes are given in full

# numbers that all statements of a file may write together: wildcards write many with few words
MAX_WRITTEN = 400_000_000
PUBLISHED = 1e-5  # tolerance for the sum of a row in a file: published files have few digits


class Table:
    """A table that statements fill; entries that are not given are zero.

    An axis has length one as long as no statement distinguishes entries along it. So ``R: * : * : *
    : * 1`` is stored as one number.

    Parameters
    ----------
    name
        "T", "O" or "R".
    sizes
        The full shape.
    path
        The file, for errors.
    """

    def __init__(self, name: str, sizes: tuple[int, ...], path: str) -> None:
        self.name = name
        self.sizes = sizes
        self.path = path
        self.numbers: Array = np.zeros((1,) * len(sizes))
        self.lines: Array = np.zeros(sizes[:2], dtype=int)  # last line that set each row
        self.written = 0

    def put(self, entry: Entry, values: Array, line: int) -> None:
        """Write values, which have the shape of the axes that the entry leaves out."""
        rest = len(self.sizes) - len(entry)
        distinct = (*(index is not None for index in entry), *(True,) * rest)
        shape = tuple(
            n if expand else have
            for n, have, expand in zip(self.sizes, self.numbers.shape, distinct, strict=True)
        )
        check_size(f"line {line}", f"table {self.name}", shape, self.path)
        if shape != self.numbers.shape:
            self.numbers = np.broadcast_to(self.numbers, shape).copy()
        place = tuple(slice(None) if index is None else index for index in entry)
        self.written += self.numbers[place].size
        if self.written > MAX_WRITTEN:
            got = (
                f"more than {MAX_WRITTEN:,} numbers written to table {self.name}, "
                f"including those from wildcards"
            )
            raise HOMDPError(
                self.path,
                [Problem(f"line {line}", got, "statements that overwrite fewer numbers")],
            )
        self.numbers[place] = values
        self.lines[place[:2]] = line

    def full(self) -> Array:
        """The table in its full shape. The caller must check the size first."""
        return np.broadcast_to(self.numbers, self.sizes)


def check_size(where: str, what: str, shape: Sequence[int], path: str, each: int = PROBED) -> None:
    """Raise :class:`HOMDPError` for a table that does not fit in memory, before it is created."""
    numbers = prod(shape)
    got = f"{' x '.join(map(str, shape))} = {numbers:,} numbers in {what}"
    require_memory(HOMDPError, path, where, got, each * numbers, SMALLER)


def distributions(
    table: Table, rows: tuple[Sequence[str], Sequence[str]]
) -> tuple[Array, list[Problem]]:
    """Probability rows, and problems for those that do not sum to one.

    Rows are normalised, since files have few digits.

    Parameters
    ----------
    table
        T or O; its last axis is the distribution.
    rows
        The names along the other two axes.
    """
    full = table.full()
    return normalised(full), sum_problems(table, full.sum(-1), rows)


class Rows(Protocol):
    """A table whose rows are distributions, and the last line that set each of them."""

    name: str
    lines: Array


def sum_problems(
    table: Rows, sums: Array, rows: tuple[Sequence[str], Sequence[str]]
) -> list[Problem]:
    """Problems for rows that do not sum to one, with their lines.

    Parameters
    ----------
    table
        T or O.
    sums
        The sum of each row.
    rows
        The names along the first two axes.
    """
    bad = np.argwhere(np.abs(sums - 1) > PUBLISHED)
    first = {
        table.lines[i, j] or (i, j): (i, j) for i, j in bad[::-1]
    }  # a line for all actions may set several rows
    wrong, problems = sorted(first.values()), []
    for i, j in wrong[:LISTED_ROWS]:
        row = f"{table.name}: {rows[0][i]} : {rows[1][j]}"
        line = table.lines[i, j]
        got = f"a row that sums to {sums[i, j]:.10g}" if line else "no probabilities"
        problems.append(
            Problem(f"line {line}, {row}" if line else row, got, "a row that sums to 1")
        )
    if len(wrong) > LISTED_ROWS:
        problems.append(
            Problem(table.name, f"{len(wrong) - LISTED_ROWS} more such rows", "rows that sum to 1")
        )
    return problems


def mean_reward(reward: Table, transition: Array, observation: Array) -> Array:
    """sum_{s', o} T(s' | s, a) O(o | a, s') R(a, s, s', o) as (A, X).

    If R depends neither on s' nor on o, the result is exactly R.

    Parameters
    ----------
    reward
        R.
    transition
        T(s' | s, a) as (A, X, X).
    observation
        O(o | a, s') as (A, X, Y).
    """
    R = reward.numbers  # (A, X, X, Y), any of them 1
    A, X, _ = transition.shape
    if R.shape[3] == 1:
        seen = R[..., 0]
    elif R.shape[2] == 1:
        seen = R[:, :, 0] @ np.swapaxes(observation, 1, 2)
    else:
        seen = np.einsum("azo,aszo->asz", observation, np.broadcast_to(R, (A, *R.shape[1:])))
    if seen.shape[2] == 1:
        moved = np.broadcast_to(seen[..., 0], (A, X))
    else:
        moved = np.einsum("asz,asz->as", transition, np.broadcast_to(seen, transition.shape))
    return np.clip(moved, R.min((2, 3)), R.max((2, 3)))  # against rounding errors
