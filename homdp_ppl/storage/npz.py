"""Reading and writing ``.npz`` files of plain arrays, without executing code."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from homdp_ppl.errors import PolicyError, Problem, shown
from homdp_ppl.memory import amount, require_memory
from homdp_ppl.precision import Array
from homdp_ppl.storage._system import open_named
from homdp_ppl.storage.atomic import atomic_write, storage_errors

COPIES = 4  # of an array while it is read and validated
DIRECTORY = 2**16  # largest list of members in bytes; ZipFile creates an object for each of them
END, LONG_END = b"PK\x05\x06", b"PK\x06\x07"  # the records at the end of an archive
END_SIZE = 22 + 20 + 2**16  # bytes of both and a comment
NUMBER, NAME = 8, 64  # bytes of an entry as a float64 or int64, and of an object for a string


def write_arrays(path: str | Path, form: str, **arrays: Array) -> None:
    """Write arrays together with the name of their format.

    Parameters
    ----------
    path
        The file, with any suffix.
    form
        The name of the format.
    arrays
        Arrays of numbers or strings.
    """
    content = BytesIO()
    named: dict[str, Any] = {"format": np.array(form), **arrays}
    np.savez_compressed(content, **named)
    atomic_write(path, content.getvalue())


def read_arrays(
    path: str | Path,
    form: str,
    names: Sequence[str],
    optional: Sequence[str] = (),
    older: Sequence[str] = (),
) -> dict[str, Array]:
    """Read the arrays of a file.

    Raises an error for files of another format, damaged files, pickled objects, very many arrays,
    and arrays that do not fit in memory: a small file can unpack to many gigabytes.

    Parameters
    ----------
    path
        The file.
    form
        The name of the format.
    names
        The arrays that the file must contain.
    optional
        Further arrays, which are read if the file contains them.
    older
        The names of older formats that can be read as well.
    """
    if not isinstance(path, str | os.PathLike):
        raise PolicyError("load", [Problem("path", shown(path), "the name of a file")])
    parts: dict[str, Array] = {}
    with storage_errors(path, "a policy file that can be read"), open_named(path) as opened:
        _refuse_long_directory(str(path), opened)
        try:  # NumPy and zipfile raise many different errors for damaged files
            with ZipFile(opened) as archive:
                inside = {info.filename: info for info in archive.infolist()}
                wanted = [n for n in ("format", *names, *optional) if f"{n}.npy" in inside]
                members = {name: inside[f"{name}.npy"] for name in wanted}
                _require_room(str(path), sum(_unpacked(archive, m) for m in members.values()))
                for name, member in members.items():
                    with archive.open(member) as packed:
                        parts[name] = np.lib.format.read_array(packed, allow_pickle=False)
        except PolicyError:
            raise
        except Exception:
            parts = {}
    missing = [name for name in names if name not in parts]
    if str(parts.get("format")) not in (form, *older):
        got = (
            f"format {shown(str(parts['format']))}"
            if "format" in parts
            else "a file of another kind, or a damaged one"
        )
        raise PolicyError(str(path), [Problem("file", got, f"a policy in the format {form}")])
    if missing:
        raise PolicyError(
            str(path),
            [Problem("file", f"no {', '.join(missing)}", f"the arrays {', '.join(names)}")],
        )
    return parts


def names_in(path: str | Path, parts: Mapping[str, Array], name: str) -> tuple[str, ...]:
    """The strings of an array that was read from a file; raises PolicyError for other arrays.

    Parameters
    ----------
    path
        The file.
    parts
        Its arrays.
    name
        The array.
    """
    found = parts[name]
    if found.ndim != 1 or found.dtype.kind != "U":
        got = f"an array of type {found.dtype} and shape {found.shape}"
        raise PolicyError(str(path), [Problem(name, got, "a list of names")])
    return tuple(map(str, found))


def _refuse_long_directory(path: str, opened: IO[bytes]) -> None:
    """Raise PolicyError for an archive with a long list of members, before the list is read.

    The record at the end of an archive states the size of the list. ``ZipFile`` looks for the
    record in the same place.
    """
    opened.seek(max(0, opened.seek(0, os.SEEK_END) - END_SIZE))
    tail = opened.read()
    opened.seek(0)
    places = [match.start() for match in re.finditer(END, tail)]
    sizes = [int.from_bytes(tail[place + 12 : place + 16], "little") for place in places]
    if LONG_END in tail or any(size > DIRECTORY for size in sizes):
        got, expected = "an archive of very many arrays", "the arrays of a policy"
        raise PolicyError(path, [Problem("file", got, expected)])


def _require_room(path: str, size: int) -> None:
    got = f"arrays of {amount(size)} when unpacked"
    remedy = "Check that the file is a policy and comes from a source that you trust."
    require_memory(PolicyError, path, "file", got, COPIES * size, remedy)


def _unpacked(archive: ZipFile, member: ZipInfo) -> int:
    """The size of an array in bytes, according to its headers.

    This is the larger of two sizes: the one given by the shape and type in its own header, which
    reading allocates, and the one stated by the archive, which reading unpacks.
    """
    with archive.open(member) as packed:
        return max(_declared(packed), member.file_size)


def _declared(packed: IO[bytes]) -> int:
    """The size of an array in bytes after its conversion, according to its header."""
    version = np.lib.format.read_magic(packed)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(packed)
    entry = max(dtype.itemsize, NUMBER) if dtype.kind in "biuf" else dtype.itemsize + NAME
    return math.prod(shape) * entry
