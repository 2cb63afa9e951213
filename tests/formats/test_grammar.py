"""The grammar of .POMDP files: every form by hand, random files against a naive parser, and the
errors of invalid files.
"""

import itertools
from io import BytesIO

import numpy as np
import pytest

from homdp_ppl import HOMDPError
from homdp_ppl.formats import read_file, reading, tables, words
from homdp_ppl.formats.grammar import Grammar
from homdp_ppl.formats.tables import Table, mean_reward
from homdp_ppl.formats.words import Words, decode
from tests.formats.files import PLAIN, SLIPPERY, TIGER
from tests.raising import raises

SIZES = "states: 3 actions: 2 observations: 2\n"
REST = "T: * identity O: * uniform\n"


def parse(text):
    """Parse a text, or bytes, like a file."""
    return reading.parse(
        decode(BytesIO(text if isinstance(text, bytes) else text.encode())), "model.POMDP"
    )


def test_the_classic_tiger():
    file = parse(TIGER)
    assert file.states == ("tiger-left", "tiger-right")
    assert file.actions == ("listen", "open-left", "open-right")
    assert file.observations == ("hear-left", "hear-right")
    assert (file.discount, file.costs) == (0.95, False)
    np.testing.assert_array_equal(file.start, [0.5, 0.5])
    np.testing.assert_array_equal(file.transition[:, 0], np.eye(2))
    np.testing.assert_array_equal(file.transition[:, 1:], np.full((2, 2, 2), 0.5))
    np.testing.assert_array_equal(file.observation[0], [[0.85, 0.15], [0.15, 0.85]])
    np.testing.assert_array_equal(file.observation[1:], np.full((2, 2, 2), 0.5))
    np.testing.assert_array_equal(file.reward, [[-1, -100, 10], [-1, 10, -100]])
    assert "2 states, 2 observations, 3 actions, rewards -100 to 10, discount 0.95" in repr(file)


def test_every_other_form():
    """SLIPPERY has costs, counts and names, include, reset, rows, matrices, overwritten entries.

    Its mean costs are computed by hand.
    """
    file = parse(SLIPPERY)
    assert (file.states, file.observations) == (("x0", "x1", "x2"), ("y0", "y1"))
    np.testing.assert_array_equal(file.start, [0.5, 0.5, 0])
    np.testing.assert_array_equal(
        file.transition[:, 1], [[0.5, 0.5, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    )
    np.testing.assert_array_equal(file.observation[0], [[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]])
    assert not file.action_matters
    # "go" in state 0 costs 2 if it leads to 1; "go" in 1 costs 1 or -1 in 2, with probabilities 1/4
    # and 3/4; every action in 2 costs 3.5
    np.testing.assert_allclose(
        file.reward, [[0, 1], [0, 0.5 * (0.25 - 0.75)], [3.5, 3.5]], atol=1e-15
    )


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", [1 / 3, 1 / 3, 1 / 3]),
        ("start: uniform", [1 / 3, 1 / 3, 1 / 3]),
        ("start: 0.2 0.3 0.5", [0.2, 0.3, 0.5]),
        ("start: 1 0 0", [1, 0, 0]),
        ("start: 2", [0, 0, 1]),
        ("start:\n\nb", [0, 1, 0]),
        ("start include: a 2", [0.5, 0, 0.5]),
        ("start include: *", [1 / 3, 1 / 3, 1 / 3]),
        ("start exclude: c", [0.5, 0.5, 0]),
        ("start exclude : 0 b", [0, 0, 1]),
        ("start: 0.333333 0.333333 0.333333", [1 / 3, 1 / 3, 1 / 3]),  # few digits
    ],
)
def test_starts(start, expected):
    file = parse(f"states: a b c actions: 1 observations: 1\n{start}\nT: * identity O: * uniform")
    np.testing.assert_allclose(file.start, expected, rtol=1e-15)


@pytest.mark.parametrize("start", ["0", "1", "1.0", "x", "uniform", ""])
def test_start_of_a_single_state(start):
    keyword = f"start: {start}" if start else ""
    assert parse(f"states: x actions: 1 observations: 1 {keyword} T: 0 1 O: 0 1").start == [1.0]


def random_statements(generator, sizes):
    """Statements as (letter, entry with None for a wildcard, values of the other axes)."""
    X, A, Y = sizes
    axes = {"T": (A, X, X), "O": (A, X, Y), "R": (A, X, X, Y)}
    for _ in range(30):
        letter = "TOR"[generator.integers(3)]
        shape = axes[letter]
        length = int(generator.integers(2 if letter == "R" else 1, len(shape) + 1))
        entry = [
            None if generator.random() < 0.4 else int(generator.integers(n)) for n in shape[:length]
        ]
        values = np.round(generator.random(shape[length:]), 3)
        yield letter, entry, values * 10 - 5 if letter == "R" else values


