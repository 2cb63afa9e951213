"""A picture of recorded episodes: lengths, missing states, actions, and visits of table rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from homdp_ppl.core.checked import checked
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.log_summary import LogSummary, RowVisits, Share
from homdp_ppl.core.spaces import HasSpaces
from homdp_ppl.report.formatting import COLOURS, GREY, plain

GROUPS = ("by step", "by observation", "by action")
MOST = 18  # rows and names that are drawn


@checked
def draw_log(log: Episodes, homdp: HasSpaces) -> tuple[Axes, Axes, Axes, Axes]:
    """Plot a log: steps per episode, revealed states, actions by step, and visits of rows.

    Parameters
    ----------
    log
        Recorded episodes.
    homdp
        A declaration, a world or spaces.

    Examples
    --------
    >>> from homdp_ppl import Episodes, models
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> log = Episodes([[0, 1], [0, 0]], [[0, 1], [0, 0]], [[0, 0, 1], [0, None, 0]])
    >>> lengths, revealed, actions, rows = draw_log(log, tiger)
    >>> lengths.get_xlabel(), revealed.get_xlabel(), actions.get_xlabel(), rows.get_xlabel()
    ('steps per episode', 'states revealed', 'step', 'visits (logarithmic)')
    >>> plt.close(lengths.figure)
    """
    summary = log.summary(homdp)
    figure, grid = plt.subplots(2, 2, figsize=(10.0, 7.2), layout="constrained")
    (lengths, revealed), (actions, rows) = grid
    _lengths(lengths, summary)
    _revealed(revealed, summary)
    _actions(actions, summary, list(summary.by_action))
    _rows(rows, summary.rows)
    for panel in grid.flat:
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{summary.episodes:,} episodes, {summary.steps:,} steps", fontsize=11)
    return lengths, revealed, actions, rows


def _lengths(axes: Axes, summary: LogSummary) -> None:
    axes.bar(np.arange(summary.horizon + 1), summary.lengths, color=COLOURS[0], width=0.8)
    axes.set(xlabel="steps per episode", ylabel="episodes")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def _revealed(axes: Axes, summary: LogSummary) -> None:
    """Bars of shares, by step, observation and action."""
    H = summary.horizon
    steps = {f"step {h + 1}": share for h, share in enumerate(summary.by_step[:H])}
    groups: list[Mapping[str, Share]] = [
        steps | {"after the last": summary.by_step[H]},
        summary.by_observation,
        summary.by_action,
    ]
    at, ticks, labels = 0.0, list[float](), list[str]()
    for k, (title, group) in enumerate(zip(GROUPS, groups, strict=True)):
        shown = {name: share for name, share in group.items() if share.total}
        for name, share in list(shown.items())[:MOST]:
            axes.barh(at, share.known / share.total, color=COLOURS[k], height=0.75)
            ticks.append(at)
            labels.append(plain(name))
            at += 1
        if shown:
            axes.barh(at, 0.0, color=COLOURS[k], label=title)
            at += 0.6
    axes.set_yticks(ticks, labels, fontsize=8 if len(ticks) < 16 else 6)
    axes.invert_yaxis()
    axes.set(xlabel="states revealed", xlim=(0, 1))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _actions(axes: Axes, summary: LogSummary, names: Sequence[str]) -> None:
    """Stacked shares of the actions at each step."""
    total = np.maximum(summary.actions.sum(1), 1)
    base = np.zeros(summary.horizon)
    for k, name in enumerate(names[:MOST]):
        share = summary.actions[:, k] / total
        steps = np.arange(1, summary.horizon + 1)
        colour = COLOURS[k % len(COLOURS)]
        axes.bar(steps, share, bottom=base, color=colour, width=0.8, label=plain(name))
        base = base + share
    axes.set(xlabel="step", ylabel="actions", ylim=(0, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _rows(axes: Axes, rows: Sequence[RowVisits]) -> None:
    """Visits of the rows with the fewest; unknown rows first."""
    chosen = sorted(rows, key=lambda row: (row.known, row.visits))[:MOST]
    axes.set(xlabel="visits (logarithmic)")
    if not chosen:
        axes.text(0.5, 0.5, "no tables", ha="center", va="center", color=GREY)
        axes.set(xticks=[], yticks=[])
        return
    visits = [row.visits for row in chosen]
    colours = [GREY if row.known else COLOURS[1] for row in chosen]
    places = np.arange(len(chosen))
    axes.barh(places, np.maximum(np.array(visits) - 0.5, 0), left=0.5, color=colours, height=0.75)
    for place, n in zip(places, visits, strict=True):
        axes.text(max(n, 0.5), float(place), f" {n:,}", va="center", fontsize=8)
    known = any(row.known for row in chosen)
    title = f"{len(chosen)} of {len(rows)} rows" + ", known rows in grey" * known
    axes.set_title(title, fontsize=9)
    axes.set_yticks(places, [plain(row.name) for row in chosen], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(0.5, 4 * max(*visits, 1))
