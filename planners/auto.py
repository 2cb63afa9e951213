"""The planner that chooses: it looks at the sizes, plans with the planner that fits, and says which
and why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from homdp_ppl.core.arguments import number_problems, refuse
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners._histories import Support, few_histories
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.bounded_search import bounded_search
from homdp_ppl.planners.history_tree import history_tree

SMALL_TREE = 200_000  # histories that the tree plans in well under a second
FEW_STATES = 2  # where the upper envelope of alpha-vectors is a one-dimensional hull
DENSE_STATES = (
    10  # up to here, models without zeros are better served by exact vectors than by search
)


@dataclass(frozen=True)
class Auto:
    """The planner that :func:`auto` makes."""

    gap: float

    def __call__(self, pomdp: POMDP) -> Plan:
        """Plan for a model."""
        tree, search = history_tree(), bounded_search(self.gap)
        model = validated(pomdp, "auto")
        support, X = Support.of(model), len(model.initial)
        if not model.is_stationary:
            return _said(tree(model), "its tables depend on the step, the action or what is seen")
        histories = few_histories(support, model.horizon, SMALL_TREE)
        many = f"there are {X} states and too many histories for a tree"
        if histories is not None:
            return _said(tree(model), f"there are only {histories:,} histories")
        if X <= FEW_STATES or (X <= DENSE_STATES and support.complete):
            try:
                return _said(alpha_vectors(self.gap)(model), many)
            except PlanningError:
                return _said(search(model), "exact vectors became too many")
        return _said(search(model), many)


def auto(gap: float = 1e-3) -> Auto:
    """A planner that chooses by size.

    The history tree while it is small, exact vectors for few dense states, else search.

    Parameters
    ----------
    gap
        The certified gap asked of exact vectors and of the search, not negative; the tree is exact.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> auto()(models.load("tiger").pomdp).planner
    'history_tree, chosen because there are only 518 histories'
    """
    refuse(PlanningError, "auto", number_problems(gap=gap))
    return Auto(gap)


def _said(plan: Plan, reason: str) -> Plan:
    return replace(plan, planner=f"{plan.planner}, chosen because {reason}")
