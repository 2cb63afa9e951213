"""The grammar of .POMDP files: their statements are read into tables.

The grammar is Cassandra's (pomdp.org/code/pomdp-file-grammar.html)::

    discount: NUMBER        values: reward | cost
    states:, actions:, observations:    a count, or names
    start: probabilities | uniform | one state
    start include: states       start exclude: states
    T: action : state : next state NUMBER       T: action : state row           T: action matrix
    O: action : next state : observation NUMBER O: action : next state row      O: action matrix
    R: action : state : next state : observation NUMBER
    R: action : state : next state row          R: action : state matrix

A state, an action or an observation is a name, an index from 0, or ``*``. A row or a matrix of T
and O may be ``uniform``, a square matrix may be ``identity``, and a row of T may be ``reset``, the
start distribution. Without ``start``, the start distribution is uniform. R is 0 where it is not
given. Later entries replace earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from homdp_ppl.core.probabilities import normalised
from homdp_ppl.core.sparse import LARGE
from homdp_ppl.declare.sizes import PROBED
from homdp_ppl.errors import HOMDPError, Problem, did_you_mean
from homdp_ppl.formats.sparse_tables import SparseTable
from homdp_ppl.formats.tables import PUBLISHED, Table, check_size
from homdp_ppl.formats.words import INDEX, KEYWORDS, NAME, NUMBER, RESERVED, Word, Words
from homdp_ppl.memory import NUMBER as BYTES
from homdp_ppl.precision import Array

KINDS = {
    "states": "x",
    "actions": "a",
    "observations": "y",
}  # with the letters that make names if the file gives only their number
AXES = {
    "T": ("actions", "states", "states"),
    "O": ("actions", "states", "observations"),
    "R": ("actions", "states", "states", "observations"),
}
FEWEST = {"T": 1, "O": 1, "R": 2}  # indices before the numbers
MAX_NAMES = 100_000  # states, actions or observations


class Names(NamedTuple):
    """States, actions or observations of a file, without names if it gives only their number."""

    kind: str
    size: int
    places: dict[str, int]


class Grammar:
    """The contents of a file, as its statements define them.

    Parameters
    ----------
    words
        The words of the file. All are read.
    """

    def __init__(self, words: Words) -> None:
        self.words = words
        self.discount: float | None = None
        self.costs = False
        self.names: dict[str, Names] = {}
        self.start: Array | None = None
        self.tables: dict[str, Table | SparseTable] = {}  # only T may be sparse
        self._lines: dict[str, int] = {}  # lines of the statements that may occur only once
        self._resets = 0  # line of the first row that is given as reset
        statements: dict[str, Callable[[Word], None]] = {
            "discount": self._read_discount,
            "values": self._read_values,
            "start": self._read_start,
            **dict.fromkeys(KINDS, self._read_names),
            **dict.fromkeys(AXES, self._read_entry),
        }
        while words.peek().text:
            word = words.take()
            if word.text not in statements:
                extra = "The statement before this number may have too many numbers."
                remedy = extra if NUMBER.match(word.text) else ""
                raise words.error(word, f"one of {', '.join(KEYWORDS)}", remedy)
            statements[word.text](word)
        self._need_sizes(words.peek())

    def _once(self, word: Word) -> None:
        if word.text in self._lines:
            raise self.words.error(
                word, f"one {word.text!r}; the first is on line {self._lines[word.text]}"
            )
        self._lines[word.text] = word.line

    def _read_discount(self, word: Word) -> None:
        self._once(word)
        self.words.take_colon(word.text)
        given = self.words.peek()
        self.discount = self.words.take_number("a number in [0, 1]")
        if not 0 <= self.discount <= 1:
            raise self.words.error(given, "a number in [0, 1]")

    def _read_values(self, word: Word) -> None:
        self._once(word)
        self.words.take_colon(word.text)
        given = self.words.take()
        if given.text not in ("reward", "cost"):
            raise self.words.error(given, "'reward' or 'cost'")
        self.costs = given.text == "cost"

    def _read_names(self, word: Word) -> None:
        self._once(word)
        self.words.take_colon(word.text)
        first = self.words.peek()
        places: dict[str, int] = {}
        if INDEX.fullmatch(first.text):
            self.words.take()
            size = int(first.text) if len(first.text) < 20 else MAX_NAMES + 1
        else:
            while self.words.peek().text not in ("", *KEYWORDS):
                name = self.words.take()
                if not NAME.fullmatch(name.text) or name.text in RESERVED:
                    remedy = "This word is reserved in the format." if name.text in RESERVED else ""
                    raise self.words.error(
                        name,
                        f"names of {word.text} that start with a letter, or their number",
                        remedy,
                    )
                if name.text in places:
                    raise self.words.error(name, f"distinct names of {word.text}")
                places[name.text] = len(places)
                if len(places) > MAX_NAMES:
                    break
            size = len(places)
        if not 1 <= size <= MAX_NAMES:
            raise self.words.error(first, f"between 1 and {MAX_NAMES:,} {word.text}")
        self.names[word.text] = Names(word.text, size, places)

    def _read_start(self, word: Word) -> None:
        self._once(word)
        if self._resets:
            raise self.words.error(word, f"'start' before 'reset' (line {self._resets})")
        X = self._need_sizes(word)["states"]
        how = self.words.take().text if self.words.peek().text in ("include", "exclude") else ""
        self.words.take_colon(f"start {how}".rstrip())
        if how:
            self.start = self._start_list(X, how)
        elif self.words.peek().text == "uniform":
            self.words.take()
            self.start = np.full(X, 1 / X)
        elif self._starts_at_one(X):
            self.start = self._chosen(X, {self._read_index("states")})
        else:
            chances = self._read_numbers((X,), "start", word.line, chances=True)
            total = chances.sum()
            if abs(total - 1) > PUBLISHED:
                got = f"probabilities that sum to {total:.10g}"
                raise HOMDPError(
                    self.words.path, [Problem(f"line {word.line}, start", got, "a sum of 1")]
                )
            self.start = normalised(chances)

    def _starts_at_one(self, X: int) -> bool:
        """Whether ``start:`` gives one state: a name, or an index without further numbers."""
        first = self.words.peek().text
        if not INDEX.fullmatch(first):
            return not self.words.at_number()
        following = self.words.peek(1).text
        return first == "0" if X == 1 else following in ("", *KEYWORDS)

    def _start_list(self, X: int, how: str) -> Array:
        listed: set[int | None] = set()
        while self.words.peek().text not in ("", *KEYWORDS):
            listed.add(self._read_index("states"))
        left = listed if how == "include" else {x for x in range(X) if x not in listed}
        if not listed or not left or (how == "exclude" and None in listed):
            raise self.words.error(
                self.words.peek(), f"states to {how}, so that at least one start state remains"
            )
        return self._chosen(X, left)

    def _chosen(self, X: int, states: Set[int | None]) -> Array:
        """The uniform distribution over some states, None for all."""
        weights = np.array([None in states or x in states for x in range(X)], dtype=float)
        return weights / weights.sum()

    def _read_entry(self, word: Word) -> None:
        letter, line = word
        self._need_sizes(word)
        self.words.take_colon(letter)
        axes = AXES[letter]
        entry = [self._read_index(axes[0])]
        while len(entry) < len(axes) and self.words.peek().text == ":":
            self.words.take()
            entry.append(self._read_index(axes[len(entry)]))
        if len(entry) < FEWEST[letter]:
            raise self.words.error(self.words.peek(), f"':' and one of the {axes[len(entry)]}")
        shape = tuple(self.names[kind].size for kind in axes[len(entry) :])
        values = self._read_keyword(letter, shape, line)
        if values is None:
            values = self._read_numbers(shape, letter, line, chances=letter != "R")
        self.tables[letter].put(entry, values, line)

    def _read_keyword(self, letter: str, shape: tuple[int, ...], line: int) -> Any:
        word, large = self.words.peek(), isinstance(self.tables[letter], SparseTable)
        if letter == "R" or not shape or word.text not in ("uniform", "identity", "reset"):
            return None
        self.words.take()
        if word.text == "uniform":
            return np.broadcast_to(1 / shape[-1], shape)
        if word.text == "identity" and len(shape) == 2 and shape[0] == shape[1]:
            return sparse.eye_array(shape[0], format="csr") if large else np.eye(shape[0])
        if word.text == "reset" and letter == "T" and len(shape) == 1:
            self._resets = self._resets or line
            return np.full(shape, 1 / shape[0]) if self.start is None else self.start
        raise self.words.error(
            word,
            f"{prod(shape)} probabilities or 'uniform'",
            "identity is for square matrices, reset is for rows of T.",
        )

    def _read_numbers(self, shape: tuple[int, ...], what: str, line: int, chances: bool) -> Array:
        total = prod(shape)
        each = BYTES if what in self.tables else PROBED
        check_size(f"line {line}", what, shape, self.words.path, each)

        def number(k: int) -> float:
            word = self.words.peek()
            read = self.words.take_number(f"number {k + 1} of {total} for {what} (line {line})")
            if chances and not 0 <= read <= 1 + PUBLISHED:
                raise self.words.error(word, "a probability in [0, 1]")
            return read

        return np.fromiter(map(number, range(total)), dtype=np.float64, count=total).reshape(shape)

    def _read_index(self, kind: str) -> int | None:
        """An index, None for the wildcard."""
        word = self.words.take()
        _, size, places = self.names[kind]
        if word.text == "*":
            return None
        if word.text in places:
            return places[word.text]
        if INDEX.fullmatch(word.text) and len(word.text) < 20 and int(word.text) < size:
            return int(word.text)
        remedy = did_you_mean(word.text[:100], places) if size <= 1000 else ""
        raise self.words.error(
            word, f"one of the {size} {kind}, by name or index from 0, or *", remedy
        )

    def _need_sizes(self, word: Word) -> dict[str, int]:
        """The numbers of states, actions and observations, which must be known at this point.

        The first call creates the tables.
        """
        missing = [kind for kind in KINDS if kind not in self.names]
        if missing:
            raise self.words.error(
                word, f"{' and '.join(f'{kind}:' for kind in missing)} before it"
            )
        sizes = {kind: names.size for kind, names in self.names.items()}
        if not self.tables:
            shapes = {letter: tuple(sizes[kind] for kind in axes) for letter, axes in AXES.items()}
            large = prod(shapes["T"]) > LARGE
            for letter in "O" if large else ("T", "O"):
                check_size(f"line {word.line}", f"table {letter}", shapes[letter], self.words.path)
            self.tables = {
                letter: SparseTable(letter, shape, self.words.path)
                if letter == "T" and large
                else Table(letter, shape, self.words.path)
                for letter, shape in shapes.items()
            }
        return sizes
