"""Observations, actions and states of live episodes: names or numbers to plain JSON values."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from homdp_ppl.core.arguments import is_count
from homdp_ppl.core.sensors import ENDED, Sensors
from homdp_ppl.core.spaces import Real, Space, Spaces
from homdp_ppl.errors import Problem, shown, unknown

# the index of a name, a number, or a vector of numbers
Value: TypeAlias = "int | float | list[float]"


def encode(where: str, given: Any, space: Space, at: str = "") -> tuple[Value, list[Problem]]:
    """The plain value of a name, an index or real numbers, and what is wrong with it.

    Examples
    --------
    >>> encode("observation", "right", ("left", "right"))
    (1, [])
    >>> encode("observation", [0.5, 2], Real(2))
    ([0.5, 2.0], [])
    >>> encode("observation", {"ear": "right"}, Sensors({"ear": ("left", "right")}))
    (1, [])
    """
    if isinstance(space, Real):
        return _numbers(where, given, space, at)
    if isinstance(space, Sensors):
        return space.encode(where, given, at)
    if isinstance(given, str):
        if given in space:
            return space.index(given), []
        return 0, [unknown(where, "name", given, space, "this space", at)]
    index = (
        given.item() if isinstance(given, np.ndarray | np.generic) and not given.shape else given
    )
    if is_count(index, 0) and index < len(space):
        return int(index), []
    return 0, [Problem(where, shown(given), f"a name, or an index in 0..{len(space) - 1}", at=at)]


def _numbers(where: str, given: Any, space: Real, at: str) -> tuple[Value, list[Problem]]:
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(0, np.nan)
    if isinstance(given, str | bytes) or array.shape != space.shape or not np.isfinite(array).all():
        many = "a finite number" if not space.shape else f"{space.dimension} finite numbers"
        return 0.0, [Problem(where, shown(given), many, at=at)]
    return array.tolist(), []


def is_value(value: Any, space: Space) -> bool:
    """Whether a value that was read from a file is a plain value of a space."""
    if not isinstance(space, Real):
        return type(value) is int and 0 <= value < len(space)
    parts = value if space.shape and isinstance(value, list) else [value]
    good = all(type(part) is float and np.isfinite(part) for part in parts)
    return good and len(parts) == space.dimension and isinstance(value, list) == bool(space.shape)


def ended_problems(value: Value, spaces: Spaces, where: str) -> list[Problem]:
    """Report the observation that stands for the end, which no step shows."""
    if not spaces.terminal or isinstance(spaces.observations, Real):
        return []
    if spaces.observations[int(value)] != ENDED:  # type: ignore[arg-type]
        return []
    remedy = "Call end() when the episode has ended."
    return [Problem(where, repr(ENDED), "the observation of a step", remedy)]
