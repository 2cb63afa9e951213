"""Atomic file replacement, storage errors, and renaming of damaged files."""

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

LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.partial(\.[^.]*)?")  # temporary files of killed writers
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StorageError(HOMDPError):
    """A file or directory that cannot be used.

    Its message is one line, with the byte offset of the problem if there is one.

    Parameters
    ----------
    path
        The file.
    got
        What was found.
    expected
        What was expected.
    remedy
        What to do.
    offset
        The byte offset of the problem, if there is one.

    Examples
    --------
    >>> print(StorageError("a.journal", "a wrong checksum", "an intact record 3", offset=120))
    a.journal[byte 120]: got a wrong checksum; expected an intact record 3
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
        self.args = (path, got, expected, remedy, offset)  # these make the error picklable

    def __str__(self) -> str:
        return " ".join(str(self.problems[0]).splitlines())


@contextmanager
def storage_errors(path: str | Path, expected: str, offset: int | None = None) -> Iterator[None]:
    """Convert errors of the operating system in a ``with`` block to :class:`StorageError`.

    Parameters
    ----------
    path
        The file.
    expected
        What the code expects of the file, for the message.
    offset
        The byte offset, if there is one.

    Examples
    --------
    >>> with storage_errors("missing", "a file"):
    ...     open("missing")
    Traceback (most recent call last):
    homdp_ppl.storage.atomic.StorageError: missing: got no such file or directory; expected a file
    """
    try:
        yield
    except ValueError as error:  # raised by Python for names with a null byte
        if "null byte" not in str(error):
            raise
        raise StorageError(repr(str(path)), "a null byte in the name", expected) from error
    except OSError as error:
        remedy = "Free some disk space, then resume." if error.errno in FULL else ""
        raise StorageError(path, reason_of(error), expected, remedy, offset) from error


def reason_of(error: OSError) -> str:
    """The message of the operating system, to be used inside a sentence."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def atomic_write(path: str | Path, content: bytes | Callable[[Path], object]) -> None:
    """Replace a file atomically: even after a crash, it has either the old or the new content.

    The content is written to a temporary file in the same directory, which is synced to disk and
    renamed. Then the directory is synced.

    Parameters
    ----------
    path
        The file.
    content
        Its bytes, or a function that writes them to a given path: that of the temporary file,
        which has the same suffix.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "facts.txt")
    ...     atomic_write(path, b"seven")
    ...     atomic_write(path, lambda temporary: temporary.write_text("eight"))
    ...     print(path.read_text(), os.listdir(directory))
    eight ['facts.txt']
    """
    path = Path(path)
    temporary = path.parent / f".{path.stem}.{secrets.token_hex(8)}.partial{path.suffix}"
    with storage_errors(path, "a file that can be written"):
        try:
            if callable(content):
                content(temporary)
            else:
                temporary.write_bytes(content)
            sync(temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync(path.parent)


def remove_leftovers(directory: str | Path) -> list[Path]:
    """Remove temporary files that killed calls of :func:`atomic_write` left in a directory tree.

    Call it only while you hold the lock of the directory.

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
    with storage_errors(directory, "a directory from which temporary files can be removed"):
        leftovers = [
            path for path in Path(directory).rglob(".*.partial*") if LEFTOVER.fullmatch(path.name)
        ]
        for path in leftovers:
            path.unlink(missing_ok=True)
    return leftovers


def set_aside(path: str | Path) -> Path:
    """Rename a damaged file to ``name.damaged-1``, or the next free number.

    Returns the new path.

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
    with storage_errors(path, "a file that can be renamed"):
        for number in count(1):
            aside = path.with_name(f"{path.name}.damaged-{number}")
            try:
                aside.touch(exist_ok=False)  # reserve the name, so that no file is overwritten
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
