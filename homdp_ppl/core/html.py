"""Small HTML tables for notebooks: escaped text, captions, and headers with a scope.

Values of ``_repr_html_`` are made here only, so that all of them are safe and readable by screen
readers. They use the fonts and colours of the notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LEFT = ' style="text-align: left"'
CAPTION = ' style="text-align: left; white-space: nowrap"'


def text(value: Any) -> str:
    """A value as escaped text; numbers are rounded to four digits.

    Examples
    --------
    >>> text("<b>"), text(0.123456), text(12000), text(float("nan"))
    ('&lt;b&gt;', '0.1235', '12,000', 'unknown')
    """
    if isinstance(value, float):
        return "unknown" if value != value else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return escape(str(value))


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; the first cell of each row is its header.

    Examples
    --------
    >>> print(table("Lamps", ["name", "lit"], [["one", "yes"]]))
    <table>
    <caption style="text-align: left; white-space: nowrap">Lamps</caption>
    <thead><tr><th scope="col" style="text-align: left">name</th><th scope="col" \
style="text-align: left">lit</th></tr></thead>
    <tbody>
    <tr><th scope="row" style="text-align: left">one</th><td style="text-align: left">yes</td></tr>
    </tbody>
    </table>
    """
    head = "".join(f'<th scope="col"{LEFT}>{text(cell)}</th>' for cell in header)
    body = [_row(cells) for cells in rows]
    start = ["<table>", f"<caption{CAPTION}>{text(caption)}</caption>"]
    head_row = [f"<thead><tr>{head}</tr></thead>"] if header else []
    return "\n".join([*start, *head_row, "<tbody>", *body, "</tbody>", "</table>"])


def facts(caption: str, named: Iterable[tuple[str, Any]]) -> str:
    r"""A table of names and values, without a header.

    Examples
    --------
    >>> "<thead>" in facts("Lamp", [("lit", True)])
    False
    """
    return table(caption, (), named)


def paragraph(content: Any, strong: bool = False) -> str:
    """A line of text.

    Examples
    --------
    >>> paragraph("a < b", strong=True)
    '<p><strong>a &lt; b</strong></p>'
    """
    inside = text(content)
    return f"<p><strong>{inside}</strong></p>" if strong else f"<p>{inside}</p>"


def listing(items: Iterable[Any]) -> str:
    """A list without an order; empty text for no items.

    Examples
    --------
    >>> listing(["one"]), listing([])
    ('<ul><li>one</li></ul>', '')
    """
    found = "".join(f"<li>{text(item)}</li>" for item in items)
    return f"<ul>{found}</ul>" if found else ""


def block(*parts: str) -> str:
    r"""Several parts together.

    Examples
    --------
    >>> block(paragraph("one"), paragraph("two"))
    '<div>\n<p>one</p>\n<p>two</p>\n</div>'
    """
    return "\n".join(["<div>", *filter(None, parts), "</div>"])


def _row(cells: Sequence[Any]) -> str:
    first, *rest = cells
    others = "".join(f"<td{LEFT}>{text(cell)}</td>" for cell in rest)
    return f'<tr><th scope="row"{LEFT}>{text(first)}</th>{others}</tr>'
