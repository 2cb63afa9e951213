"""auto: a portfolio of planners for finite models; the plan says which one it is from, and why."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_problems
from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.gap import gap_problems, inside_gap
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import sizes_of, validated
from homdp_ppl.core.sparse import stored
from homdp_ppl.errors import PlanningError
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.planners._histories import Support, few_histories
from homdp_ppl.planners._limits import Limits, StoppedError, limited, time_problems
from homdp_ppl.planners._restricted import size_place
from homdp_ppl.planners._search import Search
from homdp_ppl.planners.alpha_vectors import MAX_VECTORS, solved
from homdp_ppl.planners.bounded_search import GAP, bounded_search, require_room
from homdp_ppl.planners.history_tree import history_tree

DENSE = 1_000_000  # entries of transitions: larger sparse tables are not made dense
SMALL_TREE = 200_000  # histories: a tree of this size is solved in well under a second
# histories, if actions are restricted: a tree of this size takes some seconds, but the search takes
# longer, since its first bounds allow all actions
RESTRICTED_TREE = 300_000
FEW_STATES = 3  # with so few states, exact vectors begin
# multiplications of the first turns of the search and of exact vectors, a few milliseconds, and the
# factor of work from one turn to the next
FIRST, FIRST_VECTORS, GROWTH = 2e6, 8e6, 4.0
# Later turns of exact vectors have this share of the work of the search, since a multiplication of
# theirs takes several times as long.
SHARE = 0.5


@dataclass(frozen=True)
class Auto:
    """The planner returned by :func:`auto`."""

    gap: float | None
    relative_gap: float | None = None
    time_limit: float | None = None

    def __call__(self, pomdp: POMDP, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a model; ``allowed`` restricts the actions by the history."""
        refuse(PlanningError, "auto", allowed_problems(allowed))
        _require_memory(pomdp)
        model = validated(pomdp, "auto", sparse=True)
        if allowed is not None:
            return self._restricted(model, allowed)
        small = np.prod(np.shape(model.transition), dtype=object) <= DENSE
        if model.is_sparse and not small:  # the tree and exact vectors need dense tables
            with limited(self.time_limit) as limits:
                return self._portfolio(model, limits, trying=False)
        support = Support.of(model.dense)
        histories = few_histories(support, model.horizon, SMALL_TREE)
        if histories is not None:
            return _explained(history_tree()(model), f"there are only {histories:,} histories")
        with limited(self.time_limit) as limits:
            vectors_first = support.mixing or len(model.initial) <= FEW_STATES
            return self._portfolio(model, limits, vectors_first)

    def _portfolio(
        self, model: POMDP, limits: Limits, vectors_first: bool = False, trying: bool = True
    ) -> Plan:
        """Search and exact vectors in turns, with more work each time, until one succeeds.

        Exact vectors are left out unless ``trying``.
        """
        began, scale = time.perf_counter(), float(model.scale)
        gap = inside_gap(self.gap, self.relative_gap, GAP, scale, model.horizon)
        many = f"there are {len(model.initial)} states and too many histories for a tree"
        search = plan = None
        searching = True
        tries, tried, most = 0, 0.0, FIRST
        while searching or trying:
            if searching and not (vectors_first and tries == 0):
                search = search or _search(model, gap, limits)
                with limits.work_of(most if trying else math.inf):
                    searching = not search.run()
                if search.closed or limits.stopped:
                    break
            work = max(FIRST_VECTORS, SHARE * most) if searching else math.inf
            if trying and work >= GROWTH * tried:
                tries, tried = tries + 1, work
                with limits.work_of(work):
                    plan, trying = _vectors(model, scale * gap, limits)
                if plan is not None or limits.stopped:
                    break
            most *= GROWTH
        if plan is not None:
            seconds = time.perf_counter() - began
            plan = replace(plan, statistics={**plan.statistics, "seconds": seconds})
            return _explained(plan, many)
        search = search or _search(model, gap, limits)
        if tries:
            many += f", and {tries} attempt{'s' * (tries != 1)} to find exact vectors failed"
        return _explained(search.plan("bounded_search", time.perf_counter() - began), many)

    def _restricted(self, model: POMDP, allowed: Allowed) -> Plan:
        """Plan with restricted actions, which only two planners support."""
        try:
            plan = history_tree(RESTRICTED_TREE)(model, allowed=allowed)
        except PlanningError as error:
            if error.problems[0].where != size_place(model.horizon):
                raise
            search = bounded_search(self.gap, self.time_limit, relative_gap=self.relative_gap)
            plan = search(model, allowed=allowed)
            return _explained(plan, "there are too many allowed histories for a tree")
        histories = len(plan.finite[0].probabilities)
        return _explained(plan, f"there are only {histories:,} allowed histories")


def auto(
    gap: float | None = None,
    relative_gap: float | None = None,
    *,
    time_limit: float | None = None,
) -> Auto:
    """A planner that selects another planner for each model.

    It uses the history tree if it is small. Otherwise bounded search and exact alpha-vectors take
    turns, with four times as much work each time, until one of them succeeds. The vectors begin if
    there are few states, or if no transition and no observation excludes one. Work is counted in
    multiplications, so that the same model always has the same plan, unless the time limit or
    Ctrl-C ends planning. Then the plan has the best policy so far, and a valid upper bound.

    Parameters
    ----------
    gap
        The certified gap of alpha-vectors and bounded search, in the user's units. Default: 0.001
        times the range of one reward. The history tree is exact.
    relative_gap
        The gap as a share of the range of returns, instead of ``gap``.
    time_limit
        Stop after this many seconds. A history tree is not interrupted; it takes less than a
        second when it is compiled. Default: no limit.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> auto()(models.load("tiger").pomdp).planner
    'history_tree, chosen because there are only 518 histories'
    """
    problems = gap_problems(gap, relative_gap) + time_problems(time_limit)
    refuse(PlanningError, "auto", problems)
    return Auto(gap, relative_gap, time_limit)


def _search(model: POMDP, gap: float, limits: Limits) -> Search:
    require_room(model, "auto")
    return Search(model, gap, limits)


def _vectors(model: POMDP, gap: float, limits: Limits) -> tuple[Plan | None, bool]:
    """The plan by exact vectors, if they fit the limits, and whether more work could help."""
    try:
        return solved(model.dense, gap, MAX_VECTORS, limits), False
    except StoppedError:
        return None, True
    except PlanningError:  # more vectors than max_vectors
        return None, False
    except KeyboardInterrupt:
        limits.interrupted = True
        return None, False


def _require_memory(pomdp: POMDP) -> None:
    """Raise PlanningError if a copy of the tables exceeds the memory budget."""
    X, Y, A, H = sizes_of(pomdp, "auto")
    numbers = sum(map(stored, pomdp))
    got = f"{count(X)} states, {count(Y)} observations, {count(A)} actions, horizon {H}"
    remedy = "Use a smaller model" + (" or a shorter horizon." if H > 1 else ".")
    require_memory(PlanningError, "auto", "model", got, 2 * NUMBER * numbers, remedy)


def _explained(plan: Plan, reason: str) -> Plan:
    return replace(plan, planner=f"{plan.planner}, chosen because {reason}")
