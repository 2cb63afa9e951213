"""The policy of a run with its card: model, horizon, optimistic value, certificate, episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.policy_card import Carded, finite

if TYPE_CHECKING:
    from homdp_ppl.learning.run import Run


def described(policy: Policy, run: Run) -> Policy:
    """The policy of the last round with the names of the world and what is known about it.

    The certificate is included if one was computed for the last round.
    """
    if not isinstance(policy, Carded):
        return policy
    world, bounds = run.task.world, run.__dict__.get("certificate", run.certified)
    if isinstance(policy, GraphPolicy):
        policy = policy.named(world)
    lower = upper = None
    if bounds is not None and len(bounds.rounds) and bounds.rounds[-1] == len(run.values):
        lower, upper = float(bounds.lower[-1]), float(bounds.upper[-1])
    card = policy.card._replace(model=world.name, horizon=world.spaces.horizon)
    card = card._replace(lower=lower, upper=upper, episodes=len(run.played))
    value = None if run.decision is None else finite(run.decision.optimistic)
    return policy.with_card(card._replace(value=value))
