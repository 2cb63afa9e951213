"""Writing journals: resuming after truncation, kills and full disks; damaged files."""

import errno
import os
import pickle
import shutil
import signal
import subprocess

import numpy as np
import pytest

from homdp_ppl.storage import journal as journals
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.records import HEAD_SIZE, PREAMBLE, DamageError
from homdp_ppl.storage.whole_journal import read_journal
from tests.children import finish, kill, spawn
from tests.raising import raises
from tests.storage.journals import DESCRIBED, append, numbers, places, write

UNTIL_FULL = """
import resource
import numpy as np
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.atomic import StorageError
path, limit = sys.argv[1], int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
with Journal.create(path, {}) as journal:
    try:
        for number in range(10_000):
            journal.append({"noise": np.arange(700.0)}, {"n": number}, sync=number % 10 == 0)
    except StorageError as error:
        print(journal.written, error, sep="|")
"""


APPEND_FOR_EVER = """
import numpy as np
from homdp_ppl.storage.journal import Journal
with Journal.open(sys.argv[1]) as journal:
    print(journal.written, flush=True)
    for number in range(journal.written, 10**9):
        noise = np.full(number % 3 * 30_000, number)
        journal.append({"noise": noise}, {"n": number}, sync=number % 4 == 0)
        print(number + 1, flush=True)
"""


def test_a_journal_is_written_resumed_and_read(tmp_path):
    path = write(tmp_path / "0.journal", range(3))
    with Journal.open(path) as journal:
        assert (journal.description, journal.written, repr(journal)) == (
            DESCRIBED,
            3,
            "Journal('0.journal', 3 blocks)",
        )
        journal.append({}, {"last": True})
        assert [block.facts for block in journal.records()] == [
            {"n": 0},
            {"n": 1},
            {"n": 2},
            {"last": True},
        ]
        assert len(read_journal(path).blocks) == 4  # while it is open
    with raises(StorageError, f"{tmp_path}/0.journal"):
        journal.append({}, {})
    assert journal.close() is None
    assert read_journal(path).description == DESCRIBED


def test_an_empty_description_is_valid(tmp_path):
    path = write(tmp_path / "0.journal", range(2), {})
    with Journal.open(path) as journal:
        assert journal.description == {}


def test_a_journal_is_created_only_once(tmp_path):
    path = tmp_path / "0.journal"
    assert not Journal.begun(path)
    write(path, range(2))
    assert Journal.begun(path)
    with raises(StorageError, f"{tmp_path}/0.journal"):
        Journal.create(path, {})
    assert numbers(read_journal(path)) == [0, 1]


@pytest.mark.parametrize(
    "values",
    [np.array([{}]), np.array(["word"]), np.array([1j]), np.zeros(1, "M8[s]"), np.zeros((1,) * 17)],
)
def test_unsupported_arrays_and_facts_raise_and_write_nothing(tmp_path, values):
    path = write(tmp_path / "0.journal", range(2))
    before = path.read_bytes()
    with Journal.open(path) as journal:
        with raises(StorageError, f"{path}[byte {len(before)}]"):
            journal.append({"bad": values}, {})
        with raises(StorageError, f"{path}[byte {len(before)}]"):
            journal.append({}, {"bad": object()})
    assert path.read_bytes() == before


def resumes_after(path, cut, whole):
    """Whether a truncated journal is read up to its last intact block and can be continued.

    Appending the lost blocks gives the same bytes as before.
    """
    data = path.read_bytes()
    torn = path.with_name("torn")
    torn.write_bytes(data[:cut])
    if whole < 0:
        assert read_journal(torn) == (None, ())
        assert not Journal.begun(torn)
        with raises(StorageError, str(torn)):
            Journal.open(torn)
        write(torn, range(1))
        return numbers(read_journal(torn)) == [0]
    assert numbers(read_journal(torn)) == list(range(whole))
    assert torn.read_bytes() == data[:cut]  # readers change nothing
    with Journal.open(torn) as journal:
        assert journal.written == whole
        append(journal, whole)
    again = torn.read_bytes()
    return data.startswith(again) or data == again[: len(data)]


def test_a_truncated_journal_can_be_resumed(tmp_path):
    """Truncated at the ends of all records, next to them, and at some bytes between."""
    path = write(tmp_path / "0.journal", range(4))
    ends = [place.offset for place in places(path)]
    near = {end + by for end in (len(PREAMBLE), *ends) for by in (-1, 0, 1, HEAD_SIZE)}
    for cut in sorted({0, *near, *range(5, ends[-1], 25)} & {*range(ends[-1] + 1)}):
        assert resumes_after(path, cut, sum(end <= cut for end in ends) - 1)


