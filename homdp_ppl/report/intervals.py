"""Pictures of intervals: estimates of one policy, or bounds of several."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from homdp_ppl.core.checked import checked
from homdp_ppl.offline.choice import Choice
from homdp_ppl.offline.evaluation import Evaluation
from homdp_ppl.report.formatting import COLOURS, GREY, plain

HEIGHT = 0.34  # inches per interval


@checked
def draw_evaluation(evaluation: Evaluation, axes: Axes | None = None) -> Axes:
    """Draw the intervals and estimates of an evaluation.

    Parameters
    ----------
    evaluation
        The result of :func:`homdp_ppl.offline.evaluate`.
    axes
        Where to draw. Default: a new figure.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 100), world, uniform_policy(world))
    >>> found = offline.evaluate(world.homdp, log, uniform_policy(world))
    >>> draw_evaluation(found).get_xlabel()
    'value of the policy'
    """
    lines = [
        (name, value, low, high, COLOURS[1] if name == "certified" else COLOURS[0])
        for name, value, low, high, _ in evaluation.rows
        if np.isfinite(low) and name != "mean return of the log"
    ]
    return _draw(lines, "value of the policy", axes)


@checked
def draw_choice(choice: Choice, axes: Axes | None = None) -> Axes:
    """Draw the bounds of all candidates of a choice, and of the baseline.

    Parameters
    ----------
    choice
        The result of :func:`homdp_ppl.offline.choose`.
    axes
        Where to draw. Default: a new figure.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 100), world, uniform_policy(world))
    >>> axes = draw_choice(offline.choose(world.homdp, log))
    >>> axes.get_yticklabels()[0].get_text()
    'the behaviour of the log'
    """
    lines = [] if choice.baseline is None else [choice.baseline]
    listed = [*lines, *choice.candidates]
    colours = [COLOURS[1] if one is choice.chosen else COLOURS[0] for one in listed]
    if choice.baseline is not None and not choice.kept:
        colours[0] = GREY
    rows = [
        (one.name, np.nan, one.low, one.high, colour)
        for one, colour in zip(listed, colours, strict=True)
    ]
    axes = _draw(rows, "value", axes)
    if choice.baseline is not None:
        axes.axvline(choice.baseline.high, color=GREY, linestyle=":", linewidth=1)
    return axes


def _draw(
    rows: Sequence[tuple[str, float, float, float, str]], label: str, axes: Axes | None
) -> Axes:
    """One horizontal line per row: name, value, low, high, colour."""
    if axes is None:
        size = (7.0, 0.8 + HEIGHT * len(rows))
        axes = plt.figure(figsize=size, layout="constrained").add_subplot()
    for k, (_, value, low, high, colour) in enumerate(rows):
        axes.plot([low, high], [k, k], color=colour, linewidth=2.5, solid_capstyle="butt")
        axes.plot([low, high], [k, k], "|", color=colour, markersize=9)
        if np.isfinite(value):
            axes.plot([value], [k], "o", color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), [plain(name) for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return axes
