"""auto: selects a planner by the size of the model, and reports which one and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from homdp_ppl.core.allowed import Allowed, allowed_problems
from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.gap import gap_problems, inside_gap
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners._histories import Support, few_histories
from homdp_ppl.planners._restricted import size_place
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.bounded_search import GAP, bounded_search
from homdp_ppl.planners.history_tree import history_tree

SMALL_TREE = 200_000  # histories: a tree of this size is solved in well under a second
FEW_STATES = 2  # the upper envelope of alpha-vectors is a one-dimensional hull
# up to this size, exact vectors are faster than search if all states stay possible
DENSE_STATES = 10


@dataclass(frozen=True)
class Auto:
    """The planner returned by :func:`auto`."""

    gap: float | None
    relative_gap: float | None = None

    def __call__(self, pomdp: POMDP, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a model; ``allowed`` restricts the actions by the history."""
        refuse(PlanningError, "auto", allowed_problems(allowed))
        tree, search = history_tree(), bounded_search(self.gap, relative_gap=self.relative_gap)
        model = validated(pomdp, "auto")
        if allowed is not None:
            return self._restricted(model, allowed)
        scale = float(model.scale)
        gap = scale * inside_gap(self.gap, self.relative_gap, GAP, scale, model.horizon)
        support, X = Support.of(model), len(model.initial)
        histories = few_histories(support, model.horizon, SMALL_TREE)
        many = f"there are {X} states and too many histories for a tree"
        if histories is not None:
            return _explained(tree(model), f"there are only {histories:,} histories")
        if X <= FEW_STATES or (X <= DENSE_STATES and support.mixing):
            try:
                return _explained(alpha_vectors(gap)(model), many)
            except PlanningError:
                return _explained(search(model), "there are too many exact vectors")
        return _explained(search(model), many)

    def _restricted(self, model: POMDP, allowed: Allowed) -> Plan:
        """Plan with restricted actions, which only two planners support."""
        try:
            plan = history_tree(SMALL_TREE)(model, allowed=allowed)
        except PlanningError as error:
            if error.problems[0].where != size_place(model.horizon):
                raise
            search = bounded_search(self.gap, relative_gap=self.relative_gap)
            plan = search(model, allowed=allowed)
            return _explained(plan, "there are too many allowed histories for a tree")
        histories = len(plan.finite[0].probabilities)
        return _explained(plan, f"there are only {histories:,} allowed histories")


def auto(gap: float | None = None, relative_gap: float | None = None) -> Auto:
    """A planner that selects another planner by the size of the model.

    It uses the history tree if it is small, exact alpha-vectors for few states that all stay
    possible, and otherwise bounded search.

    Parameters
    ----------
    gap
        The certified gap of alpha-vectors and bounded search, in the user's units. Default: 0.001
        times the range of one reward. The history tree is exact.
    relative_gap
        The gap as a share of the range of returns, instead of ``gap``.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> auto()(models.load("tiger").pomdp).planner
    'history_tree, chosen because there are only 518 histories'
    """
    refuse(PlanningError, "auto", gap_problems(gap, relative_gap))
    return Auto(gap, relative_gap)


def _explained(plan: Plan, reason: str) -> Plan:
    return replace(plan, planner=f"{plan.planner}, chosen because {reason}")
