"""Long files with little content are read in pieces; their errors name the line."""

import re
import sys
from io import BytesIO

import numpy as np
import pytest

from homdp_ppl import HOMDPError
from homdp_ppl.formats import read_file, words
from homdp_ppl.formats.reading import parse
from tests.children import attacked
from tests.formats.files import TIGER

MEGABYTE = 2**20
UNITS = {
    "blanks": b" " * MEGABYTE,
    "newlines": b"\n" * MEGABYTE,
    "line ends of Windows": b"\r\n" * (MEGABYTE // 2),
    "one comment": b"# x" * (MEGABYTE // 3),
    "comments": (b" " * 1000 + b"#\n") * (MEGABYTE // 1002),
    "short comments": b"#\n" * (MEGABYTE // 2),
    "full names": b'# states: a stands for "a b"\n' * (MEGABYTE // 29),
    "one word": b"a" * MEGABYTE,
    "colons": b":" * MEGABYTE,
    "no text": b"\xff" * MEGABYTE,
    "names": b"states: " + b" ".join(b"s%d" % k for k in range(150_000)),
}


def outcomes(folder, megabytes):
    attacks = {}
    for name, unit in UNITS.items():
        path = folder / f"{name}.POMDP"
        with path.open("wb") as file:
            for _ in range(megabytes):
                file.write(unit)
        attacks[name] = f"read_file({str(path)!r})"
    return attacked("from homdp_ppl.formats import read_file; read_file", attacks)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    if sys.platform != "linux":
        pytest.skip("memory limits need Linux")
    return outcomes(tmp_path_factory.mktemp("long"), megabytes=24)


@pytest.mark.parametrize("name", UNITS)
def test_long_files_take_no_memory(name, found):
    error, places, grown = found[name]
    assert error == "HOMDPError"
    assert places[0].startswith("line ")
    assert grown < 20_000_000


@pytest.mark.slow
def test_two_hundred_megabytes(tmp_path):
    for name, (error, places, grown) in outcomes(tmp_path, megabytes=200).items():
        assert error == "HOMDPError", name
        assert places[0].startswith("line "), name
        assert grown < 20_000_000, name


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_words_may_be_cut_anywhere(size):
    """Full names in comments may be cut too."""
    text = '# states: tiger-left stands for "a tiger, left"\n' + TIGER
    whole, pieces = parse(text, "f"), [text[k : k + size] for k in range(0, len(text), size)]
    cut = parse(pieces, "f")
    assert cut.states == whole.states
    for table in ("start", "transition", "observation", "reward"):
        np.testing.assert_array_equal(getattr(cut, table), getattr(whole, table))


def test_lines_are_counted_across_pieces():
    for size in (1, 5, 100):
        text = "\n\n# c\n  states: 2\n\nnonsense: 3"
        with pytest.raises(HOMDPError) as caught:
            parse([text[k : k + size] for k in range(0, len(text), size)], "f")
        assert caught.value.problems[0].where == "line 6"


def test_bytes_that_belong_together_may_be_cut(monkeypatch):
    monkeypatch.setattr(words, "PIECE", 1)
    text = "".join(words.decode(BytesIO("\ufeffétat\r\nêtre\rfin".encode())))
    assert text == "état\nêtre\nfin"


@pytest.mark.parametrize("digits", ["9" * 5000, "1" + "0" * 5000])
@pytest.mark.parametrize(
    "text",
    [
        "states: {} actions: 1 observations: 1",
        "states: 2 actions: 1 observations: 1 start: {}",
        "states: 2 actions: 1 observations: 1 T: 0 : {} : 0 1.0",
        "discount: {}",
        "states: 2 actions: 1 observations: 1 T: 0 identity O: 0 uniform R: 0 : 0 : 0 : 0 {}",
    ],
)
def test_integers_of_thousands_of_digits(text, digits):
    with pytest.raises(HOMDPError) as caught:
        parse(text.format(digits), "f")
    assert caught.value.problems[0].where == "line 1"
    assert len(str(caught.value)) < 1000


def test_numbers_are_not_read_before_their_table_fits():
    sizes = "states: 1000 actions: 1 observations: 1000 T: 0 identity O: 0 uniform "
    with pytest.raises(HOMDPError) as caught:
        parse(sizes.replace("1000 T", "40000 T") + "R: 0 : 0 1", "f")
    assert "GB" in caught.value.problems[0].got


@pytest.mark.parametrize("given", [None, 3, b"x".join])
def test_invalid_paths(given):
    with pytest.raises(HOMDPError) as caught:
        read_file(given)
    assert caught.value.problems[0].where == "path"


def test_too_many_comments(monkeypatch):
    monkeypatch.setattr(words, "MAX_COMMENTS", 10)
    comments = "# a comment\n" * 10
    assert parse(comments + re.sub("#.*", "", TIGER), "f").states
    with pytest.raises(HOMDPError) as caught:
        parse("#\n" + comments + TIGER, "f")
    assert caught.value.problems[0].where == "line 11"
