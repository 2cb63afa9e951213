"""Limits of a planner: a deadline, an amount of work, and Ctrl-C.

Work is an approximate number of multiplications. Unlike time it is the same in every run, so that
a planner that divides its effort by work returns the same plan every time.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from homdp_ppl.core.arguments import number_problems
from homdp_ppl.errors import Problem


def time_problems(time_limit: Any) -> list[Problem]:
    """Problems of the option ``time_limit``: seconds, which may be infinite, or None."""
    endless = time_limit is None or time_limit == math.inf
    return number_problems(time_limit=0.0 if endless else time_limit)


class StoppedError(Exception):
    """Signals inside this package that a limit is reached."""


class Limits:
    """When to stop.

    Parameters
    ----------
    seconds
        The time limit; infinite by default.

    Examples
    --------
    >>> limits = Limits()
    >>> with limits.work_of(100):
    ...     limits.spend(60)
    ...     limits.check(30)
    >>> limits.spent, limits.stopped
    (60.0, False)
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self.deadline = time.perf_counter() + seconds
        self.interrupted = False
        self.spent = 0.0
        self.most = math.inf  # the largest amount of work

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C was pressed or the time is over; not whether the work is done."""
        return self.interrupted or time.perf_counter() > self.deadline

    def check(self, ahead: float = 0.0) -> None:
        """Raise StoppedError if a limit is reached, or would be by the work ahead."""
        if self.spent + ahead > self.most or self.stopped:
            raise StoppedError

    def spend(self, work: float) -> None:
        """Count work that was done."""
        self.spent += work

    @contextmanager
    def work_of(self, most: float) -> Iterator[None]:
        """Limit the work inside the block."""
        before, self.most = self.most, self.spent + most
        try:
            yield
        finally:
            self.most = before


@contextmanager
def limited(seconds: float | None = None) -> Iterator[Limits]:
    """Limits that end with Ctrl-C.

    The first Ctrl-C is recorded instead of raised, because an exception inside a compiled function
    cannot be handled. The second one raises KeyboardInterrupt. Other threads than the main one
    cannot receive it.
    """
    limits = Limits(math.inf if seconds is None else seconds)

    def record(number: int, frame: FrameType | None) -> None:
        if limits.interrupted:
            raise KeyboardInterrupt
        limits.interrupted = True

    main = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT) if main else None
    if previous is not signal.default_int_handler:
        yield limits  # another handler is installed; it decides what Ctrl-C does
        return
    signal.signal(signal.SIGINT, record)
    try:
        yield limits
    finally:
        signal.signal(signal.SIGINT, previous)
