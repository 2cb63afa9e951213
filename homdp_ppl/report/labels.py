"""Names beside the ends of curves, apart from each other and inside the height of the axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import is_color_like
from matplotlib.transforms import Affine2D, ScaledTranslation

from homdp_ppl.core.checked import checked
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.precision import Array
from homdp_ppl.report.look import plain

LINE = 12.0  # points between the lines of text of two labels


@checked
def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names beside the ends of curves, apart from each other and within the height of the
    axes, if there is room.

    Parameters
    ----------
    axes
        With all curves drawn and its scales and limits as they will stay.
    ends
        Place on the two axes, name and colour of each; a curve without an end, which is not a
        number, gets no name.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, axes = plt.subplots()
    >>> curves = axes.plot([0, 1], [0, 1], "C0", [0, 1], [0, 1.01], "C1")
    >>> label_ends(axes, [(1, 1, "one", "C0"), (1, 1.01, "two", "C1")])
    >>> low, high = (text.get_window_extent().y0 * 72 / figure.dpi for text in axes.texts)
    >>> round(high - low)  # points: a line apart, although the curves end beside each other
    12
    >>> plt.close(figure)
    """
    figure = axes.get_figure(root=True)
    if figure is None:
        raise DataError(
            "label_ends", [Problem("axes", "axes without a figure", "axes of a figure")]
        )
    wrong = [end for end in ends if not is_color_like(end[3])]
    if wrong:
        raise DataError("label_ends", [Problem("ends", shown(wrong[0]), "x, y, a name, a colour")])
    bottom, top = sorted(axes.get_ylim())  # asked first: matplotlib settles them late
    seen = [
        (x, min(max(y, bottom), top), name, colour)
        for x, y, name, colour in ends
        if np.isfinite((x, y)).all()
    ]
    points = axes.transData + Affine2D().scale(72 / figure.dpi)
    low, high = sorted(float(points.transform((axes.get_xlim()[0], y))[1]) for y in (bottom, top))
    heights = [float(points.transform((x, y))[1]) for x, y, *_ in seen]
    for (x, y, name, colour), height, place in zip(
        seen, heights, _apart(heights, low, high), strict=True
    ):
        shift = ScaledTranslation(6 / 72, (place - height) / 72, figure.dpi_scale_trans)
        axes.text(
            x,
            y,
            plain(name),
            color=colour,
            fontsize=9,
            va="center",
            ha="left",
            transform=axes.transData + shift,
        )


def _apart(heights: Sequence[float], low: float, high: float) -> Array:
    """The nearest places in the same order that are at least a line apart.

    Pools of crowded labels share their mean.

    All lie between ``low`` and ``high``, unless there are too many.
    """
    order = np.argsort(heights, kind="stable")
    free = np.asarray(heights, dtype=np.float64)[order] - LINE * np.arange(
        len(order)
    )  # apart means non-decreasing here
    pools: list[tuple[float, int]] = []
    for height in free:
        mean, size = float(height), 1
        while pools and pools[-1][0] > mean:
            before, members = pools.pop()
            mean, size = (before * members + mean * size) / (members + size), members + size
        pools.append((mean, size))
    found = np.repeat([mean for mean, _ in pools], [size for _, size in pools])
    highest = high - LINE * (
        len(order) - 1
    )  # of the first label, if the last is to be below the top
    places = np.empty(len(order))
    places[order] = (np.clip(found, low, highest) if low <= highest else found) + LINE * np.arange(
        len(order)
    )
    return places
