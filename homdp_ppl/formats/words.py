"""The words of a .POMDP file with their lines, and errors that refer to a line."""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import IncrementalNewlineDecoder
from pathlib import Path
from typing import BinaryIO, NamedTuple

from homdp_ppl.errors import HOMDPError, Problem, shown

WORD = re.compile(r"\s+|#[^\n]*|[:*]|[^\s:*#]+")  # blanks and comments are skipped
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
INDEX = re.compile(r"[0-9]+")
NAME = re.compile(r"[^\W\d][\w.-]*")
KEYWORDS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")
RESERVED = frozenset(
    (*KEYWORDS, "include", "exclude", "reward", "cost", "uniform", "identity", "reset")
)
LARGEST = 1e100  # sums of products of larger numbers overflow
LONGEST_PATH = 4000  # characters that operating systems accept
MAX_BYTES = 2**28
PIECE = 2**20  # bytes per read
LONGEST = 10_000  # characters of a word, and of a comment that is read
MAX_COMMENTS = 300_000  # enough for the full names of every model that fits in memory
SHOWN = 40  # characters of a word shown in an error
STANDS_FOR = re.compile(r'# (states|actions|observations): (\S+) stands for (".*")\s*')


class Word(NamedTuple):
    """A word and its line; the end of the file is an empty word."""

    text: str
    line: int

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= SHOWN else self.text[: SHOWN - 3] + "..."
        return repr(shown) if shown else "the end of the file"


class Words:
    """The words of a file in order, without comments; line breaks do not matter.

    The file is read in pieces, as the words are taken.

    Parameters
    ----------
    pieces
        The contents of the file in pieces of any length.
    path
        The path of the file, for errors.

    Attributes
    ----------
    long_names
        Full names by (kind, name), from the comments that :func:`homdp_ppl.write_pomdp` writes.
    """

    def __init__(self, pieces: Iterable[str], path: str) -> None:
        self.path = path
        self.long_names: dict[tuple[str, str], str] = {}
        self._source = self._scan(pieces)
        self._ahead: deque[Word] = deque()

    def peek(self, ahead: int = 0) -> Word:
        """The next word, or a later one, without taking it."""
        while len(self._ahead) <= ahead:
            self._ahead.append(next(self._source))
        return self._ahead[ahead]

    def take(self) -> Word:
        """Take the next word."""
        word = self.peek()
        if word.text:
            self._ahead.popleft()
        return word

    def take_colon(self, after: str) -> None:
        """Take the next word, which must be a colon."""
        word = self.take()
        if word.text != ":":
            raise self.error(word, f"':' after {after}")

    def take_number(self, expected: str) -> float:
        """Take the next word as a number; blanks may separate its sign."""
        word = self.take()
        text = word.text
        if text in ("+", "-") and NUMBER.fullmatch(self.peek().text):
            text += self.take().text
        if not NUMBER.fullmatch(text):
            raise self.error(word, expected)
        value = float(text)
        if not abs(value) <= LARGEST:
            raise self.error(word, f"a number between {-LARGEST:g} and {LARGEST:g}")
        return value

    def at_number(self) -> bool:
        """Whether a number comes next."""
        text = self.peek().text
        return NUMBER.fullmatch(self.peek(1).text if text in ("+", "-") else text) is not None

    def error(self, word: Word, expected: str, remedy: str = "") -> HOMDPError:
        """The error for an unexpected word."""
        return HOMDPError(self.path, [Problem(f"line {word.line}", str(word), expected, remedy)])

    def _scan(self, pieces: Iterable[str]) -> Iterator[Word]:
        line, comments = 1, 0
        rest = ""  # a word or a comment that may continue in the next piece
        for piece in pieces:
            if not rest and piece.isspace():
                line += piece.count("\n")
                continue
            text, rest = rest + piece, ""
            for match in WORD.finditer(text):
                word = match.group()
                if word.isspace():
                    line += word.count("\n")
                elif match.end() == len(text) and word not in (":", "*"):
                    rest = self._kept(word, line)
                elif word[0] == "#":
                    comments += 1
                    if comments > MAX_COMMENTS:
                        raise self._too_many(line)
                    self._note(word)
                else:
                    yield Word(word, line)
        if rest and rest[0] != "#":
            yield Word(rest, line)
        while True:
            yield Word("", line)

    def _kept(self, word: str, line: int) -> str:
        """The beginning of a word or a comment, up to the longest allowed length."""
        if len(word) <= LONGEST or word[0] == "#":
            return word[:LONGEST]
        raise self.error(Word(word, line), f"words of at most {LONGEST:,} characters")

    def _too_many(self, line: int) -> HOMDPError:
        got, expected = "another comment", f"at most {MAX_COMMENTS:,} comments"
        remedy = "Remove comments from the file."
        return HOMDPError(self.path, [Problem(f"line {line}", got, expected, remedy)])

    def _note(self, comment: str) -> None:
        found = STANDS_FOR.fullmatch(comment)
        if not found:
            return
        kind, name, quoted = found.groups()
        try:
            self.long_names[kind, name] = str(json.loads(quoted))
        except ValueError:  # an unrelated comment
            return


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; raises :class:`HOMDPError` if it is missing or too large."""
    if len(str(path)) > LONGEST_PATH or not path.is_file():
        raise HOMDPError(
            shown(str(path)), [Problem("path", "no such file", "the name of a .POMDP file")]
        )
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise HOMDPError(
            str(path), [Problem("file", f"{size:,} bytes", f"at most {MAX_BYTES:,} bytes")]
        )
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise HOMDPError(
            str(path),
            [Problem("file", f"{type(error).__name__}: {error}", "a file that can be read")],
        ) from error


def decode(stream: BinaryIO) -> Iterator[str]:
    """The text of a stream in pieces; all kinds of line breaks become newlines.

    Bytes that are not UTF-8 are allowed in comments. Elsewhere they lead to errors about unexpected
    words.
    """
    characters = getincrementaldecoder("utf-8-sig")(errors="replace")
    lines = IncrementalNewlineDecoder(characters, translate=True)
    while piece := stream.read(PIECE):
        yield lines.decode(piece)
    yield lines.decode(b"", final=True)
