"""What can be had without memory: the best policy that acts on the latest observation alone, and the best that acts on none.

    best blind (knows the step)  <=  best memoryless (and the latest observation)  <=  optimum (and all that came before)

Where the three are close, partial observability does not matter. Finding the first two is a search over policies, exact but
exponential at worst: for small models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation import evaluate
from homdp_ppl.policy import GraphPolicy
from homdp_ppl.pomdp import POMDP
from homdp_ppl.precision import Array
from homdp_ppl.relaxations import fast_informed_bound

MAX_NODES = 200_000
STARTS = 32  # random rules from which good ones are sought before the search
TIE = 1e-9  # times the horizon: what a search does not tell apart


class Restricted(NamedTuple):
    """The best policy of a restricted class; no other of the class is better by more than 1e-9 H."""

    value: float  # exact
    policy: GraphPolicy


def best_blind(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best sequence of actions fixed in advance: the policy knows the step and looks at nothing.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        How many unfinished policies may be left side by side; a search with more is given up with a :class:`PlanningError`.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger").pomdp
    >>> round(best_blind(tiger).value, 4)  # listens for ever
    3.6
    """
    unseen = pomdp._replace(emission=np.ones((len(pomdp.initial), 1)))
    return _restricted(_best_rules("best_blind", unseen, max_nodes), pomdp)


def best_memoryless(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best policy that acts on the step and the latest observation.

    A value is linear in the action probabilities at each (step, observation), so random actions would gain nothing: the best
    deterministic policy is best of all.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        How many unfinished policies may be left side by side; a search with more is given up with a :class:`PlanningError`.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger").pomdp
    >>> round(best_memoryless(tiger).value, 4), round(history_tree()(tiger).value, 4)  # one growl is not enough
    (3.6, 3.7038)
    """
    return _restricted(_best_rules("best_memoryless", pomdp, max_nodes), pomdp)


def _restricted(rules: Array, pomdp: POMDP) -> Restricted:
    """The policy that does rules[h, y], (H, Y), or rules[h, 0] whatever is seen, (H, 1)."""
    (H, n), (Y, A) = rules.shape, (pomdp.emission.shape[1], pomdp.transition.shape[1])
    seen = np.arange(Y) % n
    following = np.minimum(np.arange(H) + 1, H - 1).repeat(n)[:, None] * n + seen  # (H n, Y)
    policy = GraphPolicy(seen, np.eye(A)[rules.ravel()], following[:, None])
    return Restricted(evaluate(policy, pomdp), policy)


def _best_rules(subject: str, pomdp: POMDP, max_nodes: int) -> Array:
    """The best rules, (H, Y), by branch and bound: steps forward, at each step one observation after the other.

    A policy without memory leads from P(x_h) to P(x_{h+1}), and that is all its past has to say about its future. An unfinished
    policy is worth at most its rewards so far and the fast informed bound from there on. That bound is sublinear, so the parts
    of P(x_{h+1}) that come from different observations may be bounded one by one.
    """
    tables = POMDP(*(np.asarray(part, dtype=np.float64) for part in pomdp))
    (H, X, A), Y = tables.reward.shape, tables.emission.shape[1]
    vectors = np.concatenate([fast_informed_bound(tables), np.zeros((1, X, A))])

    def hoped(weights: Array, h: int) -> Array:
        """The bound from step h on, given P(x_h) as weights (..., X)."""
        joint = tables.emission[:, :, None] * vectors[h][:, None]  # (X, Y, A)
        return (weights @ joint.reshape(X, Y * A)).reshape(*weights.shape[:-1], Y, A).max(-1).sum(-1)

    value, rules = _climb(tables)
    gained, weights, past = np.zeros(1), tables.initial[None], np.zeros((1, 0), dtype=np.int16)
    for h, reward in enumerate(tables.reward):
        joint = weights[:, None] * tables.emission.T  # (N, Y, X)
        alone = np.zeros((len(weights), Y + 1))  # what each observation by itself may bring
        for y in range(Y):
            after = np.einsum("nx,xaz->naz", joint[:, y], tables.transition)
            alone[:, y] = (joint[:, y] @ reward + hoped(after, h + 1)).max(-1)
        others = alone[:, ::-1].cumsum(1)[:, ::-1]
        parent, onward = np.arange(len(weights)), np.zeros_like(weights)
        for y in range(Y):
            seen = joint[parent, y]
            collected = gained[:, None] + seen @ reward  # (N, A)
            reached = onward[:, None] + np.einsum("nx,xaz->naz", seen, tables.transition)  # (N, A, X)
            bound = collected + hoped(reached, h + 1) + others[parent, y + 1, None]
            bound[seen.sum(-1) == 0, 1:] = -np.inf  # where nothing is decided, one action will do
            left, action = np.nonzero(bound > value + TIE * H)
            if len(left) > max_nodes:
                got = f"{len(left):,} unfinished policies at step {h + 1} of {H}"
                remedy = "Raise max_nodes, or take a shorter horizon."
                raise PlanningError(subject, [Problem("max_nodes", got, f"at most {max_nodes:,}", remedy)])
            gained, onward, parent = collected[left, action], reached[left, action], parent[left]
            past = np.concatenate([past[left], action[:, None].astype(np.int16)], axis=1)
        weights = onward
    return past[gained.argmax()].reshape(H, Y) if len(gained) else rules


def _climb(pomdp: POMDP) -> tuple[float, Array]:
    """Good rules and their value: from random ones, at each step in turn what is best beside the others, until nothing changes."""
    rho, T, O, r = pomdp  # noqa: E741
    (H, _, A), Y = r.shape, O.shape[1]
    rules = np.random.default_rng(0).integers(0, A, (STARTS, H, Y))
    values = np.full(STARTS, -np.inf)
    while True:
        weights = [np.repeat(rho[None], STARTS, axis=0)]  # P(x_h) by start
        for h in range(H - 1):
            moves = T.transpose(1, 0, 2)[rules[:, h]]  # (S, Y, X, X)
            weights.append(np.einsum("sx,xy,syxz->sz", weights[h], O, moves, optimize=True))
        alpha = np.zeros_like(weights[0])
        for h in reversed(range(H)):
            Q = r[h] + np.einsum("xaz,sz->sxa", T, alpha)
            rules[:, h] = np.einsum("sx,xy,sxa->sya", weights[h], O, Q, optimize=True).argmax(-1)
            alpha = (O * np.take_along_axis(Q, rules[:, None, h].repeat(len(rho), 1), axis=2)).sum(-1)
        better = alpha @ rho
        if (better <= values + TIE).all():
            best = int(better.argmax())
            return float(better[best]), rules[best]
        values = better
