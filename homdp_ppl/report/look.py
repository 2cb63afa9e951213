"""What pictures and tables share: colours, marks, the band of the seeds, names as they stand, and numbers of things."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6b6b6b", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito's
GREY = "#6b6b6b"
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
BAND = (0.05, 0.95)  # quantiles over the seeds


def plain(name: object) -> str:
    """A name as it stands, where matplotlib might take dollars for mathematics."""
    return str(name).replace("$", r"\$")


def counted(number: int, word: str) -> str:
    """So many of something.

    Examples
    --------
    >>> counted(1, "seed"), counted(2000, "episode")
    ('1 seed', '2,000 episodes')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
