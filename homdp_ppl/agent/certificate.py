"""Certificates of an agent: bounds on the value of its policy and on the optimum."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from homdp_ppl.agent.knowledge import sound_data
from homdp_ppl.agent.ledger import Ledger, episodes_of
from homdp_ppl.confidence.policies import refuse_searching
from homdp_ppl.core import html
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.graph_policy import graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.spaces import require_finite
from homdp_ppl.errors import OptimismWarning
from homdp_ppl.explorers.anytime import anytime
from homdp_ppl.learning.certificate import certified_bounds
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.planning import TablePlanning
from homdp_ppl.precision import in_x64

ROUNDING = 1e-7  # of a value, relative to the horizon and the range of rewards


class LiveCertificate(NamedTuple):
    """Bounds that use no knowledge of the world, in the user's units.

    With probability 1 - delta, ``lower`` is at most the value of the policy that the next episode
    plays, and ``upper`` is at least the optimum, at all times at once.

    Examples
    --------
    >>> LiveCertificate(3.25, 3.75, 0.1, episodes=40, unused=0, optimistic=3.5)
    Certificate from 40 episodes: value at least 3.25, optimum at most 3.75, with probability 0.9
    """

    lower: float  # on the value of the current policy
    upper: float  # on the optimum
    delta: float  # allowed probability that one of the bounds is ever wrong
    episodes: int  # that were used
    unused: int  # revealed episodes that were not used, because an earlier one is incomplete
    optimistic: float | None  # the optimistic value of the current policy, if the rule has one

    @property
    def gap(self) -> float:
        """An upper bound on the optimum minus the value of the current policy."""
        return self.upper - self.lower

    @property
    def refutes_optimism(self) -> bool:
        """Whether the optimistic value is below the lower bound: the rule is not optimistic."""
        slack = ROUNDING * max(1.0, abs(self.lower), abs(self.upper))
        return self.optimistic is not None and self.optimistic < self.lower - slack

    def __repr__(self) -> str:
        noun = f"{self.episodes:,} episode{'s' * (self.episodes != 1)}"
        unused = (
            f" ({self.unused:,} more not used: an earlier one is not revealed in full)"
            if self.unused
            else ""
        )
        return (
            f"Certificate from {noun}{unused}: value at least {self.lower:.4g}, "
            f"optimum at most {self.upper:.4g}, with probability {1 - self.delta:.6g}"
        )

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("value of the policy, at least", self.lower),
            ("optimum, at most", self.upper),
            ("gap, at most", self.gap),
            ("probability", f"{1 - self.delta:.6g}"),
            ("optimistic value", float("nan") if self.optimistic is None else self.optimistic),
            ("episodes", self.episodes),
            ("revealed, but not used", self.unused),
        ]
        return html.facts("Certificate", rows)


@in_x64
def live_certificate(
    learner: Learner,
    ledger: Ledger,
    delay: Any,
    policy: Policy,
    optimistic: float | None,
    options: Mapping[str, Any],
) -> LiveCertificate:
    """Certify a policy with the sound data of a ledger; warns about a refuted optimistic value.

    The options are those of :func:`homdp_ppl.confidence.interval`: delta, mixture and known.
    """
    homdp = learner.homdp
    require_finite(homdp.spaces, "certificate", "counts of states and observations")
    refuse_searching(policy, "certificate")
    planning = TablePlanning(anytime(**options), learner.planner, homdp)
    data = sound_data(ledger, delay)
    counts = Counts.of(episodes_of(data, homdp.spaces), homdp) if data else Counts.zero(homdp)
    graph = graph_of(policy, homdp)
    lower, upper = certified_bounds(planning, homdp, counts, graph, options)
    unused = len(ledger.revealed) - len(data)
    found = LiveCertificate(lower, upper, options["delta"], len(data), unused, optimistic)
    if found.refutes_optimism and learner.explorer.deployment.random_actions < 1:
        warnings.warn(
            f"{learner.explorer.name} expects a value of {optimistic:.4g}, but its policy has a "
            f"value of at least {lower:.4g} with probability {1 - found.delta:.6g}. The prior or "
            "the declaration disagrees with the data: see agent.check().",
            OptimismWarning,
            stacklevel=4,
        )
    return found
