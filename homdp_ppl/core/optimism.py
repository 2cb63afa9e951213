"""What rules add to the recursion of a tree planner: optimistic backups, and caps on values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.core.arguments import refuse, size_problems
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.errors import PlanningError
from homdp_ppl.precision import Array, namespace

SHARES = (0.5, 0.75, 0.9)  # of a deficit, in the search for the best bound

# (parameters, h from 1, alpha_next (A, Y, X)) -> (X, A), without the reward
Backup: TypeAlias = Callable[[Any, int, Array], Array]


class Spread(NamedTuple):
    """How much values can vary from state to state, and how small probabilities can be.

    If the value after an observation is below the mean of ``high``, it is so in the true model too,
    up to the ratio of probabilities in ``least`` and in the model that is planned for.
    """

    high: Array  # (H, X, Y|1)  the largest value of each state
    width: Array  # (H, X, Y|1)  the largest minus the smallest
    least: POMDP  # lower bounds on the entries of T and O; rows may sum to less than 1


class Limits(NamedTuple):
    """Upper bounds on values, for rewards in [0, 1]."""

    caps: Array  # (H, X|1, Y|1, A|1)  on values of states and actions
    spread: Spread | None = None


Caps: TypeAlias = Callable[[Any, int], Limits]  # of parameters and H


def remaining_steps(parameters: Any, horizon: int) -> Limits:
    """Caps of H - h + 1, the number of steps left: no return of rewards in [0, 1] is larger.

    Parameters
    ----------
    parameters
        Not used.
    horizon
        H.

    Examples
    --------
    >>> remaining_steps(None, 3).caps.ravel().tolist()
    [3.0, 2.0, 1.0]
    """
    refuse(PlanningError, "remaining_steps", size_problems(horizon=horizon))
    return Limits(np.arange(horizon, 0, -1.0)[:, None, None, None])


def kept_deficit(joint: Array, least: Array, width: Array, below: Array) -> Array:
    """A lower bound on sum_x w(x) d(x) over w >= ``least`` and deficits d; can be traced.

    The deficits have 0 <= d <= ``width`` and sum_x joint(x) d(x) >= ``below``. This is a fractional
    knapsack; its dual is

        max over lam >= 0 of lam below - sum_x max(lam joint(x) - least(x), 0) width(x).

    Every lam gives a lower bound. Those of ``SHARES`` and the smallest ratio least / joint, for
    which the sum vanishes, are tried.

    Parameters
    ----------
    joint, least, width
        Of shape (..., X).
    below
        Of shape (...).
    """
    xp = namespace(joint, least, width, below)
    possible = joint > 0
    ratio = xp.where(possible, least / xp.where(possible, joint, 1.0), 1.0).min(-1)
    found = xp.maximum(xp.minimum(ratio, 1.0) * below, 0.0)
    for share in SHARES:
        lost = (xp.maximum(share * joint - least, 0.0) * width).sum(-1)
        found = xp.maximum(found, share * below - lost)
    return found
