"""Outcomes of table rows: what followed each state and action, against what the rows predict.

These statistics are conditional on the states and actions that were recorded. They do not depend
on the policies, so episodes that others played count as well.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.parameter_rows import row_map
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.declare.kernels import Planned
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array


class Outcomes(NamedTuple):
    """The draws of the rows of one kind of table, in the order of the episodes."""

    table: str  # "initial", "transition" or "emission"
    row: Array  # (n,)  place of the table row, as a flat index
    outcome: Array  # (n,)
    episode: Array  # (n,)  the number of the episode


def outcomes_of(homdp: HOMDP, episodes: Episodes) -> list[Outcomes]:
    """First states, transitions and observations of revealed episodes."""
    taken = episodes.steps
    number = np.broadcast_to(np.arange(len(episodes))[:, None], taken.shape)[taken]
    played = episodes.states, episodes.observations, episodes.actions
    first = np.zeros(len(episodes), dtype=int)
    found = [Outcomes("initial", first, episodes.states[:, 0], np.arange(len(episodes)))]
    shapes = homdp.form.transition, homdp.form.emission
    places = homdp.form.step_places(*played)
    for table, shape, place in zip(("transition", "emission"), shapes, places, strict=True):
        *index, outcome = (np.broadcast_to(part, taken.shape)[taken] for part in place)
        row = np.ravel_multi_index(tuple(index), shape[:-1])
        found.append(Outcomes(table, row, outcome, number))
    return found


def fit(
    generator: np.random.Generator, homdp: HOMDP, data: list[Outcomes], tables: Planned
) -> tuple[Array, Array]:
    """The discrepancy of the counts from each of D models, and that of simulated counts, (D,).

    The discrepancy is that of Freeman and Tukey: the sum of (sqrt(count) - sqrt(expected))^2, which
    stays finite for outcomes of small probability. Observations of several sensors are compared
    for each pair of sensors, so that dependence between them is noticed.

    Parameters
    ----------
    generator
        The random numbers.
    homdp
        The declaration.
    data
        The outcomes of some kinds of tables.
    tables
        The tables in D models, in the form of the declaration with a leading axis.
    """
    ours, theirs = np.zeros((2, len(tables.initial)))
    for part in data:
        models = rows_of(tables, part.table)
        rows, place = np.unique(part.row, return_inverse=True)
        counts = np.zeros((len(rows), models.shape[-1]))
        np.add.at(counts, (place, part.outcome), 1.0)
        p = np.clip(models[:, rows], 0.0, None)
        p = p / p.sum(-1, keepdims=True)
        n = counts.sum(1)
        made = generator.multinomial(n.astype(int), p)  # (D, rows, outcomes)
        for view in _views(homdp, part.table):
            expected = np.sqrt(view(n[:, None] * p))
            ours += ((np.sqrt(view(counts)) - expected) ** 2).sum((1, 2))
            theirs += ((np.sqrt(view(made)) - expected) ** 2).sum((1, 2))
    return ours, theirs


class _Whole:
    """The counts as they are."""

    def __call__(self, counts: Array) -> Array:
        return counts


class _Pair:
    """The counts of two sensors together."""

    def __init__(self, shape: tuple[int, ...], pair: tuple[int, int]) -> None:
        self._shape, self._others = shape, tuple(k for k in range(len(shape)) if k not in pair)

    def __call__(self, counts: Array) -> Array:
        joint = counts[..., : prod(self._shape)].reshape(*counts.shape[:-1], *self._shape)
        lead = counts.ndim - 1
        summed = joint.sum(tuple(lead + k for k in self._others))
        return summed.reshape(*counts.shape[:-1], -1)


def _views(homdp: HOMDP, table: str) -> list[_Whole | _Pair]:
    sensors = homdp.spaces.sensors
    if table != "emission" or len(sensors) < 3:
        return [_Whole()]
    shape = tuple(len(names) for names in sensors.values())
    return [_Pair(shape, pair) for pair in combinations(range(len(shape)), 2)]


def rows_of(tables: Planned, table: str) -> Array:
    """The rows of D tables of one kind, (D, rows, outcomes)."""
    found = np.asarray(getattr(tables, table))
    return found.reshape(len(found), -1, found.shape[-1])


def drift(
    generator: np.random.Generator, homdp: HOMDP, data: list[Outcomes], sets: int
) -> tuple[float, Array]:
    """A statistic of trends over the episodes, and its values after permutations, (sets,).

    The outcomes of a parameter row are exchangeable over time if the parameters are constant. The
    statistic is the sum, over outcomes, of the squared correlation with the number of the episode.
    """
    observed, permuted = 0.0, np.zeros(sets)
    for part in data:
        row, outcome = _pooled(homdp, part)
        for r in np.unique(row[row >= 0]):
            of_row = np.flatnonzero(row == r)
            kinds, labels = np.unique(outcome[of_row], return_inverse=True)
            n = len(of_row)
            if n < 3 or len(kinds) < 2:
                continue
            time = part.episode[of_row].astype(float)
            time -= time.mean()
            if not time.any():
                continue
            shown = np.eye(len(kinds))[labels]  # (n, kinds)
            number = shown.sum(0)
            scale = number * (n - number) / (n * (n - 1)) * (time @ time)
            observed += float(((time @ shown) ** 2 / scale).sum())
            again = generator.permuted(np.broadcast_to(time, (sets, n)), axis=1)
            permuted += ((again @ shown) ** 2 / scale).sum(1)
    return observed, permuted


def _pooled(homdp: HOMDP, data: Outcomes) -> tuple[Array, Array]:
    """The parameter row of each draw, -1 if it has none, and the outcome as a flat index."""
    rows = row_map(homdp)
    place = np.asarray(getattr(rows.place, data.table))
    place = place.reshape(-1, place.shape[-1])
    entry = place[data.row, data.outcome]
    unknown = np.asarray((place >= 0).any(1))[data.row]
    own = len(rows.row) + data.row  # known rows are rows of their own
    labels = np.append(rows.row, -1)  # the last one is used for entries without a place
    row = np.where(unknown, np.where(entry >= 0, labels[entry], -1), own)
    return row, np.where(unknown, entry, data.outcome)
