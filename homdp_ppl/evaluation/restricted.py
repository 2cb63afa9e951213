"""What can be had without memory.

The best policy that acts on the latest observation alone, and the best that acts on none.

    best blind   <=   best memoryless            <=   optimum
    (the step)        (and the last observation)      (and all earlier ones)

Where the three are close, partial observability does not matter. Finding the first two is a search
over policies, exact but exponential at worst: for small models.
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
FIRST, WIDER = (
    100,
    10,
)  # unfinished policies kept in the first search, and how many times more in the next


class Restricted(NamedTuple):
    """The best policy of a restricted class; no other of the class is better by more than 1e-9 H.

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

    value: float  # exact
    policy: GraphPolicy


def best_blind(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best sequence of actions fixed in advance.

    The policy knows the step and looks at nothing.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        How many unfinished policies may stand side by side; a search that needs more is given up
        with a :class:`PlanningError`.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger").pomdp
    >>> round(best_blind(tiger).value, 4)  # listens for ever
    3.6
    """
    pomdp = _checked(pomdp, "best_blind", max_nodes)
    short = pomdp.stationary("best_blind")
    unseen = short._replace(emission=np.ones((len(pomdp.initial), 1)))
    return _restricted(_best_rules("best_blind", unseen, max_nodes), pomdp)


def best_memoryless(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best policy that acts on the step and the latest observation.

    A value is linear in the action probabilities at each (step, observation), so random actions
    would gain nothing: the best deterministic policy is best of all.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        How many unfinished policies may stand side by side; a search that needs more is given up
        with a :class:`PlanningError`.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger").pomdp
    >>> (
    ...     round(best_memoryless(tiger).value, 4),
    ...     round(history_tree()(tiger).value, 4),
    ... )  # one growl is not enough
    (3.6, 3.704)
    """
    pomdp = _checked(pomdp, "best_memoryless", max_nodes)
    short = pomdp.stationary("best_memoryless")
    return _restricted(_best_rules("best_memoryless", short, max_nodes), pomdp)


def _checked(pomdp: POMDP, subject: str, max_nodes: int) -> POMDP:
    refuse(PlanningError, subject, count_problems(max_nodes=max_nodes))
    return check_pomdp(pomdp, subject)


def _restricted(rules: Array, pomdp: POMDP) -> Restricted:
    """The policy that does rules[h, y], (H, Y), or rules[h, 0] whatever is seen, (H, 1)."""
    (H, n), (_, Y, A) = rules.shape, pomdp.sizes
    seen = np.arange(Y) % n
    following = np.minimum(np.arange(H) + 1, H - 1).repeat(n)[:, None] * n + seen  # (H n, Y)
    policy = GraphPolicy(seen, np.eye(A)[rules.ravel()], following[:, None])
    return Restricted(policy_value(policy, pomdp), policy)


def _best_rules(subject: str, pomdp: Stationary, max_nodes: int) -> Array:
    """The best rules, (H, Y): a search that keeps more and more unfinished policies, until none had
    to be dropped.
    """
    search = _Search(pomdp)
    width = FIRST
    while search.run(min(width, max_nodes)):
        if width >= max_nodes:
            got = f"more than {max_nodes:,} unfinished policies that may still turn out best"
            remedy = (
                f"Raise max_nodes, or take a shorter horizon; the best found so far is "
                f"worth {search.value:.6g}."
            )
            raise PlanningError(
                subject, [Problem("max_nodes", got, f"at most {max_nodes:,}", remedy)]
            )
        width *= WIDER
    return search.rules


class _Search:
    """Branch and bound: steps forward, at each step one observation after the other.

    A policy without memory leads from P(x_h) to P(x_{h+1}), and that is all its past has to say
    about its future. An unfinished policy is worth at most its rewards so far and the fast informed
    bound from there on. That bound is sublinear, so the parts of P(x_{h+1}) that come from
    different observations may be bounded one by one.
    """

    def __init__(self, pomdp: Stationary) -> None:
        self.tables = Stationary(*(np.asarray(part, dtype=np.float64) for part in pomdp))
        bound = cast(np.ndarray[Any, Any], fast_informed_bound(self.tables.pomdp))
        self.vectors = np.append(bound, np.zeros_like(self.tables.reward[:1]), axis=0)
        self.value = -np.inf
        self.rules = np.zeros((pomdp.horizon, self.tables.emission.shape[1]), dtype=np.int16)

    def run(self, width: int) -> bool:
        """Search with at most so many unfinished policies side by side, the most promising.

        Whether any had to be dropped.
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
            alone = np.zeros((len(weights), Y + 1))  # what each observation by itself may bring
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
                bound[
                    seen.sum(-1) == 0, 1:
                ] = -np.inf  # where nothing is decided, one action will do
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
    """Refuse a step of the search that does not fit in memory."""
    X, A = sizes
    got = f"{count(policies)} unfinished policies"
    needed = COPIES * NUMBER * policies * A * (X + A * observations)
    remedy = "Use a smaller max_nodes."
    require_memory(PlanningError, "restricted policies", "max_nodes", got, needed, remedy)


def _distinct(weights: Array, gained: Array) -> Array:
    """Of policies that lead to the same P(x), the one that has gained most."""
    order = np.argsort(-gained, kind="stable")
    return order[np.unique(weights[order].round(12), axis=0, return_index=True)[1]]
