"""Files of arrays: what is damaged, and what unpacks to more than memory holds."""

import io
import sys
import zipfile

import numpy as np
import pytest

from homdp_ppl import GraphPolicy, ParameterError, PolicyError
from tests.children import attacked
from tests.raising import raises

PARTS = ("format", "start", "probabilities", "successor", "observations", "actions")


def header(shape, dtype="<i8"):
    """The header of an array."""
    written = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(written, about)
    return written.getvalue()


def rewrite(path, member, content, zeros=0):
    """A policy's file in which one member is replaced; many zeros take little room in it."""
    GraphPolicy([0, 0], [[1.0, 0.0]], [[[0, 0]]]).save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, old in parts.items():
            if name != f"{member}.npy":
                archive.writestr(name, old)
        with archive.open(f"{member}.npy", "w", force_zip64=True) as written:
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
    with pytest.raises(PolicyError, match=r"67\.1 MB when unpacked"):
        GraphPolicy.load(path)


def test_a_large_member_before_a_damaged_one(path):
    """Damage found late must not let the large one through."""
    rewrite(path, "start", header((2**40,)))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("zzz.npy", b"nothing")
    with pytest.raises(PolicyError, match="when unpacked"):
        GraphPolicy.load(path)
    rewrite(path, "actions", b"no header at all")
    with pytest.raises(PolicyError, match="damaged"):
        GraphPolicy.load(path)


@pytest.mark.slow
def test_a_small_file_that_unpacks_to_gigabytes(path):
    if sys.platform != "linux":
        pytest.skip("limits of memory are those of Linux")
    rewrite(path, "successor", header((2**26, 2, 2)), zeros=2**31)
    assert path.stat().st_size < 3_000_000
    attack = {"load": f"GraphPolicy.load({str(path)!r})"}
    error, places, grown = attacked("from homdp_ppl import GraphPolicy", attack)["load"]
    assert (error, places) == ("PolicyError", ["file"])
    assert grown < 300_000_000


@pytest.mark.parametrize("given", [None, 3, ["policy.npz"]])
def test_what_is_no_name_of_a_file(given):
    with raises(ParameterError, "path"):
        GraphPolicy.load(given)
