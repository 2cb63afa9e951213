"""Directory locks: one process at a time may use a directory; others get an error."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from homdp_ppl.errors import LISTED, Problem
from homdp_ppl.storage._system import (
    is_running,
    open_plain,
    read_at,
    try_lock,
    unlock_and_close,
    write_at,
)
from homdp_ppl.storage.atomic import StorageError, remove_leftovers, storage_errors

NAME = ".lock"
LARGEST = 4096  # bytes of a lock file that are read
PATIENCE = 5.0  # seconds to wait for the holder to write its name to the lock file
PAUSE = 0.01
EXPECTED = "a directory that no other process uses"
ENDED = "If these processes have ended, resume with --take-over (in Python: take_over=True)."


class Holder(NamedTuple):
    """The process that holds a lock."""

    host: str
    pid: int
    # the boot id and the clock tick at which the process started; empty if unknown
    started: str
    since: str  # the time at which the lock was taken

    @classmethod
    def this_process(cls) -> Holder:
        """The current process as the holder of a new lock."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _started(pid), time.strftime("%Y-%m-%dT%H:%M:%S%z"))

    @property
    def is_gone(self) -> bool:
        """Whether the process ran on this host and has ended.

        Its process id may have been reused by another process.
        """
        if self.host != socket.gethostname():
            return False
        if not is_running(self.pid):
            return True
        started = _started(self.pid)
        return started == "ended" or bool(started and self.started and started != self.started)

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host} since {self.since}"


class LockedError(StorageError):
    """Directories that are, or may be, locked by other processes.

    Parameters
    ----------
    locks
        The lock files, each with its holder; None if the file cannot be read.
    remedy
        What to do.

    Examples
    --------
    >>> holder = Holder("node7", 4242, "", "2026-01-31T12:00:00+0000")
    >>> error = LockedError(
    ...     [(Path("study/.lock"), holder), (Path("study/runs/.lock"), None)], ENDED
    ... )
    >>> [problem.where for problem in error.problems]
    ['study/.lock', 'study/runs/.lock']
    """

    def __init__(self, locks: Sequence[tuple[Path, Holder | None]], remedy: str) -> None:
        self.locks = tuple(locks)
        found = [
            (str(path), f"a lock held by {holder}" if holder else "a lock file that cannot be read")
            for path, holder in self.locks
        ]
        super().__init__(*found[0], EXPECTED, remedy)
        self.problems = tuple(Problem(path, got, EXPECTED, remedy) for path, got in found)
        self.args = (self.locks, remedy)

    def __str__(self) -> str:
        lines = [f"{problem.where}: got {problem.got}" for problem in self.problems[:LISTED]]
        left = len(self.problems) - LISTED
        more = [f"{left} more"] if left > 0 else []
        remedy = self.problems[0].remedy
        return f"{'; '.join(lines + more)}; expected {EXPECTED}. {remedy}".strip()

    @property
    def here(self) -> bool:
        """Whether all holders are processes on this host, which may end soon."""
        return all(holder and holder.host == socket.gethostname() for _, holder in self.locks)


def stale_locks(directory: str | Path) -> list[tuple[Path, Holder | None]]:
    """Find lock files in a directory tree that may be stale; only the user can decide.

    These files name a process on another host, which may have ended, or cannot be read. Links are
    not followed.

    Parameters
    ----------
    directory
        The directory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with DirectoryLock(directory):
    ...         print(stale_locks(directory))  # locks of this host are never listed
    []
    """
    found: list[tuple[Path, Holder | None]] = []
    for place, _, files in os.walk(directory):
        if NAME in files:
            path = Path(place, NAME)
            with storage_errors(path, "a lock file"), suppress(FileNotFoundError):
                handle = open_plain(path, os.O_RDONLY)
                try:
                    holder, content = _read(handle), read_at(handle, LARGEST, 0)
                finally:
                    os.close(handle)
                if (holder.host != socket.gethostname()) if holder else content.strip(b"\0"):
                    found.append((path, holder))
    return sorted(found, key=lambda lock: lock[0])


