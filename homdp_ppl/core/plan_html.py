"""Plans as tables for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from homdp_ppl.core import html
from homdp_ppl.core.graph_policy import GraphPolicy

if TYPE_CHECKING:
    from homdp_ppl.core.plan import Plan

LISTED = 12  # first observations that are shown


def plan_html(plan: Plan) -> str:
    """The value of a plan, and its actions after each first observation."""
    rows: list[tuple[str, Any]] = [("value", plan.value)]
    if plan.certified:
        rows += [("upper bound on the optimum", plan.upper), ("gap", plan.gap)]
    else:
        rows.append(("certified", "no"))
        error = plan.statistics.get("standard error")
        rows += [] if error is None else [("standard error", error)]
    rows.append(("policy", repr(plan.policy)))
    found = html.facts(f"Plan by {plan.planner}", rows)
    policy = plan.policy
    if not isinstance(policy, GraphPolicy) or policy.names is None:
        return found
    observations, actions = policy.names
    first = [
        (seen, " / ".join(actions[a] for a in np.flatnonzero(policy.probabilities[node] > 0)))
        for seen, node in list(zip(observations, policy.start, strict=True))[:LISTED]
    ]
    return html.block(found, html.table("First actions", ("observation", "action"), first))
