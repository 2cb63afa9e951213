"""Building blocks of HTML: paragraphs, tables and embedded figures. All text is escaped here."""

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
from homdp_ppl.report.page.script import SCRIPT
from homdp_ppl.report.page.style import STYLE
from homdp_ppl.storage._system import printable

Html = NewType("Html", str)  # markup; any other string is text and is escaped
TINY = 1e-9  # smaller numbers are rounding errors of 0
WIDTH = 72  # pixels per inch below which a figure scrolls instead of shrinking
SETTINGS: Any = {
    "svg.hashsalt": "homdp_ppl",
    "svg.fonttype": "path",
}  # reproducible bytes that do not depend on the fonts of the reader


def tag(name: str, *content: str, **attributes: str) -> Html:
    """An HTML element.

    In names of attributes, underscores become hyphens and a trailing underscore is dropped. Values
    of attributes are escaped.

    Examples
    --------
    >>> tag("p", text("a < b"), class_="note")
    '<p class="note">a &lt; b</p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{written}>{''.join(content)}</{name}>")


def text(words: object) -> Html:
    """Escaped text."""
    return Html(escape(printable(str(words))))


def paragraph(*sentences: str, class_: str = "") -> Html:
    """A paragraph of sentences, which are escaped."""
    words = text(" ".join(sentence for sentence in sentences if sentence))
    return tag("p", words, class_=class_) if class_ else tag("p", words)


def number(value: float) -> str:
    """A number rounded for display.

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


def exact(value: float, display: str | None = None) -> Html:
    """A ``data`` element: a rounded number, with all its digits in the attribute ``value``."""
    rounded = number(value) if display is None else display
    return tag("data", text(rounded), value=repr(float(value)))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> Html:
    """A table that scrolls on narrow pages. The first column contains the headings of the rows.

    Parameters
    ----------
    head
        Headings of the columns, which are escaped.
    rows
        Cells as markup.
    caption
        The caption, which is escaped.
    """
    top = tag("tr", *(tag("th", text(word), scope="col") for word in head))
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    ]
    made = tag("table", tag("caption", text(caption)), tag("thead", top), tag("tbody", *body))
    return tag("div", made, class_="scroll", role="region", tabindex="0", aria_label=caption)


def picture(draw: Callable[[], Axes], alternative: str, caption: str) -> Html:
    """A figure embedded in the page, with an alternative text.

    Parameters
    ----------
    draw
        A function that draws the figure and returns its axes.
    alternative
        The alternative text, for readers who do not see the figure.
    caption
        The caption below the figure.
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
    """A complete HTML page that loads no other files."""
    head = tag(
        "head",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        tag("title", text(title)),
        tag("style", STYLE),
    )
    body = tag("body", tag("main", *content), tag("script", SCRIPT))
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'
