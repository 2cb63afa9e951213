"""A container for many episodes: padded arrays with masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import repeat
from typing import Any, overload

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episode_columns import column, columns_of, equal, optional_column, shown
from homdp_ppl.core.episode_rows import problems_of_one, stacked
from homdp_ppl.core.episode_validation import incomplete_problems, problems_of, summary
from homdp_ppl.core.episode_values import Known, Values, in_space
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.spaces import HasSpaces, Spaces, entry_place, names_of
from homdp_ppl.core.table_methods import TableMethods
from homdp_ppl.errors import DataError, Problem

SAW_STATES = "saw states"  # the behaviour if actions may depend on latent states


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Episodes(TableMethods):
    """Many episodes with the same horizon H, as arrays with one row per episode.

    Rows are padded after the end of an episode. Padding and missing entries are 0 for indices and
    NaN for real numbers; they are never used.

    ``episodes[3]`` is an :class:`Episode`. Slices, arrays of indices and masks return
    :class:`Episodes`. ``one + other`` concatenates two containers.

    Parameters
    ----------
    observations, actions
        Arrays (N, H), with extra axes for vectors.
    states
        An array (N, H + 1). Masked entries, None and NaN are states that were not revealed.
    revealed
        A mask (N, H + 1) of the known states; by default, all that are not missing in ``states``.
    rewards, labels
        Arrays (N, H) and (N, H + 1), or None. Missing entries are marked as in ``states``.
    rewards_known, labels_known
        Masks of the known rewards and labels.
    length
        The number of steps of each episode, (N,); H by default.
    ended
        "horizon", "terminal" or "truncated", for all episodes or for each.
    ids
        A name for each episode, or None.
    behaviour
        A description of the policy that acted, "saw states" if the actions may depend on latent
        states, or None.

    Examples
    --------
    >>> import numpy as np
    >>> log = Episodes(
    ...     observations=[[0, 1], [1, 1]],
    ...     actions=[[1, 0], [0, 0]],
    ...     states=[[0, 0, 1], [1, None, 0]],
    ... )
    >>> log
    Episodes: 2 episodes of 2 steps, 1 of 6 states missing
    >>> log.revealed[1], log[1].states.tolist(), len(log[:1])
    (array([ True, False,  True]), [1, None, 0], 1)
    """

    observations: Values  # (N, H)      y_1 .. y_H
    actions: Values  # (N, H)      a_1 .. a_H
    states: Values  # (N, H + 1)  x_1 .. x_{H+1}
    revealed: Known  # (N, H + 1)
    rewards: Values | None  # (N, H)
    rewards_known: Known | None
    labels: Values | None  # (N, H + 1)
    labels_known: Known | None
    length: Values  # (N,)
    ended: Values  # (N,)
    ids: Values | None  # (N,) strings; None for an episode without an id
    behaviour: str | None

    def __init__(
        self,
        observations: ArrayLike,
        actions: ArrayLike,
        states: ArrayLike,
        revealed: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        rewards_known: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        labels_known: ArrayLike | None = None,
        length: ArrayLike | None = None,
        ended: ArrayLike = "horizon",
        ids: ArrayLike | Sequence[str | None] | None = None,
        behaviour: str | None = None,
    ) -> None:
        values = {"states": states, "rewards": rewards, "labels": labels}
        known = {"states": revealed, "rewards": rewards_known, "labels": labels_known}
        columns = columns_of(observations, actions, values, known, length, ended, ids)
        _fill(self, {**columns, "behaviour": behaviour})

    @classmethod
    @checked
    def of(cls, data: Episode | Iterable[Episode | Episodes], model: HasSpaces) -> Episodes:
        """Validate episodes against the spaces of a model; all problems are reported together.

        Parameters
        ----------
        data
            An episode, episodes, or an iterable of either. Values are indices, names or real
            numbers.
        model
            A declaration, a world or spaces.

        Raises
        ------
        DataError
            If shapes, lengths, names, indices or ids are invalid.

        Examples
        --------
        >>> from homdp_ppl import Spaces
        >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
        >>> one = Episode.of(["dark", "light"], ["press", "wait"], ["off", "on", "on"], lamp)
        >>> Episodes.of([one, one], lamp)
        Episodes: 2 episodes of 2 steps
        """
        spaces = spaces_of(model, "episodes")
        joined = data if isinstance(data, Episodes) else _joined(data, spaces)
        coded, problems = _in_spaces(joined, spaces)
        problems = problems or problems_of(coded, spaces)
        if problems:
            raise DataError("episodes", problems)
        return coded

    @classmethod
    @checked
    def concatenate(cls, parts: Iterable[Episodes]) -> Episodes:
        """Concatenate several containers.

        If their behaviours differ, the result has the behaviour "saw states" if one of them has
        it, else None.
        """
        listed = list(parts)
        horizons = sorted({part.horizon for part in listed})
        if len(horizons) != 1:
            got = f"horizons {horizons}" if listed else "none"
            raise DataError("episodes", [Problem("parts", got, "episodes with the same horizon")])
        named = {part.states.dtype.kind == "U" for part in listed if len(part)}
        if len(named) > 1:
            remedy = "Convert names with Episodes.of([...], model)."
            problem = Problem("parts", "names and indices", "one of the two", remedy)
            raise DataError("episodes", [problem])
        sizes = [len(part) for part in listed]
        columns = {each.name: [getattr(part, each.name) for part in listed] for each in fields(cls)}
        behaviours = set(columns["behaviour"])
        behaviour = columns["behaviour"][0] if len(behaviours) == 1 else None
        always = ("observations", "actions", "states", "revealed", "length", "ended")
        optional = ("rewards", "rewards_known", "labels", "labels_known", "ids")
        return _unchecked(
            **{name: column(columns[name]) for name in always},
            **{name: optional_column(columns[name], sizes) for name in optional},
            behaviour=SAW_STATES if SAW_STATES in behaviours else behaviour,
        )

    @property
    def horizon(self) -> int:
        """H, the largest possible number of steps."""
        return int(self.actions.shape[1])

    @property
    def steps(self) -> Known:
        """The mask (N, H) of steps that were taken."""
        taken: Known = np.arange(self.horizon) < self.length[:, None]
        return taken

    @property
    def full_length(self) -> bool:
        """Whether all episodes have H steps."""
        return bool((self.length == self.horizon).all())

    @property
    def complete(self) -> bool:
        """Whether all episodes have H steps and all their states are revealed."""
        return bool(self.revealed.all())

    @checked
    def require_revealed(self, subject: str) -> Episodes:
        """Return the episodes; raise an error unless all states up to each end are revealed."""
        return self._require(incomplete_problems(self), subject)

    @checked
    def to_horizon(self, spaces: Spaces, subject: str) -> Episodes:
        """Episodes of H steps: after its end, an episode stays in its terminal state.

        There the observation is "ended", the action is the first one, and a recorded reward is 0.
        Raises an error for missing states, and for truncated episodes, whose further states are
        unknown.
        """
        self.require_revealed(subject)
        cut = np.flatnonzero((self.length < self.horizon) & (self.ended != "terminal"))
        if len(cut):
            got = f"{len(cut):,} of {len(self):,} episodes are truncated"
            expected = f"{self.horizon} steps, or a terminal state at the end"
            remedy = "Use posterior(homdp, episodes), which counts episodes up to their end."
            place = entry_place((cut[0], int(self.length[cut[0]]) - 1), self.ids)
            problem = Problem("length", got, expected, remedy, f"first in {place}")
            raise DataError(subject, [problem])
        if self.full_length:
            return self
        index = np.minimum(np.arange(self.horizon + 1), self.length[:, None])
        ended = len(names_of(spaces.observations)) - 1
        rewards, known = self.rewards, self.rewards_known
        return Episodes(
            np.where(self.steps, self.observations, ended),
            np.where(self.steps, self.actions, 0),
            np.take_along_axis(self.states, index, axis=1),
            rewards=None if rewards is None else np.where(self.steps, rewards, 0),
            rewards_known=None if known is None else known | ~self.steps,
        )

    def _require(self, problems: list[Problem], subject: str) -> Episodes:
        if problems:
            raise DataError(subject, problems)
        return self

    @checked
    def same_as(self, other: Episodes) -> bool:
        """Whether both contain the same episodes in the same order."""
        return self.behaviour == other.behaviour and all(
            equal(getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)
            if each.name != "behaviour"
        )

    def __len__(self) -> int:
        return len(self.actions)

    def __add__(self, other: Episodes) -> Episodes:
        if not isinstance(other, Episodes):
            return NotImplemented
        return Episodes.concatenate([self, other])

    def __iter__(self) -> Iterator[Episode]:
        if not self.complete or self.rewards is not None or self.labels is not None:
            return (self._episode(k) for k in range(len(self)))
        ids: Iterable[str | None] = repeat(None) if self.ids is None else self.ids
        rows = zip(self.observations, self.actions, self.states, ids, self.ended, strict=False)
        return (Episode(Trajectory(y, a), x, id=i, ended=str(e)) for y, a, x, i, e in rows)  # type: ignore[arg-type]

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Episode: ...

    @overload
    def __getitem__(self, index: slice | ArrayLike) -> Episodes: ...

    def __getitem__(self, index: Any) -> Episode | Episodes:
        if isinstance(index, int | np.integer) and not isinstance(index, bool):
            return self._episode(index)
        rows = index if isinstance(index, slice) else np.asarray(index)
        if not isinstance(rows, slice):
            if rows.ndim == 0 and rows.dtype.kind in "iu":
                return self._episode(int(rows))
            if rows.ndim != 1 or (rows.dtype.kind not in "iub" and rows.size):
                got = f"an array of shape {rows.shape} and type {rows.dtype}"
                expected = "an integer, a slice, an array of integers or a mask"
                raise DataError("episodes", [Problem("index", got, expected)])
            rows = rows if rows.size else rows.astype(int)
        chosen = {each.name: getattr(self, each.name) for each in fields(self)}
        behaviour = chosen.pop("behaviour")
        return _unchecked(
            behaviour=behaviour,
            **{name: None if part is None else part[rows] for name, part in chosen.items()},
        )

    def _episode(self, k: int | np.integer[Any]) -> Episode:
        L = int(self.length[k])
        states, revealed = self.states[k, : L + 1], self.revealed[k, : L + 1]
        rewards = labels = None
        if self.rewards is not None and self.rewards_known is not None:
            rewards = shown(self.rewards[k, :L], self.rewards_known[k, :L])
        if self.labels is not None and self.labels_known is not None:
            labels = shown(self.labels[k, : L + 1], self.labels_known[k, : L + 1])
        return Episode(
            Trajectory(self.observations[k, :L], self.actions[k, :L]),
            shown(states, revealed),
            rewards,
            labels,
            None if self.ids is None else self.ids[k],
            str(self.ended[k]),  # type: ignore[arg-type]
        )

    def __repr__(self) -> str:
        return summary(self)


def _fill(episodes: Episodes, columns: dict[str, Any]) -> Episodes:
    for name, value in columns.items():
        object.__setattr__(episodes, name, value)
    return episodes


def _unchecked(**columns: Any) -> Episodes:
    """Create episodes from columns without validation."""
    return _fill(object.__new__(Episodes), columns)


def _in_spaces(episodes: Episodes, spaces: Spaces) -> tuple[Episodes, list[Problem]]:
    """Replace names by indices; returns the episodes and the problems."""
    taken = None if episodes.full_length else episodes.steps
    revealed = None if episodes.revealed.all() else episodes.revealed
    problems: list[Problem] = []
    changed: dict[str, Any] = {}
    for name, known in (("observations", taken), ("actions", taken), ("states", revealed)):
        before: Values = getattr(episodes, name)
        after, wrong = in_space(name, before, known, getattr(spaces, name), episodes.ids)
        problems += wrong
        if after.dtype != before.dtype or after.shape != before.shape:
            changed[name] = after
    return replace(episodes, **changed) if changed else episodes, problems


def _joined(data: Any, spaces: Spaces) -> Episodes:
    """Collect an episode, or an iterable of episodes, in one container."""
    listed = [data] if isinstance(data, Episode) else data
    single_thing = isinstance(data, Trajectory | str | jax.Array | np.ndarray)
    if single_thing or not isinstance(listed, Iterable):
        listed = [data]
    parts: list[Episodes] = []
    single: list[Episode] = []
    problems: list[Problem] = []
    number = 0
    for item in listed:
        if isinstance(item, Episodes):
            coded, wrong = _in_spaces(item, spaces)
            problems += wrong
            parts += [_rows_of(single, spaces), coded] if single else [coded]
            single, number = [], number + len(item)
            continue
        problems += problems_of_one(item, spaces, str(number))
        number += 1
        single.append(item)
        if problems and len(problems) > 100:
            break
    if problems:
        raise DataError("episodes", problems)
    if single or not parts:
        parts.append(_rows_of(single, spaces))
    return parts[0] if len(parts) == 1 else Episodes.concatenate(parts)


def _rows_of(episodes: list[Episode], spaces: Spaces) -> Episodes:
    parts = stacked(episodes, spaces)
    if set(parts) - {"observations", "actions", "states"}:
        return Episodes(**parts)
    return _complete(parts["observations"], parts["actions"], parts["states"])


def _complete(observations: Values, actions: Values, states: Values) -> Episodes:
    """Create episodes of H steps with all states revealed, without validation."""
    N, H = actions.shape
    return _unchecked(
        observations=observations,
        actions=actions,
        states=states,
        revealed=np.ones((N, H + 1), dtype=bool),
        rewards=None,
        rewards_known=None,
        labels=None,
        labels_known=None,
        length=np.full(N, H),
        ended=np.full(N, "horizon"),
        ids=None,
        behaviour=None,
    )
