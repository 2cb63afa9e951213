"""Reading and writing ``.npz`` files of plain arrays, without executing code."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import IO, Any, BinaryIO
from zipfile import ZipFile

import numpy as np

from homdp_ppl.errors import PolicyError, Problem, shown
from homdp_ppl.memory import amount, require_memory
from homdp_ppl.precision import Array
from homdp_ppl.storage.atomic import atomic_write, storage_errors

COPIES = 4  # of an array while it is read and validated


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

    Raises an error for files of another format, damaged files, pickled objects, and arrays that do
    not fit in memory: a small file can unpack to many gigabytes.

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
    with storage_errors(path, "a policy file that can be read"), open(path, "rb") as opened:
        try:  # NumPy and zipfile raise many different errors for damaged files
            wanted = ("format", *names, *optional)
            size = _unpacked(opened, wanted)
            _require_room(str(path), size)
            with np.load(opened, allow_pickle=False) as file:
                parts = {name: file[name] for name in wanted if name in file.files}
        except PolicyError:
            raise
        except Exception:
            parts = {}
    missing = [name for name in names if name not in parts]
    if str(parts.get("format")) not in (form, *older):
        got = (
            f"format {parts['format']}"
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


def _require_room(path: str, size: int) -> None:
    got = f"arrays of {amount(size)} when unpacked"
    remedy = "Check that the file is a policy and comes from a source that you trust."
    require_memory(PolicyError, path, "file", got, COPIES * size, remedy)


def _unpacked(opened: BinaryIO, names: Sequence[str]) -> int:
    """The unpacked size of the named arrays in bytes, according to their headers.

    For each array, this is the larger of two sizes: the one given by the shape and type in its own
    header, which reading allocates, and the one stated by the archive, which reading unpacks.
    """
    total = 0
    with ZipFile(opened) as archive:
        members = {info.filename: info for info in archive.infolist()}
        for member in (f"{name}.npy" for name in names):
            if member in members:
                with archive.open(members[member]) as packed:
                    total += max(_declared(packed), members[member].file_size)
    opened.seek(0)
    return total


def _declared(packed: IO[bytes]) -> int:
    """The size of an array in bytes, according to its header."""
    version = np.lib.format.read_magic(packed)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, _, dtype = read(packed)
    return math.prod(shape) * dtype.itemsize
