"""Rows of probabilities: what is wrong with them, and rows normalised again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array

ROW_TOLERANCE = 1e-9  # how far from one a row of probabilities may sum
FLOAT32 = 1e-6  # a smaller error than this betrays numbers made in float32
LISTED_ROWS = 8  # bad rows of one table listed one by one
LEADING = {
    "initial": (),
    "transition": ("step",),
    "emission": ("step", "previous action"),
}  # axes before those of the short form
RANKS = {"initial": 1, "transition": 3, "emission": 2}  # of the short form


def row_problems(where: str, table: Array, spaces: Spaces) -> list[Problem]:
    """Everything wrong with a table of probability rows.

    NaN, negative entries, rows that do not sum to one.

    Parameters
    ----------
    where
        Which table it is: "initial", "transition" or "emission".
    table
        Probabilities in the short form or in the full ranks of a POMDP; the last axis is the
        distribution.
    spaces
        The model's names, to say which entry it is.
    """
    table = np.asarray(table, dtype=np.float64)
    sums = table.sum(-1)
    error = np.abs(sums - 1)
    rounded = (
        "Normalise the row. Was it made by jnp.array, in float32? Write a list or "
        "np.array, or make it inside homdp_ppl.x64()."
    )
    undefined = (
        "A distribution's parameter outside its domain, a division by zero, or a log of zero?"
    )

    def found(wrong: Array, got: str, expected: str, remedy: str, values: Array) -> list[Problem]:
        return [
            Problem(
                where,
                got.format(values[tuple(index)]),
                expected,
                remedy,
                _place(where, index, table.shape, spaces),
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
            "Does its outcome lie outside the declared names?",
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
            Problem(where, f"{more} more such entries or rows", "probability rows")
        ]
    return problems


def _place(where: str, index: Any, shape: tuple[int, ...], spaces: Spaces) -> str:
    """An entry or a row in words; leading axes of size 1 are left out."""
    leading = LEADING[where] if len(shape) == len(LEADING[where]) + RANKS[where] else ()
    words = []
    for axis, k, n in zip(leading, index, shape, strict=False):
        if n == 1:
            continue
        if axis == "step":
            words.append(f"step {k + 1}")
        else:
            names = (*spaces.actions, "none")
            words.append(f"after {names[k]}")
    return ", ".join([*words, spaces.entry(where, index[len(leading) :])])


def normalised(rows: Array) -> Array:
    """Rows divided by their sums where these are not one within what every declaration allows.

    The others as they are.
    """
    sums = rows.sum(-1, keepdims=True)
    off = (np.abs(sums - 1) > ROW_TOLERANCE) & (sums > 0)
    return np.where(off, rows / np.where(off, sums, 1.0), rows) if off.any() else rows


def pomdp_problems(tables: NamedTuple, spaces: Spaces) -> list[Problem]:
    """Everything wrong with the probabilities of a POMDP, or of tables without rewards."""
    return [
        p
        for where in ("initial", "transition", "emission")
        for p in row_problems(where, getattr(tables, where), spaces)
    ]
