"""Plots that compare numbers on one scale: values of agents, bounds, sizes of trees."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from homdp_ppl.core.checked import checked
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.report.data import check_finite
from homdp_ppl.report.formatting import COLOURS, GREY, MARKS, plain


@checked
def draw_ladder(
    values: Mapping[str, float], highlight: str | None = None, axes: Axes | None = None
) -> Axes:
    """Plot one value for each of several agents, from bottom to top.

    Parameters
    ----------
    values
        The value of each agent, by name; the first is drawn at the bottom.
    highlight
        The name of the agent to highlight.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_ladder({"blind": 3.0, "history": 3.4, "state": 4.2}, highlight="history")
    >>> [text.get_text() for text in axes.texts]
    ['3.000', '3.400', '4.200']
    >>> plt.close(axes.figure)
    """
    if not values:
        raise DataError(
            "draw_ladder", [Problem("values", "no values", "at least one agent: {name: value}")]
        )
    check_finite("draw_ladder", values=values)
    if axes is None:
        _, axes = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
    numbers, rows = list(values.values()), range(len(values))
    colours = [COLOURS[0] if name == highlight else GREY for name in values]
    axes.hlines(rows, min(numbers), numbers, color=colours, lw=2, alpha=0.5)
    axes.scatter(numbers, rows, s=70, color=colours, zorder=2)
    for row, number in enumerate(numbers):
        axes.annotate(
            f"{number:.3f}",
            (number, row),
            (10, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
        )
    axes.set_yticks(rows, [plain(name) for name in values])
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.18, y=0.12)
    axes.set_xlabel("expected return per episode")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return axes


@checked
def draw_bounds(bounds: Mapping[str, Mapping[str, float]], axes: Axes | None = None) -> Axes:
    """Plot where the optimum of each model lies between its bounds.

    Each row is scaled from the lowest to the highest bound of its model.

    Parameters
    ----------
    bounds
        For each model, the optimum under the name ``"optimum"``, and bounds by name. All models
        have the same bounds.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_bounds({"tiger": {"blind": 3.6, "optimum": 3.7, "MDP": 4.0}})
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['optimum', 'blind', 'MDP']
    >>> plt.close(axes.figure)
    """
    missing = [
        Problem(model, "no optimum", "a number named 'optimum'")
        for model, row in bounds.items()
        if "optimum" not in row
    ]
    if missing or not bounds:
        raise DataError("draw_bounds", missing or [Problem("bounds", "no models", "at least one")])
    for row_of in bounds.values():
        check_finite("draw_bounds", bounds=row_of)
    if axes is None:
        _, axes = plt.subplots(figsize=(9.5, 0.9 + 0.52 * len(bounds)), layout="constrained")
    for row, numbers in enumerate(reversed(list(bounds.values()))):
        low = min(numbers.values())
        width = max(numbers.values()) - low or 1.0  # if all are equal, they are drawn at the left
        place = {name: (number - low) / width for name, number in numbers.items()}
        axes.plot([0, 1], [row, row], color="#dddddd", lw=6, solid_capstyle="round", zorder=1)
        best = place.pop("optimum")
        label = "optimum" if row == 0 else None
        axes.plot(
            [best, best],
            [row - 0.3, row + 0.3],
            color="black",
            lw=3,
            zorder=2,
            solid_capstyle="butt",
            label=label,
        )
        axes.annotate(
            f"{numbers['optimum']:.3f}",
            (best, row + 0.3),
            (0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
        for k, (name, x) in enumerate(place.items()):
            size = 6 + 2.5 * k  # hollow markers of growing size stay visible if they coincide
            colour, label = COLOURS[k % len(COLOURS)], plain(name) if row == 0 else None
            axes.plot(
                x,
                row,
                MARKS[k % len(MARKS)],
                ms=size,
                mec=colour,
                mew=2,
                mfc="none",
                zorder=3,
                ls="",
                label=label,
            )
    axes.set_yticks(range(len(bounds)), [plain(name) for name in reversed(list(bounds))])
    axes.set(xlim=(-0.04, 1.04), ylim=(-0.6, len(bounds) - 0.25), xticks=[])
    axes.tick_params(axis="y", length=0)
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return axes


@checked
def draw_savings(sizes: Mapping[str, tuple[float, float]], axes: Axes | None = None) -> Axes:
    """Plot how much pruning saves: the sizes of the complete and of the pruned tree of each model,
    and their ratio.

    Parameters
    ----------
    sizes
        For each model, the complete and the remaining size.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_savings({"lock": (17476, 908), "tiger": (518, 518)})
    >>> [text.get_text() for text in axes.texts]
    ['none pruned', '19 times']
    >>> plt.close(axes.figure)
    """
    wrong = [
        Problem(name, f"sizes {complete:,g} and {left:,g}", "complete >= remaining > 0")
        for name, (complete, left) in sizes.items()
        if not complete >= left > 0
    ]
    if wrong or not sizes:
        raise DataError(
            "draw_savings", wrong or [Problem("sizes", "no sizes", "the sizes of a model")]
        )
    check_finite("draw_savings", sizes=sizes)
    if axes is None:
        _, axes = plt.subplots(figsize=(6.5, 0.9 + 0.5 * len(sizes)), layout="constrained")
    axes.set_xscale("log")
    order = sorted(sizes, key=lambda name: sizes[name][0] / sizes[name][1])
    for row, name in enumerate(order):
        complete, left = sizes[name]
        first = row == 0
        axes.plot(
            [left, complete], [row, row], color="#cccccc", lw=5, solid_capstyle="round", zorder=1
        )
        axes.plot(
            complete,
            row,
            "o",
            color="white",
            mec=GREY,
            mew=1.8,
            ms=9,
            zorder=2,
            label="complete" if first else None,
        )
        axes.plot(
            left,
            row,
            "o",
            color=COLOURS[0],
            ms=9,
            zorder=3,
            label="after pruning" if first else None,
        )
        factor = f"{complete / left:,.0f} times" if left < complete else "none pruned"
        axes.annotate(
            factor,
            (complete, row),
            (12, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=GREY,
        )
    axes.set_yticks(range(len(order)), [plain(name) for name in order])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(right=30 * max(complete for complete, _ in sizes.values()))
    axes.set_ylim(-0.6, len(order) - 0.4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    return axes
