"""The format of journals: reading truncated, damaged and manipulated files."""

import json
import os
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from homdp_ppl.storage import records as journal_format
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.blocks import encode
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.records import (
    BLOCK,
    DESCRIPTION,
    PREAMBLE,
    START,
    DamageError,
    make_record,
    preamble,
    walk,
)
from homdp_ppl.storage.whole_journal import read_journal
from tests.raising import raises
from tests.storage.journals import DESCRIBED, numbers, places, write


def test_the_format_is_as_documented(tmp_path):
    """Compared with bytes written by hand from the description of the format, without checks."""
    path = write(tmp_path / "0.journal", [5])
    data = path.read_bytes()
    assert data[:12] == b"\x89HOMDP\r\n\x01\0\0\0"
    text = json.dumps({"facts": DESCRIBED, "arrays": []}, separators=(",", ":")).encode()
    payload = len(text).to_bytes(4, "little") + text
    start = 16 + 20 + 8
    assert data[16:36] == (0).to_bytes(8, "little") + len(payload).to_bytes(8, "little") + (
        0
    ).to_bytes(4, "little")
    assert data[start : start + len(payload)] == payload
    start += len(payload) + 16
    table = b'{"facts":{"n":5},"arrays":[["a","<i2",[1]]]}'
    payload = len(table).to_bytes(4, "little") + table + b"\5\0"
    assert data[start : start + 20] == (1).to_bytes(8, "little") + len(payload).to_bytes(
        8, "little"
    ) + (1).to_bytes(4, "little")
    assert data[start + 28 : -16] == payload


def test_other_formats_raise_and_are_not_changed(tmp_path):
    path = write(tmp_path / "0.journal", range(2))
    rest = path.read_bytes()[len(PREAMBLE) :]
    for content, byte, got in [
        (preamble(2) + rest, 8, "format version 2"),
        (preamble(0) + rest, 8, "format version 0"),
        (b"\x80\x04\x95pickle, or anything else that is long enough", 0, "a file that starts with"),
        (b"short", 0, "a file that starts with"),
    ]:
        path.write_bytes(content)
        for use in (
            read_journal,
            Journal.open,
            Journal.begun,
            lambda path: Journal.create(path, {}),
        ):
            with raises(StorageError, f"{path}[byte {byte}]") as caught:
                use(path)
            assert got in caught.value.problems[0].got
            assert not isinstance(caught.value, DamageError)
        assert path.read_bytes() == content
    with raises(StorageError, f"{tmp_path}/none"):
        Journal.open(tmp_path / "none")
    with raises(StorageError, f"{tmp_path}"):
        read_journal(tmp_path)


def test_files_truncated_at_every_byte(tmp_path):
    """300 records: intact records are read, the torn one is dropped, nothing raises.

    Earlier records are the same for all cuts within a record and are read only once.
    """
    path = write(tmp_path / "0.journal", range(300))
    after = [START, *places(path)]
    left = len(after) - 1
    for cut in reversed(range(path.stat().st_size)):
        os.truncate(path, cut)
        while cut < after[left].offset and left:
            left -= 1
        near = max(left - 1, 0)
        assert [place for place, _ in walk(path, after[near])] == after[near + 1 : left + 1]
    assert left == 0


def accepted(path, bits):
    """The number of flips of single bits that the reader does not detect.

    The errors for all others name the file and the byte.
    """
    taken = []
    with open(path, "r+b", buffering=0) as file:
        for bit in bits:
            byte = bit // 8
            original = os.pread(file.fileno(), 1, byte)
            os.pwrite(file.fileno(), bytes([original[0] ^ 1 << bit % 8]), byte)
            try:
                read_journal(path)
                taken.append(bit)
            except DamageError as damage:
                message = str(damage)
                if not (
                    message.startswith(f"{path}[byte {damage.offset}]: got ")
                    and damage.offset <= byte
                    and "\n" not in message
                ):
                    raise
            os.pwrite(file.fileno(), original, byte)
    return len(taken)


def test_every_bit_flip_is_detected(tmp_path):
    """Every single bit of a journal with more than 10,000 bits."""
    path = write(tmp_path / "0.journal", range(13))
    bits = 8 * path.stat().st_size
    assert bits > 10_000
    assert accepted(path, range(bits)) == 0
    assert numbers(read_journal(path)) == list(range(13))


@pytest.mark.parametrize("planted", ["no check", "no check of heads"])
def test_bit_flips_are_detected_by_the_checks(tmp_path, monkeypatch, planted):
    """Planted bugs: without checks, wrong data are accepted.

    Without checks of heads, a wrong length looks like a torn record.
    """
    digest = journal_format.digest

    def blind(key, size, *parts):
        return (
            bytes(size)
            if planted == "no check" or size == journal_format.HEAD_CHECK
            else digest(key, size, *parts)
        )

    monkeypatch.setattr(journal_format, "digest", blind)
    path = write(tmp_path / "0.journal", range(12))
    assert accepted(path, range(0, 8 * path.stat().st_size, 7)) > 0


