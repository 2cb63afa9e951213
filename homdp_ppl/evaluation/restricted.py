"""The best blind and the best memoryless policy of a model.

A blind policy uses only the step; a memoryless policy also uses the last observation::

    best blind   <=   best memoryless            <=   optimum
    (the step)        (and the last observation)      (and all earlier ones)

If the three values are close, partial observability hardly matters. Both functions are exact
searches that take exponential time in the worst case, so they are meant for small models.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP, TIE, Stationary
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.evaluation.relaxations import fast_informed_bound
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

MAX_NODES = 200_000
COPIES = 4  # of the weights of unfinished policies
FIRST, WIDER = 100, 10  # unfinished policies kept in the first search; growth factor of the next


class Restricted(NamedTuple):
    """The best policy of a restricted class, up to a tolerance of 1e-9 H.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP
    >>> guess = POMDP.of(
    ...     [0.6, 0.4], np.full((2, 2, 2), 0.5), [[0.9, 0.1], [0.1, 0.9]], np.eye(2), horizon=1
    ... )
    >>> blind, seeing = best_blind(guess), best_memoryless(guess)
    >>> round(blind.value, 6), round(seeing.value, 6), seeing.policy.act([1], []).tolist()
    (0.6, 0.9, [0.0, 1.0])
    """

    value: float  # exact, in the user's units
    policy: GraphPolicy


def best_blind(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best blind policy: a sequence of actions that is fixed in advance.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        The largest number of unfinished policies in the search; raises :class:`PlanningError` if
        more are needed.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger").pomdp
    >>> round(best_blind(tiger).value, 4)  # always listens
    3.6
    """
    pomdp = _checked(pomdp, "best_blind", max_nodes)
    short = pomdp.stationary("best_blind")
    unseen = short._replace(emission=np.ones((len(pomdp.initial), 1)))
    return _restricted(_best_rules(pomdp, "best_blind", unseen, max_nodes), pomdp)


