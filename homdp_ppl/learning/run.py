"""Runs in finite worlds and in continuous ones: what is particular to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._believing import learn_more
from homdp_ppl.explorers._rules import Knowledge
from homdp_ppl.explorers.explorer import State, count
from homdp_ppl.learning.outcome import Outcome, Task
from homdp_ppl.learning.rounds import Decision
from homdp_ppl.posteriors import Posterior, posterior
from homdp_ppl.posteriors.continuous import ContinuousPosterior
from homdp_ppl.posteriors.tracking import Tracked
from homdp_ppl.precision import Array

COUNTING = (
    count,
    learn_more,
)  # updates that add an episode to the counts, so that many can be counted at once

D = TypeVar("D")


@dataclass(frozen=True, eq=False, repr=False)
class Run(Outcome[GraphPolicy]):
    """What happened in a finite world, made by :func:`homdp_ppl.learn`; every value is exact.

    Attributes
    ----------
    task, record, seconds, loop, policies, advance
        As in :class:`homdp_ppl.learning.outcome.Outcome`.
    state
        What the rule knows now.
    decision
        What was decided last.
    decide_again
        Plans the policy of an earlier round.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import explorers, learn, tabular
    >>> from homdp_ppl.planners import history_tree
    >>> ears = dist.Dirichlet(np.ones((2, 2)))
    >>> guess = tabular(
    ...     T=np.full((2, 2, 2), 0.5), O=ears, initial=[0.5, 0.5], reward=np.eye(2), horizon=1
    ... )
    >>> run = learn(
    ...     guess.at(O=[[0.9, 0.1], [0.1, 0.9]]),
    ...     explorers.uniform(),
    ...     history_tree(),
    ...     episodes=3,
    ...     compiled=False,
    ... )
    >>> round(run.optimum, 6), run.values.round(6).tolist(), run.regret.round(6).tolist()
    (0.9, [0.5, 0.5, 0.5], [0.4, 0.8, 1.2])
    """

    task: Task
    state: State
    decision: Decision | None
    decide_again: Callable[[Run, int], GraphPolicy]

    @property
    def policy(self) -> GraphPolicy:
        """The last round's policy: what to deploy, frozen, in a test phase."""
        return decided(self.decision).policy.named(self.task.world)

    @property
    def posterior(self) -> Posterior:
        """What is believed now, under the learner's declaration, after all episodes."""
        if isinstance(self.state.memory, Tracked):
            return self.state.memory.belief
        return posterior(
            self.task.model, Counts.of(self.episodes, self.task.model)
        )  # HOP-V's own counts are of single steps

    def policy_at(self, index: int) -> GraphPolicy:
        """The policy of one round, planned again from what was known then."""
        last = self.planned_at(index)
        if last in self.policies:
            return self.policies[last]
        if self.state.memory is not None:
            raise forgotten(index)
        return self.decide_again(self, last)

    def state_before(self, index: int) -> State:
        """What was known before a round, for rules that know counts only."""
        explorer, played = self.task.explorer, index * self.task.episodes_per_round
        state, shown = explorer.init(self.task.model, self.task.episodes), self.episodes[:played]
        if explorer.update in COUNTING:
            return replace(
                state, counts=Counts.of(shown, self.task.model), played=np.asarray(played)
            )
        for episode in shown:
            state = explorer.update(state, episode)
        return state


class ContinuousDecision(NamedTuple):
    """What a round has decided in a continuous world."""

    policy: Policy
    optimistic: float  # the optimistic value of the optimum
    model: POMDP | None  # on the policy's cells, where it has some
    visits: Array  # n(x, a) when it was planned, or the episodes so far
    value: float  # in the true world


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousRun(Outcome[Policy]):
    """What happened in a continuous world, made by :func:`homdp_ppl.learn`.

    Values are exact where the planner's policies look at cells of a line
    (:func:`homdp_ppl.planners.quantised`); where they plan as they go, values are means of
    simulated episodes, and ``estimated`` says so.

    Attributes
    ----------
    task, record, seconds, loop, policies, advance
        As in :class:`homdp_ppl.learning.outcome.Outcome`.
    state
        What the rule knows now.
    decision
        What was decided last.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, explorers, homdp, learn
    >>> from homdp_ppl.planners import quantised
    >>> @homdp(states=2, observations=Real(1), actions=2, horizon=1, reward=np.eye(2))
    ... def guess():
    ...     return Kernels(
    ...         [0.5, 0.5], np.full((2, 2, 2), 0.5), lambda x: dist.Normal(2 * x - 1, 1.0)
    ...     )
    >>> run = learn(guess.at(), explorers.uniform(), quantised(), episodes=2)
    >>> (
    ...     run.values.round(2).tolist(),
    ...     run.gaps.round(2).tolist(),
    ... )  # the best guess is right 84 times in 100
    ([0.5, 0.5], [0.34, 0.34])
    """

    task: Task
    state: Knowledge
    decision: ContinuousDecision | None

    @property
    def policy(self) -> Policy:
        """The last round's policy: what to deploy, frozen, in a test phase."""
        return decided(self.decision).policy

    def policy_at(self, index: int) -> Policy:
        """The policy of one round."""
        last = self.planned_at(index)
        if last not in self.policies:
            raise forgotten(index)
        return self.policies[last]

    @property
    def posterior(self) -> ContinuousPosterior:
        """What is believed now, under the learner's declaration, after all episodes."""
        memory = self.state.memory
        return (
            memory
            if isinstance(memory, ContinuousPosterior)
            else posterior(self.task.model, self.episodes)
        )


def forgotten(index: int) -> ParameterError:
    """The error for policies of a run that was restored from its record."""
    got, expected = f"round {index}, before the run was restored", "a round since then"
    return ParameterError(
        "policy_at",
        [Problem("round", got, expected, "Policies are planned, not stored: learn again.")],
    )


def decided(decision: D | None) -> D:
    """The last decision; refuses a run without rounds."""
    if decision is None:
        raise ParameterError("run", [Problem("policy", "no rounds yet", "at least one round")])
    return decision
