"""What the prior does: the same Bayesian rules under declared, flat and sparse priors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from homdp_ppl.core.checked import checked_but
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.report.look import colour_of, plain
from homdp_ppl.study.summary import check_runs

# between the first and the last rule of one prior, in units of the distance between priors
APART = 0.36


@checked_but("runs")
def draw_priors(
    runs: Mapping[str, Mapping[str, Sequence[Measured]]],
    axes: tuple[Axes, Axes] | None = None,
    colours: Mapping[str, str] | None = None,
) -> tuple[Axes, Axes]:
    """Draw final regret and share of optimistic rounds of each rule by prior.

    Small marks are runs, large ones their means.

    Parameters
    ----------
    runs
        For each rule's name, for each prior its runs, one a seed.
    axes
        Where to draw the regret and the optimism; a new figure by default.
    colours
        Of some rules, to be the same as in other pictures.

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
    (['declared', 'flat'], 'regret at the end')
    >>> plt.close(left.figure)
    """
    if not isinstance(runs, Mapping) or not runs:
        expected = (
            "for each rule's name, for each prior a list of runs: {name: {prior: [run, ...]}}"
        )
        got = f"a {type(runs).__name__}"
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
        regret = [np.array([run.regret[-1] for run in group]) for group in several.values()]
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
    left.set(ylabel="regret at the end", xlabel="prior")
    left.set_ylim(bottom=min(0.0, left.get_ylim()[0]))
    right.set(ylabel="share of rounds that were optimistic", xlabel="prior", ylim=(-0.04, 1.04))
    right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    left.legend(frameon=False, fontsize=8, loc="best")
    return axes