@pytest.mark.slow
def test_a_long_journal_truncated_at_any_byte_can_be_resumed(tmp_path):
    path = write(tmp_path / "0.journal", range(60))
    ends = [place.offset for place in places(path)]
    for cut in range(ends[-1] + 1):
        assert resumes_after(path, cut, sum(end <= cut for end in ends) - 1)


def test_a_damaged_journal_is_renamed_and_rebuilt(tmp_path):
    path = write(tmp_path / "0.journal", range(8))
    ends, data = [place.offset for place in places(path)], path.read_bytes()
    for number, whole in enumerate((0, 3, 7), 1):  # intact blocks before the damage
        byte = ends[whole] + HEAD_SIZE + 5
        damaged = bytearray(data)
        damaged[byte] ^= 16
        path.write_bytes(damaged)
        assert Journal.begun(path)
        with raises(DamageError, f"{path}[byte {ends[whole]}]") as caught:
            Journal.open(path)
        damage = pickle.loads(pickle.dumps(caught.value))
        assert (damage.intact, damage.offset, str(damage)) == (
            whole,
            ends[whole],
            str(caught.value),
        )
        assert damage.aside == tmp_path / f"0.journal.damaged-{number}"
        assert damage.aside.read_bytes() == damaged
        assert not path.exists()
        kept = read_journal(damage.aside, salvage=True)
        assert numbers(kept) == list(range(whole))
        with Journal.create(path, kept.description) as journal:
            for block in kept.blocks:
                journal.append(*block, sync=False)
        assert path.read_bytes() == data[: ends[whole]]


def test_any_damage_is_detected_and_the_file_renamed(tmp_path):
    path, rng = write(tmp_path / "0.journal", range(8)), np.random.default_rng(2)
    data = path.read_bytes()
    for byte in (*range(0, len(PREAMBLE), 4), *rng.integers(0, len(data), 30)):
        damaged = bytearray(data)
        damaged[byte] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(DamageError) as caught:
            Journal.open(path)
        assert caught.value.aside.read_bytes() == damaged
        assert not path.exists()
        assert numbers(read_journal(caught.value.aside, salvage=True)) == list(
            range(caught.value.intact)
        )
    assert len(os.listdir(tmp_path)) == 34


