"""Read logs of episodes from CSV and parquet files. Reading a file never runs code."""

from __future__ import annotations

import csv
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode_values import Values
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.spaces import HasSpaces
from homdp_ppl.core.table_columns import Levels, Numbering
from homdp_ppl.core.table_problems import Report
from homdp_ppl.core.table_reading import Columns, read_table
from homdp_ppl.core.tables import LIBRARIES, Table, as_table
from homdp_ppl.errors import LISTED, DataError, Problem, shown
from homdp_ppl.memory import amount, require_memory
from homdp_ppl.storage._system import open_named

TEXT, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
DELIMITERS = ",;\t|"
BLANKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")  # missing values in text files
PER_CELL = 100  # bytes of memory per value of a parquet file, which may be smaller than one bit
PER_BYTE = 4  # bytes of memory per byte of a text file: a code per value, and distinct values
BLOCK = 4096  # rows that are read at a time, fewer if they are wide
WIDEST = 10_000  # columns
SPARE = 1000  # separators of a line, in addition to twice those of the first line
VALUES = 4_000_000  # that are read at a time
BREAK = re.compile("\r\n|\r|\n")


@checked
def read_log(
    path: str | os.PathLike[str],
    homdp: HasSpaces,
    episode: str = "episode",
    step: str | None = "step",
    observation: str | Sequence[str] | Mapping[str, str] = "observation",
    action: str = "action",
    state: str | Sequence[str] | None = "state",
    reward: str | None = "reward",
    label: str | None = "label",
    ended: str | None = "ended",
    behaviour: str | None = None,
) -> Episodes:
    """Read episodes from a file with one row per step: CSV, or parquet if pyarrow is installed.

    Parameters
    ----------
    path
        A file that ends in .csv, .tsv or .txt, with names of columns in the first line, or in
        .parquet or .pq. Text files are in UTF-8; values are separated by commas, semicolons, tabs
        or vertical bars. Empty values, NA, N/A, NaN, nan, null, NULL and None are missing, unless
        they are names of the model.
    homdp
        A declaration, a world or spaces.
    episode, step, observation, action, state, reward, label, ended, behaviour
        The names of the columns, as in :meth:`homdp_ppl.Episodes.from_frame`.

    Raises
    ------
    DataError
        With all problems and their line numbers, or row numbers from 0 in parquet files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from homdp_ppl import Spaces
    >>> from homdp_ppl.formats import read_log
    >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=1)
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "log.csv"
    >>> size = path.write_text('''episode,step,observation,action,state
    ... p7,1,dark,press,off
    ... p7,2,,,on
    ... p9,1,light,wait,NA
    ... ''')
    >>> read_log(path, lamp)
    Episodes: 2 episodes of 1 step, 2 of 4 states missing
    >>> folder.cleanup()
    """
    spaces = spaces_of(homdp, "read_log")
    columns = Columns(episode, step, observation, action, state, reward, label, ended)
    wanted = [name for _, name in columns.listed(spaces)]
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in TEXT + PARQUET:
        expected = f"a file that ends in {', '.join(TEXT + PARQUET)}"
        raise DataError("read_log", [Problem("path", repr(file.name), expected)])
    try:
        with open_named(file) as stream:
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        problem = Problem("path", f"{str(path)!r}: {error.strerror}", "a file that can be read")
        raise DataError("read_log", [problem]) from None
    if kind in PARQUET:
        table = as_table(_parquet(file, wanted), wanted, file.name)
        return read_table(table, spaces, columns, Report(file.name), behaviour=behaviour)
    remedy = "Split the file, or read it with pandas: Episodes.from_frame(frame, homdp)."
    got = f"a file of {amount(size)}"
    require_memory(DataError, file.name, "path", got, PER_BYTE * size, remedy)
    table, lines = _text(file, wanted)
    report = Report(file.name, "line", lines)
    return read_table(table, spaces, columns, report, BLANKS, behaviour)


def _text(file: Path, wanted: Iterable[str]) -> tuple[Table, Values]:
    """The wanted columns of a text file, and the line in which each row begins."""
    with TextIOWrapper(open_named(file), encoding="utf-8-sig", newline="") as stream:
        try:
            return _rows(file.name, _without_nul(stream), wanted)
        except UnicodeDecodeError as error:
            got = f"the byte {error.object[error.start]:#x}, which is not UTF-8"
            remedy = "Save the file in UTF-8."
            problem = Problem("encoding", got, "text in UTF-8", remedy)
        except csv.Error as error:
            problem = Problem("path", str(error), "a text file with separated values")
    raise DataError(file.name, [problem])


