"""Pictures of numbers over numbers.

Curves with their names at their ends, intervals that shrink, brackets that close.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.report.data import check_colours, check_finite, vectors
from homdp_ppl.report.labels import label_ends
from homdp_ppl.report.look import COLOURS, GREY, plain

MARKED = "osv^D"  # styles with marks that are larger than a line

STYLE = re.compile(r"[.,ov^<>1-48sp*hH+xXDdP|_]?(--|-\.|-|:)?")  # of Matplotlib, without colours


def use_style() -> None:
    """Give the pictures that follow the look of this toolkit.

    Larger letters, and no frames around axes and legends.

    This changes matplotlib's settings, as a notebook wants it; nothing in the toolkit calls it by
    itself.

    Examples
    --------
    >>> with plt.rc_context():  # to undo it afterwards
    ...     use_style()
    ...     bool(plt.rcParams["axes.spines.top"])
    False
    """
    plt.rcParams.update(
        {
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    )


@checked
def draw_curves(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    axes: Axes | None = None,
    levels: Mapping[str, float] | None = None,
    styles: Mapping[str, str] | str = "-",
    colours: Sequence[str] = COLOURS,
    named: Literal["ends", "legend", "no"] = "ends",
    steps: Literal["pre", "mid", "post"] | None = None,
    width: float = 2.0,
) -> Axes:
    """Draw curves, each with its name at its end, and levels to compare them with.

    Axes that are given keep their scales: set them to "log" before drawing.

    Parameters
    ----------
    curves
        For each name its places on the two axes.
    axes
        Where to draw; a new figure by default.
    levels
        For each name a height, drawn as a dotted line; the name stands at the right end.
    styles
        How to draw the curves, in matplotlib's words such as ``"--"`` or ``"o-"``: one style for
        all, or some curves' own.
    colours
        Of the curves, in their order.
    named
        Where the names of the curves go: to their ends, into a legend, or nowhere.
    steps
        Draw stairs that change before, between or after the places.
    width
        Of the lines, in points.

    Examples
    --------
    >>> axes = draw_curves({"square": ([1, 2, 3], [1, 4, 9])}, levels={"five": 5.0})
    >>> [text.get_text() for text in axes.texts]
    ['square', 'five']
    >>> plt.close(axes.figure)
    """
    if not curves:
        raise DataError(
            "draw_curves",
            [Problem("curves", "no curves", "at least one, with its places on the two axes")],
        )
    check_finite("draw_curves", width=width, levels=levels or {})
    check_colours("draw_curves", colours)
    used = [styles] if isinstance(styles, str) else list(styles.values())
    odd = [style for style in used if not STYLE.fullmatch(style)]
    if odd:
        expected = "a mark, a line such as '-' or '--', or both"
        raise DataError("draw_curves", [Problem("styles", shown(odd[0]), expected)])
    places = {
        name: (np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        for name, (x, y) in curves.items()
    }
    wrong = [
        Problem(
            name,
            f"places of shapes {x.shape} and {y.shape}",
            "as many on one axis as on the other, at least one",
        )
        for name, (x, y) in places.items()
        if x.ndim != 1 or x.shape != y.shape or not len(x)
    ]
    if wrong:
        raise DataError("draw_curves", wrong)
    if axes is None:
        _, axes = plt.subplots(figsize=(8.0, 4.2), layout="constrained")
    ends = []
    drawstyle = f"steps-{steps}" if steps else "default"
    for k, (name, (across, up)) in enumerate(places.items()):
        style = styles if isinstance(styles, str) else styles.get(name, "-")
        colour, label = (
            colours[k % len(colours)],
            "_" if named == "no" else plain(name),
        )  # an underscore: in no legend
        axes.plot(across, up, style, color=colour, lw=width, ms=5, drawstyle=drawstyle, label=label)
        last = np.flatnonzero(np.isfinite(across) & np.isfinite(up))[-1:]
        ends += [(float(across[k]), float(up[k]), name, colour) for k in last]
    for height in (levels or {}).values():
        axes.axhline(height, color=GREY, lw=1.2, ls=":", zorder=1)
    drawn = styles if isinstance(styles, str) else "".join(styles.values())
    if named == "ends" and ends and not set(MARKED) & set(drawn):  # a mark at the end would be cut
        axes.set_xlim(right=max(end[0] for end in ends))
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if np.abs(limits).max() < 1e6 and (
            np.abs(limits).min() > 1e-4 or axis.get_scale() == "linear"
        ):
            axis.set_major_formatter("{x:,g}")
    axes.spines[["top", "right"]].set_visible(False)
    above = [(axes.get_xlim()[1], height, name, GREY) for name, height in (levels or {}).items()]
    labels = [*ends, *above] if named == "ends" else above
    if labels:
        label_ends(axes, labels)
    if named == "legend":
        axes.legend(frameon=False, fontsize=9)
    return axes


@checked
def draw_bands(
    at: ArrayLike,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]],
    axes: Axes | None = None,
    truth: Mapping[str, float] | float | None = None,
) -> Axes:
    """Draw intervals that change, each as a band between its two ends, with the truth dotted.

    Parameters
    ----------
    at
        Places on the horizontal axis, such as numbers of episodes.
    bands
        For each name the lower and the upper ends at these places.
    axes
        Where to draw; a new figure by default.
    truth
        What the intervals are about: one number for all, in black, or for some names their own, in
        the band's colour.

    Examples
    --------
    >>> axes = draw_bands([1, 10], {"rate": ([0.1, 0.4], [0.9, 0.6])}, truth=0.5)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['rate', 'truth']
    >>> plt.close(axes.figure)
    """
    if not bands:
        raise DataError(
            "draw_bands",
            [Problem("bands", "no bands", "at least one, with its lower and upper ends")],
        )
    (across,) = vectors("draw_bands", at=at)
    pairs = {
        name: vectors("draw_bands", at=across, low=low, high=high)[1:]
        for name, (low, high) in bands.items()
    }
    check_finite("draw_bands", truth=truth)
    if axes is None:
        _, axes = plt.subplots(figsize=(8.0, 4.2), layout="constrained")
    for k, (name, (low, high)) in enumerate(pairs.items()):
        colour = COLOURS[k % len(COLOURS)]
        axes.fill_between(across, low, high, color=colour, alpha=0.15, lw=0)
        axes.plot(across, low, color=colour, lw=1.8, label=plain(name))
        axes.plot(across, high, color=colour, lw=1.8)
        if isinstance(truth, Mapping) and name in truth:
            axes.axhline(truth[name], color=colour, lw=1.5, ls=":")
    if truth is not None and not isinstance(truth, Mapping):
        axes.axhline(truth, color="black", lw=1.5, ls=":", label="truth")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="best")
    return axes


@checked
def draw_bracket(
    at: ArrayLike, value: ArrayLike, upper: ArrayLike, axes: Axes | None = None
) -> Axes:
    """Draw how a bracket closes around an optimum.

    Below a value that a policy reaches, above one that no policy exceeds.

    Parameters
    ----------
    at
        Places on the horizontal axis: how much work was done.
    value, upper
        The two ends of the bracket at these places.
    axes
        Where to draw; a new figure by default.

    Examples
    --------
    >>> axes = draw_bracket([1, 2], [0.4, 0.5], [0.9, 0.6])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['upper: no policy exceeds it', 'value: this policy reaches it']
    >>> plt.close(axes.figure)
    """
    across, low, high = vectors("draw_bracket", at=at, value=value, upper=upper)
    if not (low <= high).all():
        raise DataError(
            "draw_bracket",
            [Problem("value", "a value above its upper bound", "value <= upper everywhere")],
        )
    if axes is None:
        _, axes = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    axes.fill_between(across, low, high, color=COLOURS[0], alpha=0.12, lw=0)
    axes.plot(across, high, "v-", color=COLOURS[1], lw=2, ms=6, label="upper: no policy exceeds it")
    axes.plot(
        across, low, "^-", color=COLOURS[0], lw=2, ms=6, label="value: this policy reaches it"
    )
    axes.set_ylabel("value")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    return axes
