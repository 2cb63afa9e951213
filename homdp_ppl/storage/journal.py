"""Journal: the append-only truth of one run, from which everything else is rebuilt.

The file format is in records.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike

from homdp_ppl.storage._system import open_plain, write_at
from homdp_ppl.storage.atomic import StorageError, atomic_write, set_aside, storage_errors
from homdp_ppl.storage.blocks import Block, encode
from homdp_ppl.storage.records import (
    BLOCK,
    DESCRIPTION,
    PREAMBLE,
    START,
    DamageError,
    Place,
    make_record,
    walk,
)


class Contents(NamedTuple):
    """All that a journal holds."""

    description: dict[str, Any] | None  # None: cut or damaged before the run was described
    blocks: tuple[Block, ...]


def read_journal(path: str | Path, salvage: bool = False) -> Contents:
    """Read a journal, also while it is written; the file is left as it is.

    Parameters
    ----------
    path
        The file.
    salvage
        Give what stands before the damage of a damaged journal, instead of refusing it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "0.journal")
    ...     with Journal.create(path, {"seed": 0}) as journal:
    ...         journal.append({"played": [0.5]}, {"round": 3})
    ...     print(read_journal(path).blocks)
    (Block(arrays={'played': array([0.5])}, facts={'round': 3}),)
    """
    records = []
    with suppress(DamageError) if salvage else nullcontext():
        for _, record in walk(Path(path)):
            records.append(record)
    return Contents(records[0].facts if records else None, tuple(records[1:]))


def write_facts(path: str | Path, facts: Mapping[str, Any]) -> Place:
    """Replace a file by a journal that has nothing but a description; returns where that ends.

    Parameters
    ----------
    path
        The file.
    facts
        The description, as JSON can hold it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     place = write_facts(Path(directory, "facts"), {"seven": 7})
    ...     print(read_journal(Path(directory, "facts")).description)
    {'seven': 7}
    """
    with _content_errors(Path(path), 0):
        payload = encode({}, facts)
    record, end = make_record(START, DESCRIPTION, payload)
    atomic_write(path, PREAMBLE + record)
    return end


class Journal:
    """A journal to go on with: made by :meth:`create` or :meth:`open`, for who holds the lock of
    its directory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "0.journal")
    ...     with Journal.create(path, {"model": "tiger", "seed": 0}) as journal:
    ...         journal.append({"played": [0.5, 0.75]}, {"first": 0})
    ...     with Journal.open(path) as journal:
    ...         journal.append({"played": [1.0]}, {"first": 2})
    ...         print(journal.description, [block.facts["first"] for block in journal.records()])
    {'model': 'tiger', 'seed': 0} [0, 2]
    """

    def __init__(self, path: Path, description: dict[str, Any], start: Place, end: Place) -> None:
        self.path = path
        self.description = description
        self._start = start  # of the first block
        self._end = end  # of the last whole record
        self._unsettled = False  # whether bytes of a failed append may stand behind it
        with storage_errors(path, "a journal that can be written"):
            self._handle: int | None = open_plain(path, os.O_WRONLY)

    @staticmethod
    def begun(path: str | Path) -> bool:
        """Whether a run has begun in this file: it is there, and not cut inside the description.

        Parameters
        ----------
        path
            The file.

        Examples
        --------
        >>> Journal.begun("no/such/file")
        False
        """
        path = Path(path)
        try:
            return os.path.lexists(path) and next(walk(path), None) is not None
        except DamageError:
            return True

    @classmethod
    def create(cls, path: str | Path, description: Mapping[str, Any]) -> Self:
        """Begin a journal; a file in which a run has begun is refused.

        Parameters
        ----------
        path
            The file.
        description
            What run this is, as JSON can hold it.
        """
        path = Path(path)
        if cls.begun(path):
            raise StorageError(
                path,
                "a journal in which a run has begun",
                "no file",
                "Resume the run with Journal.open.",
            )
        start = write_facts(path, description)
        return cls(path, next(walk(path))[1].facts, start, start)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Go on with a journal after its last whole record.

        What an append that was cut short left behind is removed.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        DamageError
            The file is not as it was written. It has been set aside under another name, and a new
            journal can be made of what ``read_journal(error.aside, salvage=True)`` finds whole.
        StorageError
            No journal, or one of a newer format; the file is left as it is.
        """
        path = Path(path)
        try:
            first = next(walk(path), None)
            end = START if first is None else first[0]
            for after, _ in walk(path, end):
                end = after
        except DamageError as damage:
            raise DamageError(
                path, damage.problems[0].got, damage.offset or 0, damage.whole, set_aside(path)
            ) from None
        if first is None:
            raise StorageError(
                path,
                "a file that ends before its run is described",
                "a journal",
                "Begin it with Journal.create.",
            )
        journal = cls(path, first[1].facts, first[0], end)
        try:
            journal._drop_rest()
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def written(self) -> int:
        """How many blocks there are."""
        return self._end.number - 1

    def append(
        self, arrays: Mapping[str, ArrayLike], facts: Mapping[str, Any], sync: bool = True
    ) -> None:
        """Write a block; when this returns it is on the disk, and when it raises the journal is as
        it was before.

        Parameters
        ----------
        arrays
            Truth values, integers or floats, of any shape.
        facts
            What JSON can hold.
        sync
            Wait for the disk. Without it, a block survives the end of the process at once and a
            power cut some seconds later.
        """
        with _content_errors(self.path, self._end.offset):
            payload = encode(arrays, facts)
        record, end = make_record(self._end, BLOCK, payload)
        with storage_errors(
            self.path, f"space for a record of {len(record)} bytes", self._end.offset
        ):
            handle = self._ready()
            self._unsettled = True
            try:
                done = 0
                while done < len(record):
                    done += write_at(handle, memoryview(record)[done:], self._end.offset + done)
                if sync:
                    os.fsync(handle)
            except BaseException:
                with suppress(
                    StorageError
                ):  # else it is a tear, dropped by the next append or the next open
                    self._drop_rest()
                raise
        self._end = end
        self._unsettled = False

    def records(self) -> Iterator[Block]:
        """The blocks in order, read from the file and verified.

        For a closed journal there is :func:`read_journal`.
        """
        self._ready()
        for _, block in walk(self.path, self._start, self._end.offset):
            yield block

    def close(self) -> None:
        """Bring everything to the disk and let the file go."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with storage_errors(self.path, "a journal that can be closed"):
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({self.path.name!r}, {self.written} blocks)"

    def _ready(self) -> int:
        """The open file, which ends where the next record goes."""
        if self._handle is None:
            raise StorageError(
                self.path,
                "a journal that is closed",
                "an open one",
                "Open it again with Journal.open.",
            )
        if not self._in_place(self._handle):
            raise StorageError(
                self.path,
                "a file that was removed or replaced while it was open",
                "the same file for the whole run",
                "Nothing more is written. Begin the study again if its directory is gone.",
            )
        size = os.fstat(self._handle).st_size
        if size < self._end.offset or (size > self._end.offset and not self._unsettled):
            remedy = "Another process has changed it: hold the lock of the directory."
            raise StorageError(
                self.path,
                f"a file of {size} bytes",
                f"{self._end.offset}",
                remedy,
                min(size, self._end.offset),
            )
        self._drop_rest()
        return self._handle

    def _in_place(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self.path))
        except FileNotFoundError:
            return False

    def _drop_rest(self) -> None:
        """Cut the file after its last whole record."""
        with storage_errors(self.path, "a torn record that can be removed", self._end.offset):
            if self._handle is not None and os.fstat(self._handle).st_size > self._end.offset:
                os.ftruncate(self._handle, self._end.offset)
                os.fsync(self._handle)
        self._unsettled = False


@contextmanager
def _content_errors(path: Path, offset: int) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        expected = "arrays of truth values, integers or floats, and facts that JSON can hold"
        raise StorageError(path, str(error), expected, offset=offset) from error
