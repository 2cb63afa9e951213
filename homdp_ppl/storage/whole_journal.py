"""Journals as a whole: read all records, or replace the file; the format is in records.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from homdp_ppl.storage.atomic import StorageError, atomic_write
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
    """The contents of a journal."""

    description: dict[str, Any] | None  # None if the file ends or is damaged before it
    blocks: tuple[Block, ...]


def read_journal(path: str | Path, salvage: bool = False) -> Contents:
    """Read a journal, even while it is being written; the file is not changed.

    Parameters
    ----------
    path
        The file.
    salvage
        Return the intact part of a damaged journal instead of raising an error.

    Examples
    --------
    >>> import tempfile
    >>> from homdp_ppl.storage.journal import Journal
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


def rewrite(path: str | Path, facts: Mapping[str, Any], blocks: Iterable[Block]) -> None:
    """Replace a journal atomically by one with other content.

    Parameters
    ----------
    path
        The file.
    facts
        The description.
    blocks
        The blocks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "0.journal")
    ...     rewrite(path, {"seed": 0}, [Block({}, {"round": 1}), Block({}, {"round": 2})])
    ...     print([block.facts for block in read_journal(path).blocks])
    [{'round': 1}, {'round': 2}]
    """
    with content_errors(Path(path), 0):
        record, place = make_record(START, DESCRIPTION, encode({}, facts))
        records = [PREAMBLE, record]
        for block in blocks:
            record, place = make_record(place, BLOCK, encode(*block))
            records.append(record)
    atomic_write(path, b"".join(records))


def write_facts(path: str | Path, facts: Mapping[str, Any]) -> Place:
    """Replace a file by a journal with only a description; returns the place after it.

    Parameters
    ----------
    path
        The file.
    facts
        The description, with values that JSON supports.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     place = write_facts(Path(directory, "facts"), {"seven": 7})
    ...     print(read_journal(Path(directory, "facts")).description)
    {'seven': 7}
    """
    with content_errors(Path(path), 0):
        payload = encode({}, facts)
    record, end = make_record(START, DESCRIPTION, payload)
    atomic_write(path, PREAMBLE + record)
    return end


@contextmanager
def content_errors(path: Path, offset: int) -> Iterator[None]:
    """Convert errors of the encoding in a ``with`` block to :class:`StorageError`."""
    try:
        yield
    except ValueError as error:
        expected = "arrays of booleans, integers or floats, and facts that JSON supports"
        raise StorageError(path, str(error), expected, offset=offset) from error
