"""Forest plots: an interval for every unknown number, with the true value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.precision import Array
from homdp_ppl.report.formatting import COLOURS, plain

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST = 36  # numbers in a plot that stays legible
COLOUR, TRUTH = COLOURS[:2]


class Entry(NamedTuple):
    """One unknown number: its name, posterior quantiles, and true value (NaN if not known)."""

    name: str
    quantiles: Array  # (5,)
    truth: float

    @property
    def is_share(self) -> bool:
        """Whether all quantiles are in [0, 1], as for a probability."""
        return bool(self.quantiles[0] >= 0 and self.quantiles[-1] <= 1)


def forest_entries(dataset: xr.Dataset, truth: Mapping[str, ArrayLike]) -> list[Entry]:
    """One entry for each number of each site.

    Parameters
    ----------
    dataset
        The ``dataset`` of a posterior: sites with axes (chain, draw, ...).
    truth
        True values of sites, by their names in the dataset.
    """
    entries = []
    for name, draws in dataset.data_vars.items():
        if not {"chain", "draw"} <= set(draws.dims) or draws.dtype.kind not in "biuf":
            expected = "numbers with axes (chain, draw, ...)"
            problem = Problem(str(name), f"axes {draws.dims}, type {draws.dtype}", expected)
            raise DataError("draw_forest", [problem])
        axes = [axis for axis in draws.dims if axis not in ("chain", "draw")]
        quantiles = np.quantile(
            draws.transpose("chain", "draw", *axes).values, LEVELS, axis=(0, 1)
        )  # (5, ...)
        known = np.asarray(truth.get(str(name), np.nan), dtype=np.float64)
        if known.ndim and known.shape != quantiles.shape[1:]:
            got, expected = f"shape {known.shape}", f"shape {quantiles.shape[1:]}"
            raise DataError("draw_forest", [Problem(f"truth[{name!r}]", got, expected)])
        values = np.broadcast_to(known, quantiles.shape[1:])
        for at in np.ndindex(quantiles.shape[1:]):
            places = [
                str(draws[axis].values[k]) if axis in draws.coords else str(k)
                for axis, k in zip(axes, at, strict=True)
            ]
            label = f"{name}[{', '.join(places)}]" if places else str(name)
            entries.append(Entry(label, quantiles[(slice(None), *at)], float(values[at])))
    return entries


@checked
def draw_forest(dataset: xr.Dataset, truth: Mapping[str, ArrayLike], most: int = MOST) -> Axes:
    """Plot 90% and 50% intervals of every unknown number, and the true values.

    Probabilities share one panel, other numbers another.

    Parameters
    ----------
    dataset
        The ``dataset`` of a posterior: sites with axes (chain, draw, ...).
    truth
        True values of sites, by their names in the dataset.
    most
        The largest number of intervals. If there are more, the widest are drawn.

    Returns
    -------
    Axes
        The upper axes of a new figure.

    Examples
    --------
    >>> draws = xr.Dataset(
    ...     {"accuracy": (("chain", "draw"), [[0.7, 0.8, 0.9]])}
    ... )  # or posterior(homdp, episodes).dataset
    >>> axes = draw_forest(draws, {"accuracy": 0.85})
    >>> (
    ...     [text.get_text() for text in axes.get_yticklabels()],
    ...     [float(line.get_xdata()[0]) for line in axes.lines],
    ... )  # median, truth
    (['accuracy'], [0.8, 0.85])
    >>> plt.close(axes.figure)
    """
    return draw_entries(forest_entries(dataset, truth), most)


def draw_entries(entries: Sequence[Entry], most: int = MOST) -> Axes:
    """Like :func:`draw_forest`, from the result of :func:`forest_entries`.

    Parameters
    ----------
    entries
        The result of :func:`forest_entries`.
    most
        The largest number of intervals. If there are more, the widest are drawn.
    """
    if not entries:
        raise DataError("draw_forest", [Problem("dataset", "no sites", "at least one site")])
    refuse(DataError, "draw_forest", count_problems(most=most))
    if len(entries) > most:
        widest = sorted(
            range(len(entries)), key=lambda k: entries[k].quantiles[0] - entries[k].quantiles[-1]
        )[:most]
        entries = [entries[k] for k in sorted(widest)]
    groups = [[entry for entry in entries if entry.is_share == wanted] for wanted in (True, False)]
    panels = [group for group in groups if group]
    heights = [len(group) + 1.5 for group in panels]
    _, axes = plt.subplots(
        len(panels),
        1,
        squeeze=False,
        height_ratios=heights,
        figsize=(6.4, 0.9 + 0.24 * sum(heights)),
        layout="constrained",
    )
    for panel, group in zip(axes[:, 0], panels, strict=True):
        _draw(panel, group)
    top: Axes = axes[0, 0]
    top.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return top


def _draw(axes: Axes, entries: list[Entry]) -> None:
    rows = -np.arange(len(entries))
    low, lower, middle, upper, high = np.stack([entry.quantiles for entry in entries]).T
    axes.hlines(rows, low, high, color=COLOUR, lw=1.2, label="90%")
    axes.hlines(rows, lower, upper, color=COLOUR, lw=4, alpha=0.6, label="50%")
    axes.plot(middle, rows, "o", ms=4, mec="white", mew=0.6, color=COLOUR)
    axes.plot(
        [entry.truth for entry in entries], rows, "x", ms=6, mew=1.8, color=TRUTH, label="truth"
    )
    axes.set_yticks(rows, [plain(entry.name) for entry in entries], fontsize=8)
    axes.set_ylim(-len(entries) + 0.4, 0.6)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(axis="x", color="#e5e5e5", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
