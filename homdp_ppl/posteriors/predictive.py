"""Predictive checks: whether episodes look like those that believed models make with the same
policy.

Before there are data this is a prior predictive check, afterwards a posterior predictive one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy, check_policy
from homdp_ppl.core.policy import Policy, Trajectory
from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.core.randomness import as_key, noise, refuse_traced_key
from homdp_ppl.core.rollout import play
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.tables import tables_at
from homdp_ppl.precision import Array, in_x64, to_numpy

LEVEL = 0.05  # chance that one of the four findings is called unusual although the model is right
FEWEST = 159  # draws that let the smallest two-sided tail, 2 / (draws + 1), reach LEVEL / 4
LISTED = 3  # single frequencies that a summary tells of
SAME = (
    1e-9  # numbers closer than this are ties: sums of the same rewards differ in their last digit
)


class Statistics(NamedTuple):
    """What is looked at in a set of episodes; several sets have a leading axis."""

    frequency: Array  # (H, Y)  share of the episodes with y_h = y
    pairs: Array  # (Y, Y)  share of the steps h < H with y_h = y and y_{h+1} = y'
    mean: Array  # ()      of the returns
    deviation: Array  # ()      their standard deviation


class Finding(NamedTuple):
    """One comparison of what was observed with what the model predicts."""

    what: str
    observed: float
    low: float  # the middle 90% of the predictions
    high: float
    p: float  # tail probability, two-sided but for discrepancies


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveCheck:
    """Observed episodes beside replicated ones.

    Made by :func:`predictive_check`; printing it tells what was found.

    Attributes
    ----------
    homdp
        The declaration.
    episodes
        How many were observed, and replicated for each draw.
    observed
        What was observed.
    replicated
        The same for every draw, on a leading axis.

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
    ... )  # sure that growls tell nothing
    >>> check = predictive_check(jax.random.key(1), deaf, episodes, listen)
    >>> (
    ...     check.unusual,
    ...     round(check.findings[1].p, 3),
    ... )  # growls agree with each other more than in any of 200 replications
    (('pairs of observations',), 0.005)
    """

    homdp: HOMDP
    episodes: int
    observed: Statistics
    replicated: Statistics

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Observations by step, pairs of successive observations, mean and spread of the returns.

        The first two are sums of (count - expected)^2 / expected. What is expected is the average
        over all sets of episodes, the observed one among them: if that is like the others, its rank
        is uniform.
        """
        observed, replicated = self.observed, self.replicated
        tests = {
            "observations by step": (
                *_discrepancies(observed.frequency, replicated.frequency, self.episodes),
                False,
            ),
            "pairs of observations": (
                *_discrepancies(observed.pairs, replicated.pairs, self._pairs),
                False,
            ),
            "mean return": (observed.mean, replicated.mean, True),
            "spread of returns": (observed.deviation, replicated.deviation, True),
        }
        return tuple(_finding(what, *numbers) for what, numbers in tests.items())

    @cached_property
    def frequencies(self) -> tuple[Finding, ...]:
        """Every observation at every step, the most surprising first.

        Among many, some are surprising by chance.
        """
        found = [
            _finding(
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
        """Which of the four findings are so far out that a right model would show any such only
        once in twenty checks.
        """
        return tuple(
            finding.what for finding in self.findings if finding.p <= LEVEL / len(self.findings)
        )

    def summary(self) -> str:
        """The findings in words, with the most surprising single frequencies."""
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
    """Compare episodes with those that believed models make with the same policy, as many for each
    model.

    Tail probabilities are exact, never too small, if the belief comes from other episodes or is the
    prior. If it comes from the same episodes, they lean towards the middle: then a small one is all
    the more telling.

    Parameters
    ----------
    key
        A JAX random key.
    belief
        The prior, ``posterior(homdp, Counts.zero(homdp))``, or a posterior.
    episodes
        What was observed.
    policy
        The policy that made them.
    draws
        How many parameter values to draw from the belief, each with its own set of episodes.

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
    batch = Episodes.of(episodes, homdp).require_complete("predictive_check")
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
    observed = _describe(seen, homdp.reward_table, len(homdp.observations))
    replicated = _replicate(keys, tables, homdp.reward_table, graph, len(batch))
    return PredictiveCheck(homdp, len(batch), *to_numpy((observed, replicated)))


@partial(jax.jit, static_argnames="episodes")
def _replicate(
    keys: Array, tables: Tables, reward: Array, policy: GraphPolicy, episodes: int
) -> Statistics:
    """Statistics of a set of episodes for each model, one model after the other to bound the
    memory.
    """

    def one(given: tuple[Array, Tables]) -> Statistics:
        key, model = given
        pomdp = Stationary(*model, reward).pomdp

        def episode(key: Array) -> Episode:
            return play(
                pomdp,
                policy,
                noise(jax.random.fold_in(key, 0), jax.random.fold_in(key, 1), pomdp.horizon),
            )

        described: Statistics = _describe(
            jax.vmap(episode)(jax.random.split(key, episodes)), reward, pomdp.emission.shape[-1]
        )
        return described

    made: Statistics = jax.lax.map(one, (keys, tables))
    return made


@partial(jax.jit, static_argnames="observations")
def _describe(episodes: Episode, reward: Array, observations: int) -> Statistics:
    """The statistics of one set of episodes, stacked by ``vmap``."""
    seen = episodes.observations
    (K, H), Y = seen.shape, observations
    steps = jnp.arange(H)
    frequency = jnp.zeros((H, Y)).at[steps, seen].add(1.0) / K
    pairs = jnp.zeros((Y, Y)).at[seen[:, :-1], seen[:, 1:]].add(1.0) / (K * max(H - 1, 1))
    returns = reward[steps, episodes.states[:, :-1], episodes.actions].sum(-1)
    return Statistics(frequency, pairs, returns.mean(), returns.std())


def _discrepancies(observed: Array, replicated: Array, number: int) -> tuple[Array, Array]:
    """Pearson's discrepancy of the observed frequencies and of every replication, from ``number``
    counts each.
    """
    together = np.concatenate([observed[None], replicated]).reshape(1 + len(replicated), -1)
    expected = together.mean(0)
    possible = expected > 0
    values = number * ((together - expected)[:, possible] ** 2 / expected[possible]).sum(1)
    return values[0], values[1:]


def _finding(what: str, observed: Array, replicated: Array, two_sided: bool) -> Finding:
    """The rank of the observed number among the replications as a tail probability.

    Ties count as further out.
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
    """What cannot be checked: no episodes, too few draws to find anything, or episodes that the
    policy cannot have made.
    """
    problems = []
    if draws < FEWEST:
        problems.append(
            Problem(
                "draws", f"{draws}", f"at least {FEWEST}", "Fewer can never call a finding unusual."
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
                    "an action that it never takes there",
                    "the policy of all episodes",
                    remedy,
                    at,
                ),
            ]
        if h + 1 < batch.actions.shape[1]:
            node = policy.next(node, batch.actions[:, h], batch.observations[:, h + 1])
    return problems
