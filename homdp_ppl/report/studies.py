"""Plots of studies: optimism of rules, and the episodes they need to come close to the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked_but
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.precision import Array
from homdp_ppl.report.formatting import BAND, MARKS, colour_of, label_log, plain
from homdp_ppl.report.labels import label_ends
from homdp_ppl.study.by_rule import check_runs
from homdp_ppl.study.summary import episodes_to

# The axis is linear up to this excess, which may be negative, and logarithmic beyond.
NARROW = 0.1


@checked_but("runs")
def draw_optimism(
    runs: Mapping[str, Sequence[Measured]],
    axes: Axes | None = None,
    calibration: Mapping[str, float] | None = None,
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Plot the share of optimistic rounds of each rule against its excess.

    The excess is the optimistic value minus the optimum, averaged over the rounds of a run. A rule
    that is always optimistic with a large excess is not informative. A rule with a negative excess
    underestimates the optimum. Small markers are runs, large markers are their means.

    Parameters
    ----------
    runs
        For each rule, by name, its runs: one per seed.
    axes
        Axes to draw on. Default: a new figure.
    calibration
        For some rules, by name, the share of optimistic rounds that is exact on average over worlds
        drawn from the prior; drawn as a dashed line.
    colours
        Colours of some rules, for example to match another plot.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = study.side_by_side(
    ...     world,
    ...     [explorers.oracle(world), explorers.uniform()],
    ...     history_tree(),
    ...     episodes=3,
    ...     seeds=[0, 1],
    ... )
    >>> axes = draw_optimism(runs)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['oracle', 'uniform']
    >>> [
    ...     mark.get_xdata().round(3) for mark in axes.lines[1:4:2]
    ... ]  # the means: the oracle plans the optimum, 1.852, and uniform predicts 1.8
    [array([0.]), array([-0.052])]
    >>> plt.close(axes.figure)
    """
    check_runs(runs, one_length=False)
    if axes is None:
        _, axes = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
    widest = 0.0
    for k, (name, several) in enumerate(runs.items()):
        width = np.array([np.mean(run.optimistic - run.optimum) for run in several])
        share = np.array([run.was_optimistic.mean() for run in several])
        widest = max(widest, float(np.abs(width).max()))
        colour, mark = colour_of(name, k, colours), MARKS[k % len(MARKS)]
        axes.plot(width, share, mark, ms=4, mew=0, color=colour, alpha=0.5)
        axes.plot(
            width.mean(),
            share.mean(),
            mark,
            ms=10,
            mec="white",
            mew=1,
            color=colour,
            label=plain(name),
            zorder=3,
        )
        if calibration and name in calibration:
            level = calibration[name]
            axes.axhline(
                level,
                color=colour,
                lw=1.2,
                ls="--",
                zorder=1,
                label=f"{level:.3g}, average over the prior",
            )
    axes.axvline(0, color="#bbbbbb", lw=1, zorder=0)
    label = "excess: optimistic value minus optimum"
    if widest > NARROW:
        axes.set_xscale("symlog", linthresh=NARROW)
        label += f" (log scale beyond ±{NARROW:g})"
    axes.margins(x=0.08)
    axes.set(
        xlabel=label,
        ylabel="share of optimistic rounds",
        ylim=(-0.04, 1.04),
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_title(plain(next(iter(runs.values()))[0].model_name), fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    return axes


@checked_but("runs")
def draw_episodes_to(
    runs: Mapping[str, Sequence[Measured]],
    epsilons: ArrayLike,
    axes: Axes | None = None,
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Plot the number of episodes that rules need until their average gap stays below epsilon.

    Lines are medians over the seeds, bands the central 90%. A line ends where more than half of the
    runs were too short.

    Parameters
    ----------
    runs
        For each rule, by name, its runs: one per seed.
    epsilons
        Average gaps; the axis runs from the largest to the smallest.
    axes
        Axes to draw on. Default: a new figure.
    colours
        Colours of some rules, for example to match another plot.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = study.side_by_side(
    ...     world,
    ...     [explorers.oracle(world), explorers.uniform()],
    ...     history_tree(),
    ...     episodes=3,
    ...     seeds=[0, 1],
    ... )
    >>> axes = draw_episodes_to(runs, epsilons=[1.0, 0.5])
    >>> [
    ...     line.get_ydata() for line in axes.lines[1:]
    ... ]  # uniform actions lose 0.585 in every episode: never below 0.5
    [array([1., 1.]), array([ 1., inf])]
    >>> plt.close(axes.figure)
    """
    check_runs(runs, one_length=False)
    near = np.unique(np.asarray(epsilons, dtype=np.float64))[::-1]
    if len(near) < 2 or not ((near > 0) & (near < np.inf)).all():
        got = ", ".join(f"{epsilon:g}" for epsilon in near)
        raise DataError(
            "draw_episodes_to",
            [Problem("epsilons", got or "none", "at least two different numbers above 0")],
        )
    if axes is None:
        _, axes = plt.subplots(figsize=(8.0, 4.2), layout="constrained")
    axes.set(xscale="log", yscale="log", xlim=(near[0], near[-1]))
    longest = max(len(run.played) for several in runs.values() for run in several)
    axes.axhline(longest, color="#bbbbbb", lw=1, ls=":")
    axes.set_ylim(0.8, 1.6 * longest)
    ends = []
    for k, (name, several) in enumerate(runs.items()):
        needed = np.array(
            [[episodes_to(run, epsilon) for epsilon in near] for run in several]
        )  # (seeds, epsilons)
        low, middle, high = (_order_statistic(needed, level) for level in (BAND[0], 0.5, BAND[1]))
        colour = colour_of(name, k, colours)
        axes.fill_between(
            near,
            np.minimum(low, longest),
            np.minimum(high, longest),
            color=colour,
            alpha=0.16,
            lw=0,
        )
        axes.plot(near, middle, color=colour, lw=2)
        if np.isfinite(middle).any():
            last = int(np.flatnonzero(np.isfinite(middle))[-1])
            ends.append((float(near[last]), float(middle[last]), name, colour))
    axes.set(xlabel="ε: average gap", ylabel="episodes needed")
    for axis in (axes.xaxis, axes.yaxis):
        label_log(axis)
    axes.set_title(
        plain(f"{next(iter(runs.values()))[0].model_name}: median and 90% band of the seeds"),
        fontsize=10,
    )
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(axes, ends)
    return axes


def _order_statistic(numbers: Array, level: float) -> Array:
    """A quantile over the first axis without interpolation, which infinite numbers would break."""
    return np.quantile(numbers, level, axis=0, method="inverted_cdf")
