"""Plots of model classes: the members of the version space after each epoch."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.explorers._pair_versions import PairVersions
from homdp_ppl.explorers._versions import Versions
from homdp_ppl.learning.run import Run
from homdp_ppl.report.data import check_finite, check_indices
from homdp_ppl.report.formatting import COLOURS, plain

MANY = 24  # members that can be labelled


@checked
def versions_of(run: Run) -> Versions:
    """The version spaces of a HOP-V run, before the first epoch and after each epoch.

    They are computed again from the episodes of the run. If states are missing, they consist of the
    members of the pairs that are alive.

    Parameters
    ----------
    run
        A run of :func:`homdp_ppl.explorers.hop_v`, in finite or real-valued spaces.

    Returns
    -------
    Versions
        Masks of shape (epochs + 1, N) and (epochs + 1, M).

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> wrong, world = (
    ...     models.load("tiger", horizon=2, accuracy=accuracy) for accuracy in (0.15, 0.85)
    ... )
    >>> run = learn(world, explorers.hop_v([world], [wrong, world]), history_tree(), episodes=40)
    >>> alive = versions_of(run).emissions
    >>> alive.shape, alive[0], alive[-1]  # before the first of 20 epochs, and after the last
    ((21, 2), array([ True,  True]), array([False,  True]))
    """
    explorer, task = run.task.explorer, run.task
    if not isinstance(run.state.memory, Versions | PairVersions):
        got, expected = (
            f"a run of {explorer.about.name}",
            "a run of hop_v, which has version spaces",
        )
        raise DataError("versions_of", [Problem("run", got, expected)])
    learner = task.learner()
    state = learner.init()
    spaces = [state.memory]
    for k in range(len(run.played)):
        state = learner.update(state, run.episodes[k], simulated=True)
        if (k + 1) % task.episodes_per_round == 0:
            spaces.append(state.memory)
    return Versions(
        np.stack([alive.transitions for alive in spaces]),
        np.stack([alive.emissions for alive in spaces]),
    )


@checked
def draw_versions(
    alive: ArrayLike,
    names: Sequence[object] | None = None,
    truth: int | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Plot the members of a version space over epochs.

    Each member has one row. The row is filled in the epochs in which the member is in the version
    space.

    Parameters
    ----------
    alive
        Masks, (epochs + 1, members), such as ``versions_of(run).emissions``.
    names
        Names of the members, in order. Default: no names.
    truth
        Index of the true member, which is drawn in another colour.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_versions(
    ...     [[True, True], [True, True], [False, True]], names=["wrong", "right"], truth=1
    ... )
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['wrong', 'right']
    """
    masks = np.asarray(alive, dtype=bool)
    if masks.ndim != 2 or not len(masks):
        raise DataError(
            "draw_versions",
            [Problem("alive", f"shape {masks.shape}", "masks, (epochs + 1, members)")],
        )
    members = masks.shape[1]
    if names is not None and len(names) != members:
        raise DataError(
            "draw_versions",
            [Problem("names", f"{len(names)} names", f"one for each of {members} members")],
        )
    check_finite("draw_versions", alive=alive)
    if not members:
        raise DataError("draw_versions", [Problem("alive", "no members", "at least one")])
    if truth is not None:
        check_indices("draw_versions", "truth", [truth], members)
    if axes is None:
        _, axes = plt.subplots(figsize=(7.5, 1.2 + min(0.28 * members, 4.5)), layout="constrained")
    shown = masks.T.astype(int)
    if truth is not None:
        shown[truth] *= 2
    place = (-0.5, len(masks) - 0.5, -0.5, members - 0.5)
    axes.imshow(
        shown,
        ListedColormap(["white", *COLOURS[:2]]),
        vmin=0,
        vmax=2,
        aspect="auto",
        interpolation="nearest",
        origin="lower",
        extent=place,
    )
    if members <= MANY:
        axes.hlines(np.arange(members - 1) + 0.5, *place[:2], color="white", lw=3)
    if truth is not None and members > MANY:  # its row is too thin to be visible
        axes.annotate(
            "truth",
            (1.0, truth),
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=COLOURS[1],
            fontsize=9,
            va="center",
        )
    if names is not None and members <= MANY:
        axes.set_yticks(range(members), [plain(name) for name in names])
    else:
        axes.set_yticks([])
    axes.set_xlabel("epochs")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return axes
