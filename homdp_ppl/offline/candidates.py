"""Candidates for `choose`: plans that a log suggests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from homdp_ppl.confidence.policies import refuse_searching
from homdp_ppl.confidence.sets import Sets
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import HOMDPError, ParameterError, PlanningError, PolicyError, Problem
from homdp_ppl.learning.checks import check_plan
from homdp_ppl.learning.planning import Planner, plan_allowed
from homdp_ppl.offline.behaviour import Behaviour
from homdp_ppl.offline.pessimism import plan_backups, plan_bonuses, plan_quantile
from homdp_ppl.posteriors import Posterior

Candidates: TypeAlias = Mapping[str, Policy] | Iterable[Policy]
LEVELS = (0.1, 0.25)  # of posterior quantiles
DRAWS = 20  # models for the value quantile


class Suggested(NamedTuple):
    """Policies by name, and why others were left out."""

    policies: dict[str, GraphPolicy]
    left_out: list[str]


def given_candidates(candidates: Candidates, homdp: HOMDP) -> Suggested:
    """The user's candidates, as graphs."""
    named = candidates if isinstance(candidates, Mapping) else None
    if named is None:
        named = {f"candidate {k}": policy for k, policy in enumerate(candidates, 1)}
    if not named:
        problem = Problem("candidates", "none", "at least one policy")
        raise ParameterError("offline.choose", [problem])
    for policy in named.values():
        refuse_searching(policy, "offline.choose")
    return Suggested({name: graph_of(policy, homdp) for name, policy in named.items()}, [])


def default_candidates(
    homdp: HOMDP,
    centre: POMDP,
    sets: Sets | None,
    belief: Posterior,
    drawn: list[POMDP],
    planner: Planner,
    seed: int,
) -> Suggested:
    """Plans for the frequencies or the posterior mean, with bonuses subtracted, and of posterior
    quantiles. Plans that are too large are left out, with the reason.
    """
    makers: dict[str, Callable[[], Plan]] = {
        "greedy": lambda: check_plan(plan_allowed(planner, centre, homdp.allowed), "offline.choose")
    }
    if sets is not None:
        makers["pessimistic bonus"] = lambda: plan_bonuses(homdp, sets, planner)
    for q in LEVELS:
        makers[f"value quantile {q:g}"] = lambda q=q: plan_quantile(homdp, drawn, q, planner)  # type: ignore[misc]
        makers[f"backup quantile {q:g}"] = lambda q=q: plan_backups(homdp, belief, q, seed)  # type: ignore[misc]
    policies, left_out = {}, []
    for name, make in makers.items():
        try:
            policies[name] = make().finite[0]
        except PlanningError as error:
            left_out.append(f"{name} is left out: {_reason(error)}")
    return Suggested(policies, left_out)


def estimated(behaviour: Behaviour, homdp: HOMDP) -> dict[str, GraphPolicy]:
    """The estimated behaviour as a candidate, if it is a policy that obeys the declaration."""
    if behaviour.sees_states or homdp.allowed is not None:
        return {}
    try:
        return {"estimated behaviour": behaviour.graph()}
    except PolicyError:  # too many windows
        return {}


def _reason(error: HOMDPError) -> str:
    problem = error.problems[0]
    return f"{problem.where}: {problem.got}"
