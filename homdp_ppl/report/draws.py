"""Plots of posterior draws: densities, intervals, and shares with their nominal values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy import stats

from homdp_ppl.core.arguments import count_problems, is_count
from homdp_ppl.core.checked import checked
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.report.data import check_colours, check_finite
from homdp_ppl.report.formatting import BAND, COLOURS, colour_of, plain

MOST_BINS = 10_000


@checked
def draw_densities(
    draws: Mapping[str, ArrayLike],
    axes: Axes | None = None,
    truth: float | None = None,
    bins: int | ArrayLike = 40,
    colours: Sequence[str] = COLOURS,
) -> Axes:
    """Plot overlaid histograms of draws, as densities on common bins.

    Parameters
    ----------
    draws
        For each name, draws of the same quantity.
    axes
        Axes to draw on. Default: a new figure.
    truth
        The true value, drawn as a dotted line.
    bins
        The number of bins over the range of all draws, or the edges of the bins.
    colours
        Colours of the histograms, in order.

    Examples
    --------
    >>> axes = draw_densities({"before": [0.1, 0.5, 0.9], "after": [0.4, 0.5, 0.6]}, truth=0.5)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['before', 'after', 'truth']
    >>> plt.close(axes.figure)
    """
    if not draws:
        raise DataError(
            "draw_densities",
            [Problem("draws", "no draws", "draws for at least one name: {name: draws}")],
        )
    numbers = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in draws.items()}
    problems = [
        Problem(
            name,
            "draws that are not finite" if len(values) else "no draws",
            "finite numbers, at least one",
        )
        for name, values in numbers.items()
        if not len(values) or not np.isfinite(values).all()
    ]
    problems += count_problems(bins=bins) if np.ndim(bins) == 0 else []
    if is_count(bins) and int(cast(int, bins)) > MOST_BINS:
        problems.append(Problem("bins", shown(bins), f"at most {MOST_BINS:,} bins"))
    if np.ndim(bins):
        edges = np.asarray(bins, dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
            expected = "a number of bins, or at least two increasing edges"
            problems.append(Problem("bins", shown(edges), expected))
    if problems:
        raise DataError("draw_densities", problems)
    check_finite("draw_densities", truth=truth)
    check_colours("draw_densities", colours)
    if axes is None:
        _, axes = plt.subplots(figsize=(7.0, 3.8), layout="constrained")
    edges = np.histogram_bin_edges(np.concatenate(list(numbers.values())), bins=bins)
    for k, (name, values) in enumerate(numbers.items()):
        colour = colours[k % len(colours)]
        axes.hist(
            values,
            bins=list(edges),
            density=True,
            histtype="stepfilled",
            facecolor=(colour, 0.3),
            edgecolor=colour,
            lw=1.5,
            label=plain(name),
        )
    if truth is not None:
        axes.axvline(truth, color="black", lw=1.5, ls=":", label="truth")
    axes.set_ylabel("density")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="best")
    return axes


@checked
def draw_intervals(
    draws: Mapping[str, ArrayLike],
    names: Sequence[str],
    truth: ArrayLike | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Plot the central 90% intervals of several quantities for several learners.

    Each quantity has a row, each learner a colour.

    Parameters
    ----------
    draws
        For each learner, draws of all quantities, (n, quantities).
    names
        Names of the quantities.
    truth
        The true values, drawn as dotted lines: one number for all rows, or one per row.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_intervals(
    ...     {"nurse": [[0.1, 0.5], [0.3, 0.9]]}, ["onset", "cure"], truth=[0.2, 0.7]
    ... )
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['onset', 'cure']
    >>> plt.close(axes.figure)
    """
    tables = {name: np.asarray(values, dtype=np.float64) for name, values in draws.items()}
    problems = [
        Problem(
            name,
            f"draws of shape {values.shape}",
            f"(n, {len(names)}): one column for each name",
        )
        for name, values in tables.items()
        if values.ndim != 2 or values.shape[1] != len(names) or 0 in values.shape
    ]
    check_finite("draw_intervals", draws=draws, truth=truth)
    if truth is not None and np.shape(truth) not in ((), (len(names),)):
        got, expected = f"shape {np.shape(truth)}", f"one number, or one for each of {len(names)}"
        problems.append(Problem("truth", got, expected))
    if problems or not tables:
        raise DataError(
            "draw_intervals",
            problems or [Problem("draws", "no draws", "draws for at least one name")],
        )
    if axes is None:
        height = 1.1 + len(names) * (0.26 + 0.13 * len(tables))
        _, axes = plt.subplots(figsize=(8.5, height), layout="constrained")
    rows = -np.arange(len(names), dtype=np.float64)
    reach = 0.22 * (len(tables) - 1) / 2
    for k, (name, values) in enumerate(tables.items()):
        low, middle, high = np.quantile(values, [BAND[0], 0.5, BAND[1]], axis=0)
        colour, place = COLOURS[k % len(COLOURS)], rows + reach - 0.22 * k
        axes.hlines(place, low, high, color=colour, lw=3, label=plain(name))
        axes.plot(middle, place, "o", color=colour, mfc="white", ms=6)
    if truth is not None:
        edge = reach + 0.18
        places = np.broadcast_to(np.asarray(truth, dtype=np.float64), len(names))
        axes.vlines(places, rows - edge, rows + edge, color="black", lw=1.5, ls=":", label="truth")
    axes.set_yticks(rows, [plain(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return axes


@checked
def draw_shares(
    hits: Mapping[str, ArrayLike],
    groups: Sequence[str],
    guaranteed: Mapping[str, float] | None = None,
    axes: Axes | None = None,
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Plot the share of cases in which an event occurred, with exact 90% intervals.

    Parameters
    ----------
    hits
        For each name, whether the event occurred, (groups, cases).
    groups
        Names of the groups.
    guaranteed
        The nominal shares of some names, drawn as dotted lines in their colours.
    axes
        Axes to draw on. Default: a new figure.
    colours
        Colours of some names, for example to match another plot.

    Examples
    --------
    >>> axes = draw_shares(
    ...     {"coin": [[True, False], [True, True]]}, ["first", "second"], guaranteed={"coin": 0.5}
    ... )
    >>> [float(y) for y in axes.lines[1].get_ydata()]
    [0.5, 1.0]
    >>> plt.close(axes.figure)
    """
    check_colours("draw_shares", colours)
    check_finite("draw_shares", hits=hits, guaranteed=guaranteed or {})
    if not hits:
        raise DataError("draw_shares", [Problem("hits", "no names", "at least one")])
    tables = {name: np.asarray(cases, dtype=bool) for name, cases in hits.items()}
    wrong = [
        Problem(name, f"shape {held.shape}", f"({len(groups)}, cases), at least one case")
        for name, held in tables.items()
        if held.ndim != 2 or len(held) != len(groups) or 0 in held.shape
    ]
    if wrong:
        raise DataError("draw_shares", wrong)
    if axes is None:
        _, axes = plt.subplots(figsize=(8.5, 4.0), layout="constrained")
    apart = 0.13
    for k, (name, held) in enumerate(tables.items()):
        colour = colour_of(name, k, colours)
        if guaranteed and name in guaranteed:
            axes.axhline(guaranteed[name], color=colour, lw=1.5, ls=":")
        places = np.arange(len(groups)) + apart * (k - (len(hits) - 1) / 2)
        intervals = [
            stats.binomtest(int(row.sum()), len(row)).proportion_ci(2 * BAND[1] - 1) for row in held
        ]
        axes.vlines(places, *np.transpose(intervals), color=colour, lw=3, alpha=0.4)
        axes.plot(places, held.mean(1), "o", ms=8, color=colour, label=plain(name))
    axes.set_xticks(range(len(groups)), [plain(group) for group in groups])
    axes.set(xlim=(-0.5, len(groups) - 0.5), ylabel="share, with 90% interval")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes
