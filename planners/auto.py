"""The planner that chooses: it looks at the sizes, plans with the planner that fits, and says which and why."""

from __future__ import annotations

from collections.abc import Callable

from homdp_ppl.errors import PlanningError
from homdp_ppl.plan import Plan
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.bounded_search import bounded_search
from homdp_ppl.planners.histories import Support, count_histories
from homdp_ppl.planners.history_tree import history_tree
from homdp_ppl.pomdp import POMDP, numbers_of

SMALL_TREE = 200_000  # histories that the tree plans in well under a second
FEW_STATES = 2  # where the upper envelope of alpha-vectors is a one-dimensional hull
DENSE_STATES = 10  # up to here, models without zeros are better served by exact vectors than by search


def auto(gap: float = 1e-3) -> Callable[[POMDP], Plan]:
    """A planner that chooses by size: the history tree while it is small, exact vectors for few dense states, else search.

    Parameters
    ----------
    gap
        The certified gap asked of exact vectors and of the search; the tree is exact.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> auto()(models.load("tiger").pomdp).planner
    'history_tree, chosen because there are only 518 histories'
    """

    def planner(pomdp: POMDP) -> Plan:
        support = Support.of(numbers_of(pomdp, "auto"))
        histories = sum(count_histories(support, pomdp.horizon))
        X = pomdp.transition.shape[0]
        if histories <= SMALL_TREE:
            return _said(history_tree()(pomdp), f"there are only {histories:,} histories")
        if X <= FEW_STATES or (X <= DENSE_STATES and support.complete):
            try:
                return _said(alpha_vectors(gap)(pomdp), f"there are {X} states and too many histories for a tree")
            except PlanningError:
                return _said(bounded_search(gap)(pomdp), "exact vectors became too many")
        return _said(bounded_search(gap)(pomdp), f"there are {X} states and too many histories for a tree")

    return planner


def _said(plan: Plan, reason: str) -> Plan:
    return plan._replace(planner=f"{plan.planner}, chosen because {reason}")
