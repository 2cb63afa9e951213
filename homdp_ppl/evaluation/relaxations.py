"""Agents that see more than a policy does: what they would do and reach.

Their values bound those of policies from above.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.precision import Array, namespace

CHUNK = 4_000_000  # numbers held at once while the fast informed bound is backed up
SPARSE, LARGE = (
    0.2,
    10_000,
)  # tables of this size with a smaller share of non-zeros are multiplied as sparse matrices


def mdp_values(pomdp: POMDP) -> Array:
    """Values of an agent that sees the state, (H, X).

    V_h(x) = max_a Q_h(x, a), with Q of :func:`qmdp`.
    """
    return qmdp(pomdp).max(-1)


def qmdp(pomdp: POMDP) -> Array:
    """Q-values of an agent that sees the state from the next step on, (H, X, A); may be traced.

    Q_h(x, a) = r_h(x, a) + sum_x' T(x'|x, a) max_a' Q_{h+1}(x', a').
    """
    xp = namespace(pomdp)
    Q = [pomdp.reward[-1]]
    weight = pomdp.emission.sum(1)  # one, up to rounding
    for reward in pomdp.reward[-2::-1]:
        Q.append(reward + pomdp.transition @ (weight * Q[-1].max(-1)))
    return xp.stack(Q[::-1])


def fast_informed_bound(pomdp: POMDP) -> Array:
    """Vectors of the fast informed bound, (H, X, A).

    A belief b at step h is worth at most max_a sum_x b(x) Q_h(x, a).

    Q_h(x, a) = r_h(x, a) + sum_y max_a' sum_x' T(x'|x, a) O(y|x') Q_{h+1}(x', a'): the agent is
    told x and a one step late (Hauskrecht 2000).
    """
    _, T, O, r = (np.asarray(part, dtype=np.float64) for part in pomdp)  # noqa: E741
    H, X, A = r.shape
    Y = O.shape[1]
    moves = T.reshape(X * A, X)
    if moves.size > LARGE and np.count_nonzero(moves) < SPARSE * moves.size:
        moves = sparse.csr_array(moves)
    rows = max(1, CHUNK // (A * Y))
    chunks = [(start, moves[start : start + rows]) for start in range(0, X * A, rows)]
    Q = r.copy()
    for h in reversed(range(H - 1)):
        following = (Q[h + 1][:, :, None] * O[:, None, :]).reshape(X, A * Y)
        flat = Q[h].reshape(X * A)
        for start, some in chunks:
            hoped = (some @ following).reshape(-1, A, Y)
            flat[start : start + len(hoped)] += hoped.max(1).sum(1)
    return Q


def root_value(pomdp: POMDP, vectors: Array) -> Array:
    """What a set of vectors at step 1 says about the optimum.

    sum_y max_i sum_x rho(x) O(y|x) v_i(x); may be traced.

    The first observation comes before the first action.

    Parameters
    ----------
    pomdp
        The model.
    vectors
        One vector a row, (n, X): ``mdp_values(pomdp)[:1]`` or ``qmdp(pomdp)[0].T`` bound the
        optimum from above, alpha-vectors of policies from below.
    """
    return (vectors @ (pomdp.initial[:, None] * pomdp.emission)).max(0).sum()
