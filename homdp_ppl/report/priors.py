"""Plots of prior sensitivity: the same Bayesian rules under declared, flat and sparse priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from homdp_ppl.core.checked import checked_but
from homdp_ppl.errors import DataError, Problem, with_article
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.report.formatting import colour_of, plain
from homdp_ppl.study.by_rule import check_runs

# distance of the first and the last rule of one prior, relative to the distance of priors
APART = 0.36


@checked_but("runs")
def draw_priors(
    runs: Mapping[str, Mapping[str, Sequence[Measured]]],
    axes: tuple[Axes, Axes] | None = None,
    colours: Mapping[str, str] | None = None,
) -> tuple[Axes, Axes]:
    """Plot the final regret and the share of optimistic rounds of each rule, by prior.

    Small markers are runs, large markers are their means.

    Parameters
    ----------
    runs
        For each rule and each prior, by name, its runs: one per seed.
    axes
        Axes for the regret and for the share of optimistic rounds. Default: a new figure.
    colours
        Colours of some rules, for example to match another plot.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> world, rule = models.load("tiger", horizon=2), explorers.quantile_backup()
    >>> learners = {"declared": world.homdp, "flat": models.load("tiger_table", horizon=2).homdp}
    >>> runs = {
    ...     prior: learn(world, rule, history_tree(), episodes=3, seed=[0], model=own)
    ...     for prior, own in learners.items()
    ... }
    >>> left, right = draw_priors({rule.name: runs})
    >>> [text.get_text() for text in left.get_xticklabels()], left.get_ylabel()
    (['declared', 'flat'], 'final regret')
    >>> plt.close(left.figure)
    """
    if not isinstance(runs, Mapping) or not runs:
        expected = "lists of runs by rule and prior: {rule: {prior: [run, ...]}}"
        got = with_article(type(runs).__name__)
        raise DataError(
            "draw_priors",
            [Problem("runs", "no rules" if isinstance(runs, Mapping) else got, expected)],
        )
    for several in runs.values():
        check_runs(several, one_length=False)
    if axes is None:
        _, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")
        axes = left, right
    left, right = axes
    priors = list(dict.fromkeys(prior for several in runs.values() for prior in several))
    shifts = np.linspace(-APART / 2, APART / 2, len(runs)) if len(runs) > 1 else np.zeros(1)
    for k, ((rule, several), shift) in enumerate(zip(runs.items(), shifts, strict=True)):
        places = np.array([priors.index(prior) for prior in several]) + shift
        regret = [np.array([run.lost[-1] for run in group]) for group in several.values()]
        share = [
            np.array([run.was_optimistic.mean() for run in group]) for group in several.values()
        ]
        colour = colour_of(rule, k, colours)
        for panel, numbers in ((left, regret), (right, share)):
            for place, each in zip(places, numbers, strict=True):
                panel.plot(
                    np.full(len(each), place), each, "o", ms=4, mew=0, alpha=0.5, color=colour
                )
            means = [each.mean() for each in numbers]
            panel.plot(
                places, means, "o-", ms=8, mec="white", mew=1, lw=1, color=colour, label=plain(rule)
            )
    for panel in axes:
        panel.set_xticks(range(len(priors)), priors)
        panel.set_xlim(-0.5, len(priors) - 0.5)
        panel.spines[["top", "right"]].set_visible(False)
    left.set(ylabel="final regret", xlabel="prior")
    left.set_ylim(bottom=min(0.0, left.get_ylim()[0]))
    right.set(ylabel="share of optimistic rounds", xlabel="prior", ylim=(-0.04, 1.04))
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    left.legend(frameon=False, fontsize=8, loc="best")
    return axes
