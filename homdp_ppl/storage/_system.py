"""Functions that differ between operating systems: locks, file access, sync, processes.

``fcntl`` exists only on Linux and macOS, ``msvcrt`` only on Windows; neither is needed at import.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from pathlib import Path
from typing import BinaryIO

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tabs and line ends
BINARY = getattr(os, "O_BINARY", 0)  # without it, Windows opens files in text mode
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
PLAIN = NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | BINARY
LOCKED_BYTE = 2**30  # far beyond the content, because Windows cannot read locked bytes


def open_plain(path: str | Path, flags: int) -> int:
    """Open a regular file; links, pipes and devices raise OSError before anything is read.

    Parameters
    ----------
    path
        The file.
    flags
        The flags of ``os.open``.
    """
    if os.path.islink(path):  # clearer than the error of O_NOFOLLOW, which Windows lacks
        raise OSError(errno.ELOOP, "a symbolic link")
    return _regular(os.open(path, flags | PLAIN, 0o666))


def open_named(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file that a user has named, which may be a link, for reading.

    Pipes and devices, which may have no end, raise OSError before anything is read.
    """
    return os.fdopen(_regular(os.open(path, os.O_RDONLY | PLAIN & ~NOFOLLOW)), "rb")


def _regular(handle: int) -> int:
    """The same handle; raises OSError if it does not belong to a regular file."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file")
    return handle


def read_plain(path: str | Path, largest: int) -> bytes:
    """Read a regular file; raises OSError if it has more than ``largest`` bytes."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise OSError(errno.EFBIG, f"a file of {size:,} bytes, more than {largest:,}")
        return file.read(largest)


def write_plain(path: str | Path, content: bytes) -> None:
    """Write a regular file in place; links are not followed."""
    with os.fdopen(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(content)


def printable(text: str) -> str:
    r"""Escape characters that cannot be encoded as UTF-8, and those that control a terminal.

    Examples
    --------
    >>> print(printable(os.fsdecode(b"caf\xe9")), printable("\x1b[2J"))
    caf\udce9 \x1b[2J
    """
    text = text.encode("utf-8", "backslashreplace").decode()
    return CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def try_lock(handle: int) -> bool:
    """Try to lock an open file; returns False if another process holds the lock.

    The kernel releases the lock when the process ends for any reason. This uses ``flock`` on Linux
    and macOS, and a locked byte on Windows.

    Parameters
    ----------
    handle
        An open file.

    Raises
    ------
    OSError
        The system has no file locks.
    """
    if sys.platform == "win32":
        return _try_lock_byte(handle)
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "a system without file locks") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock_and_close(handle: int) -> None:
    """Close a file that :func:`try_lock` has locked; this unlocks it."""
    if sys.platform == "win32":
        _unlock_byte(handle)  # closing also unlocks, but possibly later
    os.close(handle)


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Read at most ``size`` bytes of an open file, starting at an offset."""
    os.lseek(handle, offset, os.SEEK_SET)
    return os.read(handle, size)


def write_at(handle: int, data: bytes | memoryview, offset: int) -> int:
    """Write bytes to an open file at an offset; returns the number of bytes written."""
    os.lseek(handle, offset, os.SEEK_SET)
    return os.write(handle, data)


def sync(path: Path) -> None:
    """Sync a file, or the names in a directory, to disk."""
    directory = path.is_dir()
    if directory and sys.platform == "win32":
        return  # Windows cannot open directories, and writes names to disk in order
    # Windows can sync only files that are open for writing
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # some network file systems cannot sync directories
        if not (directory and error.errno in (errno.EINVAL, errno.ENOTSUP)):
            raise
    finally:
        os.close(handle)


def is_running(pid: int) -> bool:
    """Whether a process with this id runs on this host."""
    if sys.platform == "win32":
        return _is_running_on_windows(pid)  # os.kill(pid, 0) would send Ctrl-C on Windows
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it exists and belongs to another user
        pass
    return True


if sys.platform == "win32":
    import ctypes
    import msvcrt

    QUERY, RUNNING, DENIED = 0x1000, 259, 5  # of the Windows API

    def _try_lock_byte(handle: int) -> bool:
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock_byte(handle: int) -> None:
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

    def _is_running_on_windows(pid: int) -> bool:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        if not 0 < pid < 2**32:
            return False
        process = kernel.OpenProcess(QUERY, False, pid)
        if not process:
            return ctypes.get_last_error() == DENIED
        code = ctypes.c_ulong()
        kernel.GetExitCodeProcess(process, ctypes.byref(code))
        kernel.CloseHandle(process)
        return code.value == RUNNING
