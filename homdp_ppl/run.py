"""Run: everything that happened while a rule learned in a world, exact values first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import xarray as xr

from homdp_ppl.counts import Counts
from homdp_ppl.declare import HOMDP, World
from homdp_ppl.episode import Episode
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers.explorer import Explorer, State
from homdp_ppl.policy import GraphPolicy, Trajectory
from homdp_ppl.posteriors import Posterior, posterior
from homdp_ppl.posteriors.tracking import Tracked
from homdp_ppl.precision import Array
from homdp_ppl.rounds import TIE, Decision, Planner


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
    optimum: float

    @property
    def rounds(self) -> int:
        """Rounds of a whole run: episodes, or epochs of H episodes."""
        return self.episodes // self.episodes_per_round

    @property
    def episodes_per_round(self) -> int:
        """H for rules that deploy a policy once for every step, else 1."""
        return self.world.spaces.horizon if self.explorer.each_step else 1


@dataclass(frozen=True, eq=False)
class Record:
    """What is written down: one entry a round, or one an episode."""

    values: Array  # (rounds,)  exact value of the round's policy in the true world
    optimistic: Array  # (rounds,)  the optimistic value that was planned
    planned: Array  # (rounds,)  whether the round planned anew
    plans: Array  # (rounds,)  how many models were planned for
    played: Array  # (episodes,)  exact values of what was deployed
    impossible: Array  # (episodes,)  observations that the planned model excludes
    observations: Array  # (episodes, H)
    actions: Array  # (episodes, H)
    states: Array  # (episodes, H + 1)

    @classmethod
    def empty(cls, horizon: int) -> Record:
        """Nothing yet."""
        real, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
        trajectory = np.zeros((0, horizon), dtype=np.int64)
        states = np.zeros((0, horizon + 1), dtype=np.int64)
        return cls(real, real, whole.astype(bool), whole, real, whole, trajectory, trajectory, states)

    def __add__(self, more: Record) -> Record:
        """Go on writing."""
        names = self.__dataclass_fields__
        return Record(**{name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in names})


class Writer:
    """Writes a record line by line."""

    def __init__(self) -> None:
        self._rounds: list[tuple[Any, ...]] = []
        self._episodes: list[tuple[Any, ...]] = []

    def round(self, decision: Decision, planned: bool, plans: int) -> None:
        """A round is over."""
        self._rounds.append((float(decision.value), float(decision.optimistic), planned, plans))

    def episode(self, episode: Episode, value: float, impossible: Array) -> None:
        """An episode is over."""
        self._episodes.append((value, int(impossible), episode.observations, episode.actions, episode.states))

    def record(self, horizon: int) -> Record:
        """All that was written."""
        empty = Record.empty(horizon)
        rounds, episodes = zip(*self._rounds, strict=True), zip(*self._episodes, strict=True)
        columns = [np.array(column) for part in (rounds, episodes) for column in part]
        return Record(*columns) if columns else empty


@dataclass(frozen=True, eq=False)
class Mixture:
    """The uniform mixture over the policies of all rounds (online-to-batch): its regret is the average regret."""

    run: Run

    @property
    def value(self) -> float:
        """The exact value of the mixture: the mean of the rounds' values."""
        return float(self.run.values.sum() / self._rounds)

    def draw(self, key: Array) -> GraphPolicy:
        """One policy of the mixture; it carries the guarantee in expectation."""
        return self.run.policy_at(int(jax.random.randint(key, (), 0, self._rounds)))

    @property
    def _rounds(self) -> int:
        rounds = len(self.run.values)
        if rounds == 0:
            raise ParameterError("mixture", [Problem("run", "no rounds", "at least one round")])
        return rounds


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What happened, made by :func:`learn`.

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
        Spent in planning, inference, evaluation and acting; of a compiled run in compiling and in all the rest.
    loop
        Which loop ran, and why.
    policies
        The policy of each round that planned anew, for rules whose knowledge is more than counts.
    advance
        Goes on to a number of rounds.
    """

    task: Task
    record: Record
    state: State
    decision: Decision | None
    seconds: Mapping[str, float]
    loop: str
    policies: Mapping[int, GraphPolicy]
    advance: Callable[[Run, int], Run]
    decide_again: Callable[[Run, int], GraphPolicy]

    @property
    def optimum(self) -> float:
        """The optimal value in the true world."""
        return self.task.optimum

    @property
    def values(self) -> Array:
        """The exact value of each round's policy in the true world."""
        return self.record.values

    @property
    def optimistic(self) -> Array:
        """The optimistic value that each round planned."""
        return self.record.optimistic

    @property
    def was_optimistic(self) -> Array:
        """Whether each round's optimistic value covered the optimum."""
        return self.record.optimistic >= self.optimum - TIE * self.task.world.spaces.horizon

    @property
    def gaps(self) -> Array:
        """Optimum minus values."""
        return self.optimum - self.values

    @property
    def regret(self) -> Array:
        """Cumulative gaps."""
        return np.cumsum(self.gaps)

    @property
    def played(self) -> Array:
        """The exact value of what was deployed in each episode."""
        return self.record.played

    @property
    def impossible(self) -> Array:
        """How many observations of each episode had probability zero under the planned model."""
        return self.record.impossible

    @property
    def episodes(self) -> Episode:
        """All episodes, with their latent states."""
        return Episode(Trajectory(self.record.observations, self.record.actions), self.record.states)

    @property
    def returns(self) -> Array:
        """The sum of rewards of each episode."""
        return self.task.model.returns(self.episodes)

    @property
    def policy(self) -> GraphPolicy:
        """The last round's policy: what to deploy, frozen, in a test phase."""
        if self.decision is None:
            raise ParameterError("run", [Problem("policy", "no rounds yet", "at least one round")])
        return self.decision.policy.named(self.task.world)

    @property
    def mixture(self) -> Mixture:
        """The uniform mixture over all rounds' policies."""
        return Mixture(self)

    @property
    def posterior(self) -> Posterior:
        """What is believed now, under the learner's declaration."""
        if isinstance(self.state.memory, Tracked):
            return self.state.memory.belief
        return posterior(self.task.model, self.state.counts)

    def policy_at(self, index: int) -> GraphPolicy:
        """The policy of one round, planned again from what was known then."""
        if not 0 <= index < len(self.values):
            raise ParameterError("policy_at", [Problem("round", str(index), f"a round in 0..{len(self.values) - 1}")])
        last = int(np.flatnonzero(self.record.planned[: index + 1])[-1])
        return self.policies[last] if last in self.policies else self.decide_again(self, last)

    def state_before(self, index: int) -> State:
        """What was known before a round, for rules that know counts only."""
        empty = self.task.explorer.init(self.task.model, self.task.episodes)
        played = index * self.task.episodes_per_round
        counts = Counts.of(self.episodes[:played], self.task.model)
        return replace(empty, counts=counts, played=np.asarray(played))

    def resume(self, stop_after: int | None = None) -> Run:
        """Go on to the end, or to a number of episodes; equals one run without a stop."""
        return self.advance(self, stop_after_rounds(self.task, stop_after))

    def to_dataset(self) -> xr.Dataset:
        """The run as an xarray Dataset with axes round, episode and step."""
        record, task = self.record, self.task
        variables: dict[str, Any] = {
            "value": ("round", record.values),
            "optimistic": ("round", record.optimistic),
            "gap": ("round", self.gaps),
            "regret": ("round", self.regret),
            "was_optimistic": ("round", self.was_optimistic),
            "plans": ("round", record.plans),
            "played": ("episode", record.played),
            "impossible": ("episode", record.impossible),
            "observation": (("episode", "step"), record.observations),
            "action": (("episode", "step"), record.actions),
            "state": (("episode", "step_or_end"), record.states),
        }
        about = {
            "model": task.world.homdp.name,
            "learner": task.model.name,
            "explorer": task.explorer.name,
            "soundness": task.explorer.soundness,
            "seed": task.seed,
            "episodes": task.episodes,
            "optimum": task.optimum,
            "loop": self.loop,
            "foresight": int(task.foresight),
        }
        axes = {"round": np.arange(1, len(record.values) + 1), "episode": np.arange(1, len(record.played) + 1)}
        return xr.Dataset(variables, axes, about)

    def __repr__(self) -> str:
        task, rounds = self.task, len(self.values)
        word = "epoch" if task.explorer.each_step else "episode"
        head = f"Run of {task.explorer.name} in {task.world.homdp.name!r}, seed {task.seed}: {rounds:,} {word}s"
        if rounds == 0:
            return head
        covered = f"optimistic in {np.mean(self.was_optimistic):.0%}"
        return f"{head}\n  regret {self.regret[-1]:.4g}, last gap {self.gaps[-1]:.4g}, {covered}\n  {self.loop}"


def stop_after_rounds(task: Task, stop_after: int | None) -> int:
    """How many rounds a number of episodes makes."""
    if stop_after is None:
        return task.rounds
    if not (isinstance(stop_after, int | np.integer) and stop_after >= 0):
        raise ParameterError("learn", [Problem("stop_after", repr(stop_after), "a number of episodes of at least 0")])
    return min(int(stop_after) // task.episodes_per_round, task.rounds)
