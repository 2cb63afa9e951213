"""Imported by every Python that starts with this directory on its path: marks when it writes.

While a process writes a journal or replaces a file, the byte in ``$HOMDP_MARKS/PID`` is 1, also
after it was killed. Records are written in small pieces, so that a kill can tear them.
"""

import mmap
import os
import time
from functools import wraps
from importlib import import_module
from typing import Any

from homdp_ppl.storage import atomic

PIECES = 8  # of a record
MARKS: dict[int, mmap.mmap] = {}  # by process: a forked child has its own


def mark(value: int) -> None:
    """Say whether this process is writing."""
    pid = os.getpid()
    if pid not in MARKS:
        handle = os.open(os.path.join(os.environ["HOMDP_MARKS"], str(pid)), os.O_RDWR | os.O_CREAT)
        os.ftruncate(handle, 1)
        MARKS[pid] = mmap.mmap(handle, 1)
        os.close(handle)
    MARKS[pid][0] = value


def marked(function):
    """The same function, with a mark while it runs."""

    @wraps(function)
    def marking(*arguments, **options):
        mark(1)
        try:
            return function(*arguments, **options)
        finally:
            mark(0)

    return marking


atomic.atomic_write = marked(atomic.atomic_write)

journal: Any = import_module("homdp_ppl.storage.journal")  # after what it imports is replaced
whole = journal.write_at


def in_pieces(handle, data, offset):
    """Write a part of the bytes, as the system may do at any time."""
    time.sleep(0.0005)
    return whole(handle, data[: len(data) // PIECES + 1], offset)


journal.write_at = in_pieces
journal.Journal.append = marked(journal.Journal.append)
