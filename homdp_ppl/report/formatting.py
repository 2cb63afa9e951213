"""Shared by plots and tables: colours, markers, axis labels, escaped names, and counts."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.axis import Axis
from matplotlib.colors import is_color_like
from matplotlib.ticker import LogLocator, NullFormatter

from homdp_ppl.errors import DataError, Problem, shown

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#6b6b6b",
    "#E69F00",
    "#56B4E9",
    "#000000",
)  # of Okabe and Ito, distinguishable with colour blindness
GREY = "#6b6b6b"
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
BAND = (0.05, 0.95)  # quantiles over the seeds


def colour_of(name: str, k: int, colours: Mapping[str, str] | None = None) -> str:
    """The colour of the k-th name of a plot: ``colours[name]`` if given, else the k-th default."""
    colour = (colours or {}).get(name, COLOURS[k % len(COLOURS)])
    if not is_color_like(colour):
        expected = "a Matplotlib colour such as 'red' or '#0072B2'"
        raise DataError("colours", [Problem(f"colours[{name!r}]", shown(colour), expected)])
    return colour


def plain(name: object) -> str:
    """A name as text for Matplotlib: dollar signs are escaped, they would start a formula."""
    return str(name).replace("$", r"\$")


def label_log(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers.

    Up to two decades have labels at 1, 2, 5, 10, 20 and so on, longer axes at powers of ten.
    """
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(
        LogLocator(subs=(1.0, 2.0, 5.0) if math.log10(high / low) <= 2 else (1.0,))
    )
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter("{x:,g}")


def counted(number: int, word: str) -> str:
    """A number with its noun, in the singular or plural.

    Examples
    --------
    >>> counted(1, "seed"), counted(2000, "episode")
    ('1 seed', '2,000 episodes')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
