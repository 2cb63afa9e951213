"""Bonuses: amounts that are added to the rewards of a learned model, so that its values are
optimistic.
"""

from __future__ import annotations

from typing import cast

import jax
import numpy as np

from homdp_ppl.confidence.radii import Radii
from homdp_ppl.core.arguments import refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.precision import Array, namespace

NEED_TABLE = ("hop_b_bonus", "hop_b_class_bonus")


@checked
def hop_b_bonus(radii: Radii, horizon: int, transition: Array | None = None) -> Array:
    """H eps(x) + eps(x, a), (X, A): the bonus of Algorithm 1.

    If radii depend on the step, the result has a step axis, (H, X, A). If emissions depend on the
    previous action, which the reward of a state cannot see, the bonus of the emission is added one
    step earlier: H sum_x' T_h(x'|x, a) eps_{h+1}(x', a). In the model with these transitions every
    policy has the same value as if it were added in x'. The bonus of the first observation is added
    at the first step.

    The radius eps_rho of an unknown initial distribution adds H eps_rho at the first step. This is
    enough: the value of a policy is sum_x rho(x) g(x) with g in [0, H]. The difference of two
    distributions sums to zero, so g can be centred at H/2, and a change of rho changes the value by
    at most (H/2) ||rho - rho-hat||_1. The paper's bonus for emissions has the same slack factor 2.

    Parameters
    ----------
    radii
        The radii, of HOP-B.
    horizon
        H.
    transition
        The transition table of the planner, (X, A, X) or (H, X, A, X). Required only if emissions
        depend on the previous action.

    Examples
    --------
    >>> hop_b_bonus(
    ...     Radii(transition=np.array([[0.5, 1.0]]), emission=np.array([0.25])), horizon=4
    ... ).tolist()
    [[1.5, 2.0]]
    """
    _check("hop_b_bonus", radii, horizon, transition)
    return _states_and_start(radii, horizon, transition) + radii.transition


@checked
def hop_b_class_bonus(radii: Radii, horizon: int, transition: Array | None = None) -> Array:
    """3 H eps(x, a) + H eps(x), (X, A): the bonus of appendix C.6.

    Steps, previous actions and unknown initial distributions are treated as in
    :func:`hop_b_bonus`.

    Parameters
    ----------
    radii, horizon, transition
        As in :func:`hop_b_bonus`.

    Examples
    --------
    >>> hop_b_class_bonus(
    ...     Radii(transition=np.array([[0.5, 1.0]]), emission=np.array([0.25])), horizon=4
    ... ).tolist()
    [[7.0, 13.0]]
    """
    _check("hop_b_class_bonus", radii, horizon, transition)
    return 3 * horizon * radii.transition + _states_and_start(radii, horizon, transition)


@checked
def centred_bonus(radii: Radii, transition: Array, horizon: int) -> Array:
    """(H - h)/2 [eps_T(x, a) + sum_x' T(x'|x, a) eps_O(x')] for h = 1..H, (H, X, A).

    The factor 1/2 comes from centring: values are in [0, H - h], and a difference of two
    distributions does not change if a constant is subtracted from them. The emission part is added
    one step before the observation, with the radius of the next step and of this action:
    eps_O(x') is that of O_{h+1}(. | x', a). :func:`start_bonus` covers the first observation.
    ``transition`` is the table of the planner, (X, A, X) or (H, X, A, X).

    Examples
    --------
    >>> radii = Radii(transition=np.array([[0.5], [0.5]]), emission=np.array([0.0, 1.0]))
    >>> centred_bonus(radii, np.array([[[1, 0]], [[0, 1]]]), horizon=3)[
    ...     :, :, 0
    ... ].tolist()  # half of 2, 1, 0 times 0.5 and 1.5
    [[0.5, 1.5], [0.25, 0.75], [0.0, 0.0]]
    """
    _check("centred_bonus", radii, horizon, transition)
    half = (horizon - np.arange(1, horizon + 1)) / 2
    return half[:, None, None] * (radii.transition + _next_emission(radii.emission, transition))


@checked
def start_bonus(radii: Radii, initial: Array, horizon: int) -> Array:
    """(H/2) [sum_x rho(x) eps_O(x) + eps_rho], the bonus for the first observation and state.

    eps_O is the radius of the first observation, and eps_rho that of the initial distribution, 0 if
    it is known. Both have the factor H/2 by centring, as in :func:`centred_bonus`: the value of a
    policy is sum_x rho(x) g(x) with g in [0, H], so it changes by at most (H/2)
    ||rho - rho-hat||_1 if rho is replaced by rho-hat. Add the bonus to the value at the root after
    all clipping, not to the first reward.

    Examples
    --------
    >>> radii = Radii(transition=np.zeros((2, 1)), emission=np.array([0.2, 1.0]))
    >>> round(start_bonus(radii, np.array([0.5, 0.5]), horizon=4).item(), 6)  # twice the mean 0.6
    1.2
    >>> unknown = radii._replace(initial=np.array(0.3))
    >>> round(start_bonus(unknown, np.array([0.5, 0.5]), horizon=4).item(), 6)  # and twice 0.3
    1.8
    """
    X, _ = _check("start_bonus", radii, horizon)
    _check_shape("start_bonus", "initial", initial, [(X,)])
    return horizon / 2 * (initial @ first_emission(radii.emission)) + horizon / 2 * radii.initial


