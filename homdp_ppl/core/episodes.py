"""Many episodes in one container: padded arrays with masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import repeat
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.episode import Episode, hide
from homdp_ppl.core.episode_rows import problems_of_one, stacked
from homdp_ppl.core.episode_validation import (
    incomplete_problems,
    problems_of,
    structure_problems,
    unseen_problems,
)
from homdp_ppl.core.episode_values import Known, Values, blank, in_space, split_missing
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.spaces import HasSpaces, Spaces
from homdp_ppl.errors import DataError, Problem

SAW_STATES = "saw states"  # the behaviour of actions that may depend on latent states


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Episodes:
    """Episodes of one horizon H, as arrays with one row per episode.

    Rows are padded after the end of an episode. Entries that are padding or missing are 0 for
    indices and NaN for real numbers, and nothing reads them.

    ``episodes[3]`` is an :class:`Episode`; slices, arrays of indices and masks give
    :class:`Episodes`; ``one + other`` joins them.

    Parameters
    ----------
    observations, actions
        (N, H), and the axes of vectors.
    states
        (N, H + 1). Masked entries, None and NaN are states that were not revealed.
    revealed
        (N, H + 1), which states are known; all that are not missing in ``states`` by default.
    rewards, labels
        (N, H) and (N, H + 1), or None. Missing entries are marked as in ``states``.
    rewards_known, labels_known
        Which of them are known.
    length
        (N,), the number of steps of each episode; H by default.
    ended
        "horizon", "terminal" or "truncated", one for all episodes or one for each.
    ids
        A name for each episode, or None.
    behaviour
        Who acted: a description of the policy, "saw states" if the actions may depend on latent
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
    ids: Values | None  # (N,) of text; None where an episode has no id
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
        seen, saw = _read("observations", observations)
        done, did = _read("actions", actions)
        hidden, known = _read("states", states)
        N, H = done.shape[:2] if done.ndim == 2 else (-1, -1)
        steps = np.full(max(N, 0), H) if length is None else np.asarray(length)
        reasons = np.asarray(ended, dtype="<U10")
        names = None if ids is None else np.array(ids, dtype=object)
        given: dict[str, tuple[Values | None, Values | None]] = {
            "states": (hidden, known),
            "rewards": (None, None) if rewards is None else _read("rewards", rewards),
            "labels": (None, None) if labels is None else _read("labels", labels),
        }
        masks = {"states": revealed, "rewards": rewards_known, "labels": labels_known}
        structure = {"observations": seen, "actions": done, "length": steps, "ended": reasons}
        structure |= {name: part for name, (part, _) in given.items() if part is not None}
        structure |= {f"known {k}": np.asarray(m) for k, m in masks.items() if m is not None}
        structure |= {} if names is None else {"ids": names}
        problems = structure_problems(structure)
        if problems:
            raise DataError("episodes", problems)
        short = length is not None and bool((steps < H).any())
        present = np.arange(H + 1) <= steps[:, None] if short else None
        problems = unseen_problems({"observations": saw, "actions": did}, present, names)
        if problems:
            raise DataError("episodes", problems)
        put = _setter(self)
        put("observations", _padded(seen, present))
        put("actions", _padded(done, present))
        for name, mask in (("states", "revealed"), ("rewards", None), ("labels", None)):
            part, found = given[name]
            stored, there = _masked(part, found, masks[name], present)
            put(name, stored)
            put(mask or f"{name}_known", there)
        put("length", steps)
        put("ended", np.full(N, reasons) if reasons.ndim == 0 else reasons)
        put("ids", names)
        put("behaviour", behaviour)

    @classmethod
    def of(cls, data: Episode | Iterable[Episode | Episodes], model: HasSpaces) -> Episodes:
        """Episodes validated against the spaces of a model; all problems are reported together.

        Parameters
        ----------
        data
            An episode, episodes, or an iterable of either. Values are indices, names, or real
            numbers.
        model
            A declaration, a world, or spaces.

        Raises
        ------
        DataError
            Shapes, lengths, names, indices or ids are wrong.

        Examples
        --------
        >>> from homdp_ppl import Spaces
        >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
        >>> one = Episode.of(["dark", "light"], ["press", "wait"], ["off", "on", "on"], lamp)
        >>> Episodes.of([one, one], lamp)
        Episodes: 2 episodes of 2 steps
        """
        spaces = model.spaces
        joined = data if isinstance(data, Episodes) else _joined(data, spaces)
        coded, problems = _in_spaces(joined, spaces)
        problems = problems or problems_of(coded, spaces)
        if problems:
            raise DataError("episodes", problems)
        return coded

    @classmethod
    def concatenate(cls, parts: Iterable[Episodes]) -> Episodes:
        """All episodes of several containers, in their order.

        Where the behaviours differ, the result has "saw states" if one of them has it, else None.
        """
        listed = list(parts)
        horizons = sorted({part.horizon for part in listed})
        if len(horizons) != 1:
            got = f"horizons {horizons}" if listed else "none"
            raise DataError("episodes", [Problem("parts", got, "episodes of one horizon")])
        together = {name: _together(listed, name) for name in ("observations", "actions", "states")}
        behaviours = {part.behaviour for part in listed}
        behaviour = behaviours.pop() if len(behaviours) == 1 else None
        return cls(
            **together,
            revealed=np.concatenate([part.revealed for part in listed]),
            rewards=_optional(listed, "rewards"),
            rewards_known=_optional(listed, "rewards_known"),
            labels=_optional(listed, "labels"),
            labels_known=_optional(listed, "labels_known"),
            length=np.concatenate([part.length for part in listed]),
            ended=np.concatenate([part.ended for part in listed]),
            ids=_optional(listed, "ids"),
            behaviour=SAW_STATES if SAW_STATES in behaviours else behaviour,
        )

    @property
    def horizon(self) -> int:
        """H, the number of steps of the longest episodes that fit."""
        return int(self.actions.shape[1])

    @property
    def steps(self) -> Known:
        """(N, H), which steps were taken."""
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

    def require_revealed(self, subject: str) -> Episodes:
        """These episodes if all states up to the end of each are revealed; otherwise an error."""
        return self._require(incomplete_problems(self, any_length=True), subject)

    def require_complete(self, subject: str) -> Episodes:
        """These episodes if they all have H steps and revealed states; otherwise an error."""
        return self._require(incomplete_problems(self, any_length=False), subject)

    def _require(self, problems: list[Problem], subject: str) -> Episodes:
        if problems:
            raise DataError(subject, problems)
        return self

    def same_as(self, other: Episodes) -> bool:
        """Whether both contain the same episodes in the same order."""
        return self.behaviour == other.behaviour and all(
            _equal(getattr(self, each.name), getattr(other, each.name))
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
                expected = "an integer, a slice, integers, or a mask"
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
            rewards = _shown(self.rewards[k, :L], self.rewards_known[k, :L])
        if self.labels is not None and self.labels_known is not None:
            labels = _shown(self.labels[k, : L + 1], self.labels_known[k, : L + 1])
        return Episode(
            Trajectory(self.observations[k, :L], self.actions[k, :L]),
            _shown(states, revealed),
            rewards,
            labels,
            None if self.ids is None else self.ids[k],
            str(self.ended[k]),  # type: ignore[arg-type]
        )

    def __repr__(self) -> str:
        n, H = len(self), self.horizon
        said = [f"Episodes: {n:,} episode{'s' * (n != 1)} of {H:,} step{'s' * (H != 1)}"]
        early = [f"{(self.length < H).sum():,} ended early"] if not self.full_length else []
        known = [("states", self.revealed, self.length + 1)]
        if self.rewards_known is not None:
            known.append(("rewards", self.rewards_known, self.length))
        if self.labels_known is not None:
            known.append(("labels", self.labels_known, self.length + 1))
        counted = [(name, int(each.sum()), int(mask.sum())) for name, mask, each in known]
        lost = [f"{a - b:,} of {a:,} {name} missing" for name, a, b in counted if b < a]
        present = [f"with {name}" for name, a, b in counted[1:] if a == b]
        actor = [] if self.behaviour is None else [f"behaviour: {self.behaviour}"]
        return ", ".join([*said, *early, *lost, *present, *actor])


def _setter(episodes: Episodes) -> Any:
    return lambda name, value: object.__setattr__(episodes, name, value)


def _unchecked(**parts: Any) -> Episodes:
    """Episodes of arrays that are known to fit."""
    episodes = object.__new__(Episodes)
    for name, value in parts.items():
        object.__setattr__(episodes, name, value)
    return episodes


def _read(where: str, values: ArrayLike) -> tuple[Values, Known | None]:
    try:
        return split_missing(values, axes=2)
    except ValueError:  # of NumPy, for lists of different lengths
        got, expected = "rows of different lengths", "an array, padded and with a length"
        remedy = "Episodes.of([...], spaces) pads single episodes."
        raise DataError("episodes", [Problem(where, got, expected, remedy)]) from None


def _padded(values: Values, present: Known | None) -> Values:
    """Values with blanks after the end of each episode."""
    if present is None:
        return values
    cleared = values.copy()
    cleared[~present[:, 1:]] = blank(values.dtype)
    return cleared


def _masked(
    values: Values | None, found: Known | None, given: ArrayLike | None, present: Known | None
) -> tuple[Values | None, Known | None]:
    """Values and which are known: found in them, given, and before the end of each episode."""
    if values is None:
        return None, None
    known = np.ones(values.shape[:2], dtype=bool) if found is None else found
    if given is not None:
        known = known & np.asarray(given, dtype=bool)
    if present is not None:
        known = known & (present if known.shape[1] == present.shape[1] else present[:, 1:])
    if (given is not None or present is not None) and not known.all():
        values = values.copy()
        values[~known] = blank(values.dtype)
    return values, known


def _shown(values: Values, known: Known) -> Values:
    return values if known.all() else hide(values, known)


def _in_spaces(episodes: Episodes, spaces: Spaces) -> tuple[Episodes, list[Problem]]:
    """Episodes with names replaced by indices."""
    taken = None if episodes.full_length else episodes.steps
    revealed = None if episodes.revealed.all() else episodes.revealed
    problems: list[Problem] = []
    changed: dict[str, Any] = {}
    for name, known in (("observations", taken), ("actions", taken), ("states", revealed)):
        before: Values = getattr(episodes, name)
        after, wrong = in_space(name, before, known, getattr(spaces, name), episodes.ids)
        problems += wrong
        if after.dtype != before.dtype:
            changed[name] = after
    return replace(episodes, **changed) if changed else episodes, problems


def _joined(data: Any, spaces: Spaces) -> Episodes:
    """One container of an episode, or of many."""
    listed = [data] if isinstance(data, Episode) else data
    if isinstance(data, Trajectory) or not isinstance(listed, Iterable):
        listed = [data]
    parts: list[Episodes] = []
    single: list[Episode] = []
    problems: list[Problem] = []
    number = 0
    for item in listed:
        if isinstance(item, Episodes):
            parts += [_rows_of(single, spaces), item] if single else [item]
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
    """Episodes of H steps with all states revealed, of arrays that are known to fit."""
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


def _together(parts: list[Episodes], name: str) -> Values:
    arrays = [getattr(part, name) for part in parts]
    full = [array for array in arrays if len(array)] or arrays
    return np.concatenate(full)


def _optional(parts: list[Episodes], name: str) -> Values | None:
    """A column that some parts have, with blanks for the others."""
    columns = [getattr(part, name) for part in parts]
    example = next((column for column in columns if column is not None), None)
    if example is None:
        return None
    empty = None if example.dtype.kind == "O" else blank(example.dtype)
    return np.concatenate(
        [
            np.full((len(part), *example.shape[1:]), empty, dtype=example.dtype)
            if column is None
            else column
            for part, column in zip(parts, columns, strict=True)
        ]
    )


def _equal(one: Values | None, other: Values | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")
