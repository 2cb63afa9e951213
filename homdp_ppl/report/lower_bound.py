"""Plots of the lower bound: a hard instance, and the growth of the number of episodes needed."""

from __future__ import annotations

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.declare.model import World
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.report.data import check_finite, vectors
from homdp_ppl.report.formatting import BAND, COLOURS, GREY
from homdp_ppl.report.labels import label_ends

LESS, MORE = "#92c5de", "#f4a582"


@checked
def draw_instance(world: World, axes: tuple[Axes, Axes] | None = None) -> tuple[Axes, Axes]:
    """Plot an instance of the lower bound: its tree of latent states, and which last observations
    are likelier in which state.

    Parameters
    ----------
    world
        An instance, such as ``homdp_ppl.models.lower_bound.tree(depth=3, observations=10)``.
    axes
        Axes for the tree and for the observations. Default: a new figure.

    Examples
    --------
    >>> from homdp_ppl.models import lower_bound
    >>> tree, signs = draw_instance(lower_bound.tree(depth=2, observations=4))
    >>> [text.get_text() for text in signs.get_yticklabels()]
    ['x1', 'x2']
    >>> plt.close(signs.figure)
    """
    if axes is None:
        _, (left, right) = plt.subplots(
            1, 2, figsize=(11.0, 4.0), layout="constrained", width_ratios=(1, 1.25)
        )
        axes = left, right
    left, right = axes
    X, Y, _, H = world.spaces.sizes
    inner, last = X // 2, Y - 2  # the states before the last layer, and the observations in it
    if X != 2**H - 1:
        raise DataError(
            "draw_instance",
            [Problem("world", f"{X} states, horizon {H}", "a binary tree: 2^H - 1 states")],
        )
    tree = nx.DiGraph((x, child) for x in range(inner) for child in (2 * x + 1, 2 * x + 2))
    depth = {x: (x + 1).bit_length() - 1 for x in tree}
    places = {x: (float(depth[x]), -(x + 1.5 - 2 ** depth[x]) / 2 ** depth[x]) for x in tree}
    colours = ["#c6dbef" if x < inner else "#fdd0a2" if x % 2 else "#c7e9c0" for x in tree]
    nx.draw_networkx_edges(tree, places, node_size=900, edge_color="#777777", ax=left)
    nx.draw_networkx_nodes(
        tree, places, node_size=800, node_color=colours, edgecolors="#555555", ax=left
    )
    nx.draw_networkx_labels(
        tree, places, {x: world.spaces.states[x] for x in tree}, font_size=9, ax=left
    )
    moves = {(x, 2 * x + 1 + k): ("up", "down")[k] for x in range(inner // 2) for k in range(2)}
    nx.draw_networkx_edge_labels(tree, places, moves, font_size=8, rotate=False, ax=left)
    for x in range(inner, X):
        pays = f"{world.spaces.actions[1 - x % 2]} pays"
        left.annotate(pays, places[x], (24, 0), textcoords="offset points", va="center", fontsize=9)
    left.set(title="Latent states", xlim=(-0.2, H - 0.4))
    left.set_axis_off()
    likelier = np.asarray(world.pomdp.shows(0))[inner:, 2:] * last > 1
    right.imshow(likelier, cmap=ListedColormap([LESS, MORE]), vmin=0, vmax=1, aspect="auto")
    for row, column in np.ndindex(likelier.shape):
        right.text(column, row, "$+$" if likelier[row, column] else "$-$", ha="center", va="center")
    for parent in range(1, len(likelier) // 2):
        right.axhline(2 * parent - 0.5, color="white", lw=4)
    right.axvline(last / 2 - 0.5, color="white", lw=4)
    right.set_xticks(range(last), world.spaces.names[1][2:])
    right.set_yticks(range(len(likelier)), world.spaces.names[0][inner:])
    right.set_title("Last observation: likelier ($+$) or less likely ($-$) than 1/Y'")
    right.tick_params(length=0)
    right.spines[:].set_visible(False)
    return axes


@checked
def draw_scaling(
    sizes: ArrayLike,
    needed: ArrayLike,
    draws: ArrayLike,
    least: ArrayLike,
    axes: Axes | None = None,
) -> Axes:
    """Plot the number of episodes needed at each problem size, with 90% intervals, a fitted line on
    the log-log scale, and the minimum for any learner.

    Parameters
    ----------
    sizes
        Problem sizes, (n,).
    needed
        Numbers of episodes, (n,).
    draws
        Bootstrap replicates of ``needed``: computed from resampled seeds, (n, resamples).
    least
        The minimum for any learner, or a lower bound of it, (n,).
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_scaling([1, 2, 4], [10, 20, 40], [[9, 11], [19, 21], [38, 42]], [5, 10, 20])
    >>> axes.get_title()[:10]
    'slope 1.00'
    >>> plt.close(axes.figure)
    """
    places, middle, lowest = vectors("draw_scaling", sizes=sizes, needed=needed, least=least)
    again = np.asarray(draws, dtype=np.float64)
    check_finite("draw_scaling", draws=again)
    problems = [
        Problem(name, "a number that is not positive", "positive numbers, for logarithmic axes")
        for name, table in (
            ("sizes", places),
            ("needed", middle),
            ("least", lowest),
            ("draws", again),
        )
        if not (table > 0).all()
    ]
    if again.ndim != 2 or len(again) != len(places) or 0 in again.shape:
        expected = f"({len(places)}, resamples), with at least one resample"
        problems.append(Problem("draws", f"shape {again.shape}", expected))
    if len(np.unique(places)) < 2:
        problems.append(Problem("sizes", "one size", "at least two, for a slope"))
    if problems:
        raise DataError("draw_scaling", problems)
    if axes is None:
        _, axes = plt.subplots(figsize=(5.75, 4.2), layout="constrained")
    axes.set(xscale="log", yscale="log")
    below, above = np.quantile(again, BAND, axis=1)
    bars = np.maximum([middle - below, above - middle], 0)
    axes.errorbar(places, middle, bars, fmt="o", color=COLOURS[0], ms=5, capsize=5, lw=1.6)
    slope, height = np.polyfit(np.log(places), np.log(middle), 1)
    axes.plot(places, np.exp(height) * places**slope, color=COLOURS[0], lw=1)
    axes.plot(places, lowest, "s--", color=GREY, ms=4, lw=1.2)
    low, high = np.quantile(
        [np.polyfit(np.log(places), np.log(each), 1)[0] for each in again.T], BAND
    )
    axes.set_title(f"slope {slope:.2f}, 90% interval {low:.2f} to {high:.2f}")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.minorticks_off()
    axes.set_ylabel("episodes needed")
    axes.spines[["top", "right"]].set_visible(False)
    label_ends(
        axes,
        [
            (float(places[-1]), float(middle[-1]), "needed", COLOURS[0]),
            (float(places[-1]), float(lowest[-1]), "minimum for any learner", GREY),
        ],
    )
    return axes