@pytest.mark.parametrize("fault", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("call", ["write_at", "fsync"])
def test_a_failed_append_is_rolled_back(tmp_path, monkeypatch, call, fault):
    path = write(tmp_path / "0.journal", range(3))
    before, write_at = path.read_bytes(), journals.write_at

    def half(handle, data, offset):
        write_at(handle, data[: len(data) // 2], offset)
        raise fault

    def fail(handle):
        monkeypatch.undo()
        raise fault

    with Journal.open(path) as journal:
        if call == "write_at":
            monkeypatch.setattr(journals, call, half)
        else:
            monkeypatch.setattr(os, call, fail)
        with pytest.raises(
            StorageError if isinstance(fault, OSError) else KeyboardInterrupt
        ) as caught:
            journal.append({}, {"n": 3})
        monkeypatch.undo()
        if isinstance(fault, OSError):
            assert caught.value.offset == len(before)
            assert caught.value.problems[0].got == "input/output error"
        assert path.read_bytes() == before
        journal.append({}, {"n": 3})
    assert [block.facts["n"] for block in read_journal(path).blocks] == [0, 1, 2, 3]


def test_a_failed_rollback_is_repeated_later(tmp_path, monkeypatch):
    path = write(tmp_path / "0.journal", range(3))
    before, write_at = path.read_bytes(), journals.write_at

    def half(handle, data, offset):
        write_at(handle, data[: len(data) // 2], offset)
        raise OSError(errno.EIO, "Input/output error")

    def fail(handle, size):
        raise OSError(errno.EROFS, "Read-only file system")

    with Journal.open(path) as journal:
        monkeypatch.setattr(journals, "write_at", half)
        monkeypatch.setattr(os, "ftruncate", fail)
        with raises(StorageError, f"{tmp_path}/0.journal"):
            journal.append({"long": np.zeros(1000)}, {})
        monkeypatch.undo()
        assert path.stat().st_size > len(before) + 1000
        assert numbers(read_journal(path)) == [0, 1, 2]
        journal.append({}, {"n": 3})
    assert [block.facts["n"] for block in read_journal(path).blocks] == [0, 1, 2, 3]


def test_a_second_writer_is_detected(tmp_path):
    path = write(tmp_path / "0.journal", range(3))
    with Journal.open(path) as first, Journal.open(path) as second:
        first.append({}, {})
        with raises(StorageError, f"{tmp_path}/0.journal"):
            second.append({}, {})
        os.truncate(path, 200)
        with raises(StorageError, f"{tmp_path}/0.journal[byte 200]"):
            list(first.records())


def test_no_space_on_a_device(tmp_path, monkeypatch):
    """Writes go to /dev/full instead of the disk."""
    path = write(tmp_path / "0.journal", range(3))
    with Journal.open(path) as journal, open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(
            journals, "write_at", lambda handle, data, offset: os.write(full.fileno(), data)
        )
        with raises(StorageError, f"{tmp_path}/0.journal"):
            journal.append({}, {})
    assert numbers(read_journal(path)) == [0, 1, 2]


def fills_up(path, limit, words, make_space=lambda: None):
    """Append until the disk is full.

    All blocks whose append returned are intact, and writing continues once there is space.
    """
    written, message = finish(spawn(UNTIL_FULL, path, limit)).split("|")
    assert words in message
    assert f"{path}[byte {path.stat().st_size}]" in message  # the end of the last intact record
    assert [block.facts["n"] for block in read_journal(path).blocks] == list(range(int(written)))
    make_space()
    with Journal.open(path) as journal:
        journal.append({"noise": np.arange(700.0)}, {"n": int(written)})
    assert read_journal(path).blocks[-1].facts == {"n": int(written)}


def test_a_file_that_cannot_grow(tmp_path):
    """The limit is inside a record: a part of it is written before the error."""
    fills_up(tmp_path / "0.journal", 100_000, "file too large")


def test_a_full_disk(tmp_path):
    """A small file system in memory; skipped if it cannot be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    try:
        (disk / "ballast").write_bytes(bytes(100_000))
        fills_up(disk / "0.journal", 0, "no space left on device", (disk / "ballast").unlink)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def survives_kills(path, kills, rng):
    """Kill a writer at random moments: the journal contains the blocks 0 .. n - 1.

    These include all blocks whose append returned.
    """
    held = 0
    for _ in range(kills):
        if not Journal.begun(path):
            Journal.create(path, {}).close()
        child = spawn(APPEND_FOR_EVER, path)
        first = child.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.03 * rng.random())
        acknowledged = [int(word) for word in (first + kill(child)).split()]
        assert child.returncode == -signal.SIGKILL  # it has ended: the file no longer changes
        blocks = read_journal(path).blocks
        assert [block.facts["n"] for block in blocks] == list(range(len(blocks)))
        assert all((block.arrays["noise"] == block.facts["n"]).all() for block in blocks)
        assert acknowledged[0] == held
        assert acknowledged[-1] <= len(blocks) <= acknowledged[-1] + 1
        held = len(blocks)
        if path.stat().st_size > 5_000_000:
            path.unlink()
            held = 0


def test_a_writer_killed_before_its_first_block(tmp_path):
    """The run has begun: the next writer opens the journal and does not create it again."""
    path = tmp_path / "0.journal"
    Journal.create(path, {}).close()
    before = path.read_bytes()
    child = spawn(APPEND_FOR_EVER.replace("    for", "    sys.stdin.read()\n    for"), path)
    assert child.stdout.readline() == "0\n"
    kill(child)
    assert path.read_bytes() == before
    assert Journal.begun(path)
    with raises(StorageError, str(path)):
        Journal.create(path, {})
    with Journal.open(path) as journal:
        assert journal.written == 0


def test_a_killed_writer_loses_no_acknowledged_block(tmp_path):
    survives_kills(tmp_path / "0.journal", 10, np.random.default_rng(0))


@pytest.mark.slow
def test_a_writer_killed_often_loses_no_acknowledged_block(tmp_path):
    """When this test was written, 5 of the 200 kills interrupted a write."""
    survives_kills(tmp_path / "0.journal", 200, np.random.default_rng(1))


@pytest.mark.parametrize("what", ["removed", "replaced", "directory removed"])
def test_a_journal_that_disappears_while_open_raises(tmp_path, what):
    """Results are never written to a deleted file."""
    place = tmp_path / "study"
    place.mkdir()
    with Journal.create(place / "0.journal", {}) as journal:
        journal.append({"played": [0.5]}, {})
        if what == "directory removed":
            shutil.rmtree(place)
        else:
            (place / "0.journal").unlink()
        if what == "replaced":
            (place / "0.journal").write_bytes(b"something else")
        with raises(StorageError, str(place / "0.journal")):
            journal.append({"played": [0.5]}, {})


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_only_regular_files_are_journals(tmp_path, kind):
    """Links are not followed, and pipes do not block."""
    real, path = tmp_path / "real.journal", tmp_path / "0.journal"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(real)
    if kind == "link":
        Journal.create(real, {}).close()
    for use in (read_journal, Journal.begun, Journal.open, lambda path: Journal.create(path, {})):
        with raises(StorageError, str(path)):
            use(path)
