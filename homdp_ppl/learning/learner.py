"""The learner: an exploration rule with a planner, without the world.

Simulations, the compiled loop, agents in live systems and Gymnasium trainers all use it. It decides
when to plan again, which candidate to deploy, when to act at random, and handles HOP-V's epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.policy import Policy
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem, shown, with_article
from homdp_ppl.explorers.explorer import Deployment, Explorer
from homdp_ppl.explorers.state import Pairs, Proposal, State
from homdp_ppl.learning.density_planning import DensityPlanning, uniform_at_step
from homdp_ppl.learning.hindsight import Hindsight, hindsight_problems, prepared
from homdp_ppl.learning.noise import SAMPLING, explorer_key, proposal_key, rule_number
from homdp_ppl.learning.planning import Planned, Planner, TablePlanning
from homdp_ppl.learning.warm_start import as_log, hindsight_after, started
from homdp_ppl.posteriors.data import check_episode
from homdp_ppl.precision import Array, in_x64, namespace

SIMULATIONS = 100  # simulated episodes per value that cannot be computed exactly


class Decision(NamedTuple):
    """The decision of one round."""

    policy: Any  # a Policy, random actions included
    optimistic: Array | np.float64  # ()  the optimistic value, in the user's units
    model: Any  # the POMDP that was planned for; None without tables
    visits: Array  # State.visits at planning time: n(x, a), or the number of episodes
    plans: Array | np.int64  # ()  number of models that were planned for
    # (N, A)  which actions are allowed at each node of the policy; None: all of them
    allowed: Array | None = None


class Learner:
    """An exploration rule with a planner, without the world.

    The methods are pure functions of their arguments. Only bounds and plans of HOP-V's pairs are
    cached between calls, which saves time and changes no decision.

    Parameters
    ----------
    homdp
        The learner's declaration.
    explorer
        The rule.
    planner
        The planner.
    episodes
        K, required by rules whose bonuses depend on it.
    seed
        The rule's random numbers depend on the seed and on the rule's name.
    simulations
        Simulated episodes per estimate, for planners that do not certify values.
    hindsight
        "complete" if every state is revealed. "coin" if a coin decides which states are revealed,
        and "partial" if they are missing for other reasons, or if there are labels instead. The
        declaration must say by which mechanism, if that depends on hidden states.
    log
        Recorded episodes to start with. They count as episodes in the bonuses of rules that depend
        on K. If they lack states, Bayesian rules sum over them.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, rollout
    >>> from homdp_ppl.planners import history_tree
    >>> import jax
    >>> world = models.load("tiger", horizon=2)
    >>> learner = Learner(world.homdp, explorers.tight(), history_tree(), episodes=100, seed=0)
    >>> state = learner.init()
    >>> decision = learner.decide(0, state)
    >>> episode = rollout(jax.random.key(1), world, learner.policy_of(decision, 1))
    >>> state = learner.update(state, episode)
    >>> bool(learner.out_of_date(state, decision))  # some n(x, a) rose from 0
    True
    """

    @checked
    def __init__(
        self,
        homdp: HOMDP,
        explorer: Explorer,
        planner: Planner,
        episodes: int | None = None,
        seed: int = 0,
        simulations: int = SIMULATIONS,
        hindsight: Hindsight = "complete",
        log: Any = None,
    ) -> None:
        if episodes is None and explorer.about.needs_episodes:
            remedy = "The bonuses of this rule depend on K: pass the total number of episodes."
            problem = Problem("episodes", "None", "a number of episodes", remedy)
            raise ParameterError(explorer.about.name, [problem])
        refuse(ParameterError, "Learner", hindsight_problems(explorer, homdp, hindsight))
        self.homdp, self.explorer, self.planner = homdp, explorer, planner
        self.episodes, self.seed, self.simulations = episodes, seed, simulations
        self.log = as_log(explorer, homdp, log)
        self.hindsight = hindsight_after(hindsight, self.log)

    @cached_property
    def planning(self) -> Any:
        """How proposals are planned; raises an error if the rule and planner are incompatible."""
        if self.homdp.spaces.finite:
            return TablePlanning(self.explorer, self.planner, self.homdp)
        parts = self.explorer, self.planner, self.homdp
        return DensityPlanning(*parts, self.seed, self.simulations)

    @property
    def episodes_per_round(self) -> int:
        """H for rules that deploy each policy once per step, else 1."""
        return self.explorer.deployment.episodes_per_round(self.homdp.horizon)

    @in_x64
    def init(self) -> State:
        """The state of the rule before the first episode, after those of the log."""
        seed = jax.random.key(self.seed)
        key = explorer_key(seed, SAMPLING, rule_number(self.explorer))
        total = self.episodes
        if total is not None and self.log is not None:
            total += len(self.log.episodes)
        state = self._checked("init", self.explorer.init(self.homdp, total))
        state = replace(state, key_data=np.asarray(jax.random.key_data(key)))
        state = prepared(self.explorer, state, self.hindsight)
        return started(self.explorer, state, self.log)

    @checked
    @in_x64
    def key(self, episode: int) -> Array:
        """The rule's random key for an episode, counted from 0."""
        if not 0 <= episode < 2**31:
            problem = Problem("episode", shown(episode), "a number from 0 to 2^31 - 1")
            raise ParameterError("Learner.key", [problem])
        return proposal_key(jax.random.key(self.seed), rule_number(self.explorer), episode)

    @checked
    def out_of_date(self, state: State, decision: Decision | None) -> bool:
        """Whether the next round needs a new decision."""
        if decision is None:
            return True
        return bool(out_of_date(self.explorer.deployment, state.visits, decision.visits))

    @checked
    @in_x64
    def decide(self, key: Array | int, state: State) -> Decision:
        """Propose models, plan for them and choose a plan.

        Parameters
        ----------
        key
            The episode number, from 0, or the random key of that episode.
        state
            The current state.
        """
        return self.plan(self.propose(key, state), state)

    @checked
    def propose(self, key: Array | int, state: State) -> Proposal | Pairs:
        """Propose the models to plan for."""
        proposed = key if isinstance(key, jax.Array) else self.key(cast(int, key))
        return self.explorer.propose(proposed, state)

    @checked
    def plan(self, proposal: Proposal | Pairs, state: State) -> Decision:
        """Plan for all candidates and choose a plan."""
        return _decision(self.planning.plan(proposal), state)

    @checked
    def policy_of(self, decision: Decision, step: int) -> Policy:
        """The policy for one episode of a round; ``step`` numbers these episodes from 1.

        This is the decision's policy. Rules with ``uniform_at_each_step`` make it uniform at this
        step (Algorithm 2).
        """
        if not self.explorer.deployment.uniform_at_each_step:
            policy: Policy = decision.policy
            return policy
        return uniform_at_step(decision.policy, step, self.homdp.spaces, decision.allowed)

    @checked_but("episode")
    def update(self, state: State, episode: Episode, simulated: bool = False) -> State:
        """The state after one more episode.

        Parameters
        ----------
        state
            The state before the episode.
        episode
            The episode, with its latent states.
        simulated
            Whether the episode was simulated in a :class:`World`. Simulated episodes are not
            validated: they may contain outcomes that the declaration excludes, so that you can
            study learning with a wrong declaration. Other episodes are validated as in
            :func:`homdp_ppl.posterior`.
        """
        if not simulated:
            check_episode(self.homdp, episode, gaps=self.hindsight != "complete")
        return self._checked("update", self.explorer.update(state, episode))

    def _checked(self, where: str, state: Any) -> State:
        if isinstance(state, State):
            return state
        remedy = "Return a copy of the given state: dataclasses.replace(state, ...)."
        problem = Problem(where, with_article(type(state).__name__), "a State", remedy)
        raise ParameterError(self.explorer.name, [problem])

    def traced(self) -> TracedLearner:
        """The learner as pure functions that JAX can trace; for finite spaces and tree planners."""
        return TracedLearner(self.explorer, self.planning.traced())


class TracedLearner(NamedTuple):
    """A learner as pure functions of arrays, shared by all seeds."""

    explorer: Explorer
    plan: Callable[[Proposal], Planned]

    def out_of_date(self, state: State, decision: Decision) -> Array:
        """Whether the next round needs a new decision."""
        return out_of_date(self.explorer.deployment, state.visits, decision.visits)

    def decide(self, key: Array, state: State) -> Decision:
        """Propose models, plan for them and choose a plan."""
        proposal: Any = self.explorer.propose(key, state)
        return _decision(self.plan(proposal), state)

    def update(self, state: State, episode: Episode) -> State:
        """The state after one more simulated episode."""
        return self.explorer.update(state, episode)


def out_of_date(deployment: Deployment, visits: Array, then: Array) -> Array:
    """Whether a decision made at the visits ``then`` is out of date at ``visits``."""
    xp = namespace(visits)
    if deployment.replan == "doubled":
        return (visits >= xp.maximum(1, 2 * then)).any()
    return xp.asarray(deployment.replan == "every episode")


def _decision(planned: Planned, state: State) -> Decision:
    policy, optimistic, model, plans, allowed = planned
    return Decision(policy, optimistic, model, state.visits, plans, allowed)
