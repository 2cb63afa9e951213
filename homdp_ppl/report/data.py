"""Checks of the numbers and colours of a plot, before anything is drawn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.colors import is_color_like

from homdp_ppl.core.arguments import refuse
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.precision import Array


def vectors(subject: str, **given: Any) -> list[Array]:
    """Convert to vectors of the same length, at least 1; raise DataError for anything else."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in given.items()}
    length = next((len(array) for array in arrays.values() if array.ndim == 1), 0)
    expected = "a non-empty vector of finite numbers, with the same length in every argument"
    refuse(
        DataError,
        subject,
        [
            Problem(name, _described(array), expected)
            for name, array in arrays.items()
            if array.shape != (length,) or not length or not np.isfinite(array).all()
        ],
    )
    return list(arrays.values())


def check_finite(subject: str, **given: Any) -> None:
    """Raise DataError for numbers, arrays or mappings that contain NaN or infinity."""
    problems = []
    for name, value in given.items():
        parts = value.values() if isinstance(value, Mapping) else [value]
        numbers = [np.asarray(part, dtype=np.float64) for part in parts if part is not None]
        if not all(np.isfinite(part).all() for part in numbers):
            problems.append(Problem(name, shown(value, 80), "finite numbers"))
    refuse(DataError, subject, problems)


def check_indices(subject: str, where: str, indices: Iterable[Any], size: int) -> None:
    """Raise DataError unless all entries are integers in 0..size - 1."""
    wrong = [
        k for k in indices if not isinstance(k, int | float | np.number) or k not in range(size)
    ]
    expected = f"integers in 0..{size - 1}"
    refuse(DataError, subject, [Problem(where, shown(k), expected) for k in wrong[:1]])


def check_colours(subject: str, colours: Collection[str] | Mapping[str, str] | None) -> None:
    """Raise DataError for an empty list and for entries that are not Matplotlib colours."""
    if colours is None:
        return
    listed = list(colours.values() if isinstance(colours, Mapping) else colours)
    expected = "a Matplotlib colour such as 'red' or '#0072B2'"
    wrong = [Problem("colours", shown(c), expected) for c in listed if not is_color_like(c)]
    if not listed and not isinstance(colours, Mapping):
        wrong.append(Problem("colours", "no colours", "at least one colour"))
    refuse(DataError, subject, wrong)


def _described(array: Array) -> str:
    if not np.isfinite(array).all():
        return "numbers that are not finite"
    return f"shape {array.shape}"
