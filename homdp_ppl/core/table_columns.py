"""The columns of a table: their distinct values, and conversion to indices, numbers and steps.

A column is an array with one entry per row. None, NaN, NaT, masked entries and empty texts are
missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, ClassVar, TypeAlias, TypeGuard

import numpy as np

from homdp_ppl.core.episode_values import Known, Values
from homdp_ppl.core.table_problems import Report
from homdp_ppl.errors import Problem, shown, unknown

MISSING, WRONG = -2, -1  # instead of an index
LARGEST = 2.0**53  # whole numbers beyond this are not exact in float64
TO_TEXT = "Convert the column to text, so that its values are read as names."


@dataclass(frozen=True, eq=False)
class Levels:
    """A column as its distinct values, and which one is in each row."""

    codes: Values  # (N,)  the place of each row's value in ``values``
    values: list[Any]
    dtype: ClassVar[Any] = np.dtype(object)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, as the shape of an array."""
        return self.codes.shape

    def tolist(self) -> list[Any]:
        """The value of each row."""
        return [self.values[k] for k in self.codes]


Column: TypeAlias = Values | Levels


class Numbering(dict[Any, int]):
    """Numbers distinct values in the order in which they are looked up."""

    def __missing__(self, value: Any) -> int:
        number = self[value] = len(self)
        return number


def levels_of(column: Column) -> Levels | None:
    """The distinct values of a column; None if it contains lists or arrays."""
    if isinstance(column, Levels):
        return column
    if isinstance(column, np.ma.MaskedArray):
        mask, column = np.ma.getmaskarray(column), column.data.astype(object)
        column[mask] = None
    if column.dtype.kind == "M":
        column = column.astype("datetime64[us]")  # others become integers in lists
    if column.dtype.kind in "biufM":
        values, codes = np.unique(column, return_inverse=True)
        return Levels(codes.reshape(-1), values.tolist())
    numbering = Numbering()
    try:
        found = map(numbering.__getitem__, _typed(column.tolist()))
        codes = np.fromiter(found, dtype=np.int64, count=len(column))
    except TypeError:  # a list or an array as a value, which cannot be hashed
        return None
    return Levels(codes, [value for _, value in numbering])


def _typed(values: list[Any]) -> Any:
    """Pairs of the type and the value: 1, 1.0 and True are equal, but different entries."""
    return zip(map(type, values), values, strict=True)


def is_missing(value: Any, blanks: Collection[str] = ("",)) -> bool:
    """Whether a value is None, NaN, NaT, pandas' NA or one of the texts in ``blanks``."""
    if isinstance(value, str):
        return value in blanks
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # the comparison of NA has no truth value
        return True


def flat(where: str, column: Column, report: Report) -> Levels | None:
    """The distinct values of a column; reports cells with several values."""
    levels = levels_of(column)
    if levels is None:
        rows = [k for k, cell in enumerate(column.tolist()) if isinstance(cell, list | np.ndarray)]
        remedy = "Use one column per number: observation=['x', 'y']."
        report.add(where, rows or [0], "a cell with several values", "one value", remedy)
    return levels


def as_indices(
    where: str,
    column: Column,
    names: Sequence[str],
    report: Report,
    blanks: Collection[str] = ("",),
) -> tuple[Values, Known]:
    """The index of the name in each row, 0 where there is none, and which rows have a value.

    Texts are names, or indices if they are digits and no name. Numbers are indices.
    """
    none = np.zeros(len(column), dtype=np.int64), np.zeros(len(column), dtype=bool)
    levels = flat(where, column, report)
    if levels is None:
        return none
    place = {name: k for k, name in enumerate(names)}
    shifted = any(_is_whole(name) and int(name) != k for name, k in place.items())
    missing = [name for name in blanks if name not in place]
    table = np.array(
        [MISSING if is_missing(v, missing) else _index(v, place, shifted) for v in levels.values],
        dtype=np.int64,
    )
    indices = table[levels.codes] if len(table) else none[0]
    wrong = np.flatnonzero(table == WRONG)
    if len(wrong):
        _add_unknown(where, levels, wrong, names, shifted, report)
    return np.maximum(indices, 0), indices != MISSING


def _index(value: Any, place: dict[str, int], shifted: bool) -> int:
    """The index of one value, or WRONG."""
    if isinstance(value, str | bool | np.bool_):
        found = place.get(str(value), WRONG)
        if found == WRONG and isinstance(value, str) and _is_whole(value):
            return _index(int(value), place, shifted)
        return found
    whole = isinstance(value, int | np.integer) or (isinstance(value, float) and value % 1 == 0)
    return int(value) if whole and not shifted and 0 <= value < len(place) else WRONG


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _add_unknown(
    where: str, levels: Levels, wrong: Values, names: Sequence[str], shifted: bool, report: Report
) -> None:
    """Report values that are neither names nor indices, each with its rows."""
    order, starts = _grouped(levels.codes, wrong)

    def problem(k: int) -> Problem:
        value = levels.values[int(wrong[k])]
        if isinstance(value, str) and not _is_whole(value):
            return unknown(where, "name", value, names, "this space")
        expected = f"a name or an index in 0..{len(names) - 1}"
        if shifted:  # 1 could be the name "1" or the index 1
            return Problem(where, shown(value), f"one of the names {', '.join(names)}", TO_TEXT)
        return Problem(where, shown(value), expected)

    report.each([order[low:high] for low, high in starts], problem)


