"""The record of a run: columns with one entry per round or per episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from homdp_ppl.core.episode import Episode
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
        names = self.__dataclass_fields__
        return Record(
            **{name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in names}
        )

    def since(self, rounds: int, episodes: int) -> Record:
        """The entries after this many rounds and episodes."""
        return self._cut(slice(rounds, None), slice(episodes, None))

    def until(self, rounds: int, episodes: int) -> Record:
        """The entries of the first rounds and episodes."""
        return self._cut(slice(rounds), slice(episodes))

    def same_as(self, other: Record) -> bool:
        """Whether two records are equal, apart from the number of plans."""
        names = [name for name in self.__dataclass_fields__ if name != "plans"]
        return all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name in REAL)
            for name in names
        )

    def _cut(self, rounds: slice, episodes: slice) -> Record:
        return Record(
            **{
                name: getattr(self, name)[rounds if name in BY_ROUND else episodes]
                for name in self.__dataclass_fields__
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


def _to_horizon(episode: Episode, spaces: Spaces) -> tuple[Array, Array, Array]:
    """Observations, actions and states of an episode, which stays in its terminal state.

    There the observation is the last one, "ended", and the action is the first one.
    """
    after = spaces.horizon - len(episode.actions)
    parts = episode.observations, episode.actions, episode.states
    if not after:
        return parts
    fill = len(names_of(spaces.observations)) - 1, 0, int(episode.states[-1])
    seen, done, hidden = (
        np.append(part, np.full(after, value)) for part, value in zip(parts, fill, strict=True)
    )
    return seen, done, hidden


def _nothing(space: Space, steps: int) -> Array:
    return np.zeros((0, steps, *shape_of(space)), dtype=np.float64 if is_real(space) else np.int64)
