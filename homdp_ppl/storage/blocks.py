"""Blocks: encoding of named arrays and facts as bytes, the content of journals.

A block consists of the length of a text (4 bytes, little-endian), the text itself, which is JSON
``{"facts": {...}, "arrays": [[name, type, shape], ...]}``, and the entries of all arrays,
little-endian, in C order. Decoding a block never executes code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

TYPES = {
    name: np.dtype(name)
    for name in ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
}
LONGEST = 2**48  # limit of an axis, so that malicious shapes are rejected quickly
MOST_AXES = 16
TEXT = 4  # bytes of the length of the text
DECODER = json.JSONDecoder()


class Block(NamedTuple):
    """Arrays and facts, for example of some episodes of a run."""

    arrays: dict[str, NDArray[Any]]
    facts: dict[str, Any]  # JSON values; tuples become lists


def encode(arrays: Mapping[str, ArrayLike], facts: Mapping[str, Any]) -> bytes:
    r"""Encode a block as bytes.

    Parameters
    ----------
    arrays
        Booleans, integers or floats, of any shape.
    facts
        Values that JSON supports.

    Raises
    ------
    ValueError
        If an array has another type, or a fact is not supported by JSON.

    Examples
    --------
    >>> encode({"played": [0.5]}, {"round": 3})
    b'5\x00\x00\x00{"facts":{"round":3},"arrays":[["played","<f8",[1]]]}\x00\x00\x00\x00\x00\x00\xe0?'
    """
    table, entries = [], []
    for name, values in arrays.items():
        array = np.asarray(values)
        kind = array.dtype.newbyteorder("<")
        if kind.str not in TYPES or array.ndim > MOST_AXES:
            raise ValueError(f"array {name!r} of type {array.dtype} with {array.ndim} axes")
        table.append([name, kind.str, array.shape])
        entries.append(array.astype(kind, copy=False).tobytes())
    try:
        text = json.dumps({"facts": dict(facts), "arrays": table}, separators=(",", ":")).encode()
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return b"".join([len(text).to_bytes(TEXT, "little"), text, *entries])


def decode(data: bytes) -> Block:
    """Decode the bytes of :func:`encode`.

    Allocates at most a few times the length of the bytes.

    Parameters
    ----------
    data
        The bytes.

    Raises
    ------
    ValueError
        If the bytes are not an encoded block.

    Examples
    --------
    >>> decode(encode({"played": [0.5]}, {"round": 3}))
    Block(arrays={'played': array([0.5])}, facts={'round': 3})
    """
    start = TEXT + int.from_bytes(data[:TEXT], "little")
    try:
        text = str(data[TEXT:start], "utf-8")
        content, end = DECODER.raw_decode(text)  # several times faster than json.loads
    except RecursionError:
        raise ValueError("facts nested too deeply") from None
    if end != len(text):
        raise ValueError("text after the table of facts and arrays")
    match content:
        case {"facts": dict(facts), "arrays": list(table)} if start <= len(data):
            pass
        case _:
            raise ValueError("no table of facts and arrays")
    arrays: dict[str, NDArray[Any]] = {}
    for entry in table:
        match entry:
            case [str(name), str(kind), list(shape)] if (
                name not in arrays and kind in TYPES and _is_shape(shape)
            ):
                size = math.prod(shape) * TYPES[kind].itemsize
                if size > len(data) - start:
                    raise ValueError(
                        f"array {name!r} of {size} bytes where {len(data) - start} are left"
                    )
                arrays[name] = np.ndarray(shape, TYPES[kind], data, start).copy()
                start += size
            case _:
                raise ValueError("an array without name, type and shape")
    if start != len(data):
        raise ValueError(f"{len(data) - start} bytes after the last array")
    return Block(arrays, facts)


def _is_shape(shape: list[Any]) -> bool:
    return len(shape) <= MOST_AXES and all(
        type(size) is int and 0 <= size <= LONGEST for size in shape
    )
