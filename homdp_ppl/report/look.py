"""What all pictures share: colours, marks, the band of the seeds, and names as they stand."""

from __future__ import annotations

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6b6b6b", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito's
GREY = "#6b6b6b"
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
BAND = (0.05, 0.95)  # quantiles over the seeds


def plain(name: str) -> str:
    """A name as it stands, where matplotlib might take dollars for mathematics."""
    return name.replace("$", r"\$")
