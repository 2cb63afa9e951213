"""The value of hindsight as a plot: regret against the share of states revealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from homdp_ppl.core.checked import checked
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.precision import Array
from homdp_ppl.report.formatting import BAND, MARKS, colour_of, counted, label_log, plain
from homdp_ppl.report.labels import label_ends
from homdp_ppl.study.revealing import HindsightStudy, name_of
from homdp_ppl.study.summary import episodes_to

LINEAR = 0.02  # shares below are on a linear scale, so that 0 is on the axis
Quantity = Literal["regret", "episodes"]


@checked
def draw_hindsight(
    study: HindsightStudy,
    quantity: Quantity = "regret",
    axes: Axes | None = None,
    colours: Mapping[str, str] | None = None,
) -> Axes:
    """Plot regret, or episodes until the policy is good, against the share of states revealed.

    Points are means over the seeds for the regret, and medians for numbers of episodes; bands
    contain the central 90% of the seeds. Dotted lines show rules with foresight: a collector that
    sees the state gathers their episodes. Dashed lines show extra observations in hindsight, and no
    revealed states. Runs that never reach the goal are drawn at the top.

    Parameters
    ----------
    study
        The study, from :func:`homdp_ppl.study.hindsight`.
    quantity
        "regret", or "episodes" until the average regret stays below ``study.epsilon``.
    axes
        Axes to draw on. Default: a new figure.
    colours
        Colours of some rules.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> found = study.hindsight(
    ...     models.load("tiger_table", horizon=2),
    ...     [explorers.posterior_sampling()],
    ...     episodes=5,
    ...     seeds=[0, 1],
    ...     shares=(0, 0.5, 1),
    ... )
    >>> axes = draw_hindsight(found)
    >>> axes.get_xlabel(), axes.lines[0].get_xdata().tolist()
    ('share of states revealed', [0.0, 0.5, 1.0])
    >>> plt.close(axes.figure)
    """
    if axes is None:
        _, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    ends = []
    some = next(iter(next(iter(study.runs.values())).values()))
    for k, (rule, by_share) in enumerate(study.runs.items()):
        colour, shares = colour_of(rule, k, colours), np.array(study.shares)
        numbers = np.array([_numbers(study, runs, quantity) for runs in by_share.values()])
        middle = _middle(numbers, quantity)
        low, high = np.quantile(numbers, BAND, axis=1, method="nearest")
        axes.plot(shares, middle, color=colour, marker=MARKS[k % len(MARKS)], lw=2, ms=6)
        axes.fill_between(shares, low, high, color=colour, alpha=0.16, lw=0)
        ends.append((1.0, float(middle[-1]), rule, colour))
        lines = (("foresight", study.foresight, ":"), ("observations", study.extra, "--"))
        for kind, several, style in lines:
            if rule not in several:
                continue
            level = _middle(_numbers(study, several[rule], quantity)[None], quantity)
            axes.axhline(float(level[0]), color=colour, ls=style, lw=1.5)
            if np.isfinite(level[0]):
                ends.append((1.0, float(level[0]), f"{rule}, {name_of(study, kind)}", colour))
    axes.set_xscale("symlog", linthresh=LINEAR, linscale=0.6)
    axes.set_xlim(-0.0015, 1.06)
    axes.set_xticks(study.shares, [f"{share:g}" for share in study.shares])
    axes.minorticks_off()
    axes.set_yscale("log")
    label_log(axes.yaxis)
    unit = "last states" if study.protocol.states == "last" else "states"
    if study.protocol.unit == "episode":
        unit = "episodes"
    axes.set_xlabel(f"share of {unit} revealed")
    episodes = f"{len(some[0].lost):,} episodes"
    axes.set_ylabel(
        f"regret of {episodes}"
        if quantity == "regret"
        else f"episodes until the average regret stays below {study.epsilon:g}"
    )
    axes.set_title(plain(f"{some[0].model_name}: {counted(len(some), 'seed')}"))
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(axes, ends)
    return axes


def _numbers(study: HindsightStudy, runs: Sequence[Measured], quantity: str) -> Array:
    """The regret of each run, or its number of episodes, at most one more than were played."""
    listed: list[float] = []
    for run in runs:
        if quantity == "regret":
            listed.append(max(float(run.lost[-1]), 1e-3))
        else:
            listed.append(min(episodes_to(run, study.epsilon), len(run.lost) + 1.0))
    return np.array(listed)


def _middle(numbers: Array, quantity: str) -> Array:
    middle: Array = numbers.mean(1) if quantity == "regret" else np.median(numbers, axis=1)
    return middle