def _grouped(codes: Values, chosen: Values) -> tuple[Values, list[tuple[int, int]]]:
    """The rows sorted by code, and where the rows of each chosen code begin and end."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    low, high = np.searchsorted(ordered, chosen), np.searchsorted(ordered, chosen, side="right")
    return order, list(zip(low.tolist(), high.tolist(), strict=True))


def as_numbers(
    where: str, column: Column, report: Report, blanks: Collection[str] = ("",)
) -> tuple[Values, Known]:
    """The number in each row, NaN where there is none, and which rows have one."""
    if _is_plain(column, "biuf"):
        numbers = column.astype(np.float64)
        known = ~np.isnan(numbers)
        endless = np.flatnonzero(np.isinf(numbers))
        if len(endless):
            report.add(where, endless, str(numbers[endless[0]]), "finite numbers")
        return numbers, known
    levels = flat(where, column, report)
    if levels is None:
        return np.full(len(column), np.nan), np.zeros(len(column), dtype=bool)
    missing = np.array([is_missing(value, blanks) for value in levels.values], dtype=bool)
    table = np.array([_number(value) for value in levels.values], dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(table) & ~missing)
    if len(wrong):
        order, starts = _grouped(levels.codes, wrong)
        report.each(
            [order[low:high] for low, high in starts],
            lambda k: _no_number(where, levels.values[int(wrong[k])]),
        )
    if not len(table):
        return np.zeros(0), np.zeros(0, dtype=bool)
    table[missing] = np.nan
    return table[levels.codes], ~missing[levels.codes]


def _no_number(where: str, value: Any) -> Problem:
    """The problem of a value that is no finite number."""
    comma = isinstance(value, str) and bool(np.isfinite(_number(value.replace(",", "."))))
    remedy = "Write numbers with a decimal point." * comma
    return Problem(where, shown(value), "a finite number", remedy)


def _is_plain(column: Column, kinds: str) -> TypeGuard[Values]:
    """Whether a column is an array of one of these kinds of numbers, without a mask."""
    plain = isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray)
    return plain and column.dtype.kind in kinds


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def as_keys(
    where: str, column: Column, used: Known, report: Report, blanks: Collection[str] = ("",)
) -> tuple[Values, Values]:
    """The number of each row's episode, in order of first appearance, and the ids as texts.

    The number is -1 if the id is missing, which is reported for the rows that are used.
    """
    levels = flat(where, column, report)
    if levels is None:
        return np.zeros(len(column), dtype=np.int64), np.array(["?"], dtype=object)
    missing = [is_missing(value, blanks) for value in levels.values]
    if any(missing):
        rows = np.flatnonzero(np.isin(levels.codes, np.flatnonzero(missing)) & used)
        if len(rows):
            report.add(where, rows, "no value", "the id of an episode in every row")
    numbering = Numbering()
    table = np.array([numbering[_text(value)] for value in levels.values], dtype=np.int64)
    codes = table[levels.codes] if len(table) else np.zeros(0, dtype=np.int64)
    appeared, first = np.unique(codes, return_index=True)
    rank = np.empty(len(numbering), dtype=np.int64)
    order = appeared[np.argsort(first)]
    rank[order] = np.arange(len(order))
    names = np.array(list(numbering), dtype=object)
    absent = np.array(missing, dtype=bool)[levels.codes]
    return np.where(absent, -1, rank[codes]), names[order]


def _text(value: Any) -> str:
    """The id as text; whole floats, which pandas makes of integers, without a point."""
    if isinstance(value, float) and value % 1 == 0 and abs(value) < LARGEST:
        return str(int(value))
    return str(value)


def as_steps(
    where: str, column: Column, used: Known, report: Report, blanks: Collection[str] = ("",)
) -> tuple[Values | None, bool]:
    """A whole number for each row that orders it, and whether these are step numbers.

    The numbers are None if some are invalid in the rows that are used. Dates and times are ranked:
    they order the rows, but do not number the steps.
    """
    if _is_plain(column, "iu"):
        return column.astype(np.int64), True
    levels = flat(where, column, report)
    if levels is None or not levels.values:
        return None, False
    values = levels.values
    absent = np.array([is_missing(value, blanks) for value in values])
    moments = None if column.dtype.kind == "f" else _moments(values, absent)
    if moments is not None:
        table = np.unique(moments, return_inverse=True)[1].reshape(-1)
    else:
        numbers = np.array([_number(value) for value in values])
        table = np.where(np.isfinite(numbers) & (abs(numbers) < LARGEST), numbers, 0)
        table = table.astype(np.int64)
    wrong = np.flatnonzero(absent if moments is not None else absent | (table != numbers))
    wrong = wrong[np.isin(wrong, levels.codes[used])]
    if len(wrong):
        order, starts = _grouped(levels.codes, wrong)
        expected = "a step number, a date or a time"
        report.each(
            [order[low:high][used[order[low:high]]] for low, high in starts],
            lambda k: Problem(
                where,
                "no value" if absent[wrong[k]] else shown(values[int(wrong[k])]),
                expected,
            ),
        )
        return None, False
    return table[levels.codes], moments is None


def _moments(values: list[Any], absent: Known) -> Values | None:
    """The values as moments in time; None if one of them is no date or time."""
    found = [None if missing else _moment(v) for v, missing in zip(values, absent, strict=True)]
    if any(moment is None for moment, missing in zip(found, absent, strict=True) if not missing):
        return None
    return np.array(found, dtype="datetime64[us]")


def _moment(value: Any) -> datetime | None:
    """A date, a time or a text in ISO format as a moment; times with a zone in UTC."""
    if isinstance(value, str) and not value.lstrip("+-").isdigit():
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