class DirectoryLock:
    """Lock a directory inside a ``with`` block.

    Entering the block also removes temporary files that killed writers left in the directory.

    The lock consists of a file ``.lock``, which names its holder, and a lock of the operating
    system on this file (``flock``; on Windows a locked byte). The lock of the operating system is
    decisive: the kernel gives it to one process and releases it when the process ends for any
    reason. The lock file of a dead process can therefore be taken over without a race. A running
    process keeps the lock, even if it is stopped (SIGSTOP). The lock file of another host is taken
    over only with ``take_over``, because this host cannot know whether that process still runs. If
    the file system forwards ``flock`` to a server, a running process keeps the lock even then.

    Notes
    -----
    On NFS, Linux forwards ``flock`` to the server, and the lock also works between hosts. On a
    mount with ``nolock`` or ``local_lock``, it works only within a host. Between hosts there is
    then only the content of the file, and two hosts may find it empty at the same time. Hosts that
    share a directory need different names. A process that is forked while the lock is held shares
    the lock; use spawn instead. On Windows, an empty lock file remains, which means that the
    directory is free.

    Parameters
    ----------
    directory
        An existing directory.
    take_over
        Take over a lock file that names a process on another host or cannot be read. Use this only
        if that process has ended.

    Raises
    ------
    LockedError
        Another process holds the lock.

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

    def __init__(self, directory: str | Path, take_over: bool = False) -> None:
        self.directory = Path(directory)
        self._take_over = take_over
        self.path = self.directory / NAME
        self.holder: Holder | None = None  # this process, while it holds the lock
        self._handle = -1

    def __enter__(self) -> Self:
        if self.holder is not None:
            raise LockedError([(self.path, self.holder)], "This object already holds the lock.")
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
        """Open and lock the lock file.

        Waits only for a process that is just about to take or release the lock.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            handle = open_plain(self.path, os.O_RDWR | os.O_CREAT)
            try:
                locked = try_lock(handle)
                current = locked and self._is_current(handle)
                holder = None if locked else _read(handle)
            except BaseException:
                os.close(handle)
                raise
            if current:
                return handle
            if locked:  # its holder has removed the file
                unlock_and_close(handle)
                continue
            os.close(handle)
            if holder and not holder.is_gone:
                raise self._held_by(holder)
            if time.monotonic() > deadline:
                raise LockedError([(self.path, holder)], "End the child processes of this process.")
            time.sleep(PAUSE)

    def _take(self) -> Holder:
        """Write this process to the lock file, unless another process may hold the lock."""
        former = _read(self._handle)
        unknown = former is None and read_at(self._handle, LARGEST, 0).strip(b"\0")
        this = Holder.this_process()
        elsewhere = former is not None and former.host != this.host
        if (unknown or elsewhere) and not self._take_over:
            raise LockedError([(self.path, former)], ENDED)
        if former and not elsewhere and former[:3] != this[:3] and not former.is_gone:
            raise self._held_by(former)
        os.ftruncate(self._handle, 0)
        write_at(self._handle, json.dumps(this._asdict()).encode(), 0)
        os.fsync(self._handle)
        return this

    def _let_go(self) -> None:
        """Remove the lock file if this process holds the lock, then unlock it.

        Waiting processes notice that the file is gone.
        """
        with suppress(OSError):
            if self.holder is not None and self._is_current(self._handle):
                os.ftruncate(self._handle, 0)  # free, even if the file cannot be removed
                os.unlink(self.path)
        unlock_and_close(self._handle)
        self.holder = None

    def _is_current(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _held_by(self, holder: Holder) -> LockedError:
        return LockedError([(self.path, holder)], "Wait for this process, or end it.")


def _read(handle: int) -> Holder | None:
    """The holder named in a lock file; None if the file is empty or invalid."""
    try:
        content = json.loads(read_at(handle, LARGEST, 0))
        return Holder(
            str(content["host"]),
            int(content["pid"]),
            str(content["started"]),
            str(content["since"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _started(pid: int) -> str:
    """The start time of a process, which is never reused, unlike its id.

    See proc(5): field 22 is the start time, field 3 the state.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "ended" if fields[0] in "ZX" else f"{boot} {fields[19]}"
