"""Encoding and decoding of arrays and facts."""

import math

import numpy as np
import pytest

from homdp_ppl.storage.blocks import TYPES, decode, encode


@pytest.mark.parametrize("kind", TYPES)
def test_blocks_round_trip(kind):
    rng = np.random.default_rng(0)
    facts = {
        "": None,
        "\u03c0": 3.125,
        "list": [1, -(2**70), "\0\n", {"deep": True}],
        "nan": [float("inf")],
    }
    shapes = [(), (0,), (1,), (7,), (2, 3), (0, 5), (3, 1, 2)]
    arrays = {
        f"\u03c0 {shape}": np.frombuffer(rng.bytes(64), TYPES[kind])[: math.prod(shape)].reshape(
            shape
        )
        for shape in shapes
    }
    if kind == "|b1":
        arrays = {name: array > 0 for name, array in arrays.items()}
    block = decode(encode(arrays, facts))
    assert block.facts == facts
    assert block.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        found = block.arrays[name]
        assert (found.dtype, found.shape, found.tobytes()) == (
            array.dtype,
            array.shape,
            array.tobytes(),
        )
        assert found.flags.owndata
        assert found.flags.aligned


def test_other_layouts_are_written_little_endian_in_c_order():
    table = np.arange(6.0).reshape(2, 3)
    assert (
        encode({"t": table.astype(">f8")}, {})
        == encode({"t": np.asfortranarray(table)}, {})
        == encode({"t": table}, {})
    )
