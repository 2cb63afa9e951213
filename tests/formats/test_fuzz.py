"""Mutated files: each is either read or raises a HOMDPError that names a place."""

import tracemalloc
from io import BytesIO

import numpy as np
import pytest

from homdp_ppl import HOMDPError
from homdp_ppl.core.probabilities import pomdp_problems
from homdp_ppl.formats.reading import parse
from homdp_ppl.formats.words import decode
from tests.formats.files import PLAIN, SLIPPERY, TIGER

NASTY = [
    *(
        "nan",
        "inf",
        "-1",
        "1e999",
        "-1e-320",
        "1e99",
        "999999999",
        "4000",
        "99999",
        "9" * 5000,
        "0",
        "1",
        "00",
        "+",
        "-",
        "0x1f",
    ),
    *(
        ":",
        "*",
        "#",
        "\n",
        "T",
        "O",
        "R",
        "start",
        "include",
        "states",
        "uniform",
        "identity",
        "reset",
        "\x00",
        "\ufeff",
        "é",
    ),
    *(
        "1.",
        ".5",
        ".",
        "1e",
        "--1",
        "T: * uniform",
        "R: * : * : 0 : 0 1e100",
        "T:" * 200,
        "start:",
        "# states: a stands for 1",
    ),
]


GENTLE = [
    " ",
    "\n",
    "\t",
    "\r\n",
    "# T: 0 identity\n",
    "\nR: * : 0 : * : * 4\n",
    "\nT: 0 identity\n",
    "\nO: * uniform\n",
]


def mutated(generator, text):
    """A few random changes of words, lines and bytes; about half of the files remain valid."""
    for _ in range(generator.integers(1, 4)):
        kind = generator.integers(10)
        words = text.split(" ")
        place = generator.integers(len(words))
        if kind < 5:
            words[place] += GENTLE[generator.integers(len(GENTLE))]
            text = " ".join(words)
        elif kind < 8:
            words[place : place + int(kind > 5)] = (
                [NASTY[generator.integers(len(NASTY))]] if kind < 7 else []
            )
            text = " ".join(words)
        elif kind == 8:
            lines = text.split("\n")
            i, j = generator.integers(len(lines), size=2)
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
        else:
            cut, width = generator.integers(len(text) + 1), int(generator.integers(3))
            text = (
                text[:cut]
                + chr(generator.integers(1, 300)) * width
                + (text[cut + 1 :] if width else "")
            )
    data = text.encode()
    cut = generator.integers(len(data) + 1)
    return (
        data[:cut] + bytes([generator.integers(128, 256)]) + data[cut:]
        if generator.random() < 0.1
        else data
    )


def attempt(data):
    """The file or its error; any other exception fails the test."""
    try:
        return parse(decode(BytesIO(data)), "model.POMDP")
    except HOMDPError as error:
        return error


def survive(data):
    """Whether a file is accepted. If so, check its distributions and rewards."""
    file = attempt(data)
    if isinstance(file, HOMDPError):
        assert str(file).startswith("model.POMDP: ")
        assert all(problem.where and problem.got and problem.expected for problem in file.problems)
        return False
    X, A, Y = len(file.states), len(file.actions), len(file.observations)
    shapes = (file.start.shape, file.transition.shape, file.observation.shape, file.reward.shape)
    assert shapes == ((X,), (X, A, X), (A, X, Y), (X, A))
    for rows in (file.start, file.transition, file.observation):
        assert (rows >= 0).all()
        assert np.abs(rows.sum(-1) - 1).max() < 1e-9
    assert np.isfinite(file.reward).all()
    return True


def fuzz(seeds):
    """The number of mutated files that are accepted."""
    texts = (TIGER, SLIPPERY, PLAIN)
    return sum(survive(mutated(np.random.default_rng(seed), texts[seed % 3])) for seed in seeds)


def test_mutated_files():
    assert 250 < fuzz(range(2000)) < 1750  # both outcomes occur


def test_accepted_files_become_worlds():
    files = [attempt(mutated(np.random.default_rng(seed), PLAIN)) for seed in range(200)]
    accepted = [file for file in files if not isinstance(file, HOMDPError)]
    assert len(accepted) > 20
    for world in (file.world(2) for file in accepted):
        assert pomdp_problems(world.pomdp, world.spaces) == []


@pytest.mark.slow
@pytest.mark.parametrize("last", [8000, pytest.param(60_000, marks=pytest.mark.long)])
def test_many_more_mutated_files(last):
    fuzz(range(2000, last))


@pytest.mark.parametrize("kind", ["states", "actions", "observations"])
def test_nothing_large_is_allocated(kind):
    """The limits allow 4 million numbers, 32 MB, in each of three tables, and a few temporary
    copies.
    """
    tracemalloc.start()
    try:
        for count in (1400, 1999, 99_999, 999_999_999):
            survive(PLAIN.replace(f"{kind}: 2", f"{kind}: {count}").encode())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 400e6
