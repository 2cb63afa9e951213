"""The task of a run, and the request it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from homdp_ppl.core.arguments import is_count
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.reveal import revealed, with_masks
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.declared import Declared
from homdp_ppl.learning.hindsight import Hindsight, Protocol, hindsight_of
from homdp_ppl.learning.learner import SIMULATIONS, Learner
from homdp_ppl.learning.planning import Planner
from homdp_ppl.learning.warm_start import Log


class Request(NamedTuple):
    """The arguments of :func:`homdp_ppl.learn`."""

    world: World
    explorer: Explorer
    planner: Planner
    episodes: int
    seeds: list[int]
    model: HOMDP | None = None
    stop_after: int | None = None
    stop_when: float | None = None
    foresight: bool = False
    compiled: bool | None = None
    progress: bool | None = None
    simulations: int = SIMULATIONS
    log: Any = None
    reveal: Protocol = None

    @property
    def declaration(self) -> HOMDP:
        """The learner's declaration; by default that of the world."""
        return self.world.homdp if self.model is None else self.model


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that defines a run."""

    world: World
    explorer: Explorer
    planner: Planner
    episodes: int  # K
    seed: int
    model: HOMDP  # the learner's declaration
    foresight: bool
    optimum: float  # the planner's upper bound on the optimum, in the user's units
    estimated: bool = False  # whether values are means of simulated episodes
    simulations: int = 0  # number of simulated episodes per value
    slack: float = 0.0  # the true optimum may be lower by up to this much
    reveal: Protocol = None  # what is revealed; None for all states
    log: Log | None = None  # recorded episodes to start with

    @property
    def rounds(self) -> int:
        """Number of rounds of the whole run: episodes, or epochs of H episodes."""
        return self.episodes // self.episodes_per_round

    @property
    def episodes_per_round(self) -> int:
        """H for rules that deploy each policy once per step, else 1."""
        return self.explorer.deployment.episodes_per_round(self.horizon)

    @property
    def horizon(self) -> int:
        """H."""
        return self.world.spaces.horizon

    @property
    def about(self) -> dict[str, str | int | float]:
        """The task as text and numbers that can be saved."""
        hindsight = {} if self.reveal is None else {"reveal": str(self.reveal)}
        return {
            "model": self.world.homdp.name,
            "learner": self.model.name,
            "explorer": self.explorer.name,
            "soundness": self.explorer.about.soundness,
            "seed": self.seed,
            "episodes": self.episodes,
            "horizon": self.horizon,
            "episodes_per_round": self.episodes_per_round,
            "optimum": self.optimum,
            "scale": self.world.homdp.rewards.scale,
            "shift": self.world.homdp.rewards.shift,
            "foresight": int(self.foresight),
            "estimated": int(self.estimated),
            "slack": self.slack,
            **hindsight,
            **({} if self.log is None else {"log": len(self.log.episodes)}),
        }

    def learner(self) -> Learner:
        """The learner, without the world."""
        parts = self.model, self.explorer, self.planner, self.episodes, self.seed, self.simulations
        return Learner(*parts, log=self.log, hindsight=self.hindsight)

    @property
    def hindsight(self) -> Hindsight:
        """What decides which states are revealed."""
        return hindsight_of(self.reveal)

    def shown(self, episode: Episode, number: int) -> Episode:
        """Episode ``number``, from 0, as it is revealed to the learner."""
        if isinstance(self.reveal, Declared):
            return self.reveal.episode(episode, self.seed, number)
        return episode if self.reveal is None else revealed(self.reveal, episode, self.seed, number)

    def all_shown(self, played: Episodes) -> Episodes:
        """All episodes of a run as they are revealed to the learner."""
        if isinstance(self.reveal, Declared):
            return self.reveal.shown(played, self.seed)
        return played if self.reveal is None else with_masks(self.reveal, played, self.seed)

    def counts(self, episodes: Episodes) -> Counts:
        """The counts of the log and of these episodes; raises an error if states are missing."""
        counts = Counts.of(episodes, self.model)
        known = None if self.log is None else self.log.counts
        if self.log is not None and self.log.evidence is not None:
            self.log.episodes.require_revealed("counts")
        return counts if known is None else known + counts

    def rounds_of(self, stop_after: int | None) -> int:
        """The number of rounds in a number of episodes; None for the whole run."""
        if stop_after is None:
            return self.rounds
        problems = stop_problems(stop_after, self.episodes)
        if problems:
            raise ParameterError("resume", problems)
        return min(int(stop_after) // self.episodes_per_round, self.rounds)


def stop_problems(stop_after: Any, episodes: Any) -> list[Problem]:
    """Problems with ``stop_after`` in a run of this many episodes."""
    if stop_after is None:
        return []
    if not is_count(stop_after, 0):
        return [Problem("stop_after", shown(stop_after), "a number of episodes of at least 0")]
    if is_count(episodes) and stop_after > episodes:
        expected = f"at most the {episodes:,} episodes of the whole run"
        return [Problem("stop_after", shown(stop_after), expected)]
    return []
