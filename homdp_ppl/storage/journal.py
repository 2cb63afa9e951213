"""Journals: append-only files with the results of one run; the format is in records.py."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from numpy.typing import ArrayLike

from homdp_ppl.storage._system import open_plain, write_at
from homdp_ppl.storage.atomic import StorageError, set_aside, storage_errors
from homdp_ppl.storage.blocks import Block, encode
from homdp_ppl.storage.records import BLOCK, START, DamageError, Place, make_record, walk
from homdp_ppl.storage.whole_journal import content_errors, write_facts


class Journal:
    """A journal that is open for writing; use :meth:`create` or :meth:`open`.

    Hold the lock of its directory while you use it.

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
        self._start = start  # the place of the first block
        self._end = end  # the place after the last intact record
        self._unsettled = False  # whether bytes of a failed append may follow the last record
        with storage_errors(path, "a journal that can be written"):
            self._handle: int | None = open_plain(path, os.O_WRONLY)

    @staticmethod
    def begun(path: str | Path) -> bool:
        """Whether the file exists and contains a complete description, so that a run has begun.

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
        """Create a journal; raises an error if a run has already begun in the file.

        Parameters
        ----------
        path
            The file.
        description
            The description of the run, with values that JSON supports.
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
        """Open a journal to continue after its last intact record.

        The remains of an interrupted append are removed.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        DamageError
            The file is damaged. It has been renamed; ``read_journal(error.aside, salvage=True)``
            returns its intact part, from which you can create a new journal.
        StorageError
            The file is not a journal, or has a newer format; it is not changed.
        """
        path = Path(path)
        try:
            first = next(walk(path), None)
            end = START if first is None else first[0]
            for after, _ in walk(path, end):
                end = after
        except DamageError as damage:
            raise DamageError(
                path, damage.problems[0].got, damage.offset or 0, damage.intact, set_aside(path)
            ) from None
        if first is None:
            raise StorageError(
                path,
                "a file that ends inside its description",
                "a journal",
                "Create it again with Journal.create.",
            )
        journal = cls(path, first[1].facts, first[0], end)
        try:
            journal._drop_rest()
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def join(cls, path: str | Path) -> tuple[Self, list[Block]]:
        """Open a journal that several processes use in turns; also returns all its blocks.

        Hold the :class:`homdp_ppl.storage.turn.Turn` of the journal. The remains of an interrupted
        append are removed. A damaged file raises :class:`DamageError` and is not changed.

        Parameters
        ----------
        path
            The file.
        """
        path = Path(path)
        records = list(walk(path))
        if not records:
            raise StorageError(path, "a file that ends inside its description", "a journal")
        first, *rest = records
        journal = cls(path, first[1].facts, first[0], records[-1][0])
        try:
            journal._drop_rest()
        except BaseException:
            journal.close()
            raise
        return journal, [block for _, block in rest]

    def catch_up(self) -> list[Block] | None:
        """Read the blocks that other processes have appended since the last call.

        Returns None if the file was replaced: open it again with :meth:`join`. Hold the
        :class:`homdp_ppl.storage.turn.Turn` of the journal until the next append is done.
        """
        if self._handle is None or not self._in_place(self._handle):
            return None
        size, new = os.fstat(self._handle).st_size, list[Block]()
        if size < self._end.offset:
            raise DamageError(
                self.path, "a file that became shorter", size, max(self._end.number - 1, 0)
            )
        if size > self._end.offset:
            for after, block in walk(self.path, self._end):
                new.append(block)
                self._end = after
            self._drop_rest()
        return new

    @property
    def written(self) -> int:
        """The number of blocks."""
        return self._end.number - 1

    def append(
        self, arrays: Mapping[str, ArrayLike], facts: Mapping[str, Any], sync: bool = True
    ) -> None:
        """Append a block; after this call it is on disk. If it raises, the journal is unchanged.

        Parameters
        ----------
        arrays
            Booleans, integers or floats, of any shape.
        facts
            Values that JSON supports.
        sync
            Wait until the block is on disk. Without it, the block is safe immediately if the
            process ends, but only after some seconds if the power fails.
        """
        with content_errors(self.path, self._end.offset):
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
                with suppress(StorageError):  # otherwise the next append or open removes the rest
                    self._drop_rest()
                raise
        self._end = end
        self._unsettled = False

    def records(self) -> Iterator[Block]:
        """Read and verify all blocks in order.

        Use :func:`homdp_ppl.storage.whole_journal.read_journal` for a closed journal.
        """
        self._ready()
        for _, block in walk(self.path, self._start, self._end.offset):
            yield block

    def close(self) -> None:
        """Sync the file to disk and close it."""
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
        """Return the open file, after checks that it ends where the next record starts."""
        if self._handle is None:
            raise StorageError(
                self.path,
                "a closed journal",
                "an open one",
                "Open it again with Journal.open.",
            )
        if not self._in_place(self._handle):
            raise StorageError(
                self.path,
                "a file that was removed or replaced while it was open",
                "the same file for the whole run",
                "No more results are saved. Start the study again if its directory is gone.",
            )
        size = os.fstat(self._handle).st_size
        if size < self._end.offset or (size > self._end.offset and not self._unsettled):
            remedy = "Another process has changed it. Hold the lock of the directory."
            raise StorageError(
                self.path,
                f"a file of {size} bytes",
                f"{self._end.offset} bytes",
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
        """Truncate the file after its last intact record."""
        with storage_errors(self.path, "a torn record that can be removed", self._end.offset):
            if self._handle is not None and os.fstat(self._handle).st_size > self._end.offset:
                os.ftruncate(self._handle, self._end.offset)
                os.fsync(self._handle)
        self._unsettled = False
