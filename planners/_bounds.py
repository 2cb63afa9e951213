"""Bounds of the optimal value without search, from agents that observe more or less.

    blind policies  <=  optimum  <=  fast informed bound  <=  QMDP  <=  MDP

Rewards may depend on the step. The first observation comes before the first action, so a set of
vectors at step 1 bounds the optimum by sum_y max_i sum_x rho(x) O(y|x) v_i(x), see
:func:`root_value`. The upper bounds are defined in evaluation/relaxations.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.evaluation.relaxations import fast_informed_bound, qmdp, root_value
from homdp_ppl.precision import Array


class RootBounds(NamedTuple):
    """Bounds of the optimal value of a model: a lower bound, then upper bounds, tightest first.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> root_bounds(
    ...     models.load("tiger", horizon=2).pomdp
    ... ).mdp  # an agent that sees the tiger opens the other door twice
    2.0
    """

    blind: float  # the best action after each first observation, repeated until the end
    fast_informed: float
    qmdp: float  # the state is observed from the second step on
    mdp: float  # the state is observed from the first step on


def blind_policies(pomdp: POMDP) -> Array:
    """Values of repeating one action until the end, (H, A, X), for stationary models.

    Rewards are in [0, 1]. They are alpha-vectors of policies, so they are lower bounds.
    """
    short = pomdp.stationary("blind_policies")
    _, T, O, r = (np.asarray(part, dtype=np.float64) for part in short)  # noqa: E741
    alpha = np.array(r.transpose(0, 2, 1), order="C")
    moves = np.ascontiguousarray(T.transpose(1, 0, 2))  # (A, X, X)
    for h in reversed(range(len(r) - 1)):
        alpha[h] += (moves @ (O.sum(1) * alpha[h + 1])[:, :, None])[:, :, 0]
    return alpha


@checked
def root_bounds(pomdp: POMDP) -> RootBounds:
    """All four bounds of the optimal value of a model, in the user's units.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> bounds = root_bounds(models.load("tiger").pomdp)
    >>> print(", ".join(f"{name} {bound:.3f}" for name, bound in bounds._asdict().items()))
    blind 3.600, fast_informed 3.800, qmdp 3.900, mdp 4.000
    """
    Q = qmdp(pomdp)
    return RootBounds(
        blind=float(root_value(pomdp, pomdp.to_user(blind_policies(pomdp)[0]))),
        fast_informed=float(root_value(pomdp, fast_informed_bound(pomdp)[0].T)),
        qmdp=float(root_value(pomdp, Q[0].T)),
        mdp=float(root_value(pomdp, Q[:1].max(-1))),
    )
