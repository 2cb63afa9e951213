"""The console that the commands print to."""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from homdp_ppl.storage._system import printable

PAGE = 140  # columns if the output is not a terminal


class PipeConsole(Console):
    """A console that raises BrokenPipeError when the reader closes the pipe.

    By default, rich exits with the code of a failure. Names from a file may contain characters
    that control a terminal; they are printed as escapes.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Format a text, such as a cell of a table."""
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, which the command treats as success."""
        raise BrokenPipeError


def make_console() -> Console:
    """The console for standard output.

    In a pipe or a file, the width is fixed. Emoji codes are off: `mine.py:fire:` is a name.
    """
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PAGE
    return PipeConsole(width=width, emoji=False)


def say(console: Console, text: str) -> None:
    """Print text without wrapping or markup."""
    console.out(printable(text), highlight=False)


def warn(text: str) -> None:
    """Print text to standard error, without wrapping or markup."""
    say(Console(stderr=True), text)
