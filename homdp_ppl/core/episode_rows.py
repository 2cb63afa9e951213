"""Conversion of single episodes to the rows of padded arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from homdp_ppl.core.episode import Episode, hide, length_problems, shape_problems
from homdp_ppl.core.episode_values import Known, Values, blank, in_space, split_missing
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.spaces import Real, Space, Spaces, shape_of
from homdp_ppl.errors import DataError, Problem, shown, with_article
from homdp_ppl.memory import NUMBER, count, require_memory


def problems_of_one(item: Any, spaces: Spaces, at: str) -> list[Problem]:
    """Report a wrong type, wrong shapes or a wrong length of an episode."""
    if not isinstance(item, Episode):
        remedy = "Add the states: Episode(trajectory, states)." * isinstance(item, Trajectory)
        return [Problem("episode", with_article(type(item).__name__), "an Episode", remedy, at)]
    if not isinstance(item.trajectory, Trajectory):
        return [Problem("trajectory", shown(item.trajectory), "a Trajectory", at=at)]
    arrays = {}
    for name in ("observations", "actions", "states"):
        given = getattr(item, name)
        try:
            arrays[name] = np.asarray(given)
        except (TypeError, ValueError):  # of NumPy and JAX: lists of different lengths, keys
            return [Problem(name, shown(given), "an array with one value per step", at=at)]
    return shape_problems(arrays, spaces, at) or length_problems(
        len(arrays["actions"]), item.ended, spaces.horizon, at
    )


def stacked(episodes: list[Episode], spaces: Spaces) -> dict[str, Any]:
    """Stack single episodes: returns the arguments of :class:`homdp_ppl.Episodes`.

    Only observations, actions and states if all episodes have H steps and no missing values.
    """
    H = spaces.horizon
    parts: dict[str, Any] = {}
    complete = True
    for name, steps in (("observations", H), ("actions", H), ("states", H + 1)):
        rows = [_plain(getattr(episode, name)) for episode in episodes]
        parts[name] = _rows(rows, steps, getattr(spaces, name), name)
        complete = complete and _without_gaps(parts[name])
    if complete and all(
        each.rewards is None and each.labels is None and each.id is None and each.ended == "horizon"
        for each in episodes
    ):
        return parts
    for name, steps in (("rewards", H), ("labels", H + 1)):
        rows = [getattr(episode, name) for episode in episodes]
        if any(row is not None for row in rows):
            parts[name] = _rows(rows, steps, None, name)
    ids = [episode.id for episode in episodes]
    return {
        **parts,
        "length": np.array([len(episode.actions) for episode in episodes], dtype=int),
        "ended": [episode.ended for episode in episodes],
        "ids": ids if any(name is not None for name in ids) else None,
    }


def _without_gaps(values: Values) -> bool:
    """Whether no entry is masked or NaN."""
    if isinstance(values, np.ma.MaskedArray):
        return False
    return values.dtype.kind != "f" or not np.isnan(values).any()


def _plain(values: Any) -> Values:
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def _rows(rows: list[Any], steps: int, space: Space | None, name: str) -> Values:
    """Stack the values of single episodes, padded to ``steps``; missing values are masked."""
    if not rows and space is not None:
        kind = np.float64 if isinstance(space, Real) else np.int64
        return np.zeros((0, steps, *shape_of(space)), dtype=kind)
    if all(type(row) is np.ndarray and row.dtype.kind in "iuf" for row in rows) and all(
        len(row) == steps for row in rows
    ):
        return np.stack(rows) if len(rows) != 1 else rows[0][None]
    split = [None if row is None else split_missing(row, axes=1) for row in rows]
    coded: list[tuple[Values, Known | None] | None] = []
    problems: list[Problem] = []
    for k, each in enumerate(split):
        if each is None or space is None:
            coded.append(each)
            continue
        values, wrong = in_space(name, each[0], each[1], space)
        problems += [p._replace(at=f"episode {k}, {p.at}") for p in wrong]
        coded.append((values, each[1]))
    if problems:
        raise DataError("episodes", problems)
    kinds = [each[0] for each in coded if each is not None]
    dtype = np.result_type(*kinds)
    numbers = math.prod((len(rows), steps, *kinds[0].shape[1:]))
    got = f"{count(len(rows))} episodes padded to {count(steps)} steps"
    remedy = "Declare a shorter horizon."
    require_memory(DataError, "episodes", name, got, numbers * max(dtype.itemsize, NUMBER), remedy)
    filled = np.full((len(rows), steps, *kinds[0].shape[1:]), blank(dtype), dtype=dtype)
    known = np.zeros((len(rows), steps), dtype=bool)
    for k, each in enumerate(coded):
        if each is not None:
            filled[k, : len(each[0])] = each[0]
            known[k, : len(each[0])] = True if each[1] is None else each[1]
    return hide(filled, known)