def test_flips_and_truncation_give_intact_blocks_or_an_error(tmp_path):
    path = write(tmp_path / "0.journal", range(6))
    data, rng = path.read_bytes(), np.random.default_rng(1)
    for _ in range(500):
        flipped = bytearray(data[: rng.integers(1, len(data))])
        flipped[rng.integers(len(flipped))] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        try:
            found = numbers(read_journal(path))
        except StorageError:
            found = (
                numbers(read_journal(path, salvage=True)) if flipped.startswith(PREAMBLE) else []
            )
        assert found == list(range(len(found)))


def test_records_are_valid_only_at_their_own_place(tmp_path, monkeypatch):
    """Records that are reordered, duplicated, missing or from another run are damage.

    Planted bug: checks that ignore previous records accept those of another run.
    """
    path = write(tmp_path / "0.journal", [1] * 6)
    other = write(tmp_path / "1.journal", [1] * 6, {**DESCRIBED, "seed": 8})
    ends, data, strange = (
        [place.offset for place in places(path)],
        path.read_bytes(),
        other.read_bytes(),
    )
    assert len(strange) == len(data)
    cut = [data[: ends[0]]] + [data[a:b] for a, b in pairwise(ends)]
    transplanted = [*cut[:3], strange[ends[2] : ends[3]], *cut[4:]]
    for order in (
        [*cut[:2], cut[3], cut[2], *cut[4:]],
        cut[:3] + cut[2:],
        cut[:2] + cut[3:],
        transplanted,
    ):
        path.write_bytes(b"".join(order))
        with pytest.raises(DamageError):
            read_journal(path)
    digest = journal_format.digest
    monkeypatch.setattr(
        journal_format, "digest", lambda key, size, *parts: digest(b"", size, *parts)
    )
    write(tmp_path / "2.journal", [1] * 6)
    write(tmp_path / "3.journal", [1] * 3 + [2] * 3, {**DESCRIBED, "seed": 8})
    mixed = (tmp_path / "2.journal").read_bytes()[: ends[3]] + (
        tmp_path / "3.journal"
    ).read_bytes()[ends[3] :]
    path.write_bytes(mixed)
    assert numbers(read_journal(path)) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    "text",
    [
        b'{"facts":{},"arrays":[["a","<f8",[4611686018427387904]]]}',
        b'{"facts":{},"arrays":[["a","<f8",[281474976710656]]]}',
        b'{"facts":{},"arrays":[["a","<f8",[0,281474976710656,281474976710656]]]}',
        b'{"facts":{},"arrays":[["a","<f8",[-1,-1]]]}',
        b'{"facts":{},"arrays":[["a","<f8",[1.0]]]}',
        b'{"facts":{},"arrays":[["a","|O",[1]]]}',
        b'{"facts":{},"arrays":[["a","|V8",[1]]]}',
        b'{"facts":{},"arrays":[["a","|b1",[0]],["a","|b1",[0]]]}',
        b'{"facts":{},"arrays":[["a","|b1"]]}',
        b'{"facts":{},"arrays":7}',
        b'{"facts":[],"arrays":[]}',
        b'{"arrays":[]}',
        b"[" * 100_000,
        b'{"facts":{"n":' + b"9" * 10_000 + b'},"arrays":[]}',
        b"\xff\xfe",
        b"__import__('os').system('true')",
        b"",
    ],
)
def test_malicious_records_with_valid_checks_raise(tmp_path, text):
    """An attacker can compute checks, but the records use no memory and execute no code."""
    path = tmp_path / "0.journal"
    head, place = make_record(START, DESCRIPTION, encode({}, DESCRIBED))
    path.write_bytes(
        PREAMBLE + head + make_record(place, BLOCK, len(text).to_bytes(4, "little") + text)[0]
    )
    with raises(DamageError, f"{path}[byte {place.offset}]"):
        read_journal(path)


def test_malicious_lengths_allocate_nothing(tmp_path):
    path = tmp_path / "0.journal"
    head, place = make_record(START, DESCRIPTION, encode({}, DESCRIBED))
    for length in (2**31, 2**62, 2**64 - 1):
        fields = journal_format.HEAD.pack(1, length, BLOCK)
        path.write_bytes(
            PREAMBLE
            + head
            + fields
            + journal_format.digest(place.key, journal_format.HEAD_CHECK, fields)
            + bytes(100)
        )
        tracemalloc.start()
        assert read_journal(path) == (DESCRIBED, ())  # a valid head without its payload is torn
        assert tracemalloc.get_traced_memory()[1] < 2**20
        tracemalloc.stop()
    for kind, number in ((7, 1), (BLOCK, 5)):
        path.write_bytes(
            PREAMBLE + head + make_record(place._replace(number=number), kind, encode({}, {}))[0]
        )
        with raises(DamageError, f"{tmp_path}/0.journal"):
            read_journal(path)
