"""Predictive checks: whether episodes look like episodes simulated from the posterior.

The simulations use the same policy. With the prior, this is a prior predictive check.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy, check_policy
from homdp_ppl.core.policy import Policy, Trajectory
from homdp_ppl.core.randomness import as_key, refuse_traced_key
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.returns import draw_rewards
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.replication import Statistics, describe, replicate, sum_of
from homdp_ppl.posteriors.tables import tables_at
from homdp_ppl.precision import Array, in_x64, to_numpy

LEVEL = 0.05  # probability of any unusual finding among the four if the model is correct
FEWEST = 159  # draws for which the smallest two-sided tail, 2 / (draws + 1), is LEVEL / 4
LISTED = 3  # single frequencies in a summary
SAME = 1e-9  # numbers closer than this are ties: sums of the same rewards differ by rounding


class Finding(NamedTuple):
    """One comparison of an observed statistic with its predictions."""

    what: str
    observed: float
    low: float  # 5% quantile of the predictions
    high: float  # 95% quantile
    p: float  # tail probability; two-sided, except for discrepancies


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveCheck:
    """Observed episodes compared with replicated episodes.

    Create it with :func:`predictive_check`; its ``repr`` is a summary of the findings.

    Attributes
    ----------
    homdp
        The declaration.
    episodes
        The number of observed episodes, and of replicated episodes per draw.
    observed
        Statistics of the observed episodes.
    replicated
        Statistics of the replicated episodes, with a leading axis of draws.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import BlindPolicy, Counts, models, posterior, rollout
    >>> world, listen = (
    ...     models.load("tiger"),
    ...     BlindPolicy(np.eye(3)[[0, 0, 0, 0]]).graph(observations=2),
    ... )
    >>> episodes = rollout(jax.random.split(jax.random.key(0), 50), world, listen)
    >>> deaf = posterior(
    ...     world.homdp, Counts(np.zeros((2, 3, 2)), np.full((2, 2), 10_000))
    ... )  # certain that growls are not informative
    >>> check = predictive_check(jax.random.key(1), deaf, episodes, listen)
    >>> (
    ...     check.unusual,
    ...     round(check.findings[1].p, 3),
    ... )  # successive growls agree more often than in all 200 replications
    (('pairs of observations',), 0.005)
    """

    homdp: HOMDP
    episodes: int
    observed: Statistics
    replicated: Statistics

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Observations by step, pairs of successive observations, mean and spread of the returns.

        The first two are sums of (count - expected)^2 / expected. The expected count is the average
        over all sets of episodes, including the observed one. If the model is correct, the rank of
        the observed statistic is uniform.
        """
        observed, replicated = self.observed, self.replicated
        tests = {
            "observations by step": (
                *discrepancies(observed.frequency, replicated.frequency, self.episodes),
                False,
            ),
            "pairs of observations": (
                *discrepancies(observed.pairs, replicated.pairs, self._pairs),
                False,
            ),
            "mean return": (observed.mean, replicated.mean, True),
            "spread of returns": (observed.deviation, replicated.deviation, True),
        }
        return tuple(finding_of(what, *numbers) for what, numbers in tests.items())

    @cached_property
    def frequencies(self) -> tuple[Finding, ...]:
        """Every observation at every step, sorted by tail probability.

        Among many frequencies, some are surprising by chance.
        """
        found = [
            finding_of(
                f"{name} at step {h + 1}",
                self.observed.frequency[h, y],
                self.replicated.frequency[:, h, y],
                True,
            )
            for h in range(self.homdp.horizon)
            for y, name in enumerate(self.homdp.observations)
        ]
        return tuple(sorted(found, key=lambda finding: finding.p))

    @property
    def unusual(self) -> tuple[str, ...]:
        """The names of the unusual findings among the four.

        If the model is correct, a check has any unusual finding with probability at most 5%.
        """
        return tuple(
            finding.what for finding in self.findings if finding.p <= LEVEL / len(self.findings)
        )

    def summary(self) -> str:
        """The findings as text, with the most surprising single frequencies."""
        surprise = f"unusual: {', '.join(self.unusual)}" if self.unusual else "nothing unusual"
        lines = [
            (
                f"{self.homdp.name}: {self.episodes:,} episodes against "
                f"{len(self.replicated.mean):,} replications, {surprise}"
            )
        ]
        for finding in (*self.findings, *self.frequencies[:LISTED]):
            what, observed, low, high, p = finding
            lines.append(
                f"  {what}: {observed:.4g} observed, {low:.4g} to {high:.4g} predicted (p = "
                f"{p:.3g})"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    @property
    def _pairs(self) -> int:
        return self.episodes * (self.homdp.horizon - 1)


@checked
@in_x64
def predictive_check(
    key: Array,
    belief: Posterior,
    episodes: Episode | Iterable[Episode],
    policy: Policy,
    draws: int = 200,
) -> PredictiveCheck:
    """Compare episodes with episodes simulated from posterior draws under the same policy.

    Each draw simulates as many episodes as were observed. Tail probabilities are valid, never too
    small, if the posterior comes from other episodes or is the prior. If it comes from the same
    episodes, they are conservative: they tend towards the middle, and a small one is even stronger
    evidence.

    Parameters
    ----------
    key
        A JAX random key.
    belief
        The prior, ``posterior(homdp, Counts.zero(homdp))``, or a posterior.
    episodes
        The observed episodes.
    policy
        The policy that generated them.
    draws
        The number of posterior draws; each has its own set of episodes.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, posterior, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> episodes = rollout(jax.random.split(jax.random.key(0), 50), world, uniform_policy(world))
    >>> predictive_check(
    ...     jax.random.key(1), posterior(world.homdp, episodes), episodes, uniform_policy(world)
    ... ).unusual
    ()
    """
    homdp = belief.homdp
    check_policy(policy, homdp)
    graph = policy if isinstance(policy, GraphPolicy) else GraphPolicy.from_policy(policy, homdp)
    given = Episodes.of(episodes, homdp)
    batch = given.to_horizon(homdp.spaces, "predictive_check")
    problems = _problems(batch, graph, draws) or draw_problems(
        "draws", draws, homdp.sites, homdp.spaces
    )
    if problems:
        raise DataError("predictive_check", problems)
    refuse_traced_key(key, "predictive_check")
    key = as_key(key, "predictive_check")
    drawn = belief.parameters(jax.random.fold_in(key, 0), draws)
    tables = tables_at(belief.homdp, drawn, draws)
    keys = jax.random.split(jax.random.fold_in(key, 1), draws)
    seen = Episode(Trajectory(batch.observations, batch.actions), batch.states)
    models = homdp.model_of(tables)
    if homdp.rewards.law is None:
        rewards: Array = homdp.rewards.to_user(homdp.rewards.table, 1)
        models, draw = models._replace(reward=rewards), None
        observed = describe(seen, sum_of(rewards, seen), len(homdp.observations))
    else:
        draw = homdp.cache.get("draw of rewards", lambda: draw_rewards(homdp))
        observed = describe(seen, homdp.returns(given), len(homdp.observations))
    replicated = replicate(keys, models, drawn, graph, len(batch), draw)
    return PredictiveCheck(homdp, len(batch), *to_numpy((observed, replicated)))


def discrepancies(observed: Array, replicated: Array, number: int) -> tuple[Array, Array]:
    """Pearson's discrepancy of the observed frequencies and of every replication.

    Each set has ``number`` counts.
    """
    together = np.concatenate([observed[None], replicated]).reshape(1 + len(replicated), -1)
    expected = together.mean(0)
    possible = expected > 0
    values = number * ((together - expected)[:, possible] ** 2 / expected[possible]).sum(1)
    return values[0], values[1:]


def finding_of(what: str, observed: Array, replicated: Array, two_sided: bool) -> Finding:
    """The rank of the observed number among the replications as a tail probability.

    Ties count as more extreme.
    """
    slack = SAME * max(1.0, abs(float(observed)))
    above = 1 + int(np.sum(replicated >= observed - slack))
    below = 1 + int(np.sum(replicated <= observed + slack))
    tail = 2 * min(above, below) if two_sided else above
    low, high = np.quantile(replicated, [0.05, 0.95])
    return Finding(
        what, float(observed), float(low), float(high), min(1.0, tail / (1 + len(replicated)))
    )


def _problems(batch: Episodes, policy: GraphPolicy, draws: int) -> list[Problem]:
    """Problems: no episodes, too few draws, or episodes that are impossible under the policy."""
    problems = []
    if draws < FEWEST:
        problems.append(
            Problem(
                "draws",
                f"{draws}",
                f"at least {FEWEST}",
                "With fewer draws no finding can be unusual.",
            )
        )
    if not len(batch):
        return [*problems, Problem("episodes", "none", "at least one")]
    node = policy.first(batch.observations[:, 0])
    for h in range(batch.actions.shape[1]):
        never = np.flatnonzero(policy.probabilities[node, batch.actions[:, h]] == 0)
        if len(never):
            at = f"episode {never[0]}, step {h + 1}"
            remedy = "Pass the policy that was played."
            return [
                *problems,
                Problem(
                    "policy",
                    "a policy that never takes the recorded action",
                    "the policy that generated the episodes",
                    remedy,
                    at,
                ),
            ]
        if h + 1 < batch.actions.shape[1]:
            node = policy.next(node, batch.actions[:, h], batch.observations[:, h + 1])
    return problems