def naive(statements, sizes):
    """Every entry of every table, one by one, from the last statement that sets it."""
    X, A, Y = sizes
    result = {"T": np.zeros((A, X, X)), "O": np.zeros((A, X, Y)), "R": np.zeros((A, X, X, Y))}
    for letter, entry, values in statements:
        for place in itertools.product(*map(range, result[letter].shape)):
            if all(e is None or e == p for e, p in zip(entry, place, strict=False)):
                result[letter][place] = values[place[len(entry) :]]
    return result


def written(generator, statements, sizes):
    """The statements as text, with names or indices, and comments and line breaks anywhere."""
    kinds = {"x": sizes[0], "a": sizes[1], "y": sizes[2]}
    words = []
    for word, letter in (("actions", "a"), ("observations", "y"), ("states", "x")):
        words += [word, ":", *(f"{letter}-{k}" for k in range(kinds[letter]))]
    for letter, entry, values in statements:
        words.append(letter)
        for kind, index in zip({"T": "axx", "O": "axy", "R": "axxy"}[letter], entry, strict=False):
            word = (
                "*"
                if index is None
                else str(index)
                if generator.random() < 0.5
                else f"{kind}-{index}"
            )
            words += [":", word]
        words += [repr(float(value)) for value in values.ravel()]
    breaks = [" ", "\n", "\t", " # T: 0 identity\n", "\r\n", "  \n\n"]
    return "".join(word + breaks[generator.integers(len(breaks))] for word in words)


@pytest.mark.parametrize("seed", range(40))
def test_random_statements_against_a_naive_parser(seed):
    generator = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in generator.integers(1, 4, 3))
    statements = list(random_statements(generator, sizes))
    text = decode(BytesIO(written(generator, statements, sizes).encode()))
    found, expected = Grammar(Words(text, "file")).tables, naive(statements, sizes)
    for letter in "TOR":
        np.testing.assert_array_equal(found[letter].full(), expected[letter], err_msg=letter)


@pytest.mark.parametrize("seed", range(20))
def test_mean_rewards_against_four_loops(seed):
    generator = np.random.default_rng(seed)
    X, A, Y = sizes = tuple(int(n) for n in generator.integers(1, 4, 3))
    T, O = generator.dirichlet(np.ones(X), (A, X)), generator.dirichlet(np.ones(Y), (A, X))  # noqa: E741
    statements = [s for s in random_statements(generator, sizes) if s[0] == "R"][: 1 + seed % 5]
    table = Table("R", (A, X, X, Y), "file")
    for _, entry, values in statements:
        table.put(entry, values, 1)
    R = naive(statements, sizes)["R"]
    expected = np.zeros((A, X))
    for a, s, z, o in itertools.product(range(A), range(X), range(X), range(Y)):
        expected[a, s] += T[a, s, z] * O[a, z, o] * R[a, s, z, o]
    np.testing.assert_allclose(mean_reward(table, T, O), expected, atol=1e-14)


def test_a_mean_of_equal_rewards_is_that_reward():
    """Rounding errors do not move a mean out of [0, 1], where it would be rescaled."""
    chances = " ".join(["0.1"] * 10)
    rewards = " ".join(["1"] * 10)
    file = parse(
        f"states: 10 actions: 1 observations: 1 T: 0 : * {chances} O: * uniform R: 0 : * {rewards}"
    )
    np.testing.assert_array_equal(file.reward, np.ones((10, 1)))


def test_signs_bytes_and_marks():
    text = "\ufeff" + PLAIN.replace("1 : 0 : * : * 1", "1:0:*:*- 1.5") + "# caf\xe9"
    assert parse(text.encode("latin-1", errors="ignore")).reward[0, 1] == -1.5
    assert parse(text).reward[0, 1] == -1.5
    assert parse(text.replace("\n", "\r")).reward[0, 1] == -1.5


