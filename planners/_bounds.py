"""Bounds on the optimal value without search, from agents that observe more or less.

    blind policies  <=  optimum  <=  fast informed bound  <=  QMDP  <=  MDP

Tables may depend on the step, the previous action and the observation. The first observation comes
before the first action, so a set of vectors at step 1 bounds the optimum by sum_y max_i sum_x
rho(x) O(y|x) v_i(x), see :func:`root_value`. The upper bounds are defined in
evaluation/relaxations.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.moves import expect
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.core.sparse import Sparse
from homdp_ppl.evaluation.relaxations import fast_informed_bound, mdp_values, qmdp, root_value
from homdp_ppl.precision import Array


class RootBounds(NamedTuple):
    """Bounds on the optimal value of a model: a lower bound, then upper bounds, tightest first.

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
    """Values of repeating one action until the end, (H, A, X).

    If the reward depends on the observation, so do the values, (H, A, Y, X). Rewards are in [0, 1].
    The values are alpha-vectors of policies, so they are lower bounds.
    """
    rewards = pomdp.reward.transpose(0, 3, 2, 1)  # (H, A, Y|1, X)
    split = pomdp.rewards_by_observation
    alpha = np.array(rewards if split else rewards[:, :, 0], dtype=np.float64, order="C")
    sparse = isinstance(pomdp.transition, Sparse)
    moves: Any = [] if sparse else np.ascontiguousarray(pomdp.transition.transpose(0, 2, 1, 3))
    for h in reversed(range(pomdp.horizon - 1)):
        shows = pomdp.shows_after(h + 1)  # (A|1, X, Y)
        if split:
            later = (shows * alpha[h + 1].swapaxes(1, 2)).sum(-1)  # (A, X)
        else:
            later = shows.sum(-1) * alpha[h + 1]
        if sparse:
            onward = expect(pomdp, np.broadcast_to(later, (pomdp.sizes[2], later.shape[1])), h).T
        else:
            onward = (moves[h if len(moves) > 1 else 0] @ later[:, :, None])[:, :, 0]
        alpha[h] += onward[:, None] if split else onward
    return alpha


@checked
def root_bounds(pomdp: POMDP) -> RootBounds:
    """All four bounds on the optimal value of a model, in the user's units.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> bounds = root_bounds(models.load("tiger").pomdp)
    >>> print(", ".join(f"{name} {bound:.3f}" for name, bound in bounds._asdict().items()))
    blind 3.600, fast_informed 3.800, qmdp 3.900, mdp 4.000
    """
    model = check_pomdp(pomdp, "root_bounds", sparse=True)
    Q = qmdp(model)
    return RootBounds(
        blind=float(root_value(model, model.to_user(blind_policies(model)[0]))),
        fast_informed=float(root_value(model, fast_informed_bound(model)[0].T)),
        qmdp=float(root_value(model, Q[0].T)),
        mdp=float(root_value(model, mdp_values(model)[:1])),
    )
