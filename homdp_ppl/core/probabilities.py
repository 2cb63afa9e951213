"""Validation and normalisation of rows of probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.hindsight_form import HINDSIGHT, LABEL, LAST
from homdp_ppl.core.spaces import Spaces, kernel_of, names_of
from homdp_ppl.core.sparse import Sparse, row_sums
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array

ROW_TOLERANCE = 1e-9  # largest allowed difference between 1 and the sum of a row
FLOAT32 = 1e-6  # smaller differences are probably rounding errors of float32
LISTED_ROWS = 8  # invalid rows of one table that are reported individually
LEADING = {
    "initial": (),
    "transition": ("step",),
    "emission": ("step", "previous action"),
}  # axes before those of the short form
RANKS = {"initial": 1, "transition": 3, "emission": 2}  # of the short form


def row_problems(where: str, table: Array | Sparse, spaces: Spaces) -> list[Problem]:
    """Report all problems of a table of probabilities: NaN, negative entries, wrong sums.

    Parameters
    ----------
    where
        The name of the table: "initial", "transition" or "emission".
    table
        Probabilities in short form or in the full ranks of a POMDP; each row along the last axis
        is a distribution.
    spaces
        The names of the model, which describe the entries.
    """
    if isinstance(table, Sparse):
        return _sparse_problems(where, table, spaces)
    table = np.asarray(table, dtype=np.float64)
    sums = table.sum(-1)
    error = np.abs(sums - 1)
    rounded = (
        "Normalise the row. If it was made by jnp.array in float32, use a list or np.array, "
        "or create it inside homdp_ppl.x64()."
    )
    undefined = (
        "Check for parameters outside of a distribution's domain, divisions by zero and "
        "logarithms of zero."
    )

    def found(wrong: Array, got: str, expected: str, remedy: str, values: Array) -> list[Problem]:
        return [
            Problem(
                where,
                got.format(values[tuple(index)]),
                expected,
                remedy,
                entry_name(where, index, table.shape, spaces),
            )
            for index in np.argwhere(wrong)
        ]

    problems = [
        *found(np.isnan(sums), "a row with nan", "probabilities", undefined, sums),
        *found(
            table < 0,
            "{:.6g}",
            "a probability in [0, 1]",
            "Probabilities cannot be negative.",
            table,
        ),
        *found(
            sums == 0,
            "a row that sums to 0",
            "a sum of 1",
            "Check that its outcomes are among the declared names.",
            sums,
        ),
        *found(
            (error > FLOAT32) & (sums != 0),
            "a row that sums to {:.10g}",
            "a sum of 1",
            "Normalise the row.",
            sums,
        ),
        *found(
            (error > ROW_TOLERANCE) & (error <= FLOAT32),
            "a row that sums to {:.10g}",
            "a sum of 1",
            rounded,
            sums,
        ),
    ]
    more = len(problems) - LISTED_ROWS
    if more > 0:
        problems[LISTED_ROWS:] = [
            Problem(where, f"{more} more invalid entries or rows", "rows of probabilities")
        ]
    return problems


def _sparse_problems(where: str, table: Sparse, spaces: Spaces) -> list[Problem]:
    """Report the invalid rows of a sparse table, each of them as a dense row."""
    pattern, problems = table.pattern, list[Problem]()
    sums, values = row_sums(table).ravel(), np.asarray(table.values)
    wrong = ~(np.abs(sums - 1) <= ROW_TOLERANCE)
    wrong[pattern.rows[~(values >= 0)]] = True
    for row in np.flatnonzero(wrong)[:LISTED_ROWS]:
        entries = slice(pattern.starts[row], pattern.starts[row + 1])
        dense = np.zeros(pattern.shape[3])
        dense[pattern.columns[entries]] = values[entries]
        index = np.array(np.unravel_index(row, pattern.shape[:3]))
        at = entry_name(where, index, pattern.shape, spaces)
        found = row_problems(where, dense[None, None, None], spaces)
        problems += [problem._replace(at=at) for problem in found]
    more = int(wrong.sum()) - LISTED_ROWS
    if more > 0:
        problems.append(Problem(where, f"{more} more invalid rows", "rows of probabilities"))
    return problems


def entry_name(where: str, index: Any, shape: tuple[int, ...], spaces: Spaces) -> str:
    """Describe an entry or a row of a table; leading axes of size 1 are omitted.

    Parameters
    ----------
    where
        The name of the table: "initial", "transition", "emission", that of a sensor, or "reward".
    index
        The index of the entry or the row.
    shape
        The shape of the table, in a short form or in the full ranks of a POMDP.
    spaces
        The names of the model.
    """
    if where == "reward":
        return reward_entry(tuple(index), shape, spaces)
    if where in HINDSIGHT:
        return _hindsight_entry(where, tuple(index), shape, spaces)
    kernel = kernel_of(where)
    extra = len(shape) - RANKS[kernel]
    leading = LEADING[kernel][len(LEADING[kernel]) - extra :]
    words = []
    for axis, k, n in zip(leading, index, shape, strict=False):
        if n == 1:
            continue
        if axis == "step":
            words.append(f"step {k + 1}")
        else:
            first = k == len(spaces.actions)
            words.append("before any action" if first else f"after {spaces.actions[k]}")
    return ", ".join([*words, spaces.entry(where, index[len(leading) :])])


def reward_entry(index: tuple[int, ...], shape: tuple[int, ...], spaces: Spaces) -> str:
    """The names of a row of a table whose first axes are (H|1, X, Y|1, A)."""
    h, x, y, a = index[:4]
    steps = (f"step {h + 1}",) if shape[0] > 1 else ()
    seen = (names_of(spaces.observations)[y],) if shape[2] > 1 else ()
    return ", ".join((*steps, names_of(spaces.states)[x], *seen, spaces.actions[a]))


def _hindsight_entry(
    where: str, index: tuple[int, ...], shape: tuple[int, ...], spaces: Spaces
) -> str:
    """The names of a row of a table of labels or of the mechanism."""
    X, Y, A = names_of(spaces.states), names_of(spaces.observations), spaces.actions
    if where == LABEL:
        return ", ".join((X[index[0]], *(f"label {z}" for z in index[1:])))
    end = where == LAST
    words = ["after the last action"] if end else []
    axes = zip(index[: 2 if end else 4], shape, (None, X, Y, A), strict=False)
    for k, size, names in axes:
        if size > 1:
            words.append(f"step {k + 1}" if names is None else names[k])
    return ", ".join(words)


def normalised(rows: Array) -> Array:
    """Divide rows by their sums if these differ from 1 by more than ROW_TOLERANCE.

    Other rows are unchanged.
    """
    sums = rows.sum(-1, keepdims=True)
    off = (np.abs(sums - 1) > ROW_TOLERANCE) & (sums > 0)
    return np.where(off, rows / np.where(off, sums, 1.0), rows) if off.any() else rows


def pomdp_problems(tables: NamedTuple, spaces: Spaces) -> list[Problem]:
    """Report all invalid probabilities of a POMDP, or of tables without rewards."""
    return [
        p
        for where in ("initial", "transition", "emission")
        for p in row_problems(where, getattr(tables, where), spaces)
    ]
