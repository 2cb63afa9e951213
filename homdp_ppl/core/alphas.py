"""Alpha-vectors of a policy's graph (appendix B of the paper).

What each node is worth in each state.
"""

from __future__ import annotations

import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy, check_policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.precision import Array

CHUNK = 2_000_000  # numbers held at once while alpha-vectors are backed up


def layers(policy: GraphPolicy, horizon: int) -> list[Array]:
    """The nodes that can be met at each step, sorted, whatever is observed.

    Only actions of positive probability are followed.
    """
    nodes = np.unique(policy.start)
    found = [nodes]
    for _ in range(horizon - 1):
        if policy.successor.shape[1] == 1:
            following = policy.successor[nodes]
        else:
            taken = policy.probabilities[nodes] > 0
            following = policy.successor[nodes][taken]
        nodes = np.unique(following)
        found.append(nodes)
    return found


def policy_alphas(policy: GraphPolicy, pomdp: POMDP) -> list[Array]:
    """The alpha-vectors of a policy.

    For each step an array (nodes of that step in the order of :func:`layers`, X).

    alpha_h(x) = sum_a pi(a) [r_h(x, a) + sum_x' T(x'|x, a) sum_y O(y|x') alpha'_{h+1}(x')], alpha'
    the vector of the node that a and y lead to, alpha_{H+1} = 0. The value of a node under a belief
    b is b . alpha.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP(
    ...     np.array([0.0, 1.0]),
    ...     np.array([[[1, 0]], [[0.5, 0.5]]]),
    ...     np.eye(2),
    ...     np.array([[[0], [1]]] * 2),
    ... )
    >>> [
    ...     alpha.tolist() for alpha in policy_alphas(uniform_policy(lamp), lamp)
    ... ]  # one node a step; lit now, half a chance later
    [[[0.0, 1.5]], [[0.0, 1.0]]]
    """
    check_policy(policy, pomdp)
    by_step = layers(policy, pomdp.horizon)
    X, A, _ = pomdp.transition.shape
    Y = pomdp.emission.shape[1]
    alphas: list[Array] = [np.zeros(0)] * len(by_step)
    for h in reversed(range(pomdp.horizon)):
        nodes = by_step[h]
        alpha = policy.probabilities[nodes] @ pomdp.reward[h].T  # (N, X)
        if h + 1 < pomdp.horizon:
            later, following = by_step[h + 1], alphas[h + 1]
            step = max(1, CHUNK // (A * Y * X))
            for start in range(0, len(nodes), step):
                some = nodes[start : start + step]
                alpha[start : start + step] += _continue(policy, pomdp, some, later, following)
        alphas[h] = alpha
    return alphas


def _continue(
    policy: GraphPolicy, pomdp: POMDP, nodes: Array, later: Array, following: Array
) -> Array:
    """Expected alpha-vectors of the next step, (nodes, X)."""
    onward = np.zeros((len(nodes), pomdp.transition.shape[0]))
    for action in range(pomdp.transition.shape[1]):
        chance = policy.probabilities[nodes, action]
        taken = np.flatnonzero(chance > 0)
        if len(taken) == 0:
            continue
        column = 0 if policy.successor.shape[1] == 1 else action
        places = np.searchsorted(later, policy.successor[nodes[taken], column])  # (n, Y)
        hoped = np.einsum(
            "nyx,xy->nx", following[places], pomdp.emission
        )  # sum_y O(y|x') alpha(x')
        onward[taken] += chance[taken, None] * (hoped @ pomdp.transition[:, action].T)
    return onward
