"""Stages: random numbers, episodes and exact values of a run; here for finite spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import jax

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import graph_of
from homdp_ppl.core.policy import Policy, Trajectory
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.rollout import play_by_asking
from homdp_ppl.declare.returns import rewarded
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.learning.foresight import play_seeing, seeing_actions, seeing_value
from homdp_ppl.learning.learner import Decision
from homdp_ppl.learning.noise import EpisodeNoise, episode_noise, rule_number
from homdp_ppl.learning.task import Task
from homdp_ppl.precision import Array, namespace, to_numpy

BLOCK = 256  # episodes whose random numbers are drawn in one call


class Optimum(NamedTuple):
    """The optimum in the true world according to the planner."""

    value: float  # the planner's upper bound, in the user's units
    slack: float  # the true optimum may be lower by up to this much
    estimated: bool = False  # whether it is a mean of simulated episodes


class Stage(Protocol):
    """What the learning loop needs from the world."""

    def noise(self, first: int) -> Iterator[Any]:
        """Random numbers for successive episodes, with the rule's key."""

    def value(self, policy: Policy) -> float:
        """The value of a policy in the true world."""

    def deploy(
        self, decision: Decision, value: float, policy: Policy, noise: Any
    ) -> tuple[Episode, float]:
        """Play one episode; return it with the value of the deployed policy."""

    def impossible(self, decision: Decision, episode: Episode) -> Array:
        """Number of observations with probability zero under the planned model."""


class TableStage:
    """A finite world, where all values are exact.

    Parameters
    ----------
    task
        The task of the run.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def noise(self, first: int) -> Iterator[EpisodeNoise]:
        """Random numbers for successive episodes."""
        seed, rule = jax.random.key(self.task.seed), rule_number(self.task.explorer)
        while True:
            block = episode_noise(seed, rule, first, BLOCK, self.task.world.spaces.horizon)
            drawn = to_numpy(block.noise)
            for k in range(BLOCK):
                uniform = jax.tree.map(lambda leaf, k=k: leaf[k], drawn)
                yield EpisodeNoise(block.proposal[k], uniform, block.rewards[k])
            first += BLOCK

    def value(self, policy: Policy) -> float:
        """The exact value in the true world, in the user's units."""
        world = self.task.world  # validated when it was declared
        return float(world.pomdp.to_user(policy_value(graph_of(policy, world), world.pomdp)))

    def deploy(
        self, decision: Decision, value: float, policy: Policy, noise: EpisodeNoise
    ) -> tuple[Episode, float]:
        """Play one episode of the policy or of the collector; return it with its exact value."""
        world, spaces = self.task.world.pomdp, self.task.world.spaces
        if self.task.foresight:
            actions = seeing_actions(decision.model)
            value = float(world.to_user(seeing_value(world, actions)))
            return self._rewarded(play_seeing(world, actions, noise.noise), noise), value
        episode = self._rewarded(play_by_asking(world, policy, noise.noise, spaces), noise)
        return episode, value if policy is decision.policy else self.value(policy)

    def _rewarded(self, episode: Episode, noise: EpisodeNoise) -> Episode:
        """The episode with its rewards if they are random; policies never see them."""
        world = self.task.world
        return rewarded(world.homdp, world.parameters, noise.rewards, episode)

    def impossible(self, decision: Decision, episode: Episode) -> Array:
        """Number of observations with probability zero under the planned model."""
        return impossible_steps(decision.model, episode.trajectory)


def impossible_steps(model: POMDP, trajectory: Trajectory, taken: Array | None = None) -> Array:
    """Number of observations of an episode with probability zero under the planned model.

    After such an observation the predicted belief is kept. Only steps that were taken count, by
    default all. Can be traced.
    """
    xp = namespace(model, trajectory)
    predicted = model.initial
    total = xp.zeros((), dtype=int)
    for h in range(len(trajectory.actions)):
        previous = trajectory.actions[h - 1] if h else None
        joint = predicted * model.likelihood(trajectory.observations[h], previous, h)
        chance = joint.sum()
        total = total + ((chance <= 0) if taken is None else taken[h] & (chance <= 0))
        belief = xp.where(chance > 0, joint / xp.where(chance > 0, chance, 1.0), predicted)
        predicted = model.predict(belief, trajectory.actions[h], h)
    return total
