"""The stage of a run: how a proposal is planned, what a policy is worth, and how it is deployed, in
a finite world.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import jax
import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.rollout import play_by_asking
from homdp_ppl.evaluation.exact import evaluate, uniform_at
from homdp_ppl.explorers.explorer import State
from homdp_ppl.learning.foresight import play_seeing, seeing_actions, seeing_value
from homdp_ppl.learning.outcome import Task
from homdp_ppl.learning.rounds import Decision, Luck, Planning, impossible_steps, lucks, rule_number
from homdp_ppl.precision import Array, to_numpy

BLOCK = 256  # episodes whose luck is drawn at once


class Stage(Protocol):
    """What the loop needs to know about a world, a rule and a planner."""

    rule: Any  # its propose and update

    def fortunes(self, first: int) -> Iterator[Any]:
        """The luck of one episode after another."""

    def visits(self, state: Any) -> Array:
        """n(x, a), which tells whether to plan again."""

    def decide(self, proposal: Any, state: Any) -> tuple[Any, int]:
        """Plan for a proposal; also how many plans that took."""

    def value(self, policy: Any) -> float:
        """What a policy is worth in the true world."""

    def deploy(self, decision: Any, step: int, fortune: Any) -> tuple[Episode, float]:
        """One episode of what was decided, uniform at step 1..H where the rule asks for it, and
        what was deployed is worth.
        """

    def impossible(self, decision: Any, episode: Episode) -> Array:
        """How many observations the planned model excludes."""


class TableStage:
    """A finite world: everything is computed exactly.

    Parameters
    ----------
    task
        What is asked for.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.rule = task, task.explorer
        self._planning = Planning(task.explorer, task.planner, task.model)

    def fortunes(self, first: int) -> Iterator[Luck]:
        """The luck of one episode after another."""
        seed, rule = jax.random.key(self.task.seed), rule_number(self.task.explorer)
        while True:
            block = lucks(seed, rule, first, BLOCK, self.task.world.spaces.horizon)
            noise = to_numpy(block.noise)
            for k in range(BLOCK):
                yield Luck(block.proposal[k], jax.tree.map(lambda leaf, k=k: leaf[k], noise))
            first += BLOCK

    def visits(self, state: State) -> Array:
        """n(x, a)."""
        return state.counts.state_action

    def decide(self, proposal: Any, state: State) -> tuple[Decision, int]:
        """Plan for all candidates and choose."""
        return self._planning.decide(proposal, state)

    def value(self, policy: GraphPolicy) -> np.float64:
        """The exact value in the true world."""
        return np.float64(evaluate(policy, self.task.world.pomdp))

    def deploy(self, decision: Decision, step: int, fortune: Luck) -> tuple[Episode, float]:
        """One episode, and the exact value of what was deployed.

        Pi, pi o_h Unif(A), or a collector that sees the state.
        """
        world, spaces = self.task.world.pomdp, self.task.world.spaces
        if self.task.foresight:
            actions = seeing_actions(decision.model)
            return play_seeing(world, actions, fortune.noise), seeing_value(world, actions)
        if not self.task.explorer.each_step:
            return play_by_asking(world, decision.policy, fortune.noise, spaces), float(
                decision.value
            )
        policy = uniform_at(decision.policy, step, spaces.horizon)
        return play_by_asking(world, policy, fortune.noise, spaces), evaluate(policy, world)

    def impossible(self, decision: Decision, episode: Episode) -> Array:
        """How many observations had probability zero under the planned model."""
        return impossible_steps(decision.model, episode.trajectory)
