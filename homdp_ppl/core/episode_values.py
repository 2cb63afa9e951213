"""Conversion of episode values: missing entries become a mask, names become indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import Real, Space, entry_place, value_problems
from homdp_ppl.errors import Problem, unknown

Values = NDArray[Any]
Known = NDArray[np.bool_]


def blank(dtype: np.dtype[Any]) -> Any:
    """The placeholder for missing values: NaN for reals, 0 for indices, "" for names."""
    return np.nan if dtype.kind == "f" else "" if dtype.kind == "U" else 0


def split_missing(values: ArrayLike, axes: int) -> tuple[Values, Known | None]:
    """Split values into plain values and the mask of the known ones; None if all are known.

    Masked entries, None and NaN are missing. The first ``axes`` axes are episodes and steps; a
    vector is missing if all its numbers are missing.

    Examples
    --------
    >>> split_missing([1, None, 0], axes=1)
    (array([1, 0, 0]), array([ True, False,  True]))
    """
    mask: Known | None = None
    if isinstance(values, np.ma.MaskedArray):
        mask, array = np.ma.getmaskarray(values), np.asarray(values.data)
    else:
        array = np.asarray(values)
    if mask is None and array.dtype.kind not in "fO":
        return array, None
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    elif array.dtype.kind == "O":
        flat = [value is None or value != value for value in array.ravel()]
        missing = np.array(flat, dtype=bool).reshape(array.shape)
    else:
        missing = np.zeros(array.shape, dtype=bool)
    if mask is not None:
        missing = missing | mask
    if array.dtype.kind == "O":
        array = _inferred(array, missing)
    if not missing.any():
        return array, None
    known = ~missing.reshape(*array.shape[:axes], -1).all(-1)
    cleared = array.copy()
    cleared[missing if array.dtype.kind == "f" else ~known] = blank(array.dtype)
    return cleared, known


def _inferred(array: Values, missing: Known) -> Values:
    """Convert an array of objects to the type of its known values."""
    known = np.array(array[~missing].tolist() or [0])
    if known.ndim != 1:
        return array
    inferred = np.full(array.shape, blank(known.dtype), dtype=known.dtype)
    inferred[~missing] = known[: (~missing).sum()]
    return inferred


def in_space(
    where: str, values: Values, known: Known | None, space: Space, ids: Values | None = None
) -> tuple[Values, list[Problem]]:
    """Convert values to the representation of a space, with blanks for missing values.

    Names become indices. Floats become indices only if NaN marks missing values, because an array
    of integers cannot contain NaN. Outcomes of several sensors along a third axis become joint
    indices.
    """
    problems: list[Problem] = []
    if isinstance(space, Sensors) and values.ndim == 3 and values.shape[2] == len(space.sensors):
        return _joined(where, values, known, space, ids)
    if isinstance(space, Real):
        if known is not None and values.dtype.kind in "iu":
            values = values.astype(np.float64)
    elif known is not None and not known.any():
        values = np.zeros(values.shape, dtype=np.int64)
    elif values.dtype.kind == "U":
        values, problems = _indices(where, values, known, space, ids)
    elif known is not None and values.dtype.kind == "f":
        whole = np.where(known, values, 0.0)
        if np.isfinite(whole).all() and (whole == np.floor(whole)).all():
            values = whole.astype(np.int64)
    if known is not None and not known.all():
        values = values.copy()
        values[~known] = blank(values.dtype)
    return values, problems


def _joined(
    where: str, values: Values, known: Known | None, space: Sensors, ids: Values | None
) -> tuple[Values, list[Problem]]:
    """Joint indices, (episodes, steps), of the outcomes of all sensors along the last axis."""
    columns, problems = [], []
    for k, (sensor, names) in enumerate(space.sensors.items()):
        place = f"{where}[{sensor}]"
        column, wrong = in_space(place, values[:, :, k], known, names, ids)
        columns.append(column)
        problems += wrong or value_problems(place, column, names, known, ids)
    if problems:
        return values[:, :, 0], problems
    return np.ravel_multi_index(tuple(columns), space.shape), []


def _indices(
    where: str, values: Values, known: Known | None, names: tuple[str, ...], ids: Values | None
) -> tuple[Values, list[Problem]]:
    found, inverse = np.unique(values, return_inverse=True)
    place = {name: k for k, name in enumerate(names)}
    codes = np.array([place.get(str(name), -1) for name in found])
    indices = codes[inverse].reshape(values.shape)
    missing = (indices < 0) if known is None else (indices < 0) & known
    problems = [
        unknown(
            where, "name", str(values[tuple(index)]), names, "this space", entry_place(index, ids)
        )
        for index in np.argwhere(missing)[:8]
    ]
    return np.where(indices < 0, 0, indices), problems  # unknown names are reported as problems
