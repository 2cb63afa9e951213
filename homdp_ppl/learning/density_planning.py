"""Planning for proposals in real-valued spaces, where models are worlds instead of tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.quantised_policy import QuantisedPolicy
from homdp_ppl.continuous.tabulation import in_units
from homdp_ppl.core.blind_policy import uniform_policy
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, WorldPlanner, planner_name
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import Spaces, is_real
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem, with_article
from homdp_ppl.evaluation.exact import uniform_at
from homdp_ppl.evaluation.relaxations import mdp_values, root_value
from homdp_ppl.evaluation.simulation import estimate
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.explorers.state import Pairs, Proposal, Tabled
from homdp_ppl.learning.noise import SIMULATING
from homdp_ppl.learning.pairs import PairSearch
from homdp_ppl.learning.planning import Planned, Planner, with_uniform
from homdp_ppl.precision import Array


class WorldPlan(NamedTuple):
    """The plan for one world."""

    policy: Policy
    upper: float  # certified, or the estimated value of the policy; in the user's units
    model: POMDP | None  # the model on cells


class DensityPlanning:
    """Plans for a world, for tables with emission densities, or for the best pair.

    Parameters
    ----------
    explorer
        The rule.
    planner
        A planner for worlds.
    homdp
        The learner's declaration.
    seed, simulations
        The seed and the number of simulated episodes for estimated values. All estimates of a run
        use the same random numbers.
    """

    def __init__(
        self, explorer: Explorer, planner: Planner, homdp: HOMDP, seed: int, simulations: int
    ) -> None:
        self.explorer, self._planner, self._homdp = explorer, planner, homdp
        self._seed, self._simulations = seed, simulations
        self._pairs = PairSearch(self._plan_world, LatentBounds())

    def plan(self, proposal: Proposal | Pairs) -> Planned:
        """Plan for all candidates, and choose one."""
        share, plans = self.explorer.deployment.random_actions, np.int64(1)
        if isinstance(proposal, Pairs):
            found, _, count = self._pairs.best(proposal)
            plans = np.int64(count)
        elif not isinstance(proposal, Proposal):
            got, remedy = with_article(type(proposal).__name__), "Return Proposal(world)."
            problem = Problem("propose", got, "a Proposal or Pairs", remedy)
            raise ParameterError(self.explorer.name, [problem])
        elif proposal.models is None:
            return Planned(uniform_policy(self._homdp), np.float64(np.nan), None, np.int64(0))
        elif isinstance(proposal.models, Tabled):
            found = self._plan_tables(proposal.models)
        elif isinstance(proposal.models, World):
            found = self._plan_world(proposal.models)
        else:
            got = f"models of type {type(proposal.models).__name__}"
            raise ParameterError(self.explorer.name, [Problem("propose", got, "a World")])
        policy = with_random_actions(found.policy, share, self._homdp.spaces)
        return Planned(policy, np.float64(found.upper), found.model, plans)

    def _plan_world(self, world: World) -> WorldPlan:
        plan = plan_world(self._planner, world)
        if not plan.certified:
            value = estimated_value(plan.policy, world, self._seed, self._simulations)
            return WorldPlan(plan.policy, value, None)
        return WorldPlan(plan.policy, plan.upper, plan.model)

    def _plan_tables(self, proposal: Tabled) -> WorldPlan:
        found = world_planner(self._planner).plan_tables(proposal.world, proposal[:3])
        return WorldPlan(found.policy, found.upper, found.model)


class LatentBounds:
    """Bounds all pairs with the same transitions by the value of an agent that sees the state.

    For real-valued states and for kernels that depend on the step or the previous action, the bound
    is the largest return. Bounds are in the user's units, like plans.
    """

    def rough(self, pairs: Pairs, t: int) -> Array:
        """The value of an agent that sees the state, for all emission laws."""
        world = pairs.transitions.members[t]
        bound = world.return_range[1]
        if not is_real(world.spaces.states) and not any(world.homdp.context):
            rho, T, r = latent_tables(world)
            model = in_units(world, POMDP.of(rho, T, np.ones((len(rho), 1)), r))
            bound = float(root_value(model, mdp_values(model)[:1]))
        return np.full(len(pairs.emissions), bound)

    def better(self, pairs: Pairs, t: int, o: int) -> float:
        """Infinity: no better bound is known."""
        return np.inf


class UniformAtStep(NamedTuple):
    """The policy pi o_h Unif(A) of Algorithm 2, for a policy of any type."""

    policy: Policy
    step: int  # h, from 1 to H
    actions: int

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        if len(np.asarray(observations)) == self.step:
            return np.full(self.actions, 1 / self.actions)
        return self.policy.act(observations, actions)


class WithUniform(NamedTuple):
    """A policy of any type with a share of uniform actions at every step."""

    policy: Policy
    share: float

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        chances = np.asarray(self.policy.act(observations, actions))
        return (1 - self.share) * chances + self.share / len(chances)


def uniform_at_step(
    policy: Policy, step: int, spaces: Spaces, allowed: Array | None = None
) -> Policy:
    """The policy pi o_h Unif(A), of the same type as the given policy if possible.

    ``allowed`` are the allowed actions of each node of a graph; by default all.
    """
    if isinstance(policy, GraphPolicy):
        return uniform_at(policy, step, spaces.horizon, allowed)
    if isinstance(policy, QuantisedPolicy):
        return QuantisedPolicy(policy.edges, uniform_at(policy.graph, step, spaces.horizon))
    return UniformAtStep(policy, step, len(spaces.actions))


def with_random_actions(policy: Policy, share: float, spaces: Spaces) -> Policy:
    """The policy with a share of uniform actions, of the same type if possible."""
    if share == 0.0:
        return policy
    if isinstance(policy, QuantisedPolicy):
        return QuantisedPolicy(policy.edges, with_uniform(policy.graph, share))
    return WithUniform(policy, share)


def plan_world(planner: Planner, world: World) -> Plan:
    """Plan for a world with real-valued spaces; raises an error for planners of tables."""
    return world_planner(planner)(world)


def world_planner(planner: Any) -> WorldPlanner:
    """The planner, if it supports real-valued spaces; raises an error otherwise."""
    if isinstance(planner, WorldPlanner):
        return planner
    got = f"{planner_name(planner)}, which plans for tables only"
    remedy = (
        "quantised() supports finitely many states with scalar observations; "
        "particle_tree() supports all spaces."
    )
    expected = "planners.quantised() or particle_tree()"
    raise ParameterError("learn", [Problem("planner", got, expected, remedy)])


def estimated_value(policy: Policy, world: World, seed: int, simulations: int) -> float:
    """The mean return of simulated episodes, with common random numbers within a run."""
    key = jax.random.fold_in(jax.random.key(seed), SIMULATING)
    return estimate(policy, world, key, simulations).mean
