"""The record of a run: columns with one entry per round or per episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.rollout import cut_at_end
from homdp_ppl.core.spaces import HasSpaces, Space, Spaces, is_real, names_of, shape_of
from homdp_ppl.precision import Array

BY_ROUND = (
    "values",
    "optimistic",
    "planned",
    "plans",
)  # the other columns have one entry per episode
REAL = ("values", "optimistic", "played")  # NaN where there is no value


@dataclass(frozen=True, eq=False)
class Record:
    """The columns of a run, each with one entry per round or per episode."""

    values: Array  # (rounds,)  of the round's policy in the true world, exact unless estimated
    optimistic: Array  # (rounds,)  the optimistic value
    planned: Array  # (rounds,)  whether the round planned
    plans: Array  # (rounds,)  number of models that were planned for
    played: Array  # (episodes,)  value of the deployed policy
    impossible: Array  # (episodes,)  observations that the planned model excludes
    observations: Array  # (episodes, H, ...)  with another axis for vectors
    actions: Array  # (episodes, H)
    states: Array  # (episodes, H + 1, ...)  with another axis for vectors
    rewards: Array | None = None  # (episodes, H)  in the user's units; None if they are known

    @property
    def columns(self) -> dict[str, Array]:
        """The columns by name; without rewards if they are known."""
        every = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: column for name, column in every.items() if column is not None}

    def episodes(self, spaces: Spaces, behaviour: str | None = None) -> Episodes:
        """All episodes, with all their states.

        Parameters
        ----------
        spaces
            The spaces of the world.
        behaviour
            On what the actions may depend.
        """
        parts = self.observations, self.actions, self.states
        played = Episodes(*parts, rewards=self.rewards, behaviour=behaviour)
        return cut_at_end(played, spaces.ends) if spaces.terminal else played

    @classmethod
    def empty(cls, model: HasSpaces) -> Record:
        """An empty record for a model with these spaces."""
        states, observations, _, H, _ = model.spaces
        real, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
        actions = np.zeros((0, H), dtype=np.int64)
        seen, hidden = _nothing(observations, H), _nothing(states, H + 1)
        return cls(real, real, whole.astype(bool), whole, real, whole, seen, actions, hidden)

    def __add__(self, more: Record) -> Record:
        """Append another record."""
        mine, theirs = self.columns, more.columns
        both = {name: np.concatenate([mine[name], theirs[name]]) for name in mine if name in theirs}
        return Record(**{**theirs, **mine, **both})  # an empty record has no column of rewards

    def since(self, rounds: int, episodes: int) -> Record:
        """The entries after this many rounds and episodes."""
        return self._cut(slice(rounds, None), slice(episodes, None))

    def until(self, rounds: int, episodes: int) -> Record:
        """The entries of the first rounds and episodes."""
        return self._cut(slice(rounds), slice(episodes))

    def same_as(self, other: Record) -> bool:
        """Whether two records are equal, apart from the number of plans."""
        mine, theirs = self.columns, other.columns
        return mine.keys() == theirs.keys() and all(
            np.array_equal(column, theirs[name], equal_nan=name in REAL)
            for name, column in mine.items()
            if name != "plans"
        )

    def _cut(self, rounds: slice, episodes: slice) -> Record:
        return Record(
            **{
                name: column[rounds if name in BY_ROUND else episodes]
                for name, column in self.columns.items()
            }
        )


class Writer:
    """Builds a record entry by entry."""

    def __init__(self, model: HasSpaces) -> None:
        self._spaces = model.spaces
        self._rounds: list[tuple[Any, ...]] = []
        self._episodes: list[tuple[Any, ...]] = []

    def round(self, value: float, optimistic: float, planned: bool, plans: int) -> None:
        """Append a finished round."""
        self._rounds.append((value, optimistic, planned, plans))

    def episode(self, episode: Episode, value: float, impossible: Array) -> None:
        """Append a finished episode."""
        self._episodes.append((value, int(impossible), *_to_horizon(episode, self._spaces)))

    def record(self) -> Record:
        """The record so far."""
        empty = Record.empty(self._spaces)
        rounds, episodes = zip(*self._rounds, strict=True), zip(*self._episodes, strict=True)
        columns = [np.array(column) for part in (rounds, episodes) for column in part]
        return Record(*columns) if columns else empty


def _to_horizon(episode: Episode, spaces: Spaces) -> tuple[Array, ...]:
    """Observations, actions, states and random rewards of an episode that stays in its terminal
    state.

    There the observation is the last one, "ended", the action is the first one, and rewards are 0.
    """
    after = spaces.horizon - len(episode.actions)
    parts = [episode.observations, episode.actions, episode.states]
    parts += [] if episode.rewards is None else [episode.rewards]
    if not after:
        return tuple(parts)
    fill = len(names_of(spaces.observations)) - 1, 0, int(episode.states[-1]), 0.0
    return tuple(
        np.append(part, np.full(after, value)) for part, value in zip(parts, fill, strict=False)
    )


def _nothing(space: Space, steps: int) -> Array:
    return np.zeros((0, steps, *shape_of(space)), dtype=np.float64 if is_real(space) else np.int64)
