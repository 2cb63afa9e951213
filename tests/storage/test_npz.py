"""Files of arrays: damage, and archives that do not fit in memory."""

import io
import os
import struct
import sys
import zipfile

import numpy as np
import pytest

from homdp_ppl import GraphPolicy, HOMDPError, PolicyError, StorageError
from homdp_ppl.continuous.quantised_policy import QuantisedPolicy
from tests.children import attacked
from tests.raising import raises

PARTS = ("format", "start", "probabilities", "successor", "observations", "actions")


def header(shape, dtype="<i8"):
    """The header of an array."""
    written = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(written, about)
    return written.getvalue()


def rewrite(path, member, content, zeros=0, suffix=".npy"):
    """Write a policy file with one member replaced; zeros compress well."""
    GraphPolicy([0, 0], [[1.0, 0.0]], [[[0, 0]]]).save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, old in parts.items():
            if name != f"{member}.npy":
                archive.writestr(name, old)
        with archive.open(f"{member}{suffix}", "w", force_zip64=True) as written:
            written.write(content)
            for _ in range(zeros // 2**24):
                written.write(bytes(2**24))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "policy.npz"


@pytest.mark.parametrize("member", PARTS)
def test_a_header_that_states_terabytes(member, path):
    rewrite(path, member, header((2**40, 2, 2), "<U9" if member == "format" else "<i8"))
    with pytest.raises(PolicyError) as caught:
        GraphPolicy.load(path)
    assert [problem.where for problem in caught.value.problems] == ["file"]
    assert "TB" in caught.value.problems[0].got


def test_a_member_that_unpacks_to_more_than_its_header_says(path, monkeypatch):
    monkeypatch.setenv("HOMDP_MEMORY", "0.1")
    rewrite(path, "successor", header((1, 1, 2)), zeros=2**26)
    with raises(PolicyError, "file") as caught:
        GraphPolicy.load(path)
    assert "67.1 MB" in caught.value.problems[0].got


def test_a_large_member_before_a_damaged_one(path):
    """The size is checked even if the file is damaged."""
    rewrite(path, "start", header((2**40,)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("zzz.npy", b"nothing")
    with raises(PolicyError, "file") as caught:
        GraphPolicy.load(path)
    assert "TB" in caught.value.problems[0].got
    rewrite(path, "actions", b"no header at all")
    with raises(PolicyError, "file") as caught:
        GraphPolicy.load(path)
    assert "damaged" in caught.value.problems[0].got


def test_a_member_without_suffix_is_not_read(path, monkeypatch):
    """``numpy.load`` would unpack it as bytes, whatever its size."""
    monkeypatch.setenv("HOMDP_MEMORY", "0.1")
    rewrite(path, "successor", b"no array", zeros=2**26, suffix="")
    with raises(PolicyError, "file") as caught:
        GraphPolicy.load(path)
    assert caught.value.problems[0].got == "no successor"


@pytest.mark.parametrize(
    ("shape", "dtype"), [((10**9,), "<U0"), ((10**8,), "|S1"), ((10**9,), "|i1")]
)
def test_many_small_entries(path, monkeypatch, shape, dtype):
    """An empty string takes no space in the file, but a billion of them become objects."""
    monkeypatch.setenv("HOMDP_MEMORY", "1")
    rewrite(path, "observations", header(shape, dtype))
    with raises(PolicyError, "file") as caught:
        GraphPolicy.load(path)
    assert "GB" in caught.value.problems[0].got


@pytest.mark.parametrize("long", [False, True])
def test_a_long_list_of_members_is_not_read(path, monkeypatch, long):
    """Every member would become an object: 23 MB of members grew the process by 180 MB."""
    member = b"PK\x01\x02" + struct.pack("<6H3I5H2I", 20, 20, *[0] * 7, 1, *[0] * 6) + b"a"
    number, size = (0xFFFF, 0xFFFFFFFF) if long else (5000, 5000 * len(member))
    end = b"PK\x05\x06" + struct.pack("<4H2IH", 0, 0, number, number, size, 0, 0)
    if long:  # the sizes are in further records
        sizes = struct.pack("<Q2H2I4Q", 44, 45, 45, 0, 0, 5000, 5000, 5000 * len(member), 0)
        place = struct.pack("<IQI", 0, 5000 * len(member), 1)
        end = b"PK\x06\x06" + sizes + b"PK\x06\x07" + place + end
    path.write_bytes(member * 5000 + end)
    assert len(zipfile.ZipFile(path).infolist()) == 5000
    monkeypatch.setattr("homdp_ppl.storage.npz.ZipFile", None)  # it is not called
    with raises(PolicyError, "file") as caught:
        GraphPolicy.load(path)
    assert caught.value.problems[0].got == "an archive of very many arrays"


def test_a_long_text_instead_of_the_format(path):
    GraphPolicy([0, 0], [[1.0, 0.0]], [[[0, 0]]]).save(path)
    with np.load(path) as file:
        np.savez(path, **{**file, "format": np.array("[" * 100_000)})
    with raises(PolicyError, "file") as caught:
        GraphPolicy.load(path)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("names", [np.array("a"), np.arange(2), np.array([["a", "b"]])])
@pytest.mark.parametrize("part", ["observations", "actions"])
def test_names_that_are_no_list(path, names, part):
    GraphPolicy([0, 0], [[1.0, 0.0]], [[[0, 0]]]).save(path)
    with np.load(path) as file:
        np.savez(path, **{**file, part: names})
    with raises(PolicyError, part):
        GraphPolicy.load(path)


@pytest.mark.parametrize("edges", [np.array(["a"]), np.array(0.5), np.array([[0.5]]), np.ones(2)])
def test_cells_that_are_no_numbers(path, edges):
    graph = GraphPolicy([0, 0], [[1.0, 0.0]], [[[0, 0]]])
    QuantisedPolicy([0.5], graph).save(path)
    with np.load(path) as file:
        np.savez(path, **{**file, "edges": edges})
    with raises(HOMDPError, "edges"):
        QuantisedPolicy.load(path)


def test_files_without_an_end(path):
    """Pipes and devices are not opened for reading; links that the user names are followed."""
    os.mkfifo(path)
    with raises(StorageError, str(path)):
        GraphPolicy.load(path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with raises(StorageError, str(path)):
        GraphPolicy.load(path)
    path.unlink()
    GraphPolicy([0, 0], [[1.0, 0.0]], [[[0, 0]]]).save(path.with_name("real.npz"))
    path.symlink_to("real.npz")
    assert len(GraphPolicy.load(path).start) == 2


@pytest.mark.slow
def test_a_small_file_that_unpacks_to_gigabytes(path):
    if sys.platform != "linux":
        pytest.skip("memory limits need Linux")
    rewrite(path, "successor", header((2**26, 2, 2)), zeros=2**31)
    assert path.stat().st_size < 3_000_000
    attack = {"load": f"GraphPolicy.load({str(path)!r})"}
    error, places, grown = attacked("from homdp_ppl import GraphPolicy", attack)["load"]
    assert (error, places) == ("PolicyError", ["file"])
    assert grown < 300_000_000


@pytest.mark.parametrize("given", [None, 3, ["policy.npz"]])
def test_invalid_paths_raise(given):
    with raises(HOMDPError, "path"):
        GraphPolicy.load(given)
