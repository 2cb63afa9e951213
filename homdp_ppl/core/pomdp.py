"""POMDP arrays, the planners' whole world, and their validation.

How a declaration becomes such arrays is in kernels.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.spaces import NO_TABLES, Spaces
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

ROW_TOLERANCE = 1e-9  # how far from one a row of probabilities may sum
FLOAT32 = 1e-6  # a smaller error than this betrays numbers made in float32
LISTED_ROWS = 8  # bad rows of one table listed one by one
TIE = 1e-9  # times the horizon: values closer than this tie, and the lowest action wins


class POMDP(NamedTuple):
    """The numbers of a finite-horizon POMDP, all float64; a batch of models has leading axes.

    The first action is taken after the first observation. ``reward`` has one table a step; the
    horizon is its length.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, evaluate, uniform_policy
    >>> stay, swap = np.eye(2), np.eye(2)[::-1]
    >>> lamp = POMDP(
    ...     np.array([0.0, 1.0]),
    ...     np.stack([stay, swap], axis=1),
    ...     np.eye(2),
    ...     np.array([[[0, 0], [1, 1]]] * 3),
    ... )
    >>> lamp.horizon, lamp.spaces.actions
    (3, ('a0', 'a1'))
    >>> evaluate(uniform_policy(lamp), lamp)  # on at first, then on half of the time
    2.0
    """

    initial: Array  # (X,)       rho(x)
    transition: Array  # (X, A, X)  T(x' | x, a)
    emission: Array  # (X, Y)     O(y | x)
    reward: Array  # (H, X, A)  r_h(x, a)

    @property
    def horizon(self) -> int:
        """Number of steps H."""
        return int(self.reward.shape[-3])

    @property
    def spaces(self) -> Spaces:
        """Names for arrays that have none: x0, y0, a0 and so on."""
        sizes = {
            "x": self.emission.shape[-2],
            "y": self.emission.shape[-1],
            "a": self.reward.shape[-1],
        }
        states, observations, actions = (
            tuple(f"{letter}{k}" for k in range(n)) for letter, n in sizes.items()
        )
        return Spaces(states, observations, actions, self.horizon)


def row_problems(where: str, table: Array, spaces: Spaces) -> list[Problem]:
    """Everything wrong with a table of probability rows.

    NaN, negative entries, rows that do not sum to one.

    Parameters
    ----------
    where
        Which table it is: "initial", "transition" or "emission".
    table
        Probabilities; the last axis is the distribution.
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
                spaces.entry(where, index),
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


def numbers_of(model: Any, subject: str) -> POMDP:
    """The arrays that a planner, or whoever is the ``subject``, was handed.

    Refuses other models, and says where theirs are.
    """
    if isinstance(model, POMDP):
        return model
    kind = type(model).__name__
    remedies = {
        "World": "Pass its numbers: world.pomdp.",
        "HOMDP": "Fix its parameters first: model.at(...).pomdp.",
    }
    remedy = remedies.get(kind, "")
    if remedy and not model.spaces.finite:
        kind, remedy = f"{kind} with real-valued spaces", NO_TABLES
    raise PlanningError(
        subject, [Problem("model", f"a {kind}", "a POMDP, which is arrays", remedy)]
    )
