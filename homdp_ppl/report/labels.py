"""Labels at the ends of curves, placed so that they do not overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import is_color_like
from matplotlib.transforms import Affine2D, ScaledTranslation

from homdp_ppl.core.checked import checked
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.precision import Array
from homdp_ppl.report.formatting import plain

LINE = 12.0  # smallest distance between two labels, in points


@checked
def label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names next to the ends of curves.

    Labels do not overlap, and stay within the height of the axes if there is room.

    Parameters
    ----------
    axes
        Axes with all curves drawn and with their final scales and limits.
    ends
        For each curve x, y, name and colour. Curves whose x or y is not finite get no label.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> figure, axes = plt.subplots()
    >>> curves = axes.plot([0, 1], [0, 1], "C0", [0, 1], [0, 1.01], "C1")
    >>> label_ends(axes, [(1, 1, "one", "C0"), (1, 1.01, "two", "C1")])
    >>> low, high = (text.get_window_extent().y0 * 72 / figure.dpi for text in axes.texts)
    >>> round(high - low)  # points, although the curves end next to each other
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
        expected = "(x, y, name, colour)"
        raise DataError("label_ends", [Problem("ends", shown(wrong[0]), expected)])
    bottom, top = sorted(axes.get_ylim())  # first: this makes Matplotlib fix its limits
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
    """The nearest positions in the same order that are at least ``LINE`` apart.

    This is isotonic regression: groups of crowded labels are centred at their mean. All positions
    are between ``low`` and ``high``, unless there are too many labels.
    """
    order = np.argsort(heights, kind="stable")
    # After this shift, "at least LINE apart" means "non-decreasing".
    free = np.asarray(heights, dtype=np.float64)[order] - LINE * np.arange(len(order))
    pools: list[tuple[float, int]] = []
    for height in free:
        mean, size = float(height), 1
        while pools and pools[-1][0] > mean:
            before, members = pools.pop()
            mean, size = (before * members + mean * size) / (members + size), members + size
        pools.append((mean, size))
    found = np.repeat([mean for mean, _ in pools], [size for _, size in pools])
    highest = high - LINE * (len(order) - 1)  # of the first label, to keep the last below the top
    places = np.empty(len(order))
    places[order] = (np.clip(found, low, highest) if low <= highest else found) + LINE * np.arange(
        len(order)
    )
    return places
