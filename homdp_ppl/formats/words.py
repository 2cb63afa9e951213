"""The words of a .POMDP file, each with the line it stands on, and the errors that point there."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from homdp_ppl.errors import HOMDPError, Problem

WORD = re.compile(r"\n|#[^\n]*|[:*]|[^\s:*#]+")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
INDEX = re.compile(r"[0-9]+")
NAME = re.compile(r"[^\W\d][\w.-]*")
KEYWORDS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")
RESERVED = frozenset(
    (*KEYWORDS, "include", "exclude", "reward", "cost", "uniform", "identity", "reset")
)
LARGEST = 1e100  # beyond it sums of products overflow
MAX_BYTES = 2**28
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
    """The words of a file one after the other, without comments and whatever the line breaks.

    Parameters
    ----------
    text
        The contents of the file.
    path
        Its name, for errors.

    Attributes
    ----------
    long_names
        What :func:`homdp_ppl.write_pomdp` noted in comments: the full names behind (kind, name).
    """

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.long_names: dict[tuple[str, str], str] = {}
        self._source = self._scan(text)
        self._ahead: deque[Word] = deque()

    def peek(self, ahead: int = 0) -> Word:
        """The next word, or one after it, without taking it."""
        while len(self._ahead) <= ahead:
            self._ahead.append(next(self._source))
        return self._ahead[ahead]

    def take(self) -> Word:
        """The next word."""
        word = self.peek()
        if word.text:
            self._ahead.popleft()
        return word

    def take_colon(self, after: str) -> None:
        """Pass the colon that must stand here."""
        word = self.take()
        if word.text != ":":
            raise self.error(word, f"':' after {after}")

    def take_number(self, expected: str) -> float:
        """The next word as a number; its sign may stand apart."""
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
        """The error that a word is not what was expected."""
        return HOMDPError(self.path, [Problem(f"line {word.line}", str(word), expected, remedy)])

    def _scan(self, text: str) -> Iterator[Word]:
        line = 1
        for match in WORD.finditer(text):
            word = match.group()
            if word == "\n":
                line += 1
            elif word[0] == "#":
                self._note(word)
            else:
                yield Word(word, line)
        while True:
            yield Word("", line)

    def _note(self, comment: str) -> None:
        found = STANDS_FOR.fullmatch(comment)
        if not found:
            return
        kind, name, quoted = found.groups()
        try:
            self.long_names[kind, name] = str(json.loads(quoted))
        except ValueError:  # somebody else's comment
            return


def load(path: Path) -> bytes:
    """The bytes of a file that is there and not too long."""
    if not path.is_file():
        raise HOMDPError(str(path), [Problem("file", "no such file", "a .POMDP file")])
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise HOMDPError(
            str(path), [Problem("file", f"{size:,} bytes", f"at most {MAX_BYTES:,} bytes")]
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise HOMDPError(
            str(path),
            [Problem("file", f"{type(error).__name__}: {error}", "a file that can be read")],
        ) from error


def decode(data: bytes) -> str:
    """The text of a file. Bytes that are not UTF-8 do no harm in comments.

    Elsewhere they make words that nothing expects.
    """
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
