"""Atomic replacement of files, and renaming of damaged files."""

import os
import pickle
import subprocess

import numpy as np
import pytest

from homdp_ppl.storage.atomic import (
    StorageError,
    atomic_write,
    remove_leftovers,
    set_aside,
    storage_errors,
)
from tests.children import finish, kill, spawn
from tests.raising import raises

REPLACE_FOR_EVER = """
from pathlib import Path
from homdp_ppl.storage.atomic import atomic_write
path = Path(sys.argv[1])
for number in range(10**9):
    atomic_write(path, b"%d " % number * 50_000)
    print(number, flush=True)
"""

LIMITED = """
import resource
from homdp_ppl.storage.atomic import StorageError, atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    atomic_write(sys.argv[1], b"x" * 2000)
except StorageError as error:
    print(error)
"""

IMPORTS = """
import homdp_ppl.storage.journal, homdp_ppl.storage.lock
print({"jax", "pickle"} & set(sys.modules))
"""


def test_errors_are_one_line_and_picklable():
    error = StorageError("a\nb.journal", "a wrong\ncheck", "another", "Look.", offset=7)
    assert str(error) == "a b.journal[byte 7]: got a wrong check; expected another. Look."
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.path, copy.offset, copy.problems) == (
        str(error),
        error.path,
        7,
        error.problems,
    )


def test_storage_does_not_import_jax():
    """Workers can therefore handle their files before they compile anything."""
    assert "jax" not in finish(spawn(IMPORTS))


@pytest.mark.parametrize("content", [b"new", lambda temporary: temporary.write_bytes(b"new")])
def test_a_file_is_replaced(tmp_path, content):
    path = tmp_path / "results.nc"
    path.write_bytes(b"old and longer")
    atomic_write(path, content)
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["results.nc"]


def test_writers_get_a_path_with_the_same_suffix(tmp_path):
    """np.savez and savefig depend on the suffix."""
    atomic_write(tmp_path / "policy.npz", lambda temporary: np.savez(temporary, start=np.arange(3)))
    assert np.load(tmp_path / "policy.npz")["start"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt, RuntimeError, OSError(28, "No space left on device")]
)
def test_a_writer_that_fails_leaves_the_old_file(tmp_path, failure):
    def write(temporary):
        temporary.write_bytes(b"half")
        raise failure

    path = tmp_path / "results.nc"
    path.write_bytes(b"old")
    with pytest.raises(StorageError if isinstance(failure, OSError) else failure):
        atomic_write(path, write)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["results.nc"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "results.nc"
    path.write_bytes(b"old")
    message = finish(spawn(LIMITED, path))
    assert message == (
        f"{path}: got file too large; expected a file that can be written. Free some disk space, "
        f"then resume.\n"
    )
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["results.nc"]


def test_a_full_device_raises():
    with (
        open("/dev/full", "wb", buffering=0) as full,
        raises(StorageError, "full"),
        storage_errors("full", "a file"),
    ):
        full.write(b"x")


def test_a_killed_writer_leaves_an_intact_file(tmp_path):
    path, rng = tmp_path / "results.nc", np.random.default_rng(0)
    child = spawn(REPLACE_FOR_EVER, path)
    first = child.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.05 * rng.random())
    acknowledged = (first + kill(child)).split()
    words = path.read_bytes().split()
    assert len(words) == 50_000
    assert len(set(words)) == 1
    assert int(words[0]) >= int(acknowledged[-1])
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == ["results.nc"]


def test_only_temporary_files_are_removed(tmp_path):
    keep = [
        ".lock",
        ".notes.partial",
        "a.0123456789abcdef.partial",
        ".a.0123456789ABCDEF.partial",
        "results.nc",
    ]
    below = tmp_path / "runs"
    below.mkdir()
    for name in (
        *keep,
        ".results.0123456789abcdef.partial.nc",
        ".a.journal.0123456789abcdef.partial",
    ):
        (tmp_path / name).touch()
        (below / name).touch()
    assert len(remove_leftovers(tmp_path)) == 4
    assert sorted(os.listdir(below)) == sorted(keep)


def test_renaming_a_damaged_file_overwrites_nothing(tmp_path):
    path = tmp_path / "0.journal"
    for number in range(1, 4):
        path.write_text(str(number))
        assert set_aside(path) == tmp_path / f"0.journal.damaged-{number}"
        assert not path.exists()
    assert [(tmp_path / f"0.journal.damaged-{number}").read_text() for number in (1, 2, 3)] == [
        "1",
        "2",
        "3",
    ]


def test_errors_of_writing_name_the_file(tmp_path):
    with raises(StorageError, f"{tmp_path}/missing/file"):
        atomic_write(tmp_path / "missing" / "file", b"")
    with raises(StorageError, f"{tmp_path}/gone"):
        set_aside(tmp_path / "gone")
    assert os.listdir(tmp_path) == []
