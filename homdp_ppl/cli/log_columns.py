"""The option ``--columns`` of commands that read tables of episodes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from homdp_ppl.errors import ParameterError, Problem, unknown

NAMES = ("episode", "step", "observation", "action", "state", "reward", "label", "ended")
OPTION = "--columns"
HELP = f"names of columns, as in episode=patient step=visit (default: {', '.join(NAMES)})"


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command."""
    parser.add_argument(
        OPTION, metavar="NAME=COLUMN", nargs="+", action="extend", default=[], help=HELP
    )


def columns_of(given: Sequence[str], subject: str) -> dict[str, str]:
    """The columns by name, for :func:`homdp_ppl.formats.read_log`.

    Raises
    ------
    ParameterError
        If a text is not NAME=COLUMN, or there is no such name; all problems are reported together.
    """
    columns, problems = dict[str, str](), []
    for each in given:
        name, sign, column = each.partition("=")
        if not sign or not column:
            problems.append(Problem(OPTION, each, "NAME=COLUMN, as in episode=patient"))
        elif name not in NAMES:
            problems.append(unknown(OPTION, "column", name, NAMES, "a log"))
        columns[name] = column
    if problems:
        raise ParameterError(subject, problems)
    return columns
