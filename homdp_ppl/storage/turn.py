"""Turns: processes that share a directory use it one after the other."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from homdp_ppl.storage._system import open_plain, try_lock, unlock_and_close
from homdp_ppl.storage.atomic import StorageError, storage_errors

PATIENCE = 600.0  # seconds: another process may be planning
SHORTEST, LONGEST = 0.0002, 0.02  # seconds between two attempts


class Turn:
    """Wait for the turn and keep it inside a ``with`` block.

    The lock is one of the operating system on an empty file, which is never removed. The kernel
    releases it when the process ends for any reason. Unlike a
    :class:`homdp_ppl.storage.lock.DirectoryLock`, which is held for the whole time in which a
    process uses a directory, a turn is short and other processes wait for it.

    Parameters
    ----------
    path
        The lock file.
    patience
        Seconds to wait before an error is raised.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with Turn(Path(directory, ".turn")):
    ...         print(os.listdir(directory))
    ['.turn']
    """

    def __init__(self, path: str | Path, patience: float = PATIENCE) -> None:
        self.path, self._patience = Path(path), patience
        self._handle = -1

    def __enter__(self) -> Self:
        deadline, pause = time.monotonic() + self._patience, SHORTEST
        with storage_errors(self.path, "a lock that can be taken"):
            handle = open_plain(self.path, os.O_RDWR | os.O_CREAT)
            try:
                while not try_lock(handle):
                    if time.monotonic() > deadline:
                        got = f"a lock that other processes held for {self._patience:g} seconds"
                        raise StorageError(self.path, got, "a free lock", "Try again later.")
                    time.sleep(pause)
                    pause = min(2 * pause, LONGEST)
            except BaseException:
                os.close(handle)
                raise
        self._handle = handle
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        handle, self._handle = self._handle, -1
        unlock_and_close(handle)
