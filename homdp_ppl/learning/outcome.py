"""Outcome: everything that happened while a rule learned in a world, exact values first.

Both kinds of runs share it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import jax
import numpy as np

from homdp_ppl.core.episodes import SAW_STATES, Episodes
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.rounds import Planner
from homdp_ppl.precision import Array, in_x64

if TYPE_CHECKING:
    import xarray as xr

COMPILED = "compiled loop"

P = TypeVar("P", bound=Policy)


@dataclass(frozen=True, eq=False)
class Task:
    """What a run is asked to do."""

    world: World
    explorer: Explorer
    planner: Planner
    episodes: int  # K
    seed: int
    model: HOMDP  # the learner's own declaration
    foresight: bool
    optimum: float  # as far as the planner knows: its upper bound
    estimated: bool = False  # whether values are means of simulated episodes
    simulations: int = 0  # of how many
    slack: float = 0.0  # the true optimum may be so much lower

    @property
    def rounds(self) -> int:
        """Rounds of a whole run: episodes, or epochs of H episodes."""
        return self.episodes // self.episodes_per_round

    @property
    def episodes_per_round(self) -> int:
        """H for rules that deploy a policy once for every step, else 1."""
        return self.horizon if self.explorer.each_step else 1

    @property
    def horizon(self) -> int:
        """H."""
        return self.world.spaces.horizon

    @property
    def about(self) -> dict[str, str | int | float]:
        """The task in words and numbers, as a file can hold it."""
        return {
            "model": self.world.homdp.name,
            "learner": self.model.name,
            "explorer": self.explorer.name,
            "soundness": self.explorer.soundness,
            "seed": self.seed,
            "episodes": self.episodes,
            "horizon": self.horizon,
            "episodes_per_round": self.episodes_per_round,
            "optimum": self.optimum,
            "foresight": int(self.foresight),
            "estimated": int(self.estimated),
            "slack": self.slack,
        }


@dataclass(frozen=True, eq=False)
class Mixture(Generic[P]):
    """The uniform mixture over the policies of all rounds (online-to-batch).

    Its regret is the average regret.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(
    ...     models.load("tiger", horizon=2),
    ...     explorers.greedy(),
    ...     history_tree(),
    ...     episodes=3,
    ...     compiled=False,
    ... )
    >>> bool(abs(run.mixture.value - run.values.mean()) < 1e-12)
    True
    """

    run: Outcome[P]

    @property
    def value(self) -> float:
        """The value of the mixture: the mean of the rounds' values, and exact where they are."""
        return float(self.run.values.sum() / self._rounds)

    @in_x64
    def draw(self, key: Array) -> P:
        """One policy of the mixture; it carries the guarantee in expectation.

        Parameters
        ----------
        key
            A JAX random key.
        """
        return self.run.policy_at(
            int(jax.random.randint(as_key(key, "mixture"), (), 0, self._rounds))
        )

    @property
    def _rounds(self) -> int:
        rounds = len(self.run.values)
        if rounds == 0:
            raise ParameterError("mixture", [Problem("run", "no rounds", "at least one round")])
        return rounds


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Measured, Generic[P]):
    """What happened, made by :func:`homdp_ppl.learn`.

    Attributes
    ----------
    task
        What was asked for.
    record
        What was written down.
    state
        What the rule knows now.
    decision
        What was decided last.
    seconds
        Spent in planning, inference, evaluation and acting; of a compiled run in compiling and in
        all the rest.
    loop
        Which loop ran, and why.
    policies
        The policy of each round that planned anew, for rules whose knowledge is more than counts.
    advance
        Goes on to a number of rounds.
    """

    task: Task
    record: Record
    state: Any
    decision: Any
    seconds: Mapping[str, float]
    loop: str
    policies: Mapping[int, P]
    advance: Callable[[Any, int], Any]

    @property
    def about(self) -> dict[str, str | int | float]:
        """The run in words and numbers, as a file can hold it."""
        return {**self.task.about, "loop": self.loop}

    @property
    def compiled(self) -> bool:
        """Whether whole stretches of episodes ran as one XLA program."""
        return self.loop == COMPILED

    @property
    def episodes(self) -> Episodes:
        """All episodes, with their latent states."""
        record, behaviour = self.record, SAW_STATES if self.task.foresight else None
        return Episodes(record.observations, record.actions, record.states, behaviour=behaviour)

    @property
    def returns(self) -> Array:
        """The sum of rewards of each episode."""
        return self.task.model.returns(self.episodes)

    @property
    @abstractmethod
    def policy(self) -> P:
        """The last round's policy: what to deploy, frozen, in a test phase."""

    @abstractmethod
    def policy_at(self, index: int) -> P:
        """The policy of one round."""

    @property
    def mixture(self) -> Mixture[P]:
        """The uniform mixture over all rounds' policies."""
        return Mixture(self)

    def resume(self, stop_after: int | None = None) -> Self:
        """Go on to the end, or to a number of episodes; equals one run without a stop."""
        on: Self = self.advance(self, stop_after_rounds(self.task, stop_after))
        return on

    def planned_at(self, index: int) -> int:
        """The round in which the policy of a round was planned."""
        if not (isinstance(index, int | np.integer) and 0 <= index < len(self.values)):
            raise ParameterError(
                "policy_at",
                [Problem("round", repr(index), f"a round in 0..{len(self.values) - 1}")],
            )
        return int(np.flatnonzero(self.record.planned[: index + 1])[-1])

    def to_dataset(self) -> xr.Dataset:
        """The run as an xarray Dataset with axes round, episode and step."""
        import xarray as xr

        record = self.record
        variables: dict[str, Any] = {
            "value": ("round", record.values),
            "optimistic": ("round", record.optimistic),
            "gap": ("round", self.gaps),
            "regret": ("round", self.regret),
            "was_optimistic": ("round", self.was_optimistic),
            "plans": ("round", record.plans),
            "played": ("episode", record.played),
            "impossible": ("episode", record.impossible),
            "observation": (
                ("episode", "step", "observation_axis")[: record.observations.ndim],
                record.observations,
            ),
            "action": (("episode", "step"), record.actions),
            "state": (
                ("episode", "step_or_end", "state_axis")[: record.states.ndim],
                record.states,
            ),
        }
        axes = {
            "round": np.arange(1, len(record.values) + 1),
            "episode": np.arange(1, len(record.played) + 1),
        }
        return xr.Dataset(variables, axes, self.about)

    def __repr__(self) -> str:
        task, rounds = self.task, len(self.values)
        word = ("epoch" if task.explorer.each_step else "episode") + "s" * (rounds != 1)
        head = (
            f"Run of {task.explorer.name} in {task.world.homdp.name!r}, seed "
            f"{task.seed}: {rounds:,} {word}"
        )
        if rounds == 0:
            return head
        covered = f"optimistic in {np.mean(self.was_optimistic):.0%}"
        told = (
            f" (estimated by {task.simulations} simulated episodes each)" if task.estimated else ""
        )
        lost, last = (
            round(float(column[-1]), 9) + 0.0 for column in (self.regret, self.gaps)
        )  # no -1e-15, no -0
        if self.inexact:
            told = f"{told}; the optimum is {self.inexact}"
        return f"{head}\n  regret {lost:.4g}, last gap {last:.4g}, {covered}{told}\n  {self.loop}"


def stop_problems(stop_after: Any) -> list[Problem]:
    """What is wrong with a number of episodes to stop after."""
    if stop_after is None or (isinstance(stop_after, int | np.integer) and stop_after >= 0):
        return []
    return [Problem("stop_after", repr(stop_after), "a number of episodes of at least 0")]


def stop_after_rounds(task: Task, stop_after: int | None) -> int:
    """How many rounds a number of episodes makes."""
    if stop_after is None:
        return task.rounds
    problems = stop_problems(stop_after)
    if problems:
        raise ParameterError("resume", problems)
    return min(int(stop_after) // task.episodes_per_round, task.rounds)
