"""What pictures and tables share.

Colours, marks, the band of the seeds, names as they stand, and numbers of things.
"""

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
)  # Okabe and Ito's
GREY = "#6b6b6b"
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
BAND = (0.05, 0.95)  # quantiles over the seeds


def colour_of(name: str, k: int, colours: Mapping[str, str] | None = None) -> str:
    """The colour of the k-th name of a picture.

    Its own if it has one, to be the same in others, else the k-th of all.
    """
    colour = (colours or {}).get(name, COLOURS[k % len(COLOURS)])
    if not is_color_like(colour):
        raise DataError("colours", [Problem(f"colours[{name!r}]", shown(colour), "a colour")])
    return colour


def plain(name: object) -> str:
    """A name as it stands, where matplotlib might take dollars for mathematics."""
    return str(name).replace("$", r"\$")


def label_log(axis: Axis) -> None:
    """Write plain numbers at a logarithmic axis.

    1, 2, 5, 10, 20 and so on over up to two decades, else powers of ten.
    """
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(
        LogLocator(subs=(1.0, 2.0, 5.0) if math.log10(high / low) <= 2 else (1.0,))
    )
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter("{x:,g}")


def counted(number: int, word: str) -> str:
    """So many of something.

    Examples
    --------
    >>> counted(1, "seed"), counted(2000, "episode")
    ('1 seed', '2,000 episodes')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
