"""Episodes for ``homdp agent add``: tables, and JSON objects, one per line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from homdp_ppl.cli.log_columns import OPTION, columns_of
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, HOMDPError, Problem, shown
from homdp_ppl.formats.logs import PARQUET, TEXT, read_log
from homdp_ppl.memory import amount, require_memory
from homdp_ppl.storage._system import open_named

PER_BYTE = 32  # bytes of memory per byte of JSON: most for empty lists
REQUIRED, OPTIONAL = ("observations", "actions", "states"), ("id", "rewards", "ended")


def read_episodes(path: Path, columns: Sequence[str], homdp: HOMDP) -> Any:
    """The episodes of a file.

    Parameters
    ----------
    path
        A table, as for :func:`homdp_ppl.formats.read_log`, or a file with one JSON object per line.
    columns
        The names of columns, as in "episode=patient".
    homdp
        The declaration.
    """
    if path.suffix.lower() in (*TEXT, *PARQUET):
        return read_log(path, homdp, **columns_of(columns, "add"))
    if columns:
        expected = "a table: a .csv or .parquet file"
        raise DataError("add", [Problem(OPTION, str(path), expected, f"Leave out {OPTION}.")])
    return read_lines(path)


def read_lines(path: Path) -> list[Any]:
    """The JSON values of a file, one per line; empty lines are skipped."""
    try:
        with open_named(path) as file:
            size = os.fstat(file.fileno()).st_size
            got = f"a file of {amount(size)}"
            require_memory(DataError, "add", "file", got, PER_BYTE * size, "Split the file.")
            lines = file.read(size).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = "no file" if isinstance(error, FileNotFoundError) else "a file that is not text"
        expected = "a file with one JSON object per line"
        raise DataError("add", [Problem("file", f"{reason}: {path}", expected)]) from None
    found, problems = list[Any](), list[Problem]()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                at = f"line {number}"
                problems.append(Problem("file", shown(line.strip()), "one JSON object", at=at))
    if problems:
        raise DataError("add", problems)
    return found


def episodes_of(given: Any, homdp: HOMDP) -> Episodes:
    """Episodes from JSON values, or themselves; all problems are reported together.

    Parameters
    ----------
    given
        A list of objects ``{"observations": [..], "actions": [..], "states": [..]}``, with names or
        indices, and optionally "id", "rewards" and "ended".
    homdp
        The declaration.
    """
    if isinstance(given, Episodes):
        return given
    objects: Any = given if isinstance(given, list) else [given]
    played, problems = list[Episode](), list[Problem]()
    for number, each in enumerate(objects, start=1):
        at = f"episode {number}"
        wrong = _entry_problems(each, at)
        if not wrong:
            try:
                played.append(_episode(each, homdp))
            except HOMDPError as error:
                wrong = [_placed(problem, at) for problem in error.problems]
        problems += wrong
    if problems:
        raise DataError("add", problems)
    if not played:
        raise DataError("add", [Problem("episodes", "no episodes", "at least one episode")])
    return Episodes.of(played, homdp)


def _entry_problems(each: Any, at: str) -> list[Problem]:
    """Report entries that are missing or unknown."""
    if not isinstance(each, dict):
        return [Problem("episodes", shown(each), "an object", at=at)]
    expected = f"a list for each of {', '.join(REQUIRED)}"
    problems = [
        Problem(name, shown(each.get(name)), expected, at=at)
        for name in REQUIRED
        if not isinstance(each.get(name), list)
    ]
    known = f"only {', '.join((*REQUIRED, *OPTIONAL))}"
    unknown = sorted(set(each) - {*REQUIRED, *OPTIONAL})
    problems += [Problem(name, "an entry", known, at=at) for name in unknown]
    if not isinstance(each.get("id"), str | None):
        problems.append(Problem("id", shown(each["id"]), "a text", at=at))
    ends = ("horizon", "terminal", "truncated")
    if "ended" in each and each["ended"] not in ends:
        problems.append(Problem("ended", shown(each["ended"]), f"one of {', '.join(ends)}", at=at))
    return problems


def _episode(each: dict[str, Any], homdp: HOMDP) -> Episode:
    observations, actions, states = (each[name] for name in REQUIRED)
    ended = each.get("ended")
    if ended is None:
        usual = "terminal" if homdp.spaces.terminal else "truncated"
        ended = "horizon" if len(actions) == homdp.horizon else usual
    options: dict[str, Any] = {"rewards": each.get("rewards"), "id": each.get("id"), "ended": ended}
    return Episode.of(observations, actions, states, homdp, **options)


def _placed(problem: Problem, at: str) -> Problem:
    return problem._replace(at=f"{at}, {problem.at}" if problem.at else at)
