"""Requests to stop a study: by a signal, by a file that all workers check, or by a time limit."""

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
    """Whether to stop, checked after each block of rounds.

    Parameters
    ----------
    flag
        A file whose existence requests a stop.
    deadline
        The time at which to stop, on the clock of ``time.monotonic()``.
    """

    def __init__(self, flag: Path | None = None, deadline: float | None = None) -> None:
        self._flag, self._deadline = flag, deadline
        self._asked = ""

    def ask(self, reason: str) -> None:
        """Request a stop."""
        self._asked = self._asked or reason

    @property
    def stop(self) -> str:
        """The reason to stop; empty if there is none."""
        if self._asked:
            return self._asked
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "the time limit is reached"
        if self._flag is not None and self._flag.exists():
            return "a stop was requested"
        return ""


@contextmanager
def listening(pace: Pace) -> Iterator[None]:
    """Let SIGINT and SIGTERM request a stop; a second SIGINT interrupts immediately."""

    def handle(number: int, frame: FrameType | None) -> None:
        if pace.stop and number == signal.SIGINT:
            raise KeyboardInterrupt
        pace.ask(f"{signal.Signals(number).name} was received")
        sys.stderr.write(
            "\nStopping after the current episodes are saved. To stop immediately, press Ctrl-C "
            "again.\n"
        )
        sys.stderr.flush()

    before: dict[int, Any] = {}
    try:
        for which in (signal.SIGINT, signal.SIGTERM):
            before[which] = signal.signal(which, handle)
    except ValueError:  # not the main thread: the main thread handles signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
