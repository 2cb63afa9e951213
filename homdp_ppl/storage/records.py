"""Records: the file format of journals, and the walk that tells what is whole from what is torn and
what is damaged.

A file is 16 bytes of preamble (magic, format version, CRC-32 of both) and records. A record is::

    number (8 bytes) | length of the payload (8) | kind (4) | check of the head (8) | payload |
    check of the record (16)

All numbers are little-endian. Record 0 holds the description of the run, the others blocks
(:mod:`homdp_ppl.storage.blocks`). The checks are BLAKE2b digests keyed with the check of the record
before, so a record fits at its place in its own file and nowhere else. The head has a check of its
own, so that a tear (fewer bytes left than a head, or a sound head with too few bytes behind it) is
told from damage with certainty: what is torn was never acknowledged and is dropped, what is damaged
is refused.
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

MAGIC = b"\x89HOMDP\r\n"  # not text, and spoilt by a transfer that treats it as text
VERSION = 1
OPENING = struct.Struct("<8sI")
HEAD = struct.Struct("<QQI")
HEAD_CHECK, CHECK = 8, 16
HEAD_SIZE = HEAD.size + HEAD_CHECK
DESCRIPTION, BLOCK = 0, 1  # kinds of records


class DamageError(StorageError):
    """A journal that is not as it was written.

    Attributes
    ----------
    whole
        How many blocks before the damage are whole; ``read_journal(path, salvage=True)`` reads
        them.
    aside
        Where the damaged file is now, if it was set aside.
    """

    def __init__(
        self, path: str | Path, got: str, offset: int, whole: int, aside: Path | None = None
    ) -> None:
        kept = (
            f"It is kept as {aside.name}; blocks"
            if aside
            else "Resume the run, which sets it aside; blocks"
        )
        remedy = f"{kept} that are whole before the damage: {whole}."
        super().__init__(path, got, "a journal as it was written", remedy, offset)
        self.whole = whole
        self.aside = aside
        self.args = (path, got, offset, whole, aside)


class Place(NamedTuple):
    """Where a record stands: what its checks depend on."""

    offset: int
    number: int
    key: bytes  # the check of the record before


def preamble(version: int = VERSION) -> bytes:
    """The first bytes of a journal."""
    opening = OPENING.pack(MAGIC, version)
    return opening + zlib.crc32(opening).to_bytes(4, "little")


PREAMBLE = preamble()
START = Place(len(PREAMBLE), 0, PREAMBLE)


def make_record(place: Place, kind: int, payload: bytes) -> tuple[bytes, Place]:
    """A record that fits at its place, and the place after it.

    Parameters
    ----------
    place
        Where it will stand.
    kind
        ``DESCRIPTION`` or ``BLOCK``.
    payload
        What it holds.

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
    """The whole records of a file, each with the place after it.

    Stops before a tear, refuses damage.

    Nothing is allocated that the file does not hold.

    Parameters
    ----------
    path
        The file.
    start
        The place of the first record that is wanted; those before were verified when it was found.
    end
        The byte to stop at, where it is not the last.

    Raises
    ------
    DamageError
        At the first record that is not as it was written.
    StorageError
        No journal, or one of another format version.
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
            if len(head) < HEAD_SIZE:  # a writer has just taken back what it could not finish
                return
            number, length, kind = HEAD.unpack_from(head)
            if head[HEAD.size :] != digest(place.key, HEAD_CHECK, head[: HEAD.size]):
                raise _damage(path, place, "a head that its check does not fit")
            if length + CHECK > size - place.offset - HEAD_SIZE:
                return
            payload, check = file.read(length), file.read(CHECK)
            if len(check) < CHECK:
                return
            if check != digest(place.key, CHECK, head, payload):
                raise _damage(path, place, "content that its check does not fit")
            if (number, kind) != (place.number, BLOCK if place.number else DESCRIPTION):
                raise _damage(path, place, f"number {number} and kind {kind}")
            try:
                block = decode(payload)
            except ValueError as error:
                raise _damage(path, place, str(error)) from None
            place = Place(place.offset + HEAD_SIZE + length + CHECK, place.number + 1, check)
            yield place, block


def digest(key: bytes, size: int, *parts: bytes) -> bytes:
    """The check of some bytes that come after a key."""
    checked = blake2b(key=key, digest_size=size)
    for part in parts:
        checked.update(part)
    return checked.digest()


def _damage(path: Path, place: Place, got: str) -> DamageError:
    return DamageError(
        path, f"record {place.number} with {got}", place.offset, max(place.number - 1, 0)
    )


def _begins_well(path: Path, file: BinaryIO) -> bool:
    """Whether records may follow; False if the file is cut before.

    What is no journal of this format is refused.
    """
    found = file.read(len(PREAMBLE))
    if PREAMBLE.startswith(found):
        return found == PREAMBLE
    magic, version = OPENING.unpack_from(found.ljust(OPENING.size, b"\0"))
    if magic == MAGIC and found == preamble(version):
        remedy = "A newer homdp_ppl reads it." if version > VERSION else ""
        raise StorageError(
            path, f"a journal of format version {version}", f"version {VERSION}", remedy, len(MAGIC)
        )
    head = file.read(HEAD_SIZE)
    if len(head) == HEAD_SIZE and head[HEAD.size :] == digest(
        PREAMBLE, HEAD_CHECK, head[: HEAD.size]
    ):
        raise DamageError(path, "a damaged preamble before a sound record", 0, 0)
    raise StorageError(
        path, f"a file that begins with {found[:8]!r}", "a journal of homdp_ppl", offset=0
    )
