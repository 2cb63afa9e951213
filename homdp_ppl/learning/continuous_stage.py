"""The stage of a run in a continuous world.

Policies on cells have exact values, others are valued by simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.quantised_policy import QuantisedPolicy
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import BlindPolicy
from homdp_ppl.core.plan import Plan, WorldPlanner, planner_name
from homdp_ppl.core.policy import Policy, Trajectory
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, PlanningError, Problem
from homdp_ppl.evaluation.exact import uniform_at
from homdp_ppl.evaluation.relaxations import mdp_values, root_value
from homdp_ppl.evaluation.simulation import estimate
from homdp_ppl.explorers._rules import Knowledge, Rule, Tabled, WorldPairs
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.outcome import Task
from homdp_ppl.learning.pairs import PairSearch
from homdp_ppl.learning.rounds import Planner, explorer_key, impossible_steps, rule_number
from homdp_ppl.learning.run import ContinuousDecision
from homdp_ppl.precision import Array


class Planned(NamedTuple):
    """What a planner found for one world."""

    policy: Policy
    upper: float  # certified, or the policy's estimated value
    model: POMDP | None  # on cells


class ContinuousLuck(NamedTuple):
    """Everything random about one episode in a continuous world."""

    proposal: Array  # the explorer's key
    world: Array  # (1,)  the world's key
    actions: Array  # (1, H)  numbers for random actions


@partial(jax.jit, static_argnums=3)
def _luck(seed: Array, rule: Array, episode: Array, horizon: int) -> ContinuousLuck:
    """The world's from (seed, episode), the explorer's from (seed, rule, episode)."""
    world = jax.random.fold_in(jax.random.fold_in(seed, 0), episode)
    own = jax.random.fold_in(explorer_key(seed, 1, rule), episode)
    actions = jax.random.uniform(jax.random.fold_in(own, 1), (1, horizon))
    return ContinuousLuck(jax.random.fold_in(own, 0), world[None], actions)


class UniformAtStep(NamedTuple):
    """Pi o_h Unif(A) for a policy of any kind (Algorithm 2)."""

    policy: Policy
    step: int  # h, from 1 to H
    actions: int

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        if len(np.asarray(observations)) == self.step:
            return np.full(self.actions, 1 / self.actions)
        return self.policy.act(observations, actions)


class LatentBounds:
    """An agent that sees the state bounds all pairs with the same transitions.

    Of infinitely many states nothing is known.
    """

    def rough(self, pairs: WorldPairs, t: int) -> Array:
        """The value of seeing the state, for all emission laws."""
        world = pairs.transitions.members[t]
        bound = float(world.spaces.horizon)
        if not isinstance(world.spaces.states, Real):
            rho, T, r = latent_tables(world)
            model = Stationary(rho, T, np.ones((len(rho), 1)), r).pomdp
            bound = float(root_value(model, mdp_values(model)[:1]))
        return np.full(len(pairs.emissions), bound)

    def better(self, pairs: WorldPairs, t: int, o: int) -> float:
        """Nothing better is at hand."""
        return np.inf


class ContinuousStage:
    """A continuous world.

    Parameters
    ----------
    task
        What is asked for.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.rule = task, continuous_rule(task.explorer)
        self._pairs: PairSearch[WorldPairs, Planned] = PairSearch(self._plan, LatentBounds())
        self._valued: tuple[Policy | None, float] = (None, np.nan)

    def fortunes(self, first: int) -> Iterator[ContinuousLuck]:
        """The luck of one episode after another.

        A key of the world, and numbers for random actions.
        """
        seed, rule = jax.random.key(self.task.seed), rule_number(self.task.explorer)
        for episode in count(first):
            luck = _luck(seed, rule, episode, self.task.world.spaces.horizon)
            yield luck._replace(actions=np.asarray(luck.actions))

    def visits(self, state: Knowledge) -> Array:
        """n(x, a), or the episodes so far where states cannot be counted."""
        return self.rule.visits(state)

    def decide(self, proposal: Any, state: Knowledge) -> tuple[ContinuousDecision, int]:
        """Plan for a world, for tables with emission densities, or for the best of all pairs."""
        plans = 1
        if isinstance(proposal, WorldPairs):
            planned, _, plans = self._pairs.best(proposal)
        elif isinstance(proposal, Tabled):
            planned = self._plan_tables(proposal)
        elif isinstance(proposal, World):
            planned = self._plan(proposal)
        else:
            planned, plans = Planned(proposal, np.nan, None), 0
        return ContinuousDecision(
            planned.policy, planned.upper, planned.model, self.visits(state), np.nan
        ), plans

    def value(self, policy: Policy) -> float:
        """In the true world: exact, or the mean of simulated episodes, the same luck for all
        policies of a run.
        """
        if policy is not self._valued[0]:
            self._valued = policy, value(policy, self.task.world, self.task)
        return self._valued[1]

    def deploy(
        self, decision: ContinuousDecision, step: int, fortune: ContinuousLuck
    ) -> tuple[Episode, float]:
        """One episode, and what was deployed is worth.

        Where values are estimated, pi o_h Unif(A) has its own return.
        """
        policy, worth, task = decision.policy, decision.value, self.task
        if task.explorer.each_step:
            policy = uniform_at_step(policy, step, task.world)
            worth = np.nan if task.estimated else value(policy, task.world, task)
        episode = task.world.play(fortune.world, policy, fortune.actions)[0]
        return episode, float(task.world.homdp.returns(episode)) if np.isnan(worth) else worth

    def impossible(self, decision: ContinuousDecision, episode: Episode) -> Array:
        """How many observations fell into cells of probability zero under the planned model.

        Particles count depletions.
        """
        if decision.model is None or not isinstance(decision.policy, QuantisedPolicy):
            return np.zeros((), dtype=int)
        return impossible_steps(
            decision.model, Trajectory(decision.policy.cells(episode.observations), episode.actions)
        )

    def _plan(self, world: World) -> Planned:
        plan = plan_world(self.task.planner, world)
        if self.task.estimated:
            return Planned(plan.policy, value(plan.policy, world, self.task), None)
        return Planned(plan.policy, plan.upper, plan.model)

    def _plan_tables(self, proposal: Tabled) -> Planned:
        found = world_planner(self.task.planner).plan_tables(proposal.world, proposal[:3])
        return Planned(found.policy, found.upper, found.model)


