"""Agents that see the state: what they would do and reach. Their values bound those of policies that do not.

Written for NumPy and for JAX alike.
"""

from __future__ import annotations

from homdp_ppl.pomdp import POMDP
from homdp_ppl.precision import Array, namespace


def mdp_values(pomdp: POMDP) -> Array:
    """Values of an agent that sees the state, (H, X): V_h(x) = max_a Q_h(x, a), with Q of :func:`qmdp`."""
    return qmdp(pomdp).max(-1)


def qmdp(pomdp: POMDP) -> Array:
    """Q-values of an agent that sees the state from the next step on, (H, X, A).

    Q_h(x, a) = r_h(x, a) + sum_x' T(x'|x, a) max_a' Q_{h+1}(x', a').
    """
    xp = namespace(pomdp)
    Q = [pomdp.reward[-1]]
    weight = pomdp.emission.sum(1)  # one, up to rounding
    for reward in pomdp.reward[-2::-1]:
        Q.append(reward + pomdp.transition @ (weight * Q[-1].max(-1)))
    return xp.stack(Q[::-1])


def root_value(pomdp: POMDP, vectors: Array) -> Array:
    """What a set of vectors at step 1 says about the optimum: sum_y max_i sum_x rho(x) O(y|x) v_i(x).

    The first observation comes before the first action.

    Parameters
    ----------
    pomdp
        The model.
    vectors
        One vector a row, (n, X): ``mdp_values(pomdp)[:1]`` or ``qmdp(pomdp)[0].T`` bound the optimum from above, alpha-vectors
        of policies from below.
    """
    return (vectors @ (pomdp.initial[:, None] * pomdp.emission)).max(0).sum()
