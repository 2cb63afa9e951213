"""When work is to stop: asked by a signal, by a file that all workers see, or by the clock."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any


class Pace:
    """Says between two stretches of work whether to stop.

    Parameters
    ----------
    flag
        A file whose presence means: stop.
    deadline
        A time on the clock of ``time.monotonic()``, which no change of the date moves.
    """

    def __init__(self, flag: Path | None = None, deadline: float | None = None) -> None:
        self._flag, self._deadline = flag, deadline
        self._asked = ""

    def ask(self, reason: str) -> None:
        """Stop at the next opportunity."""
        self._asked = self._asked or reason

    @property
    def stop(self) -> str:
        """Why to stop; empty as long as there is no reason."""
        if self._asked:
            return self._asked
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "the time limit is reached"
        if self._flag is not None and self._flag.exists():
            return "it was asked to stop"
        return ""


@contextmanager
def listening(pace: Pace) -> Iterator[None]:
    """Let SIGINT and SIGTERM ask for a stop; a second SIGINT interrupts at once."""

    def polite(number: int, frame: FrameType | None) -> None:
        if pace.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        pace.ask(f"{signal.Signals(number).name} was received")
        sys.stderr.write(
            "\nStopping when the episodes under way are written; Ctrl-C again ends at once.\n"
        )
        sys.stderr.flush()

    before: dict[int, Any] = {}
    try:
        for which in (signal.SIGINT, signal.SIGTERM):
            before[which] = signal.signal(which, polite)
    except ValueError:  # not the main thread: whoever runs it handles signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
