"""Plots of learning: regret and optimistic values of several rules over several seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from homdp_ppl.core.checked import checked_but
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.precision import Array
from homdp_ppl.report.formatting import BAND, COLOURS, colour_of, plain
from homdp_ppl.report.labels import label_ends
from homdp_ppl.study.by_rule import check_runs

POINTS = 400  # of a curve, evenly spaced on its axis
NOISE = 1e-9  # rounding error of a regret of 0


class Curve(NamedTuple):
    """A quantity over the rounds of several runs of one rule."""

    episodes: Array  # (points,)  episodes played so far
    mean: Array  # (points,)  mean over the seeds
    low: Array  # (points,)  the 5% quantile
    high: Array  # (points,)  the 95% quantile


@checked_but("runs")
def draw_regret(
    runs: Mapping[str, Sequence[Measured]],
    axes: Axes | None = None,
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Plot the regret of rules, what they lost in the episodes played, against episodes.

    Curves are means over the seeds; bands contain the central 90% of the seeds. Each curve is
    labelled with the name of its rule. Scales of existing axes are kept: for a logarithmic axis,
    set it to "log" before the call.

    Parameters
    ----------
    runs
        For each rule, by name, its runs: one per seed and all of the same length, as returned by
        :func:`homdp_ppl.learn` for several seeds.
    axes
        Axes to draw on. Default: a new figure with linear axes.
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
    >>> axes = draw_regret(runs)
    >>> (
    ...     axes.get_title(),
    ...     axes.lines[1].get_ydata().round(3),
    ... )  # the second rule loses 1.852 - 1.2667 in every episode
    ('tiger: mean and 90% band of 2 seeds', array([0.585, 1.171, 1.756]))
    >>> plt.close(axes.figure)
    """
    axes, ends = _draw(runs, lambda run: run.lost_by_round, axes, colours)
    if axes.get_yscale() == "linear":
        # An estimated regret can be negative, and the regret of an oracle is 0 in all rounds.
        lowest, highest = axes.dataLim.intervaly
        axes.set_ylim(0 if lowest > -NOISE else None, 1 if max(-lowest, highest) < NOISE else None)
    axes.set_ylabel("regret")
    label_ends(axes, ends)
    return axes


@checked_but("runs")
def draw_optimistic_values(
    runs: Mapping[str, Sequence[Measured]],
    axes: Axes | None = None,
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Plot the optimistic values of rules, with the optimum and the trivial bound H.

    A rule is optimistic in the rounds in which its curve is above the dotted line, the optimum.
    Its optimistic value is informative once it is below the dashed line: no return exceeds H.

    Parameters
    ----------
    runs, axes, colours
        As in :func:`draw_regret`. All runs must be in the same world.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = study.side_by_side(
    ...     world,
    ...     [explorers.hop_b(), explorers.uniform()],
    ...     history_tree(),
    ...     episodes=3,
    ...     seeds=[0, 1],
    ... )
    >>> axes = draw_optimistic_values(runs)
    >>> [
    ...     line.get_ydata()[:1].round(3) for line in axes.lines[:2]
    ... ]  # before any data: 1.8 and a bonus of 4 at both steps; 1.8
    [array([9.8]), array([1.8])]
    >>> plt.close(axes.figure)
    """
    axes, ends = _draw(runs, lambda run: run.optimistic, axes, colours)
    run = next(iter(runs.values()))[0]
    lines = (run.optimum, ":", -11, "optimum"), (run.horizon, "--", 3, "trivial bound H")
    for height, style, shift, words in lines:
        axes.axhline(height, color="#444444", lw=1.2, ls=style, zorder=1)
        axes.annotate(
            words,
            (0.0, height),
            (4, shift),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=9,
            color="#444444",
        )
    axes.set_ylabel("optimistic value")
    label_ends(axes, ends)
    return axes


def _draw(
    runs: Mapping[str, Sequence[Measured]],
    quantity: Callable[[Measured], Array],
    axes: Axes | None,
    colours: Mapping[str, str] | None,
) -> tuple[Axes, list[tuple[float, float, str, str]]]:
    """Draw means and bands of a quantity of each round; return the ends of the curves as well."""
    check_runs(runs)
    if axes is None:
        _, axes = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
    ends = []
    for k, (name, several) in enumerate(runs.items()):
        curve = curve_of(several, quantity, logarithmic=axes.get_xscale() == "log")
        colour = colour_of(name, k, colours)
        if len(several) > 1:
            axes.fill_between(curve.episodes, curve.low, curve.high, color=colour, alpha=0.16, lw=0)
        mark = "o" if len(curve.mean) == 1 else None  # a line needs two points
        axes.plot(
            curve.episodes,
            curve.mean,
            color=colour,
            lw=2,
            ls="-" if k < len(COLOURS) else "--",
            marker=mark,
            clip_on=not mark,
        )
        ends.append((float(curve.episodes[-1]), float(curve.mean[-1]), name, colour))
    axes.margins(x=0)
    axes.set_xlabel("episodes")
    axes.set_title(plain(f"{next(iter(runs.values()))[0].model_name}: {_seeds(runs)}"), fontsize=10)
    if axes.get_xscale() == "linear":
        if np.ptp(axes.dataLim.intervalx) == 0:
            axes.set_xlim(0, ends[0][0])
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.spines[["top", "right"]].set_visible(False)
    return axes, ends


def curve_of(
    runs: Sequence[Measured], quantity: Callable[[Measured], Array], logarithmic: bool = False
) -> Curve:
    """Mean and 90% band of a quantity over several runs of the same length.

    The curve is thinned to at most ``POINTS`` points.

    Parameters
    ----------
    runs
        One run per seed.
    quantity
        A function from a run to one number per round.
    logarithmic
        Whether to space the points evenly on a logarithmic axis.
    """
    numbers = np.stack([quantity(run) for run in runs])  # (seeds, rounds)
    rounds = numbers.shape[1]
    spread = np.geomspace if logarithmic else np.linspace
    at = np.unique(spread(1, rounds, POINTS).round().astype(int)) - 1
    low, high = np.quantile(numbers[:, at], BAND, axis=0)
    return Curve((at + 1) * runs[0].episodes_per_round, numbers[:, at].mean(0), low, high)


def _seeds(runs: Mapping[str, Sequence[Measured]]) -> str:
    """What the curves and bands show, for the title."""
    seeds = {len(several) for several in runs.values()}
    if max(seeds) == 1:
        return "one seed"
    many = str(seeds.pop()) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
    return f"mean and 90% band of {many} seeds"
