"""Upper bounds on the optimum: values of agents that see more than a policy does.

All are in the user's units.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from homdp_ppl.core.moves import expect, matrix
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array, namespace

CHUNK = 4_000_000  # numbers in memory at once during a backup of the fast informed bound


def mdp_values(pomdp: POMDP) -> Array:
    """Values of an agent that sees the state, (H, X).

    V_h(x) = max_a Q_h(x, a), with Q of :func:`qmdp`. If the reward depends on the observation, so
    do the values, (H, Y, X).

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger", horizon=2).pomdp
    >>> mdp_values(tiger)[0]  # opens the correct door at both steps
    array([2., 2.])
    """
    best = qmdp(check_pomdp(pomdp, "mdp_values", sparse=True)).max(-1)
    return best if best.ndim == 2 else best.swapaxes(-1, -2)


def qmdp(pomdp: POMDP) -> Array:
    """Q-values of an agent that sees the state from the next step on, (H, X, A); can be traced.

    Q_h(x, a) = r_h(x, a) + sum_x' T_h(x'|x, a) max_a' Q_{h+1}(x', a'). If the reward depends on the
    observation, so do the Q-values, (H, X, Y, A), and the maximum of the next step is averaged over
    O_{h+1}(y|x', a).

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger", horizon=2).pomdp
    >>> qmdp(tiger)[0, 0]  # listen, or open one of the doors
    array([1.9, 1. , 2. ])
    """
    pomdp = check_pomdp(pomdp, "qmdp", sparse=True)
    xp = namespace(pomdp)
    Q = [_rewards(pomdp, pomdp.horizon - 1)]
    for h in reversed(range(pomdp.horizon - 1)):
        shows, best = pomdp.shows_after(h + 1), Q[-1].max(-1)  # (A|1, X, Y); (X,) or (X, Y)
        # (A|1, X); the sums of rows are one, up to rounding
        later = shows.sum(-1) * best if best.ndim == 1 else (shows * best).sum(-1)
        onward = expect(pomdp, later[0] if len(later) == 1 else later, h)
        Q.append(_plus(_rewards(pomdp, h), onward))
    return _in_units(pomdp, xp.stack(Q[::-1]))


def fast_informed_bound(pomdp: POMDP) -> Array:
    """Vectors of the fast informed bound, (H, X, A).

    The value of a belief b at step h is at most max_a sum_x b(x) Q_h(x, a), where
    Q_h(x, a) = r_h(x, a) + sum_y max_a' sum_x' T_h(x'|x, a) O_{h+1}(y|x', a) Q_{h+1}(x', a'). This
    agent learns each state one step later (Hauskrecht 2000). If the reward depends on the
    observation, so do the vectors, (H, X, Y, A).

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger", horizon=2).pomdp
    >>> bool((fast_informed_bound(tiger) <= qmdp(tiger) + 1e-12).all())  # at least as tight as QMDP
    True
    """
    pomdp = check_pomdp(pomdp, "fast_informed_bound", sparse=True)
    H, (X, Y, A) = pomdp.horizon, pomdp.sizes
    got = f"{count(X)} states, {count(Y)} observations and {count(A)} actions"
    needed = 2 * NUMBER * (X * Y * A + H * X * A)
    require_memory(PlanningError, "fast_informed_bound", "model", got, needed)
    rows = max(1, CHUNK // (A * Y))
    Q = [_rewards(pomdp, h) for h in range(H)]
    parts: list[list[Any]] = []  # T_h by actions with the same emission
    for h in reversed(range(H - 1)):
        shows = pomdp.shows_after(h + 1)  # (A|1, X, Y)
        if not parts or len(pomdp.transition) > 1:
            each = [None] if len(shows) == 1 else range(A)
            parts = [_chunks(matrix(pomdp, h, a), rows) for a in each]
        later = (
            _informed(chunks, _products(Q[h + 1], shows[k]), A) for k, chunks in enumerate(parts)
        )
        onward = next(later).reshape(X, A) if len(shows) == 1 else np.stack(list(later), axis=1)
        Q[h] = _plus(Q[h], onward)
    return _in_units(pomdp, np.stack(Q))


def root_value(pomdp: POMDP, vectors: Array) -> Array:
    """The bound on the optimum given by a set of vectors of step 1; can be traced.

    It is sum_y max_i sum_x rho(x) O(y|x) v_i(x), because the first observation precedes the first
    action.

    Parameters
    ----------
    pomdp
        The model.
    vectors
        One vector per row, (n, X), or one per row and observation, (n, Y, X), in the user's units.
        ``mdp_values(pomdp)[:1]`` and ``qmdp(pomdp)[0].T`` give upper bounds, alpha-vectors of
        policies give lower bounds.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger", horizon=2).pomdp
    >>> round(float(root_value(tiger, qmdp(tiger)[0].T)), 4)  # the optimum is 1.852
    1.9
    """
    pomdp = check_pomdp(pomdp, "root_value", sparse=True)
    X, Y, _ = pomdp.sizes
    numbers, problems = as_numbers("vectors", vectors, f"shape (n, {X}) or (n, {Y}, {X})")
    if numbers is None:
        raise PlanningError("root_value", problems)
    vectors, shape = numbers, numbers.shape
    if (
        0 in shape
        or not (isinstance(vectors, jax.Array) or np.isfinite(vectors).all())
        or len(shape) not in (2, 3)
        or shape[-1] != X
        or (len(shape) == 3 and shape[1] != Y)
    ):
        expected = f"finite numbers of shape (n, {X}) or (n, {Y}, {X})"
        raise PlanningError("root_value", [Problem("vectors", f"shape {shape}", expected)])
    joint = pomdp.initial[:, None] * pomdp.shows(0)  # (X, Y)
    if vectors.ndim == 2:
        return (vectors @ joint).max(0).sum()
    return (vectors * joint.T).sum(-1).max(0).sum()


def _in_units(pomdp: POMDP, values: Array) -> Array:
    """Values (H, ...) of the remaining steps in the user's units."""
    remaining = pomdp.horizon - np.arange(pomdp.horizon)
    in_units: Array = pomdp.to_user(values, remaining.reshape(-1, *(1,) * (values.ndim - 1)))
    return in_units


def _rewards(pomdp: POMDP, h: int) -> Array:
    """r_h(x, a), (X, A), or r_h(x, y, a), (X, Y, A), if it depends on the observation."""
    rewards = pomdp.rewards(h)
    return rewards if pomdp.rewards_by_observation else rewards[:, 0]


def _plus(rewards: Array, onward: Array) -> Array:
    return rewards + (onward if rewards.ndim == 2 else onward[:, None])


def _products(Q: Array, shows: Array) -> Array:
    """O(y|x) Q(x, a), or O(y|x) Q(x, y, a), (X, A Y)."""
    by_observation = Q[:, :, None] if Q.ndim == 2 else Q.swapaxes(1, 2)  # (X, A, Y|1)
    return (by_observation * shows[:, None, :]).reshape(len(Q), -1)


def _chunks(table: Any, rows: int) -> list[Any]:
    """Split a transition matrix into blocks of rows."""
    return [table[start : start + rows] for start in range(0, table.shape[0], rows)]


def _informed(chunks: list[Any], following: Array, actions: int) -> Array:
    """sum_y max_a sum_x' T(x'|row) following(x', a, y), one number per row."""
    blocks = ((some @ following).reshape(some.shape[0], actions, -1) for some in chunks)
    return np.concatenate([hoped.max(1).sum(1) for hoped in blocks])
