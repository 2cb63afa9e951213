"""Shared parts of the parsers: texts, types of options, and names of rules and planners.

This module imports neither JAX nor the packages it describes. The names of rules and planners come
from their file names.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from homdp_ppl.study import defaults

MODEL = (
    "name in the model zoo (see `homdp models`), optionally with options, as in "
    f"screening:hierarchy=False; or a .POMDP file (default horizon {defaults.FILE_HORIZON}); "
    "or path/to/file.py:name"
)
HORIZON = "horizon (default: that of the model)"
DEBUG = "show the traceback of an error"


def factories(package: str) -> list[str]:
    """The names of the rules or planners in a package, without importing it.

    Each one is a file that defines a function of the same name.

    Parameters
    ----------
    package
        "explorers" or "planners".

    Examples
    --------
    >>> factories("planners")[:3]
    ['alpha_vectors', 'auto', 'bounded_search']
    """
    files = (Path(__file__).parents[1] / package).glob("[a-z]*.py")
    return sorted(
        file.stem for file in files if f"\ndef {file.stem}(" in file.read_text(encoding="utf-8")
    )


def split_calls(texts: Sequence[str]) -> list[str]:
    """Split comma-separated names with options, where commas also separate the options.

    Examples
    --------
    >>> split_calls(["greedy,hop_b:scale=0.1,delta=0.05", "tight"])
    ['greedy', 'hop_b:scale=0.1,delta=0.05', 'tight']
    """
    calls: list[str] = []
    for text in texts:
        begun = False
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            if begun and "=" in part and ":" not in part.split("=")[0]:
                calls[-1] += f",{part}"
            else:
                calls.append(part)
            begun = True
    return calls


class Command(argparse.ArgumentParser):
    """The parser of one command, which also accepts --debug."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=DEBUG)


def add_command(commands: Any, name: str, text: str, more: str = "") -> argparse.ArgumentParser:
    """Add a command with a line for ``homdp --help`` and a description for its own help."""
    description = f"{text[0].upper()}{text[1:]}. {more}".strip()
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=description)
    return parser


def planner_help() -> str:
    """The help of an option for a planner."""
    return (
        f"planner: one of {', '.join(factories('planners'))}, optionally with options, as in "
        "bounded_search:gap=0.01; or path/to/file.py:name (default auto)"
    )


def rule_help() -> str:
    """The help of an option for exploration rules."""
    rules = [rule for rule in factories("explorers") if rule not in defaults.CLASSES]
    return (
        f"of {', '.join(rules)}, optionally with options, as in hop_b:scale=0.1; "
        "or path/to/file.py:name"
    )


def shares(text: str) -> list[float | str]:
    """The type of a list of shares from 0 to 1, with references; shares are sorted."""
    parts = [part.strip() for part in text.split(",")]
    others: list[float | str] = [part for part in parts if part in defaults.REFERENCES]
    try:
        found = sorted(float(part) for part in parts if part not in defaults.REFERENCES)
    except ValueError:
        found = []
    all_of_them: list[float | str] = [*found, *others]
    different = len(set(all_of_them)) == len(all_of_them)
    if not found or not all(0 <= share <= 1 for share in found) or not different:
        expected = f"a list of different shares from 0 to 1, {' or '.join(defaults.REFERENCES)}"
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {expected}")
    return all_of_them


def positive(text: str) -> int:
    """The type of a positive integer."""
    if not (text.isdecimal() and text.isascii()) or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a positive integer below 10^9")
    return int(text)


def seed(text: str) -> int:
    """The type of a seed."""
    if not (text.isdecimal() and text.isascii()) or len(text) > 10 or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an integer from 0 to 2^32 - 1")
    return int(text)


def at_least_zero(text: str) -> float:
    """A number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of at least 0")
    return value


def seconds(text: str) -> float:
    """The type of a time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a positive number of seconds")
    return value
