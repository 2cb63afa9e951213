"""The learner: an exploration rule with a planner, without the world.

Simulations, the compiled loop, agents in live systems and Gymnasium trainers all decide and learn
through it: when to plan again, which candidate is deployed, random actions, HOP-V's epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.policy import Policy
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.explorers.explorer import Deployment, Explorer
from homdp_ppl.explorers.state import Pairs, Proposal, State
from homdp_ppl.learning.density_planning import DensityPlanning, uniform_at_step
from homdp_ppl.learning.noise import SAMPLING, explorer_key, proposal_key, rule_number
from homdp_ppl.learning.planning import Planned, Planner, TablePlanning
from homdp_ppl.posteriors.data import check_episode
from homdp_ppl.precision import Array, in_x64, namespace

SIMULATIONS = 100  # episodes by which a value is estimated that cannot be computed


class Decision(NamedTuple):
    """What a round has decided."""

    policy: Any  # a Policy, with its share of random actions
    optimistic: Array | np.float64  # ()  the optimistic value of the optimum
    model: Any  # the POMDP that was planned for; None where there are no tables
    visits: Array  # (X, A)  n(x, a) when it was planned, or the number of episodes
    plans: Array | np.int64  # ()  how many models were planned for


class Learner:
    """The algorithm without the world.

    Its methods are functions of what they are given. Only bounds and plans of HOP-V's pairs are
    remembered between calls, which saves time and changes no decision.

    Parameters
    ----------
    homdp
        The learner's declaration.
    explorer
        The rule.
    planner
        The planner.
    episodes
        K, for rules whose bonuses depend on it.
    seed
        With the rule's name the source of its random numbers.
    simulations
        Simulated episodes per estimate, where a planner certifies no value.

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
    >>> bool(learner.out_of_date(state, decision))  # what was never seen has been seen
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
    ) -> None:
        if episodes is None and explorer.about.needs_episodes:
            remedy = "K enters its bonuses: say how many episodes there will be."
            problem = Problem("episodes", "None", "a number of episodes", remedy)
            raise ParameterError(explorer.about.name, [problem])
        self.homdp, self.explorer, self.planner = homdp, explorer, planner
        self.episodes, self.seed, self.simulations = episodes, seed, simulations

    @cached_property
    def planning(self) -> Any:
        """How proposals are planned; raises an error if the rule and the planner do not fit."""
        if self.homdp.spaces.finite:
            return TablePlanning(self.explorer, self.planner, self.homdp)
        parts = self.explorer, self.planner, self.homdp
        return DensityPlanning(*parts, self.seed, self.simulations)

    @property
    def episodes_per_round(self) -> int:
        """H for rules that deploy a policy once for every step, else 1."""
        return self.explorer.deployment.episodes_per_round(self.homdp.horizon)

    @in_x64
    def init(self) -> State:
        """What the rule knows before the first episode."""
        seed = jax.random.key(self.seed)
        key = explorer_key(seed, SAMPLING, rule_number(self.explorer))
        state = self._checked("init", self.explorer.init(self.homdp, self.episodes))
        return replace(state, key_data=np.asarray(jax.random.key_data(key)))

    @checked
    @in_x64
    def key(self, episode: int) -> Array:
        """The rule's key before an episode, counted from 0."""
        if not 0 <= episode < 2**31:
            problem = Problem("episode", shown(episode), "a number from 0 to 2^31 - 1")
            raise ParameterError("Learner.key", [problem])
        return proposal_key(jax.random.key(self.seed), rule_number(self.explorer), episode)

    @checked
    def out_of_date(self, state: State, decision: Decision | None) -> bool:
        """Whether to decide again before the next round."""
        if decision is None:
            return True
        return bool(out_of_date(self.explorer.deployment, state.visits, decision.visits))

    @checked
    @in_x64
    def decide(self, key: Array | int, state: State) -> Decision:
        """Propose models, plan for them and choose.

        Parameters
        ----------
        key
            The number of the episode, from 0, or the key made from it.
        state
            What is known.
        """
        return self.plan(self.propose(key, state), state)

    @checked
    def propose(self, key: Array | int, state: State) -> Proposal | Pairs:
        """The models to plan for."""
        proposed = key if isinstance(key, jax.Array) else self.key(cast(int, key))
        return self.explorer.propose(proposed, state)

    @checked
    def plan(self, proposal: Proposal | Pairs, state: State) -> Decision:
        """Plan for all candidates and choose."""
        return _decision(self.planning.plan(proposal), state)

    @checked
    def policy_of(self, decision: Decision, step: int) -> Policy:
        """What to play in the episode of a round with this number, from 1.

        The policy itself, or uniform at that step where the rule asks for it (Algorithm 2).
        """
        if not self.explorer.deployment.uniform_at_each_step:
            policy: Policy = decision.policy
            return policy
        return uniform_at_step(decision.policy, step, self.homdp.spaces)

    @checked_but("episode")
    def update(self, state: State, episode: Episode, simulated: bool = False) -> State:
        """What is known after one more episode.

        Parameters
        ----------
        state
            What was known before.
        episode
            The episode, with its states.
        simulated
            Whether it was played in a :class:`World`. Its numbers are valid by construction, and
            it may contain what the declaration excludes: learning with a wrong declaration is an
            experiment. Any other episode is validated as :func:`homdp_ppl.posterior` does.
        """
        if not simulated:
            check_episode(self.homdp, episode)
        return self._checked("update", self.explorer.update(state, episode))

    def _checked(self, where: str, state: Any) -> State:
        if isinstance(state, State):
            return state
        remedy = "Return the state that was given, changed by dataclasses.replace(state, ...)."
        problem = Problem(where, f"a {type(state).__name__}", "a State", remedy)
        raise ParameterError(self.explorer.name, [problem])

    def traced(self) -> TracedLearner:
        """The learner as pure functions for JAX to trace, in finite spaces with a tree planner."""
        return TracedLearner(self.explorer, self.planning.traced())


class TracedLearner(NamedTuple):
    """A learner as pure functions of arrays; shared by all seeds."""

    explorer: Explorer
    plan: Callable[[Proposal], Planned]

    def out_of_date(self, state: State, decision: Decision) -> Array:
        """Whether to decide again before the next round."""
        return out_of_date(self.explorer.deployment, state.visits, decision.visits)

    def decide(self, key: Array, state: State) -> Decision:
        """Propose models, plan for them and choose."""
        proposal: Any = self.explorer.propose(key, state)
        return _decision(self.plan(proposal), state)

    def update(self, state: State, episode: Episode) -> State:
        """What is known after one more simulated episode."""
        return self.explorer.update(state, episode)


def out_of_date(deployment: Deployment, visits: Array, then: Array) -> Array:
    """Whether a decision made at n(x, a) = ``then`` is to be made again at ``visits``."""
    xp = namespace(visits)
    if deployment.replan == "doubled":
        return (visits >= xp.maximum(1, 2 * then)).any()
    return xp.asarray(deployment.replan == "every episode")


def _decision(planned: Planned, state: State) -> Decision:
    policy, optimistic, model, plans = planned
    return Decision(policy, optimistic, model, state.visits, plans)
