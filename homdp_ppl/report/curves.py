"""Line plots: labelled curves, bands and brackets."""

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
from homdp_ppl.report.formatting import COLOURS, GREY, plain
from homdp_ppl.report.labels import label_ends

MARKED = "osv^D"  # markers that are larger than a line

# Matplotlib format strings, without colours
STYLE = re.compile(r"[.,ov^<>1-48sp*hH+xXDdP|_]?(--|-\.|-|:)?")


def use_style() -> None:
    """Use the plot style of this package: larger text, no frames around axes and legends.

    This changes Matplotlib's global settings. It is meant for notebooks; the package itself never
    calls it.

    Examples
    --------
    >>> with plt.rc_context():  # restores the settings afterwards
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
    """Plot curves, each labelled at its end, with optional horizontal reference lines.

    Scales of existing axes are kept: for a logarithmic axis, set it to "log" before the call.

    Parameters
    ----------
    curves
        For each name, the x and y coordinates.
    axes
        Axes to draw on. Default: a new figure.
    levels
        For each name, the height of a dotted reference line, labelled at its right end.
    styles
        Matplotlib format strings such as ``"--"`` or ``"o-"``: one for all curves, or a mapping
        from names to styles. Curves without a style are solid lines.
    colours
        Colours of the curves, in order.
    named
        Where to write the names of the curves: at their ends, in a legend, or not at all.
    steps
        Draw step functions that change before, between or after the x coordinates.
    width
        Line width, in points.

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
            [Problem("curves", "no curves", "at least one curve: {name: (x, y)}")],
        )
    check_finite("draw_curves", width=width, levels=levels or {})
    check_colours("draw_curves", colours)
    used = [styles] if isinstance(styles, str) else list(styles.values())
    odd = [style for style in used if not STYLE.fullmatch(style)]
    if odd:
        expected = "a marker, a line style such as '-' or '--', or both"
        raise DataError("draw_curves", [Problem("styles", shown(odd[0]), expected)])
    places = {
        name: (np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        for name, (x, y) in curves.items()
    }
    wrong = [
        Problem(
            name,
            f"coordinates of shapes {x.shape} and {y.shape}",
            "two vectors of the same length, at least 1",
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
        )  # Matplotlib leaves out labels that start with an underscore
        axes.plot(across, up, style, color=colour, lw=width, ms=5, drawstyle=drawstyle, label=label)
        last = np.flatnonzero(np.isfinite(across) & np.isfinite(up))[-1:]
        ends += [(float(across[k]), float(up[k]), name, colour) for k in last]
    for height in (levels or {}).values():
        axes.axhline(height, color=GREY, lw=1.2, ls=":", zorder=1)
    drawn = styles if isinstance(styles, str) else "".join(styles.values())
    if named == "ends" and ends and not set(MARKED) & set(drawn):  # would clip the last marker
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
    """Plot intervals as bands, with the true value as a dotted line.

    Parameters
    ----------
    at
        x coordinates, such as numbers of episodes.
    bands
        For each name, the lower and upper ends at these coordinates.
    axes
        Axes to draw on. Default: a new figure.
    truth
        The true value: one number for all bands, drawn in black, or a mapping from names to
        numbers, drawn in the colours of the bands.

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
            [Problem("bands", "no bands", "at least one band: {name: (low, high)}")],
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
    """Plot how a bracket around the optimum closes.

    The lower end is the value of a policy; the upper end is a bound for all policies.

    Parameters
    ----------
    at
        x coordinates: the amount of work, such as seconds or nodes.
    value, upper
        The two ends of the bracket at these coordinates.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_bracket([1, 2], [0.4, 0.5], [0.9, 0.6])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['upper bound for all policies', 'value of this policy']
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
    upper_label, value_label = "upper bound for all policies", "value of this policy"
    axes.plot(across, high, "v-", color=COLOURS[1], lw=2, ms=6, label=upper_label)
    axes.plot(across, low, "^-", color=COLOURS[0], lw=2, ms=6, label=value_label)
    axes.set_ylabel("value")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    return axes
