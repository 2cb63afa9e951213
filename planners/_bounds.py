"""Bounds on the optimal value that need no search.

What a planner with more, or with less, to see would reach.

    blind policies  <=  optimum  <=  fast informed bound  <=  QMDP  <=  MDP

Rewards may differ from step to step. The first observation comes before the first action, so a set
of vectors at step 1 bounds the optimum by sum_y max_i sum_x rho(x) O(y|x) v_i(x):
:func:`root_value`. Those of agents that see more stand in relaxations.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.evaluation.relaxations import fast_informed_bound, qmdp, root_value
from homdp_ppl.precision import Array


class RootBounds(NamedTuple):
    """Bounds on the optimal value of a model; the last three from above, tightest first.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> root_bounds(
    ...     models.load("tiger", horizon=2).pomdp
    ... ).mdp  # who sees the tiger opens the other door twice
    2.0
    """

    blind: float  # the best single action after each first observation, played for ever
    fast_informed: float
    qmdp: float  # the state is seen from the second step on
    mdp: float  # the state is seen from the first step on


def blind_policies(pomdp: POMDP) -> Array:
    """Values of playing one action for ever, (H, A, X).

    Alpha-vectors of policies, so lower bounds. For stationary models.
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
    """All four bounds on the optimal value of a model.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> bounds = root_bounds(models.load("tiger").pomdp)
    >>> print(", ".join(f"{name} {bound:.3f}" for name, bound in bounds._asdict().items()))
    blind 3.600, fast_informed 3.800, qmdp 3.900, mdp 4.000
    """
    Q = qmdp(pomdp)
    return RootBounds(
        blind=float(root_value(pomdp, blind_policies(pomdp)[0])),
        fast_informed=float(root_value(pomdp, fast_informed_bound(pomdp)[0].T)),
        qmdp=float(root_value(pomdp, Q[0].T)),
        mdp=float(root_value(pomdp, Q[:1].max(-1))),
    )
