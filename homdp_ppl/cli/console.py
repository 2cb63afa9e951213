"""Where the commands print: a rich console, and lines as they are."""

from __future__ import annotations

import os
import sys

from rich.console import Console

from homdp_ppl.storage._system import printable

PAGE = 140  # columns where there is no terminal


class PipeConsole(Console):
    """A console that raises BrokenPipeError when the reader of a pipe closes it.

    By default, rich ends the process as if it had failed.
    """

    def on_broken_pipe(self) -> None:
        """Not an error."""
        raise BrokenPipeError


def make_console() -> Console:
    """The console for standard output.

    In a pipe or a file there is no width to fit into, so tables keep all their columns. Emoji codes
    are off: `mine.py:fire:` is a name.
    """
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PAGE
    return PipeConsole(width=width, emoji=False)


def say(console: Console, text: str) -> None:
    """Print a line as it is: no wrapping, no markup."""
    console.out(printable(text), highlight=False)


def warn(text: str) -> None:
    """Print a line as it is to standard error."""
    say(Console(stderr=True), text)
