"""Text as a picture: the render mode "rgb_array" of environments."""

from __future__ import annotations

from textwrap import wrap

import numpy as np

from homdp_ppl.precision import Array

ROWS = 20  # lines of a picture at most; of longer texts, the last ones are shown
COLUMNS = 64  # characters of a line; longer lines are wrapped
ROW, WIDTH, MARGIN = 24, 640, 12  # pixels


def picture(text: str, lines: int) -> Array:
    """Draw text; returns an array (height, width, 3) of bytes.

    Parameters
    ----------
    text
        The text. Long lines are wrapped.
    lines
        The number of lines for which there is room, at most 20.

    Examples
    --------
    >>> picture("1. growl left: listen", 6).shape
    (168, 640, 3)
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow, and needs no pyplot
    from matplotlib.figure import Figure

    rows = min(lines, ROWS)
    height = rows * ROW + 2 * MARGIN
    figure = Figure(figsize=(WIDTH / 100, height / 100), dpi=100, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    shown = [part for line in text.splitlines() for part in wrap(line, COLUMNS)][-rows:]
    for k, line in enumerate(shown):
        place = MARGIN / WIDTH, 1 - (MARGIN + (k + 0.5) * ROW) / height
        figure.text(*place, line, va="center", size=10, family="monospace", parse_math=False)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.array(canvas.buffer_rgba())[..., :3]  # type: ignore[no-untyped-call]
