"""Locking: one process at a time works on a directory, and whoever comes second is told who."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from homdp_ppl.storage._system import (
    BINARY,
    is_running,
    read_at,
    try_lock,
    unlock_and_close,
    write_at,
)
from homdp_ppl.storage.atomic import StorageError, remove_leftovers, storage_errors

NAME = ".lock"
LARGEST = 4096  # bytes of a lock file that are read
PATIENCE = 5.0  # seconds for whoever has the lock to write down who it is
PAUSE = 0.01


class Holder(NamedTuple):
    """Who holds a lock."""

    host: str
    pid: int
    # the boot and the clock tick at which the process was started, empty where that is unknown
    started: str
    since: str  # the time at which the lock was taken

    @classmethod
    def this_process(cls) -> Holder:
        """Who would hold a lock taken here and now."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _started(pid), time.strftime("%Y-%m-%dT%H:%M:%S%z"))

    @property
    def is_gone(self) -> bool:
        """Whether it ran on this host and has ended.

        A number may by now belong to another process.
        """
        if self.host != socket.gethostname():
            return False
        if not is_running(self.pid):
            return True
        started = _started(self.pid)
        return started == "ended" or bool(started and self.started and started != self.started)

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host} since {self.since}"


class DirectoryLock:
    """Hold a directory for the length of a ``with`` block.

    Leftovers of a killed writer are removed from it.

    The lock is a file ``.lock`` that names its holder, and a lock of the operating system on that
    file, which decides (``flock``; on Windows a locked byte). The kernel gives it to one process
    and takes it back when that process ends, however it ends. So a dead holder's file is taken over
    without a race. The file of another host is never taken over, since this host cannot know
    whether its process still runs.

    Notes
    -----
    On NFS, Linux passes ``flock`` on to the server, and the lock holds between hosts. On a mount
    with ``nolock`` or ``local_lock`` it holds within a host; between hosts only the file's content
    does, which two may find empty at once. Hosts that share a directory need different names. A
    process that is forked while the lock is held shares it: spawn instead. On Windows the file
    stays behind, empty, which means free.

    Parameters
    ----------
    directory
        The directory, which exists.

    Raises
    ------
    StorageError
        Somebody else holds it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with DirectoryLock(directory) as lock:
    ...         print(lock.holder.pid == os.getpid(), os.listdir(directory))
    ...     print(os.listdir(directory))
    True ['.lock']
    []
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.path = self.directory / NAME
        self.holder: Holder | None = None  # this process, while it holds the lock
        self._handle = -1

    def __enter__(self) -> Self:
        if self.holder is not None:
            raise self._refusal(f"a lock held by {self.holder}, by this very object", "")
        with storage_errors(self.path, "a lock that can be taken"):
            self._handle = self._wait()
            try:
                self.holder = self._take()
                remove_leftovers(self.directory)
            except BaseException:
                self._let_go()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._let_go()

    def _wait(self) -> int:
        """The lock file, open and locked.

        Waits only for a process that is about to take it or to leave it.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | BINARY, 0o666)
            try:
                locked = try_lock(handle)
                current = locked and self._is_current(handle)
                holder = None if locked else _read(handle)
            except BaseException:
                os.close(handle)
                raise
            if current:
                return handle
            if locked:  # its holder has removed it
                unlock_and_close(handle)
                continue
            os.close(handle)
            if holder and not holder.is_gone:
                raise self._held_by(holder)
            if time.monotonic() > deadline:
                got = (
                    f"a lock held on behalf of {holder}, which is gone"
                    if holder
                    else "a lock whose holder is not named"
                )
                raise self._refusal(got, "End the processes it has started.")
            time.sleep(PAUSE)

    def _take(self) -> Holder:
        """Write down who holds it, unless that may be somebody else still."""
        former = _read(self._handle)
        if former is None and read_at(self._handle, LARGEST, 0).strip(b"\0"):
            raise self._refusal(
                "a lock file that cannot be read", f"If nobody works there, remove {self.path}."
            )
        this = Holder.this_process()
        if former and former[:3] != this[:3] and not former.is_gone:
            raise self._held_by(former)
        os.ftruncate(self._handle, 0)
        write_at(self._handle, json.dumps(this._asdict()).encode(), 0)
        os.fsync(self._handle)
        return this

    def _let_go(self) -> None:
        """Remove the file if it names this process, then unlock it.

        Who waits for it finds the file gone.
        """
        with suppress(OSError):
            if self.holder is not None and self._is_current(self._handle):
                os.ftruncate(self._handle, 0)  # free, also where the file cannot be removed
                os.unlink(self.path)
        unlock_and_close(self._handle)
        self.holder = None

    def _is_current(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _held_by(self, holder: Holder) -> StorageError:
        elsewhere = holder.host != socket.gethostname()
        remedy = (
            f"If that process has ended, remove {self.path} by hand."
            if elsewhere
            else "Wait for it, or end it."
        )
        return self._refusal(f"a lock held by {holder}", remedy)

    def _refusal(self, got: str, remedy: str) -> StorageError:
        return StorageError(self.path, got, "a directory that nobody else works on", remedy)


def _read(handle: int) -> Holder | None:
    """Who a lock file names; None if it is empty or was never written by this module."""
    try:
        content = json.loads(read_at(handle, LARGEST, 0))
        return Holder(
            str(content["host"]),
            int(content["pid"]),
            str(content["started"]),
            str(content["since"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _started(pid: int) -> str:
    """When a process was started: unlike its number, this never comes again.

    Field 22 of proc(5), field 3 is its state.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "ended" if fields[0] in "ZX" else f"{boot} {fields[19]}"
