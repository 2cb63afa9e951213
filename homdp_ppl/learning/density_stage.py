"""The stage of a run in real-valued spaces.

Policies on cells are evaluated exactly, other policies by simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import jax
import numpy as np

from homdp_ppl.continuous.quantised_policy import QuantisedPolicy
from homdp_ppl.core.blind_policy import BlindPolicy
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.policy import Policy, Trajectory
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem, with_article
from homdp_ppl.learning.density_planning import estimated_value, plan_world
from homdp_ppl.learning.learner import Decision
from homdp_ppl.learning.noise import DensityNoise, density_noise, rule_number
from homdp_ppl.learning.planning import Planner
from homdp_ppl.learning.stages import Optimum, impossible_steps
from homdp_ppl.learning.task import Task
from homdp_ppl.precision import Array


class DensityStage:
    """A world with real-valued states or observations.

    Parameters
    ----------
    task
        The task of the run.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._valued: tuple[Policy | None, float] = (None, np.nan)

    def noise(self, first: int) -> Iterator[DensityNoise]:
        """Random numbers for successive episodes."""
        seed, rule = jax.random.key(self.task.seed), rule_number(self.task.explorer)
        for episode in count(first):
            drawn = density_noise(seed, rule, episode, self.task.world.spaces.horizon)
            yield drawn._replace(actions=np.asarray(drawn.actions))

    def value(self, policy: Policy) -> float:
        """The value in the true world: exact, or the mean of simulated episodes."""
        if policy is not self._valued[0]:
            self._valued = policy, self._value(policy)
        return self._valued[1]

    def deploy(
        self, decision: Decision, value: float, policy: Policy, noise: DensityNoise
    ) -> tuple[Episode, float]:
        """Play one episode of a policy; return it with the value of the policy.

        If values are estimated, the value of pi o_h Unif(A) is the return of this episode.
        """
        task = self.task
        if policy is not decision.policy:
            value = np.nan if task.estimated else self._value(policy)
        episode = task.world.play(noise.world, policy, noise.actions)[0]
        return episode, float(task.world.homdp.returns(episode)) if np.isnan(value) else value

    def impossible(self, decision: Decision, episode: Episode) -> Array:
        """Number of observations in cells of probability zero under the planned model."""
        if decision.model is None or not isinstance(decision.policy, QuantisedPolicy):
            return np.zeros((), dtype=int)
        cells = decision.policy.cells(episode.observations)
        return impossible_steps(decision.model, Trajectory(cells, episode.actions))

    def _value(self, policy: Policy) -> float:
        task = self.task
        if task.estimated:
            return estimated_value(policy, task.world, task.seed, task.simulations)
        return on_cells(policy).value(task.world)


def density_optimum(
    world: World, planner: Planner, seeds: list[int], simulations: int
) -> list[Optimum]:
    """The optimum in real-valued spaces, or an estimate of the value that the planner reaches."""
    plan = plan_world(planner, world)
    if plan.certified:
        optimum = Optimum(float(plan.upper), float(plan.upper - plan.value))
        return [optimum] * len(seeds)
    values = (estimated_value(plan.policy, world, seed, simulations) for seed in seeds)
    return [Optimum(float(value), 0.0, estimated=True) for value in values]


def on_cells(policy: Policy) -> QuantisedPolicy:
    """The same policy on cells of the real line."""
    if isinstance(policy, BlindPolicy):
        return QuantisedPolicy([], policy.graph(1))
    if isinstance(policy, QuantisedPolicy):
        return policy
    expected = "a policy on cells of the real line, which has an exact value"
    raise PlanningError("learn", [Problem("policy", with_article(type(policy).__name__), expected)])
