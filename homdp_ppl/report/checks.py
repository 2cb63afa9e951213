"""Results of predictive checks, as a table and as a plot."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from rich.markup import escape
from rich.table import Table

from homdp_ppl.core.checked import checked
from homdp_ppl.posteriors import PredictiveCheck
from homdp_ppl.report.formatting import plain


@checked
def check_table(check: PredictiveCheck, rows: int = 3) -> Table:
    """Results of a predictive check, with the most surprising individual frequencies.

    Print the table with ``rich.print``.

    Parameters
    ----------
    check
        The result of ``predictive_check``.
    rows
        Number of individual frequencies to list.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, posterior, rollout, uniform_policy
    >>> from homdp_ppl.posteriors import predictive_check
    >>> world = models.load("tiger")
    >>> episodes = rollout(jax.random.split(jax.random.key(0), 50), world, uniform_policy(world))
    >>> check = predictive_check(
    ...     jax.random.key(1), posterior(world.homdp, episodes), episodes, uniform_policy(world)
    ... )
    >>> list(check_table(check, rows=0).columns[0].cells)
    ['observations by step', 'pairs of observations', 'mean return', 'spread of returns']
    """
    title = (
        f"{escape(check.homdp.name)}: {check.episodes:,} episodes against "
        f"{len(check.replicated.mean):,} replications"
    )
    table = Table("finding", "observed", "predicted (90%)", "p", title=title, title_justify="left")
    for what, observed, low, high, p in (*check.findings, *check.frequencies[:rows]):
        p_value = f"[bold red]{p:.3g}[/]" if what in check.unusual else f"{p:.3g}"
        table.add_row(escape(what), f"{observed:.4g}", f"{low:.4g} to {high:.4g}", p_value)
    return table


@checked
def draw_check(check: PredictiveCheck, axes: tuple[Axes, Axes] | None = None) -> tuple[Axes, Axes]:
    """Plot observed against predicted frequencies of every observation at every step, and the
    observed returns among replicated ones.

    Parameters
    ----------
    check
        The result of ``predictive_check``.
    axes
        Axes for the frequencies and for the returns. Default: a new figure.

    Examples
    --------
    >>> import jax, matplotlib.pyplot as plt
    >>> from homdp_ppl import models, posterior, rollout, uniform_policy
    >>> from homdp_ppl.posteriors import predictive_check
    >>> world = models.load("tiger")
    >>> episodes = rollout(jax.random.split(jax.random.key(0), 50), world, uniform_policy(world))
    >>> check = predictive_check(
    ...     jax.random.key(1), posterior(world.homdp, episodes), episodes, uniform_policy(world)
    ... )
    >>> left, right = draw_check(check)
    >>> left.get_title().splitlines()[0], right.get_xlabel()
    ('tiger, 50 episodes', 'mean return')
    >>> plt.close(left.figure)
    """
    if axes is None:
        _, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
        axes = left, right
    left, right = axes
    replicated, observed = check.replicated, check.observed
    steps = np.repeat(np.arange(1, check.homdp.horizon + 1), len(check.homdp.observations))
    middle = replicated.frequency.mean(0).ravel()
    low, high = np.quantile(replicated.frequency, [0.05, 0.95], axis=0).reshape(2, -1)
    left.axline((0, 0), slope=1, color="#cccccc", lw=1, zorder=0)
    left.vlines(middle, low, high, color="#b8c4d0", lw=2.5, zorder=1, label="predicted, 90%")
    dots = left.scatter(
        middle,
        observed.frequency.ravel(),
        c=steps,
        cmap="viridis",
        s=22,
        zorder=2,
        label="observed",
    )
    if check.homdp.horizon > 1:
        left.figure.colorbar(dots, ax=left, label="step", ticks=MaxNLocator(integer=True))
    left.set(xlabel="predicted frequency", ylabel="observed frequency")
    right.scatter(replicated.mean, replicated.deviation, s=14, color="#b8c4d0", label="replicated")
    right.plot(
        observed.mean, observed.deviation, "x", color="#c0392b", ms=9, mew=2.2, label="observed"
    )
    right.set(xlabel="mean return", ylabel="standard deviation of returns")
    if check.unusual:
        seen = observed.frequency.ravel()
        outside = np.maximum(low - seen, seen - high)
        for k in np.argsort(-outside)[: min(3, np.sum(outside > 0))]:
            name = plain(check.homdp.observations[k % len(check.homdp.observations)])
            place, inwards = (middle[k], seen[k]), middle[k] > middle.max() / 2
            left.annotate(
                f"{name}, step {steps[k]}",
                place,
                xytext=(-6 if inwards else 6, 0),
                textcoords="offset points",
                ha="right" if inwards else "left",
                va="center",
                fontsize=8,
            )
    by_step, pairs, mean, spread = (f"p = {finding.p:.2g}" for finding in check.findings)
    left.set_title(
        (
            f"{plain(check.homdp.name)}, {check.episodes:,} episodes\nby step: {by_step}; "
            f"pairs: {pairs}"
        ),
        fontsize=9,
    )
    right.set_title(f"returns\nmean: {mean}; spread: {spread}", fontsize=9)
    for panel in axes:
        panel.legend(
            frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
        )  # below the axes, so that it covers no points
        panel.spines[["top", "right"]].set_visible(False)
    return axes
