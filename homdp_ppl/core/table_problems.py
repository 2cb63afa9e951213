"""Problems of a table: grouped by their value, with row numbers, the first 20 and a count."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from homdp_ppl.core.episode_values import Values
from homdp_ppl.errors import LISTED, DataError, Problem

NAMED = 4  # rows that are listed per problem; the others are only counted


class Report:
    """Collects the problems of a table; :meth:`refuse` raises them in one error.

    Parameters
    ----------
    subject
        The function that reads the table.
    word
        What rows are called: "row", or "line" in a text file.
    numbers
        The number of each row; None if rows are numbered from 0.
    """

    def __init__(self, subject: str, word: str = "row", numbers: Values | None = None) -> None:
        self.subject, self.word, self.numbers = subject, word, numbers
        self._found: list[tuple[int, Problem]] = []
        self._rows: list[Values] = []
        self._more = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(
        self, where: str, rows: Sequence[int] | Values, got: str, expected: str, remedy: str = ""
    ) -> None:
        """Add one problem of some rows."""
        self.put(rows, Problem(where, got, expected, remedy))

    def put(self, rows: Sequence[int] | Values, problem: Problem) -> None:
        """Add one problem of some rows, or of the whole table if there are none."""
        rows = np.asarray(rows, dtype=np.int64)
        self._rows.append(rows)
        first = int(rows[0]) if len(rows) else -1
        self._found.append((first, problem._replace(at=self.place(rows))))

    def each(self, groups: Sequence[Values], problem: Callable[[int], Problem]) -> None:
        """Add one problem for each group of rows; ``problem(k)`` is that of group k.

        Only the first groups are described; the others are counted.
        """
        for k, rows in enumerate(groups[:LISTED]):
            self.put(rows, problem(k))
        self._rows += groups[LISTED:]
        self._more += max(len(groups) - LISTED, 0)

    def place(self, rows: Values) -> str:
        """The rows as text, such as "rows 3, 7 and 12"."""
        if not len(rows):
            return ""
        named = [self.number(k) for k in rows[: NAMED if len(rows) > NAMED + 1 else len(rows)]]
        if len(named) < len(rows):
            named.append(f"{len(rows) - len(named):,} more")
        listed = ", ".join(named[:-1]) + " and " * (len(named) > 1) + named[-1]
        return f"{self.word}{'s' * (len(rows) > 1)} {listed}"

    def number(self, row: int) -> str:
        """The number of a row as text."""
        return str(int(row) if self.numbers is None else int(self.numbers[row]))

    def refuse(self) -> None:
        """Raise all problems in the order of their rows; nothing if there are none."""
        if not self._found:
            return
        listed = [problem for _, problem in sorted(self._found, key=lambda each: each[0])]
        more = len(listed) + self._more - LISTED
        if more > 0:
            rows = len(np.unique(np.concatenate(self._rows)))
            got = f"{more:,} more problem{'s' * (more > 1)}, {rows:,} rows with problems in all"
            listed = [*listed[:LISTED], Problem("table", got, "none")]
        raise DataError(self.subject, listed)
