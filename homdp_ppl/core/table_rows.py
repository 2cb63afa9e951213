"""The order of a table's rows: episodes, steps, gaps, duplicates, and the state after the end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.episode_values import Known, Values
from homdp_ppl.core.table_problems import Report
from homdp_ppl.errors import Problem

NO_STEP = "Pass step=None if the rows of each episode are in order."
TWICE = "Leave out one of them, or pass step=None if the rows of each episode are in order."


class Rows(NamedTuple):
    """The rows of a table, sorted by episode and step."""

    row: Values  # (n,)  the number of each row in the table
    episode: Values  # (n,)  its episode, from 0
    place: Values  # (n,)  its place in the episode, from 0
    acted: Known  # (n,)  whether it is a step; otherwise it only has the state after the end
    ids: Values  # (N,)
    start: Values  # (N + 1,)  where each episode begins
    twice: bool = False  # whether some step occurs twice

    @property
    def length(self) -> Values:
        """The number of steps of each episode, (N,)."""
        return np.bincount(self.episode, weights=self.acted, minlength=len(self.ids)).astype(int)

    @property
    def last(self) -> Values:
        """The last row of each episode, (N,)."""
        return self.start[1:] - 1

    def at(self, chosen: Known | Values) -> Values:
        """The numbers of some rows in the table, in ascending order."""
        return np.sort(self.row[chosen])


class Steps(NamedTuple):
    """The column of the steps."""

    name: str
    order: Values | None  # (n,)  a number that orders the rows; None if they are in order
    numbered: bool  # whether it numbers the steps, from 0 if some row has step 0, else from 1


def arranged(
    episode: Values, ids: Values, steps: Steps, used: Known, acted: Known, report: Report
) -> Rows:
    """Sort rows by episode and step, and report gaps and duplicates.

    Parameters
    ----------
    episode, ids
        The episode of each row, from 0, or -1 if it is not known, and the ids of the episodes.
    steps
        The column of the steps.
    used
        The rows with any value. Others are ignored.
    acted
        The rows with an observation or an action.
    report
        Collects the problems.
    """
    placed = used & (episode >= 0)
    row = np.arange(len(episode)) if placed.all() else np.flatnonzero(placed)
    key, order = episode[row], None if steps.order is None else steps.order[row]
    follows = np.diff(key)
    sorted_already = (follows >= 0).all() and (
        order is None or ((np.diff(order) > 0) | (follows > 0)).all()
    )
    if not sorted_already:
        by = np.argsort(key, kind="stable") if order is None else np.lexsort((order, key))
        row, key, order = row[by], key[by], None if order is None else order[by]
    found, first = np.unique(key, return_index=True)  # some may have unused rows only
    start = np.append(first, len(row))
    own = np.repeat(np.arange(len(found)), np.diff(start))
    place = np.arange(len(row)) - start[own]
    rows = Rows(row, own, place, acted[row], ids[found], start)
    if order is not None and len(row):
        whole = bool((episode[used] >= 0).all())
        return rows._replace(twice=_check_order(rows, order, steps, report, whole))
    return rows


def _check_order(rows: Rows, order: Values, steps: Steps, report: Report, whole: bool) -> bool:
    """Report steps that occur twice, that are missing, or that do not start with 0 or 1.

    If not the ``whole`` table has ids, missing steps may be in the rows without one: only steps
    that occur twice are reported then. Returns whether there are any.
    """
    same = rows.place[1:] > 0
    twice = np.flatnonzero(same & (np.diff(order) == 0)) + 1
    report.each(
        [np.sort(rows.row[[k - 1, k]]) for k in twice],
        lambda k: Problem(
            steps.name,
            f"two rows for {_step(order[twice[k]], steps.numbered)} of {_episode(rows, twice[k])}",
            "one row per step",
            TWICE,
        ),
    )
    if not (steps.numbered and whole):
        return bool(len(twice))
    low = int(order.min())
    if low not in (0, 1):
        at = rows.at(order == low)
        report.add(steps.name, at, str(low), "steps that are numbered from 0 or from 1", NO_STEP)
        return bool(len(twice))
    before = np.append(low - 1, order[:-1])
    before[rows.place == 0] = low - 1
    gaps = np.flatnonzero(order > before + 1)

    def gap(k: int) -> Problem:
        h, previous = int(order[gaps[k]]), int(before[gaps[k]])
        missing = f"{previous + 1}" if h == previous + 2 else f"{previous + 1} to {h - 1}"
        got = f"nothing for step {missing} of {_episode(rows, gaps[k])}"
        remedy = NO_STEP if previous >= low else f"Steps are counted from {low} in this table."
        return Problem(steps.name, got, "a row for every step", remedy)

    report.each([rows.row[[k]] for k in gaps], gap)
    return bool(len(twice))


def check_steps(rows: Rows, missing: dict[str, Known], horizon: int, report: Report) -> None:
    """Report steps without an observation or an action, and episodes that are too long.

    Parameters
    ----------
    rows
        The sorted rows.
    missing
        For the columns of observations and actions, the sorted rows without a value.
    horizon
        H.
    report
        Collects the problems.
    """
    ends = np.zeros(len(rows.row), dtype=bool)
    ends[rows.last] = True
    remedy = "Only the row after the last action may have neither observation nor action."
    for column, absent in missing.items():
        wrong = absent & (rows.acted | ~ends)
        if wrong.any():
            report.add(column, rows.at(wrong), "no value", "a value for every step", remedy)
    if rows.twice:
        return
    length = rows.length
    long = np.flatnonzero((rows.place == horizon) & (length[rows.episode] > horizon))
    expected = f"at most {horizon}, the horizon"
    remedy = "Declare a longer horizon: homdp.with_horizon(...)."
    report.each(
        [rows.row[[k]] for k in long],
        lambda k: Problem(
            "length",
            f"{length[rows.episode[long[k]]]} steps in {_episode(rows, long[k])}",
            expected,
            remedy,
        ),
    )
    further = np.flatnonzero((rows.place == horizon + 1) & ~rows.acted)
    several = further[length[rows.episode[further]] <= horizon]
    report.each(
        [rows.row[[k]] for k in several],
        lambda k: Problem(
            "length", f"a row after the end of {_episode(rows, several[k])}", "one state after it"
        ),
    )


def _step(number: int, numbered: bool) -> str:
    return f"step {number}" if numbered else "the same time"


def _episode(rows: Rows, k: int) -> str:
    return f"episode {str(rows.ids[rows.episode[k]])!r}"
