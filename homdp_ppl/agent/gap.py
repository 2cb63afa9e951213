"""The posterior expected gap of a policy, for users who do not know the true world."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.core.graph_policy import graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.spaces import require_finite
from homdp_ppl.evaluation.exact import evaluate
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.planning import plan_allowed
from homdp_ppl.posteriors.belief import Posterior


class ExpectedGap(NamedTuple):
    """The expected loss of a policy against the optimum under the posterior.

    Examples
    --------
    >>> gap = ExpectedGap(0.25, 0.01, 100)
    >>> print(gap)
    0.25 ± 0.01 (100 draws)
    """

    mean: float  # in the user's units; an upper bound if the planner is not exact
    error: float  # standard error of the mean
    draws: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.error:.2g} ({self.draws} draws)"


def expected_gap(policy: Policy, belief: Posterior, learner: Learner, draws: int) -> ExpectedGap:
    """The mean of V* - V^policy over models drawn from a posterior."""
    homdp = belief.homdp
    require_finite(homdp.spaces, homdp.name, "expected_gap")
    graph = graph_of(policy, homdp)
    batch = belief.draws(jax.random.key(learner.seed), draws)
    gaps = []
    for k in range(draws):
        model = jax.tree.map(lambda leaf, k=k: leaf[k], batch)
        plan = plan_allowed(learner.planner, model, homdp.allowed)
        gaps.append(plan.upper - evaluate(graph, model))
    spread = float(np.std(gaps, ddof=1)) if draws > 1 else float("nan")
    return ExpectedGap(float(np.mean(gaps)), spread / draws**0.5, draws)