def _without_nul(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a text file; raises ``csv.Error`` for NUL bytes, which text does not have."""
    for line in lines:
        if "\0" in line:
            raise csv.Error("a NUL byte")
        yield line


def _rows(name: str, lines: Iterator[str], wanted: Iterable[str]) -> tuple[Table, Values]:
    first = next(lines, "")
    delimiter = max(DELIMITERS, key=first.count)
    separators = first.count(delimiter)
    if separators >= WIDEST:
        raise csv.Error(f"a first line with {separators:,} separators, more than {WIDEST:,}")
    most = 2 * separators + SPARE
    narrow = _narrow(chain([first] if first else [], lines), delimiter, most)
    reader = csv.reader(narrow, delimiter=delimiter, skipinitialspace=True, strict=True)
    header = [each.strip() for each in next(reader, [])]
    if not any(header):
        expected = "names of columns in the first line"
        raise DataError(name, [Problem("header", "no names", expected)])
    chosen = [k for k, column in enumerate(header) if column in set(wanted)]
    numberings, codes = [Numbering() for _ in chosen], [array("q") for _ in chosen]
    width, begins = len(header), list[Values]()
    wrong: list[tuple[int, int]] = []
    line, height = reader.line_num, min(BLOCK, VALUES // most)
    while block := list(islice(reader, height)):
        places = line + 1 + np.arange(len(block))
        if reader.line_num - line != len(block):  # some values have line breaks
            heights = [1 + sum(len(BREAK.findall(value)) for value in row) for row in block]
            places = line + 1 + np.cumsum([0, *heights[:-1]])
        line = reader.line_num
        if any(len(row) != width for row in block):  # blank lines are skipped
            sizes = np.array([len(row) for row in block])
            other = np.flatnonzero((sizes != width) & (sizes > 0))
            wrong += [(int(places[k]), int(sizes[k])) for k in other]
            block = [row for row in block if len(row) == width]
            places = places[sizes == width]
        begins.append(places)
        for k, numbering, kept in zip(chosen, numberings, codes, strict=True):
            kept.extend(map(numbering.__getitem__, [row[k] for row in block]))
    if wrong:
        expected = f"{width} values, one for each column of the first line"
        remedy = "Quote values that contain the separator or a line break."
        problems = [
            Problem("line", f"{n} value{'s' * (n != 1)}", expected, remedy, str(at))
            for at, n in wrong[:LISTED]
        ]
        if len(wrong) > LISTED:
            problems.append(Problem("lines", f"{len(wrong) - LISTED:,} more such lines", "none"))
        raise DataError(name, problems)
    columns = {
        header[k]: Levels(np.array(kept, dtype=np.int64), list(numbering))
        for k, numbering, kept in zip(chosen, numberings, codes, strict=True)
    }
    rows = np.concatenate(begins) if begins else np.zeros(0, dtype=np.int64)
    return Table(columns, LIBRARIES["dict"], header), rows


def _narrow(lines: Iterable[str], delimiter: str, most: int) -> Iterator[str]:
    """The lines; raises ``csv.Error`` for one that would take much more memory than its length."""
    for line in lines:
        if line.count(delimiter) > most:
            raise csv.Error(f"a line with more than {most:,} separators")
        yield line


def _parquet(file: Path, wanted: Iterable[str]) -> Any:
    """The wanted columns of a parquet file as a pyarrow Table."""
    try:
        from pyarrow import ArrowException, parquet, types
    except ImportError:
        remedy = "Install it: pip install pyarrow. Or save the table as CSV."
        problem = Problem("path", "a parquet file, without pyarrow", "pyarrow", remedy)
        raise DataError("read_log", [problem]) from None
    try:
        with parquet.ParquetFile(file) as opened:
            schema, metadata = opened.schema_arrow, opened.metadata
            columns = [name for name in schema.names if name in set(wanted)]
            groups = (metadata.row_group(k) for k in range(opened.num_row_groups))
            size = sum(group.total_byte_size for group in groups)
        rows = metadata.num_rows
        needed = 4 * size + PER_CELL * rows * len(columns)
        require_memory(DataError, file.name, "path", f"{rows:,} rows", needed, "Split the file.")
        kinds = zip(schema.names, schema.types, strict=True)
        texts = {n for n, t in kinds if types.is_string(t) or types.is_large_string(t)}
        with parquet.ParquetFile(file, read_dictionary=sorted(texts & set(columns))) as opened:
            return opened.read(columns or None)
    except (ArrowException, OSError) as error:
        got = f"a file that pyarrow cannot read ({shown(str(error), 80)})"
        raise DataError(file.name, [Problem("path", got, "a parquet file")]) from None
