"""The text of a table."""

import io

from rich.console import Console, RenderableType


def text_of(table: RenderableType, width: int = 100) -> str:
    """A table as printed text."""
    printed = io.StringIO()
    Console(width=width, file=printed).print(table)
    return printed.getvalue()
