"""Tables of other libraries as columns: pandas, polars, pyarrow, xarray, and dicts of columns.

No library is imported here unless one of its objects is given. A library is recognised by the
module and the name of the class; :data:`LIBRARIES` lists what is read and how.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.table_columns import Column, Levels, Numbering
from homdp_ppl.errors import DataError, Problem, did_you_mean, shown

ACCEPTED = (
    "a DataFrame of pandas or polars, a pyarrow Table, an xarray Dataset, or a dict of columns"
)


class Library(NamedTuple):
    """How the tables of a library are read: two functions."""

    names: Callable[[Any], list[Any]]  # table -> the names of its columns
    column: Callable[[Any, str], Any]  # table, name -> one value per row, as an array or a list


def _pandas_names(frame: Any) -> list[Any]:
    return [*frame.columns, *(name for name in frame.index.names if name is not None)]


def _pandas_column(frame: Any, name: str) -> Any:
    if name in frame.columns:
        return frame[name].to_numpy()
    return frame.index.get_level_values(name).to_numpy()


def _arrow_names(table: Any) -> list[Any]:
    return list(table.schema.names)


def _arrow_column(table: Any, name: str) -> Any:
    import pyarrow

    column, types = table[name], pyarrow.types
    if types.is_dictionary(column.type):  # to_numpy() would lose missing values
        kind = column.type.value_type
        if types.is_string(kind) or types.is_large_string(kind):
            return _arrow_levels(column)
        column = column.cast(kind)
    return column.to_numpy(zero_copy_only=False)


def _arrow_levels(column: Any) -> Levels:
    """A dictionary of texts; every text is in memory once, however many rows it has."""
    numbering, places = Numbering(), [np.zeros(0, dtype=np.int64)]
    for chunk in getattr(column, "chunks", [column]):
        number = np.array([numbering[text] for text in [*chunk.dictionary.to_pylist(), None]])
        indices = chunk.indices.cast("int64").fill_null(-1)  # the last number, that of None
        places.append(number[indices.to_numpy(zero_copy_only=False)])
    texts = list(numbering)
    used, first, codes = np.unique(np.concatenate(places), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Levels(np.argsort(order)[codes.reshape(-1)], [texts[k] for k in used[order]])


LIBRARIES: dict[str, Library] = {
    "pandas.DataFrame": Library(_pandas_names, _pandas_column),
    "polars.DataFrame": Library(lambda t: list(t.columns), lambda t, name: t[name].to_numpy()),
    "pyarrow.Table": Library(_arrow_names, _arrow_column),
    "pyarrow.RecordBatch": Library(_arrow_names, _arrow_column),
    "dict": Library(list, lambda table, name: table[name]),
}
REMEDIES = {
    "polars.LazyFrame": "Collect it: frame.collect().",
    "pandas.Series": "Pass the DataFrame that contains this column.",
    "polars.Series": "Pass the DataFrame that contains this column.",
    "xarray.DataArray": "Pass a Dataset: array.to_dataset(name='observation').",
    "list": "Pass a dict of columns, such as {'episode': [...], 'step': [...]}.",
    "str": "To read a file, use formats.read_log(path, homdp).",
    "PosixPath": "To read a file, use formats.read_log(path, homdp).",
    "WindowsPath": "To read a file, use formats.read_log(path, homdp).",
    "Episodes": "These are episodes already: use them as they are.",
}


class Table(NamedTuple):
    """A table: the names of its columns, and the number of rows."""

    given: Any
    library: Library
    names: list[Any]

    def column(self, name: str) -> Column:
        """The values of a column, one per row."""
        return as_column(self.library.column(self.given, name))


def as_table(frame: Any, wanted: Collection[str], subject: str) -> Table:
    """Recognise a table of which some columns are wanted; raises DataError for other objects."""
    kinds = [_name(kind) for kind in type(frame).__mro__]
    if "xarray.Dataset" in kinds:
        library, found = LIBRARIES["pandas.DataFrame"], _long(frame, wanted, subject)
        names = library.names(found)
        return Table(found, library, [*names, *(v for v in frame.variables if v not in names)])
    if isinstance(frame, Mapping):
        kinds.append("dict")
    known = [kind for kind in kinds if kind in LIBRARIES]
    if not known:
        remedy = next((REMEDIES[kind] for kind in kinds if kind in REMEDIES), "")
        raise DataError(subject, [Problem("frame", shown(frame, 80), ACCEPTED, remedy)])
    library = LIBRARIES[known[0]]
    return Table(frame, library, library.names(frame))


def _name(kind: type) -> str:
    """The library and the name of a class: "pandas.DataFrame"; built-in classes by name only."""
    root = kind.__module__.partition(".")[0]
    return (
        f"{root}.{kind.__name__}"
        if root in ("pandas", "polars", "pyarrow", "xarray")
        else (kind.__name__)
    )


def as_column(given: Any) -> Column:
    """An array with one entry per row; lists and objects keep the types of their entries."""
    if isinstance(given, Levels):
        return given
    if isinstance(given, np.ndarray):
        return given.astype(object) if given.dtype.kind in "SUV" else given
    if isinstance(given, list | tuple):
        column = np.empty(len(given), dtype=object)
        column[:] = given
        return column
    return as_column(np.asarray(given))


def _long(dataset: Any, wanted: Collection[str], subject: str) -> Any:
    """The wanted variables of an xarray Dataset as a pandas DataFrame.

    It has one row per index of the dimensions. One of the variables needs all dimensions of the
    others. A padded Dataset with the dimensions
    (episode, step) becomes one row per episode and step.
    """
    dataset = dataset[[name for name in dataset.data_vars if name in wanted]]
    dims = [set(map(str, variable.dims)) for variable in dataset.data_vars.values()]
    widest = max(dims, key=len, default=set())
    wrong = {
        str(name): tuple(map(str, variable.dims))
        for name, variable in dataset.data_vars.items()
        if not set(map(str, variable.dims)) <= widest
    }
    if wrong:
        expected = f"some of the dimensions {', '.join(sorted(widest))}"
        remedy = "Use one dimension of H + 1 steps for states, observations and actions."
        problems = [Problem(name, str(found), expected, remedy) for name, found in wrong.items()]
        raise DataError(subject, problems)
    return dataset.to_dataframe()


def missing_columns(
    table: Table, wanted: Iterable[tuple[str, Any]], optional: Iterable[str]
) -> list[Problem]:
    """Report columns that a table does not have, or has twice.

    Parameters
    ----------
    table
        The table.
    wanted
        Pairs of an argument and the name of its column.
    optional
        The arguments whose columns may be missing.
    """
    problems, allowed, wanted = [], set(optional), list(wanted)
    listed = [str(each) for each in table.names]
    free = [each for each in listed if each not in [name for _, name in wanted]]
    for argument, name in wanted:
        number = sum(each == name for each in table.names)
        if number > 1:
            problems.append(Problem(argument, f"{number} columns {name!r}", "one column"))
        elif number == 0 and argument not in allowed:
            has = f"one of the columns: {', '.join(listed[:20])}" if listed else "columns"
            named = f"Name the column: {argument}=..." if name == argument else ""
            remedy = " ".join(filter(None, [did_you_mean(str(name), free), named]))
            problems.append(Problem(argument, f"no column {name!r}", has, remedy))
    return problems
