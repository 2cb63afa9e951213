"""Pieces of HTML as text: paragraphs, tables and pictures that need nothing from elsewhere.

Every text is escaped here.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any, NewType

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from homdp_ppl.errors import DataError, Problem
from homdp_ppl.report.page.style import STYLE
from homdp_ppl.storage._system import printable

Html = NewType("Html", str)  # markup; anything else is text and is escaped
TINY = 1e-9  # smaller numbers are rounding errors of 0
WIDTH = 72  # pixels an inch below which a picture scrolls instead of shrinking
SETTINGS: Any = {
    "svg.hashsalt": "homdp_ppl",
    "svg.fonttype": "path",
}  # the same picture is the same bytes, in any font


def tag(name: str, *content: str, **attributes: str) -> Html:
    """An element; an attribute's underscores are hyphens, a last one is dropped, and its value is
    escaped.

    Examples
    --------
    >>> tag("p", text("a < b"), class_="note")
    '<p class="note">a &lt; b</p>'
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{told}>{''.join(content)}</{name}>")


def text(words: object) -> Html:
    """Words as they are."""
    return Html(escape(printable(str(words))))


def paragraph(*sentences: str, class_: str = "") -> Html:
    """Sentences, which are escaped."""
    words = text(" ".join(sentence for sentence in sentences if sentence))
    return tag("p", words, class_=class_) if class_ else tag("p", words)


def number(value: float) -> str:
    """A number as a person reads it.

    Examples
    --------
    >>> [number(x) for x in (3.14159, 12345.6, -1e-14, float("nan"))]
    ['3.14', '12,346', '0', '-']
    """
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) < TINY:
        return "0"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def exact(value: float, told: str | None = None) -> Html:
    """A number rounded for people, with all its digits for machines."""
    return tag("data", text(number(value) if told is None else told), value=repr(float(value)))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> Html:
    """A table that scrolls where the page is narrow; the first column names the rows.

    Parameters
    ----------
    head
        Words above the columns, which are escaped.
    rows
        Cells as markup.
    caption
        What it shows, which is escaped.
    """
    top = tag("tr", *(tag("th", text(word), scope="col") for word in head))
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    ]
    whole = tag("table", tag("caption", text(caption)), tag("thead", top), tag("tbody", *body))
    return tag("div", whole, class_="scroll", role="region", tabindex="0", aria_label=caption)


def picture(draw: Callable[[], Axes], alternative: str, caption: str) -> Html:
    """A picture inside the page, with words for who cannot see it.

    Parameters
    ----------
    draw
        Draws it, and returns its axes.
    alternative
        What is to be seen, in place of the picture.
    caption
        What it shows, below the picture.
    """
    with mpl.rc_context(SETTINGS):
        figure = draw().get_figure(root=True)
        if not isinstance(figure, Figure):
            raise DataError(
                "picture", [Problem("axes", "axes without a figure", "axes of a figure")]
            )
        drawn = BytesIO()
        try:
            figure.savefig(
                drawn, format="svg", bbox_inches="tight", pad_inches=0.08, metadata={"Date": None}
            )
        finally:
            plt.close(figure)
    source = f"data:image/svg+xml;base64,{b64encode(drawn.getvalue()).decode()}"
    narrowest = f"min-width: {WIDTH * figure.get_figwidth():.0f}px"
    image = f'<img src="{source}" alt="{text(alternative)}" style="{narrowest}">'
    return tag("figure", tag("div", image, class_="scroll"), tag("figcaption", text(caption)))


def document(title: str, *content: str) -> str:
    """A whole page, which loads nothing from elsewhere."""
    head = tag(
        "head",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        tag("title", text(title)),
        tag("style", STYLE),
    )
    return (
        f"<!DOCTYPE html>\n<html "
        f'lang="en">\n{head}\n{tag("body", tag("main", *content))}\n</html>\n'
    )