def first_emission(radii: Array) -> Array:
    """The emission radii of the first observation, (X,)."""
    if radii.ndim == 1:
        return radii
    return radii[-1] if radii.ndim == 2 else radii[0, -1]


def _next_emission(radii: Array, transition: Array) -> Array:
    """sum_x' T_h(x'|x, a) eps_{h+1}(x', a), (X, A), or (H, X, A) if it depends on the step.

    It is zero at the last step if radii depend on the step.
    """
    if radii.ndim == 1:
        return transition @ radii
    later = radii
    if radii.ndim == 3:
        xp = namespace(radii)
        later = xp.concatenate([radii[1:], xp.zeros_like(radii[:1])])
    if later.shape[-2] > 1:
        later = later[..., :-1, :]  # the last one is that of the first observation
    return (transition * later[..., None, :, :]).sum(-1)


def _states_and_start(radii: Radii, horizon: int, transition: Array | None) -> Array:
    """H times the radii of emissions and of the initial distribution, where they are added."""
    emission, first = radii.emission, (np.arange(horizon) == 0)[:, None, None]
    if emission.ndim == 1:
        bonus = horizon * emission[:, None]
    elif emission.ndim == 3 and emission.shape[1] == 1:
        bonus = horizon * emission[:, 0, :, None]
    else:
        moves = cast(Array, transition)  # required by _check
        last = (np.arange(horizon) == horizon - 1)[:, None, None]
        later = namespace(emission).where(last, 0.0, _next_emission(emission, moves))
        bonus = horizon * (later + first * first_emission(emission)[:, None])
    if isinstance(radii.initial, float) and radii.initial == 0:
        return bonus
    return bonus + first * (horizon * radii.initial)


def _check(
    subject: str, radii: Radii, horizon: int, transition: Array | None = None
) -> tuple[int, int]:
    """X and A of radii; raises an error for invalid arrays. Traced numbers are not checked."""
    problems = size_problems(horizon=horizon)
    first = radii.transition
    X, A = first.shape[-2:] if _numeric(first) and first.ndim >= 2 else (0, 0)
    ranks = {
        "transition": [(X, A), (horizon, X, A)],
        "emission": [(X,), (A + 1, X), (horizon, A + 1, X), (horizon, 1, X)],
    }
    for where, shapes in ranks.items():
        table = getattr(radii, where)
        if not _numeric(table) or table.shape not in shapes or 0 in table.shape:
            expected = f"numbers of shape {' or '.join(map(str, shapes))}"
            problems.append(Problem(f"radii.{where}", shown(table, 80), expected))
    if np.ndim(radii.initial):
        problems.append(Problem("radii.initial", shown(radii.initial, 80), "one number"))
    if not problems and not all(_finite(table) for table in radii):
        problems.append(Problem("radii", "nan, inf or negative entries", "finite radii"))
    if not problems and transition is None and subject in NEED_TABLE and _by_action(radii):
        remedy = "Pass the transition table of the planner."
        problems.append(Problem("transition", "None", "a transition table", remedy))
    refuse(ParameterError, subject, problems)
    if transition is not None:
        _check_shape(subject, "transition", transition, [(X, A, X), (horizon, X, A, X)])
    return X, A


def _by_action(radii: Radii) -> bool:
    return radii.emission.ndim > 1 and radii.emission.shape[-2] > 1


def _check_shape(subject: str, where: str, table: Array, shapes: list[tuple[int, ...]]) -> None:
    """Raise an error for a table whose shape does not fit the radii, or with invalid entries."""
    if table.shape not in shapes or not _finite(table):
        got = (
            f"shape {table.shape}" if table.shape not in shapes else "nan, inf or negative entries"
        )
        expected = f"probabilities of shape {' or '.join(map(str, shapes))}"
        refuse(ParameterError, subject, [Problem(where, got, expected)])


def _numeric(table: object) -> bool:
    return isinstance(table, np.ndarray | jax.Array) and table.dtype.kind in ("i", "u", "f")


def _finite(table: Array | float) -> bool:
    if isinstance(table, jax.Array):
        return True  # may be traced
    return bool(np.isfinite(table).all() and np.all(table >= 0)) and not np.ma.is_masked(table)
