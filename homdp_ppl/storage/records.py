"""The record format of journals, and reading that detects torn and damaged records.

A file has a preamble of 16 bytes (magic, format version, CRC-32 of both), followed by records. A
record is::

    number (8 bytes) | length of the payload (8) | kind (4) | check of the head (8) | payload |
    check of the record (16)

All numbers are little-endian. Record 0 contains the description of the run, the others contain
blocks (:mod:`homdp_ppl.storage.blocks`). The checks are BLAKE2b digests whose key is the check of
the previous record, so a record is valid only at its place in its own file. The separate check of
the head distinguishes a torn record from a damaged one. A record is torn if the file ends inside
its head, or after a valid head but before the end of the record. Torn records come from writes that
never returned and are dropped; damaged records raise an error.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple

from homdp_ppl.storage._system import open_plain
from homdp_ppl.storage.atomic import StorageError, storage_errors
from homdp_ppl.storage.blocks import Block, decode

MAGIC = b"\x89HOMDP\r\n"  # not text; a transfer in text mode changes it
VERSION = 1
OPENING = struct.Struct("<8sI")
HEAD = struct.Struct("<QQI")
HEAD_CHECK, CHECK = 8, 16
HEAD_SIZE = HEAD.size + HEAD_CHECK
DESCRIPTION, BLOCK = 0, 1  # kinds of records


class DamageError(StorageError):
    """A damaged journal.

    Attributes
    ----------
    intact
        The number of intact blocks before the damage; ``read_journal(path, salvage=True)`` reads
        them.
    aside
        The new path of the damaged file, if it was renamed.
    """

    def __init__(
        self, path: str | Path, got: str, offset: int, intact: int, aside: Path | None = None
    ) -> None:
        kept = (
            f"The damaged file is kept as {aside.name}."
            if aside
            else "Resume the run, which renames the damaged file."
        )
        remedy = f"{kept} Intact blocks before the damage: {intact}."
        super().__init__(path, got, "an intact journal", remedy, offset)
        self.intact = intact
        self.aside = aside
        self.args = (path, got, offset, intact, aside)


class Place(NamedTuple):
    """The place of a record in a file, on which its checks depend."""

    offset: int
    number: int
    key: bytes  # the check of the previous record


def preamble(version: int = VERSION) -> bytes:
    """The first bytes of a journal."""
    opening = OPENING.pack(MAGIC, version)
    return opening + zlib.crc32(opening).to_bytes(4, "little")


PREAMBLE = preamble()
START = Place(len(PREAMBLE), 0, PREAMBLE)


def make_record(place: Place, kind: int, payload: bytes) -> tuple[bytes, Place]:
    """Make a record for a place; returns its bytes and the place after it.

    Parameters
    ----------
    place
        The place of the record.
    kind
        ``DESCRIPTION`` or ``BLOCK``.
    payload
        The content.

    Examples
    --------
    >>> record, after = make_record(START, DESCRIPTION, b"payload")
    >>> len(record), after.offset, after.number
    (51, 67, 1)
    """
    head = HEAD.pack(place.number, len(payload), kind)
    head += digest(place.key, HEAD_CHECK, head)
    check = digest(place.key, CHECK, head, payload)
    record = head + payload + check
    return record, Place(place.offset + len(record), place.number + 1, check)


def walk(path: Path, start: Place = START, end: int | None = None) -> Iterator[tuple[Place, Block]]:
    """Iterate over the intact records of a file, each with the place after it.

    Stops before a torn record. Never allocates more memory than the size of the file.

    Parameters
    ----------
    path
        The file.
    start
        The place of the first record to read; earlier records are already verified.
    end
        The byte at which to stop; the end of the file by default.

    Raises
    ------
    DamageError
        At the first damaged record.
    StorageError
        If the file is not a journal, or has another format version.
    """
    with (
        storage_errors(path, "a journal that can be read"),
        os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file,
    ):
        size = os.fstat(file.fileno()).st_size if end is None else end
        if not _begins_well(path, file):
            return
        place = start
        file.seek(start.offset)
        while size - place.offset >= HEAD_SIZE:
            head = file.read(HEAD_SIZE)
            if len(head) < HEAD_SIZE:  # a writer has just removed an unfinished record
                return
            number, length, kind = HEAD.unpack_from(head)
            if head[HEAD.size :] != digest(place.key, HEAD_CHECK, head[: HEAD.size]):
                raise _damage(path, place, "a wrong checksum of its head")
            if length + CHECK > size - place.offset - HEAD_SIZE:
                return
            payload, check = file.read(length), file.read(CHECK)
            if len(check) < CHECK:
                return
            if check != digest(place.key, CHECK, head, payload):
                raise _damage(path, place, "a wrong checksum of its content")
            if (number, kind) != (place.number, BLOCK if place.number else DESCRIPTION):
                raise _damage(path, place, f"number {number} and kind {kind}")
            try:
                block = decode(payload)
            except ValueError as error:
                raise _damage(path, place, str(error)) from None
            place = Place(place.offset + HEAD_SIZE + length + CHECK, place.number + 1, check)
            yield place, block


def digest(key: bytes, size: int, *parts: bytes) -> bytes:
    """The check of some bytes, given the check of the previous record."""
    checked = blake2b(key=key, digest_size=size)
    for part in parts:
        checked.update(part)
    return checked.digest()


def _damage(path: Path, place: Place, got: str) -> DamageError:
    return DamageError(
        path, f"record {place.number} with {got}", place.offset, max(place.number - 1, 0)
    )


def _begins_well(path: Path, file: BinaryIO) -> bool:
    """Whether the preamble is complete; False if the file ends before.

    Raises an error for files that are not journals of this format.
    """
    found = file.read(len(PREAMBLE))
    if PREAMBLE.startswith(found):
        return found == PREAMBLE
    magic, version = OPENING.unpack_from(found.ljust(OPENING.size, b"\0"))
    if magic == MAGIC and found == preamble(version):
        remedy = "Update homdp_ppl to read it." if version > VERSION else ""
        raise StorageError(
            path, f"a journal of format version {version}", f"version {VERSION}", remedy, len(MAGIC)
        )
    head = file.read(HEAD_SIZE)
    if len(head) == HEAD_SIZE and head[HEAD.size :] == digest(
        PREAMBLE, HEAD_CHECK, head[: HEAD.size]
    ):
        raise DamageError(path, "a damaged preamble before an intact record", 0, 0)
    raise StorageError(
        path, f"a file that starts with {found[:8]!r}", "a journal of homdp_ppl", offset=0
    )
