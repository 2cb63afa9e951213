"""Files that are whole or not there: atomic replacement, and damaged files set aside.

Errors tell file and byte on one line.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.storage._system import sync

LEFTOVER = re.compile(
    r"\..+\.[0-9a-f]{16}\.partial(\.[^.]*)?"
)  # what a killed writer leaves behind
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StorageError(HOMDPError):
    """A file or directory that cannot be used, told on one line with the byte where the trouble
    starts.

    Parameters
    ----------
    path
        The file.
    got
        What was found there.
    expected
        What should be there.
    remedy
        What to do.
    offset
        The byte of the file, where there is one.

    Examples
    --------
    >>> print(
    ...     StorageError("a.journal", "a wrong checksum", "record 3 as it was written", offset=120)
    ... )
    a.journal[byte 120]: got a wrong checksum; expected record 3 as it was written
    """

    def __init__(
        self, path: str | Path, got: str, expected: str, remedy: str = "", offset: int | None = None
    ) -> None:
        self.path = Path(path)
        self.offset = offset
        place = "" if offset is None else f"byte {offset}"
        super().__init__(
            str(path),
            [Problem(str(path) or "path ''", got, expected, remedy, place)],
        )
        self.args = (
            path,
            got,
            expected,
            remedy,
            offset,
        )  # of which a copy is made in another process

    def __str__(self) -> str:
        return " ".join(str(self.problems[0]).splitlines())


@contextmanager
def storage_errors(path: str | Path, expected: str, offset: int | None = None) -> Iterator[None]:
    """Turn what the operating system refuses inside a ``with`` block into a :class:`StorageError`.

    Parameters
    ----------
    path
        The file that is worked on.
    expected
        What is being done with it.
    offset
        The byte, where there is one.

    Examples
    --------
    >>> with storage_errors("missing", "a file"):
    ...     open("missing")
    Traceback (most recent call last):
    homdp_ppl.storage.atomic.StorageError: missing: got No such file or directory; expected a file
    """
    try:
        yield
    except ValueError as error:  # of the operating system, for names with a zero byte
        if "null byte" not in str(error):
            raise
        raise StorageError(repr(str(path)), "a zero byte in the name", expected) from error
    except OSError as error:
        remedy = "Make space, then resume." if error.errno in FULL else ""
        raise StorageError(path, error.strerror or str(error), expected, remedy, offset) from error


def atomic_write(path: str | Path, content: bytes | Callable[[Path], object]) -> None:
    """Replace a file: whoever looks, now or after a crash, finds the old content or the new, both
    whole.

    The content is written beside the file, brought to the disk and renamed; then the directory is
    brought to the disk.

    Parameters
    ----------
    path
        The file.
    content
        Its bytes, or a function that writes them to the path it is given, which lies beside the
        file and has its suffix.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "facts.txt")
    ...     atomic_write(path, b"seven")
    ...     atomic_write(path, lambda beside: beside.write_text("eight"))
    ...     print(path.read_text(), os.listdir(directory))
    eight ['facts.txt']
    """
    path = Path(path)
    beside = path.parent / f".{path.stem}.{secrets.token_hex(8)}.partial{path.suffix}"
    with storage_errors(path, "a file that can be written"):
        try:
            if callable(content):
                content(beside)
            else:
                beside.write_bytes(content)
            sync(beside)
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        sync(path.parent)


def remove_leftovers(directory: str | Path) -> list[Path]:
    """Remove what writers that were killed in :func:`atomic_write` left in a directory and below.

    Only for who holds its lock.

    Parameters
    ----------
    directory
        The directory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     for name in (".results.0123456789abcdef.partial.nc", "results.nc"):
    ...         Path(directory, name).touch()
    ...     print(len(remove_leftovers(directory)), os.listdir(directory))
    1 ['results.nc']
    """
    with storage_errors(directory, "a directory to tidy"):
        leftovers = [
            path for path in Path(directory).rglob(".*.partial*") if LEFTOVER.fullmatch(path.name)
        ]
        for path in leftovers:
            path.unlink(missing_ok=True)
    return leftovers


def set_aside(path: str | Path) -> Path:
    """Rename a damaged file to ``name.damaged-1``, or the next number that is free, and return its
    new path.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     for _ in range(2):
    ...         Path(directory, "0.journal").touch()
    ...         print(set_aside(Path(directory, "0.journal")).name)
    0.journal.damaged-1
    0.journal.damaged-2
    """
    path = Path(path)
    with storage_errors(path, "a file that can be set aside"):
        for number in count(1):
            aside = path.with_name(f"{path.name}.damaged-{number}")
            try:
                aside.touch(
                    exist_ok=False
                )  # the name is ours, so the rename replaces nothing of value
            except FileExistsError:
                continue
            try:
                os.replace(path, aside)
            except BaseException:
                aside.unlink()
                raise
            sync(path.parent)
            break
    return aside
