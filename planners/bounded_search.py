"""bounded_search: an anytime planner with lower and upper bounds on the optimum.

This is heuristic search value iteration (Smith and Simmons 2004) for finite horizons, see
_search.py. The search stops when the bounds at the start are close enough.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_problems
from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.gap import gap_problems, inside_gap
from homdp_ppl.core.plan import Plan, make_plan
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import sizes_of, validated
from homdp_ppl.core.sparse import stored
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.planners._allowed_search import search_allowed
from homdp_ppl.planners._limits import limited, time_problems
from homdp_ppl.planners._search import ENTRIES, MEMORY, WIDTH, Search

GAP = 1e-3  # default, for rewards in [0, 1]


@dataclass(frozen=True)
class BoundedSearch:
    """The planner returned by :func:`bounded_search`."""

    gap: float | None
    time_limit: float | None
    relative_gap: float | None = None

    def __call__(self, pomdp: POMDP, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a model; ``allowed`` restricts the actions by the history."""
        refuse(PlanningError, "bounded_search", allowed_problems(allowed))
        started = time.perf_counter()
        with limited(self.time_limit) as limits:
            require_room(pomdp, "bounded_search")
            model = validated(pomdp, "bounded_search", sparse=True)
            if allowed is not None:
                return self._restricted(model.dense, allowed)
            given = self.gap, self.relative_gap, GAP, float(model.scale), model.horizon
            search = Search(model, inside_gap(*given), limits)
            search.run()
            return search.plan("bounded_search", time.perf_counter() - started)

    def _restricted(self, model: POMDP, allowed: Allowed) -> Plan:
        started = time.perf_counter()
        given = self.gap, self.relative_gap, GAP, float(model.scale), model.horizon
        found = search_allowed(model, allowed, inside_gap(*given), self.time_limit)
        statistics = {"passes": found.passes, "nodes": found.nodes}
        seconds = time.perf_counter() - started
        bounds = found.value, max(found.upper, found.value)
        value, upper = (float(model.to_user(v)) for v in bounds)
        plan = make_plan(
            found.policy,
            value,
            upper,
            model,
            "bounded_search",
            **statistics,
            seconds=seconds,
        )
        return replace(plan, allowed=found.allowed)


@checked_but("gap", "relative_gap")
def bounded_search(
    gap: float | None = None,
    time_limit: float | None = None,
    *,
    relative_gap: float | None = None,
) -> BoundedSearch:
    """A planner that searches until its policy is proved to be within a given gap of the optimum.

    The search can be stopped at any time, by ``time_limit`` or Ctrl-C, and then returns the best
    policy so far. It also stops at its memory limit. In every case ``value <= optimum <= upper``,
    where ``upper`` includes an allowance for rounding. After an observation that is impossible in
    the model, the policy follows the best plan for the belief predicted before it.

    With forbidden actions, the search keeps bounds for histories instead of beliefs. It then needs
    a horizon for which the histories of one policy fit into memory. Its policy is defined after
    histories that its own actions can lead to; rules that add random actions need history_tree.

    Parameters
    ----------
    gap
        Stop when ``upper - value`` is at most this, in the user's units. Default: 0.001 times the
        range of one reward.
    time_limit
        Stop after this many seconds. Default: no limit.
    relative_gap
        The gap as a share of the range of returns, instead of ``gap``.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> plan = bounded_search(gap=1e-6)(models.load("tiger", horizon=10).pomdp)
    >>> plan.gap <= 1e-6, round(plan.value, 6)
    (True, 9.26)
    """
    problems = gap_problems(gap, relative_gap) + time_problems(time_limit)
    refuse(PlanningError, "bounded_search", problems)
    return BoundedSearch(gap, time_limit, relative_gap)


def require_room(pomdp: POMDP, planner: str) -> None:
    """Raise PlanningError for models that do not fit into memory, before anything is allocated."""
    X, Y, A, H = sizes_of(pomdp, planner)
    S = X * np.shape(pomdp.reward)[2]  # states of the bounds
    needed = 8 * (
        6 * H * S * A
        + 3 * stored(pomdp.transition)
        + H * WIDTH * (X + S + 4 * A + Y)
        + 2 * max(ENTRIES, A * Y * X)
    )
    if needed > MEMORY:
        got = (
            f"{X} states, {Y} observations, {A} actions, horizon {H}: about "
            f"{needed / 1e9:,.1f} GB before any search"
        )
        raise PlanningError(
            planner,
            [
                Problem(
                    "model",
                    got,
                    f"at most {MEMORY / 1e9:g} GB",
                    "Use a smaller model" + (" or a shorter horizon." if H > 1 else "."),
                )
            ],
        )