def best_memoryless(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best memoryless policy: it uses the step and the last observation.

    The value is linear in the action probabilities of each (step, observation). Stochastic policies
    are therefore no better than deterministic ones, and the search is over the latter.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        The largest number of unfinished policies in the search; raises :class:`PlanningError` if
        more are needed.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger").pomdp
    >>> (
    ...     round(best_memoryless(tiger).value, 4),
    ...     round(history_tree()(tiger).value, 4),
    ... )  # one observation is not enough
    (3.6, 3.704)
    """
    pomdp = _checked(pomdp, "best_memoryless", max_nodes)
    short = pomdp.stationary("best_memoryless")
    return _restricted(_best_rules(pomdp, "best_memoryless", short, max_nodes), pomdp)


def _checked(pomdp: POMDP, subject: str, max_nodes: int) -> POMDP:
    refuse(PlanningError, subject, count_problems(max_nodes=max_nodes))
    return check_pomdp(pomdp, subject)


def _restricted(rules: Array, pomdp: POMDP) -> Restricted:
    """The policy with actions rules[h, y], (H, Y), or rules[h, 0] for all y, (H, 1)."""
    (H, n), (_, Y, A) = rules.shape, pomdp.sizes
    seen = np.arange(Y) % n
    following = np.minimum(np.arange(H) + 1, H - 1).repeat(n)[:, None] * n + seen  # (H n, Y)
    policy = GraphPolicy(seen, np.eye(A)[rules.ravel()], following[:, None])
    return Restricted(float(pomdp.to_user(policy_value(policy, pomdp))), policy)


def _best_rules(model: POMDP, subject: str, pomdp: Stationary, max_nodes: int) -> Array:
    """The best actions, (H, Y).

    The search is repeated with more and more unfinished policies, until none is dropped.
    """
    search = _Search(pomdp)
    width = FIRST
    while search.run(min(width, max_nodes)):
        if width >= max_nodes:
            got = f"more than {max_nodes:,} unfinished policies that may still be optimal"
            remedy = (
                f"Increase max_nodes, or use a shorter horizon. The best value found so far is "
                f"{model.to_user(search.value):.6g}."
            )
            raise PlanningError(
                subject, [Problem("max_nodes", got, f"at most {max_nodes:,}", remedy)]
            )
        width *= WIDER
    return search.rules


class _Search:
    """Branch and bound, forward over steps and, within a step, over observations.

    For a policy without memory, P(x_{h+1}) depends on the past only through P(x_h). The value of an
    unfinished policy is at most its expected reward so far plus the fast informed bound of the
    remaining steps. This bound is sublinear, so the parts of P(x_{h+1}) that come from different
    observations can be bounded separately.
    """

    def __init__(self, pomdp: Stationary) -> None:
        self.tables = Stationary(*(np.asarray(part, dtype=np.float64) for part in pomdp))
        bound = cast(np.ndarray[Any, Any], fast_informed_bound(self.tables.pomdp))
        self.vectors = np.append(bound, np.zeros_like(self.tables.reward[:1]), axis=0)
        self.value = -np.inf
        self.rules = np.zeros((pomdp.horizon, self.tables.emission.shape[1]), dtype=np.int16)

    def run(self, width: int) -> bool:
        """Search with the ``width`` most promising unfinished policies.

        Returns whether any were dropped.
        """
        _, T, O, r = self.tables  # noqa: E741
        (H, _, _), Y = r.shape, O.shape[1]
        gained, weights, past = (
            np.zeros(1),
            self.tables.initial[None],
            np.zeros((1, 0), dtype=np.int16),
        )
        dropped = False
        for h in range(H):
            _require_room(len(weights), T.shape[:2], Y)
            joint = weights[:, None] * O.T  # (N, Y, X)
            alone = np.zeros((len(weights), Y + 1))  # upper bound for each observation
            for y in range(Y):
                after = np.einsum("nx,xaz->naz", joint[:, y], T)
                alone[:, y] = (joint[:, y] @ r[h] + self._hoped(after, h + 1)).max(-1)
            undecided = alone[:, ::-1].cumsum(1)[:, ::-1]
            parent, onward = np.arange(len(weights)), np.zeros_like(weights)
            for y in range(Y):
                seen = joint[parent, y]
                collected = gained[:, None] + seen @ r[h]  # (N, A)
                reached = onward[:, None] + np.einsum("nx,xaz->naz", seen, T)  # (N, A, X)
                bound = collected + self._hoped(reached, h + 1) + undecided[parent, y + 1, None]
                impossible = seen.sum(-1) == 0  # the action is irrelevant: keep only the first
                bound[impossible, 1:] = -np.inf
                left, action = np.nonzero(bound > self.value + TIE * H)
                if len(left) > width:
                    dropped = True
                    best = np.argpartition(-bound[left, action], width - 1)[:width]
                    left, action = left[best], action[best]
                gained, onward, parent = (
                    collected[left, action],
                    reached[left, action],
                    parent[left],
                )
                past = np.concatenate([past[left], action[:, None].astype(np.int16)], axis=1)
            first = _distinct(onward, gained)
            gained, weights, past = gained[first], onward[first], past[first]
        if len(gained):
            self.value, self.rules = float(gained.max()), past[gained.argmax()].reshape(H, Y)
        return dropped

    def _hoped(self, weights: Array, h: int) -> Array:
        """The bound from step h on, given P(x_h) as weights (..., X)."""
        O, vectors = self.tables.emission, self.vectors[h]  # noqa: E741
        joint = O[:, :, None] * vectors[:, None]  # (X, Y, A)
        X, *rest = joint.shape
        return (weights @ joint.reshape(X, -1)).reshape(*weights.shape[:-1], *rest).max(-1).sum(-1)


def _require_room(policies: int, sizes: tuple[int, ...], observations: int) -> None:
    """Raise an error for a step of the search that does not fit in memory."""
    X, A = sizes
    got = f"{count(policies)} unfinished policies"
    needed = COPIES * NUMBER * policies * A * (X + A * observations)
    remedy = "Use a smaller max_nodes."
    require_memory(PlanningError, "restricted policies", "max_nodes", got, needed, remedy)


def _distinct(weights: Array, gained: Array) -> Array:
    """The indices of the best policy for each distinct P(x)."""
    order = np.argsort(-gained, kind="stable")
    return order[np.unique(weights[order].round(12), axis=0, return_index=True)[1]]