def continuous_rule(explorer: Explorer) -> Rule:
    """How a rule learns in continuous worlds; refuses one that cannot."""
    rule = explorer.continuous
    if rule is None:
        expected = (
            "posterior_sampling, uniform, or oracle, hop_v or hop_b_class made of continuous worlds"
        )
        remedy = "Other rules need tables of observations."
        raise ParameterError(
            "learn",
            [Problem("explorer", f"{explorer.rule} in a continuous world", expected, remedy)],
        )
    return rule


def plan_world(planner: Planner, world: World) -> Plan:
    """A plan for a continuous world; refuses planners that know tables only."""
    return world_planner(planner)(world)


def world_planner(planner: Any) -> WorldPlanner:
    """A planner that serves real-valued spaces; refuses others."""
    if isinstance(planner, WorldPlanner):
        return planner
    got = f"{planner_name(planner)}, which plans for tables only"
    remedy = (
        "quantised() serves finitely many states with observations on the line, "
        "particle_tree() everything."
    )
    expected = "planners.quantised() or particle_tree()"
    raise ParameterError("learn", [Problem("planner", got, expected, remedy)])


def value(policy: Policy, world: World, task: Task) -> float:
    """What a policy is worth in a world.

    Exact for policies on cells, else the mean of simulated episodes.
    """
    if task.estimated:
        key = jax.random.fold_in(jax.random.key(task.seed), 3)
        return estimate(policy, world, key, task.simulations).mean
    return on_cells(policy).value(world)


def on_cells(policy: Policy) -> QuantisedPolicy:
    """The same policy on cells of the line."""
    if isinstance(policy, BlindPolicy):
        return QuantisedPolicy([], policy.graph(1))
    if isinstance(policy, QuantisedPolicy):
        return policy
    got, expected = (
        f"a {type(policy).__name__}",
        "a policy on cells of the line, which has an exact value",
    )
    raise PlanningError("learn", [Problem("policy", got, expected)])


def uniform_at_step(policy: Policy, step: int, world: World) -> Policy:
    """Pi o_h Unif(A); on cells where the policy is."""
    if isinstance(policy, QuantisedPolicy):
        return QuantisedPolicy(policy.edges, uniform_at(policy.graph, step, world.spaces.horizon))
    return UniformAtStep(policy, step, len(world.spaces.actions))
