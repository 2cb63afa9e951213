"""Helpers that write and read journals of small blocks."""

import numpy as np

from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.records import walk

DESCRIBED = {"model": "tiger", "seed": 7}


def write(path, numbers, description=DESCRIBED):
    """Write a journal of small blocks."""
    with Journal.create(path, description) as journal:
        for number in numbers:
            append(journal, number)
    return path


def append(journal, number):
    journal.append({"a": np.array([number], dtype=np.int16)}, {"n": number}, sync=False)


def numbers(contents):
    """The numbers of the intact blocks of a journal made by ``write``."""
    found = [block.facts["n"] for block in contents.blocks]
    assert [block.arrays["a"].tolist() for block in contents.blocks] == [
        [number] for number in found
    ]
    return found


def places(path):
    """The place after each record."""
    return [place for place, _ in walk(path)]
