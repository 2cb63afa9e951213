"""Alpha-vectors of a policy graph: the value of each node in each state (appendix B)."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy, check_policy
from homdp_ppl.core.moves import matrix
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.errors import PlanningError, PolicyError, Problem, with_article
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

CHUNK = 2_000_000  # numbers in memory at once during a backup


def layers(policy: GraphPolicy, horizon: int) -> list[Array]:
    """The nodes that can be reached at each step under any observations, sorted.

    Only actions of positive probability are followed.
    """
    nodes = np.unique(policy.start)
    found: list[Array] = [nodes]
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
    """The alpha-vectors of a policy: one array (nodes, X) per step.

    Nodes are in the order of :func:`layers`. The vectors satisfy
    alpha_h(x) = sum_a pi(a) [r_h(x, a) + sum_x' T_h(x'|x, a) sum_y O_{h+1}(y|x', a)
    alpha'_{h+1}(x')], where alpha' is the vector of the node that a and y lead to, and
    alpha_{H+1} = 0. The value of a node under a belief b is b . alpha. If the reward depends on the
    observation, there is one vector per observation: arrays (nodes, Y, X). Rewards and vectors are
    in the user's units.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP.of(
    ...     [0, 1], [[[1, 0]], [[0.5, 0.5]]], emission=np.eye(2), reward=[[0], [1]], horizon=2
    ... )
    >>> [
    ...     alpha.tolist() for alpha in policy_alphas(uniform_policy(lamp), lamp)
    ... ]  # one node per step; the lamp is lit now, and with probability 1/2 later
    [[[0.0, 1.5]], [[0.0, 1.0]]]
    """
    pomdp = check_pomdp(pomdp, "policy_alphas", sparse=True)
    check_policy(policy, pomdp.spaces)
    if not isinstance(policy, GraphPolicy):
        remedy = "Convert it: GraphPolicy.from_policy(policy, model)."
        problem = Problem("policy", with_article(type(policy).__name__), "a GraphPolicy", remedy)
        raise PolicyError("policy_alphas", [problem])
    alphas = alphas_of(policy, pomdp)
    return [pomdp.to_user(alpha, pomdp.horizon - h) for h, alpha in enumerate(alphas)]


def alphas_of(policy: GraphPolicy, pomdp: POMDP, by_step: list[Array] | None = None) -> list[Array]:
    """Like :func:`policy_alphas` with rewards in [0, 1], for a validated policy and model.

    ``by_step`` are the nodes of each step, if more than those of :func:`layers` are needed. They
    must contain the nodes that the policy leads to from those of the step before.
    """
    by_step = layers(policy, pomdp.horizon) if by_step is None else by_step
    X, Y, A = pomdp.sizes
    nodes, width = sum(map(len, by_step)), X * Y if pomdp.rewards_by_observation else X
    got = f"a policy of {count(nodes)} nodes with {count(width)} numbers each"
    remedy = "Use a shorter horizon, or a policy with fewer nodes."
    require_memory(PlanningError, "policy_alphas", "policy", got, NUMBER * nodes * width, remedy)
    alphas: list[Array] = [np.zeros(0)] * len(by_step)
    moves: list[Any] = []
    for h in reversed(range(pomdp.horizon)):
        here = by_step[h]
        if h + 1 < pomdp.horizon and (not moves or len(pomdp.transition) > 1):
            moves = [matrix(pomdp, h, a) for a in range(A)]
        alpha = _rewards(policy.probabilities[here], pomdp, h)  # (N, X) or (N, Y, X)
        if h + 1 < pomdp.horizon:
            later, following = by_step[h + 1], alphas[h + 1]
            step = max(1, CHUNK // (A * Y * X))
            for start in range(0, len(here), step):
                some = here[start : start + step]
                onward = _continue(policy, pomdp, h, moves, some, (later, following))
                alpha[start : start + step] += onward if alpha.ndim == 2 else onward[:, None]
        alphas[h] = alpha
    return alphas


def after_observations(alphas: Array, places: Array) -> Array:
    """The vector of node places[..., y] after observation y, (..., Y, X)."""
    if alphas.ndim == 2:
        return alphas[places]
    return alphas[places, np.arange(places.shape[-1])]


def _rewards(chances: Array, pomdp: POMDP, h: int) -> Array:
    """sum_a pi(a) r_h(x, y, a), (N, X), or (N, Y, X) if it depends on the observation."""
    rewards = pomdp.rewards(h)
    if not pomdp.rewards_by_observation:
        return chances @ rewards[:, 0].T
    return np.einsum("na,xya->nyx", chances, rewards)


def _continue(
    policy: GraphPolicy,
    pomdp: POMDP,
    h: int,
    moves: list[Any],
    nodes: Array,
    next_step: tuple[Array, Array],
) -> Array:
    """Expected alpha-vectors of the next step, (nodes, X).

    ``moves`` are the transitions of each action, ``next_step`` the nodes of the next step and their
    vectors.
    """
    X, _, A = pomdp.sizes
    later, following = next_step
    onward = np.zeros((len(nodes), X))
    for action in range(A):
        chance = policy.probabilities[nodes, action]
        taken = np.flatnonzero(chance > 0)
        if len(taken) == 0:
            continue
        column = 0 if policy.successor.shape[1] == 1 else action
        places = np.searchsorted(later, policy.successor[nodes[taken], column])  # (n, Y)
        hoped = np.einsum(
            "nyx,xy->nx", after_observations(following, places), pomdp.shows(h + 1, action)
        )  # sum_y O(y|x', a) alpha(x')
        onward[taken] += chance[taken, None] * (hoped @ moves[action].T)
    return onward
