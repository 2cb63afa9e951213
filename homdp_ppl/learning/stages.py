"""The world's side of a run: random numbers, playing, exact values; here in finite spaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import jax

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import graph_of
from homdp_ppl.core.policy import Policy, Trajectory
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.rollout import play_by_asking
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.learning.foresight import play_seeing, seeing_actions, seeing_value
from homdp_ppl.learning.learner import Decision
from homdp_ppl.learning.noise import EpisodeNoise, episode_noise, rule_number
from homdp_ppl.learning.task import Task
from homdp_ppl.precision import Array, namespace, to_numpy

BLOCK = 256  # episodes whose random numbers are drawn at once


class Optimum(NamedTuple):
    """The optimal value in the true world, as far as the planner knows."""

    value: float  # its upper bound
    slack: float  # the true optimum may be so much lower
    estimated: bool = False  # whether it is a mean of simulated episodes


class Stage(Protocol):
    """What the loop asks of the world."""

    def noise(self, first: int) -> Iterator[Any]:
        """The random numbers of one episode after another, with the rule's key."""

    def value(self, policy: Policy) -> float:
        """The value of a policy in the true world."""

    def deploy(
        self, decision: Decision, value: float, policy: Policy, noise: Any
    ) -> tuple[Episode, float]:
        """One episode, and the value of what was deployed."""

    def impossible(self, decision: Decision, episode: Episode) -> Array:
        """How many observations the planned model excludes."""


class TableStage:
    """A finite world: everything is computed exactly.

    Parameters
    ----------
    task
        What was asked for.
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def noise(self, first: int) -> Iterator[EpisodeNoise]:
        """The random numbers of one episode after another."""
        seed, rule = jax.random.key(self.task.seed), rule_number(self.task.explorer)
        while True:
            block = episode_noise(seed, rule, first, BLOCK, self.task.world.spaces.horizon)
            drawn = to_numpy(block.noise)
            for k in range(BLOCK):
                uniform = jax.tree.map(lambda leaf, k=k: leaf[k], drawn)
                yield EpisodeNoise(block.proposal[k], uniform)
            first += BLOCK

    def value(self, policy: Policy) -> float:
        """The exact value in the true world."""
        world = self.task.world.pomdp  # which is valid since it was declared
        return policy_value(graph_of(policy, world), world)

    def deploy(
        self, decision: Decision, value: float, policy: Policy, noise: EpisodeNoise
    ) -> tuple[Episode, float]:
        """One episode of a policy, or of a collector that sees the state, and its exact value."""
        world, spaces = self.task.world.pomdp, self.task.world.spaces
        if self.task.foresight:
            actions = seeing_actions(decision.model)
            return play_seeing(world, actions, noise.noise), seeing_value(world, actions)
        episode = play_by_asking(world, policy, noise.noise, spaces)
        return episode, value if policy is decision.policy else self.value(policy)

    def impossible(self, decision: Decision, episode: Episode) -> Array:
        """How many observations had probability zero under the planned model."""
        return impossible_steps(decision.model, episode.trajectory)


def impossible_steps(model: POMDP, trajectory: Trajectory) -> Array:
    """How many observations of an episode had probability zero under the planned model.

    The predicted belief is kept then. May be traced.
    """
    xp = namespace(model, trajectory)
    predicted = model.initial
    total = xp.zeros((), dtype=int)
    for h in range(model.horizon):
        previous = trajectory.actions[h - 1] if h else None
        joint = predicted * model.likelihood(trajectory.observations[h], previous, h)
        chance = joint.sum()
        total = total + (chance <= 0)
        belief = xp.where(chance > 0, joint / xp.where(chance > 0, chance, 1.0), predicted)
        predicted = model.predict(belief, trajectory.actions[h], h)
    return total
