"""The gap at which a planner stops: in the user's units, or relative to the range of returns."""

from __future__ import annotations

from typing import Any

from homdp_ppl.core.arguments import number_problems
from homdp_ppl.errors import Problem


def gap_problems(gap: Any, relative_gap: Any) -> list[Problem]:
    """Problems of the options ``gap`` and ``relative_gap``, of which at most one may be given."""
    given = {"gap": gap, "relative_gap": relative_gap}
    problems = number_problems(
        **{name: value for name, value in given.items() if value is not None}
    )
    if gap is not None and relative_gap is not None and not problems:
        got, remedy = "gap and relative_gap", "Leave one of them out."
        problems = [Problem("relative_gap", got, "at most one of them", remedy)]
    return problems


def inside_gap(
    gap: float | None, relative_gap: float | None, default: float, scale: float, horizon: int
) -> float:
    """The gap for rewards in [0, 1].

    Parameters
    ----------
    gap
        The gap in the user's units, or None.
    relative_gap
        The gap as a share of H * scale, the range of returns, or None.
    default
        The gap for rewards in [0, 1] if both are None.
    scale
        The range of one reward in the user's units.
    horizon
        H.

    Examples
    --------
    >>> inside_gap(0.5, None, 1e-3, scale=10.0, horizon=4)
    0.05
    >>> inside_gap(None, 0.01, 1e-3, scale=10.0, horizon=4)
    0.04
    >>> inside_gap(None, None, 1e-3, scale=10.0, horizon=4)
    0.001
    """
    if gap is not None:
        return gap / scale
    return default if relative_gap is None else relative_gap * horizon