BAD = [
    ("", 1, "states: and actions: and observations:"),
    ("# nothing", 1, "the end of the file"),
    ("stats: 3", 1, "one of discount, values, states"),
    ("states 3", 1, "':' after states"),
    ("states:\nactions: 3", 2, "between 1 and 100,000 states"),
    ("states: 0", 1, "between 1 and 100,000 states"),
    ("states: 999999999", 1, "between 1 and 100,000 states"),
    ("states: " + "9" * 5000, 1, "between 1 and 100,000 states"),
    (
        "states: 99999 actions: 3\nobservations: 2\nT: 0",
        3,
        "99999 x 99999 = 9,999,800,001 numbers",
    ),
    (
        "states: 3 actions: 2000 observations: 4000\nT: 0",
        2,
        "2000 x 3 x 4000 = 24,000,000 numbers in table O",
    ),
    ("states: -3", 1, "start with a letter"),
    ("states: 3.5", 1, "start with a letter"),
    ("states: a b\na", 2, "distinct names of states"),
    ("states: a uniform", 1, "is reserved in the format"),
    ("states: a 1b", 1, "'1b'"),
    ("states: 3\nstates: 4", 2, "the first is on line 1"),
    ("states: 3 4", 1, "too many numbers"),
    ("discount: 1.5", 1, "a number in [0, 1]"),
    ("discount: nan", 1, "'nan'"),
    ("discount: 1e999", 1, "a number between"),
    ("values: rewards", 1, "'reward' or 'cost'"),
    ("states: 3 actions: 2\nT: 0", 2, "observations: before it"),
    (SIZES + "start: 0.5 0.5\n0.5", 2, "sum to 1.5"),
    (SIZES + "start: 0.5 0.5\nT: 0 identity", 3, "number 3 of 3 for start (line 2)"),
    (SIZES + "start: 3", 2, "one of the 3 states"),
    (SIZES + "start: -1 1 1", 2, "a probability in [0, 1]"),
    (SIZES + "start: inf", 2, "one of the 3 states"),
    (SIZES + "start include:\nT: 0 identity", 3, "states to include"),
    (SIZES + "start exclude: 0 1 2", 2, "at least one start state"),
    (SIZES + "start exclude: *", 2, "at least one start state"),
    (SIZES + "T: 0 : 0 reset\nstart: 0", 3, "'start' before 'reset' (line 2)"),
    (SIZES + "T: 2 identity", 2, "one of the 2 actions"),
    (SIZES + "T: 99999999999999999999999 identity", 2, "one of the 2 actions"),
    (SIZES + "T: 0 : 0 : 0 : 0 1", 2, "number 1 of 1 for T"),
    (SIZES + "T: 0 : 0 1 0\nT: 1 identity", 3, "number 3 of 3 for T (line 2)"),
    (SIZES + "T: 0 : 0 1 0 0 0", 2, "too many numbers"),
    (SIZES + "T: 0 : 0 1.5 0 0", 2, "a probability in [0, 1]"),
    (SIZES + "T: 0 : 0 0.5 0.5.0 0", 2, "'0.5.0'"),
    (SIZES + "T: 0 : 0 identity", 2, "3 probabilities or 'uniform'"),
    (SIZES + "O: 0 identity", 2, "6 probabilities or 'uniform'"),
    (SIZES + "O: 0 : 0 reset", 2, "2 probabilities or 'uniform'"),
    (SIZES + "R: 0 : 0 uniform", 2, "number 1 of 6 for R"),
    (SIZES + "R: 0 3", 2, "':' and one of the states"),
    (SIZES + "R: 0 : 0 : 0 : 0 1e101", 2, "a number between"),
    (
        SIZES + REST + "T: 0 : 1 : 1 0.9",
        3,
        "T: a0 : x1; a row that sums to 0.9; a row that sums to 1",
    ),
    (SIZES + REST + "O: 1 : 2 : 0 0.75", 3, "O: a1 : x2; a row that sums to 1.25"),
    (SIZES + "T: 0 identity O: * uniform", None, "T: a1 : x0; no probabilities"),
    (b"states: 3 \xff\xfe", 1, "one of discount"),
    (b"states: \xff\xfe", 1, "start with a letter"),
    (b"\x00\x01", 1, "one of discount"),
]


@pytest.mark.parametrize(("text", "line", "words"), BAD)
def test_errors_have_the_line_and_what_was_expected(text, line, words):
    with pytest.raises(HOMDPError) as caught:
        parse(text)
    assert caught.value.args[0] == "model.POMDP"
    problem = caught.value.problems[0]
    assert line is None or problem.where.split(", ")[0] == f"line {line}"
    assert words in "; ".join(problem), problem


def test_a_misspelt_name():
    with raises(HOMDPError, "line 9"):
        parse(TIGER.replace("T: open-left", "T: openleft"))


def test_many_bad_rows_are_counted():
    with pytest.raises(HOMDPError) as caught:
        parse("states: 50 actions: 50 observations: 1 O: * uniform")
    assert "2492 more such rows" in str(caught.value)
    assert len(caught.value.problems) == 9


def test_missing_files(tmp_path):
    for path in (tmp_path, tmp_path / "no.POMDP", tmp_path / "\0"):
        with pytest.raises(HOMDPError) as caught:
            read_file(path)
        assert caught.value.problems[0].where in ("path", "file")


def test_files_that_are_too_long_or_write_too_much(monkeypatch, tmp_path):
    monkeypatch.setattr(words, "MAX_BYTES", 10)
    (tmp_path / "long.POMDP").write_text(TIGER)
    with raises(HOMDPError, "file"):
        read_file(tmp_path / "long.POMDP")
    monkeypatch.setattr(tables, "MAX_WRITTEN", 100)
    with raises(HOMDPError, "line 13"):
        parse(SIZES + "T: 0 identity\n" * 30)


def test_reward_tables_expand_only_the_axes_that_statements_distinguish():
    """A table of all four indices would have 3.2e9 numbers."""
    sizes = "states: 1000 actions: 4 observations: 800\n" + REST
    assert parse(sizes + "R: * : 5 : * : * 7").reward[5, 0] == 7
    with raises(HOMDPError, "line 4"):
        parse(sizes + "R: * : * : 5 : 5 7\nR: 1 : 5 : 5 : 5 7")
