"""Bonuses: amounts that are added to the rewards of a learned model, so that its values are
optimistic.
"""

from __future__ import annotations

import jax
import numpy as np

from homdp_ppl.confidence.counts import Radii
from homdp_ppl.core.arguments import refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.precision import Array


@checked
def hop_b_bonus(radii: Radii, horizon: int) -> Array:
    """H eps(x) + eps(x, a), (X, A): the bonus of Algorithm 1.

    Examples
    --------
    >>> hop_b_bonus(
    ...     Radii(transition=np.array([[0.5, 1.0]]), emission=np.array([0.25])), horizon=4
    ... ).tolist()
    [[1.5, 2.0]]
    """
    _check("hop_b_bonus", radii, horizon)
    return horizon * radii.emission[:, None] + radii.transition


@checked
def hop_b_class_bonus(radii: Radii, horizon: int) -> Array:
    """3 H eps(x, a) + H eps(x), (X, A): the bonus of appendix C.6.

    Examples
    --------
    >>> hop_b_class_bonus(
    ...     Radii(transition=np.array([[0.5, 1.0]]), emission=np.array([0.25])), horizon=4
    ... ).tolist()
    [[7.0, 13.0]]
    """
    _check("hop_b_class_bonus", radii, horizon)
    return 3 * horizon * radii.transition + horizon * radii.emission[:, None]


@checked
def centred_bonus(radii: Radii, transition: Array, horizon: int) -> Array:
    """(H - h)/2 [eps_T(x, a) + sum_x' T(x'|x, a) eps_O(x')] for h = 1..H, (H, X, A).

    The factor 1/2 comes from centring: values are in [0, H - h], and a difference of two
    distributions does not change if a constant is subtracted from them. The emission part is added
    one step before the observation; :func:`start_bonus` covers the first observation.
    ``transition`` is the table of the planner.

    Examples
    --------
    >>> radii = Radii(transition=np.array([[0.5], [0.5]]), emission=np.array([0.0, 1.0]))
    >>> centred_bonus(radii, np.array([[[1, 0]], [[0, 1]]]), horizon=3)[
    ...     :, :, 0
    ... ].tolist()  # half of 2, 1, 0 times 0.5 and 1.5
    [[0.5, 1.5], [0.25, 0.75], [0.0, 0.0]]
    """
    X, A = _check("centred_bonus", radii, horizon)
    _check_shape("centred_bonus", "transition", transition, (X, A, X))
    half = (horizon - np.arange(1, horizon + 1)) / 2
    return half[:, None, None] * (radii.transition + transition @ radii.emission)


@checked
def start_bonus(radii: Radii, initial: Array, horizon: int) -> Array:
    """(H/2) sum_x rho(x) eps_O(x), the bonus for the first observation.

    Add it to the value at the root after all clipping, not to the first reward.

    Examples
    --------
    >>> radii = Radii(transition=np.zeros((2, 1)), emission=np.array([0.2, 1.0]))
    >>> round(start_bonus(radii, np.array([0.5, 0.5]), horizon=4).item(), 6)  # twice the mean 0.6
    1.2
    """
    X, _ = _check("start_bonus", radii, horizon)
    _check_shape("start_bonus", "initial", initial, (X,))
    return horizon / 2 * (initial @ radii.emission)


def _check(subject: str, radii: Radii, horizon: int) -> tuple[int, int]:
    """X and A of radii; raises an error for invalid arrays. Traced numbers are not checked."""
    problems = size_problems(horizon=horizon)
    first = radii.transition
    X, A = first.shape if _numeric(first) and first.ndim == 2 else (0, 0)
    for where, ranks in (("transition", (X, A)), ("emission", (X,))):
        table = getattr(radii, where)
        if not _numeric(table) or table.shape != ranks or 0 in ranks:
            problems.append(Problem(f"radii.{where}", shown(table, 80), "(X, A) and (X,) numbers"))
    if not problems and not all(_finite(table) for table in radii):
        problems.append(Problem("radii", "nan, inf or negative entries", "finite radii"))
    refuse(ParameterError, subject, problems)
    return X, A


def _check_shape(subject: str, where: str, table: Array, shape: tuple[int, ...]) -> None:
    """Raise an error for a table whose shape does not fit the radii, or with invalid entries."""
    if table.shape != shape or not _finite(table):
        got = f"shape {table.shape}" if table.shape != shape else "nan, inf or negative entries"
        refuse(ParameterError, subject, [Problem(where, got, f"probabilities of shape {shape}")])


def _numeric(table: object) -> bool:
    return isinstance(table, np.ndarray | jax.Array) and table.dtype.kind in ("i", "u", "f")


def _finite(table: Array) -> bool:
    if isinstance(table, jax.Array):
        return True  # may be traced
    return bool(np.isfinite(table).all() and (table >= 0).all()) and not np.ma.is_masked(table)
