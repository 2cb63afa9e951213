# mypy: disable-error-code="untyped-decorator, no-untyped-def"
"""Compiled backups of both bounds for bounded_search, one belief at a time, in loops over its
positive entries.

Each function keeps the bounds valid: vectors are values of policies, points are upper bounds on the
optimum at their belief. ``model``, ``here``, ``there`` (the next step), ``front``, ``work`` and
``children`` are the tuples of _search_bounds.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

# The share of an action is (q_upper - lower) / (upper - lower). Actions with a smaller share are
# not followed; the reach of others is multiplied by this power of the share.
SERIOUS = 0.5
FEW = 16  # a belief has few successors if this many times as many are fewer than the states
SHARPNESS = 8

# Without wrappers for other callers, compilation takes a third less time.
BARE: dict[str, Any] = {"no_cfunc_wrapper": True}
BARER: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
compiled = njit(cache=True, error_model="numpy", **BARE)
inner = njit(error_model="numpy", **BARER)  # called by compiled code only


@inner
def _predict(model, stage, point, action, work):
    """Write sum_x b(x) T(x'|x, a) to ``work.predicted``; the initial distribution for point -1.

    Returns the number of positive entries.
    """
    X, A = len(model.initial), len(work.base)
    n = 0
    if point < 0:
        for x in range(X):
            work.predicted[x] = model.initial[x]
    else:
        begin, end = stage.begin[point], stage.begin[point + 1]
        following = 0
        for k in range(begin, end):
            row, weight = model.origin[stage.state[k]] * A + action, stage.weight[k]
            following += model.rows[row + 1] - model.rows[row]
            for t in range(model.rows[row], model.rows[row + 1]):
                work.predicted[model.columns[t]] += weight * model.chances[t]
        if FEW * following < X:  # a list of the states instead of a pass over all of them
            for k in range(begin, end):
                row = model.origin[stage.state[k]] * A + action
                for t in range(model.rows[row], model.rows[row + 1]):
                    x = model.columns[t]
                    if work.predicted[x] > 0.0:  # negative: listed already
                        work.touched[n] = x
                        work.predicted[x] = -work.predicted[x]
                        n += 1
            work.touched[:n].sort()
            for t in range(n):
                work.predicted[work.touched[t]] = -work.predicted[work.touched[t]]
            return n
    for x in range(X):
        if work.predicted[x] > 0.0:
            work.touched[n] = x
            n += 1
    return n


@inner
def _recall(stage, point, work):
    """Write a stored belief to ``work``."""
    begin = stage.begin[point]
    for k in range(begin, stage.begin[point + 1]):
        work.state[k - begin], work.weight[k - begin] = stage.state[k], stage.weight[k]
    return stage.begin[point + 1] - begin


@inner
def _rewarded(stage, point, action):
    total = 0.0
    for k in range(stage.begin[point], stage.begin[point + 1]):
        total += stage.weight[k] * stage.reward[action, stage.state[k]]
    return total


@inner
def _greatest(table, row):
    best = 0
    for k in range(1, table.shape[1]):
        if table[row, k] > table[row, best]:
            best = k
    return best


@inner
def _forget(work, n):
    for t in range(n):
        work.predicted[work.touched[t]] = 0.0


@inner
def _table(model, point, action):
    """The index of O(y|x') after an action at a point; of the first emission for point -1."""
    if point < 0:
        return len(model.emission) - 1
    return action if len(model.emission) > 2 else 0


@inner
def _observe(model, table, work, n, y):
    """Write the predicted weights times O(y|x') to ``work.state`` and ``work.weight``.

    Returns the number of positive entries.
    """
    m, offset = 0, model.offset[y]
    for t in range(n):
        x = work.touched[t]
        seen = work.predicted[x] * model.emission[table, x, y]
        if seen > 0.0:
            work.state[m] = offset + x
            work.weight[m] = seen
            m += 1
    return m


@inner
def _upper(stage, work, m):
    """Upper bound at the belief in ``work``, which need not be normalised.

    V(b) <= c v_i + U(b - c b_i) for every stored point with V(b_i) <= v_i and every c with c b_i <=
    b, where U is the fast informed bound. The largest such c is the smallest ratio b(x) / b_i(x)
    over the states with b_i(x) > 0. If b(x) = 0 at one of them, then c = 0.
    """
    A, points = len(work.base), stage.used[1]
    first = -np.inf
    for a in range(A):
        total = 0.0
        for k in range(m):
            total += work.weight[k] * stage.informed[a, work.state[k]]
        work.base[a] = total
        first = max(first, total)
    for i in range(points):
        work.ratio[i] = np.inf
        work.shared[i] = 0.0
    for k in range(m):
        x, weight = work.state[k], work.weight[k]
        for i in range(points):
            inverse = stage.inverse[x, i]
            ratio = weight * inverse
            work.ratio[i] = ratio if ratio < work.ratio[i] else work.ratio[i]
            work.shared[i] += 1.0 if inverse < np.inf else 0.0
    best = first
    for i in range(points):
        c = work.ratio[i]
        # the bound is at least first - c drop
        if work.shared[i] == stage.size[i] and c * stage.drop[i] > first - best:
            rest = -np.inf
            for a in range(A):
                rest = max(rest, work.base[a] - c * stage.base[i, a])
            best = min(best, c * stage.upper[i] + rest)
    return best


@inner
def _lower(stage, work, m, tie):
    """The best vector at the belief in ``work``; its value is in ``work.score``.

    Ties are broken in favour of the lowest action.
    """
    n = stage.used[0]
    mass = 0.0
    for i in range(n):
        work.score[i] = 0.0
    for k in range(m):
        x, weight = work.state[k], work.weight[k]
        mass += weight
        for i in range(n):
            work.score[i] += weight * stage.alpha[x, i]
    best = 0
    for i in range(1, n):
        if work.score[i] > work.score[best]:
            best = i
    enough = work.score[best] - tie * mass
    for i in range(n):
        if work.score[i] >= enough and (
            stage.action[i] < stage.action[best]
            or (stage.action[i] == stage.action[best] and work.score[i] > work.score[best])
        ):
            best = i
    return best


@compiled
def refine(model, here, there, points, work):
    """Back up the upper bound at points, only for actions that seem best.

    Returns the total improvement.
    """
    A, Y = work.pick.shape
    gained = 0.0
    for i in points:
        for a in range(A):
            work.fresh[a] = False
        while True:
            a = _greatest(here.q_upper, i)
            if work.fresh[a]:
                break
            work.fresh[a] = True
            n, table = _predict(model, here, i, a, work), _table(model, i, a)
            total = _rewarded(here, i, a)
            for y in range(Y):
                m = _observe(model, table, work, n, y)
                if m > 0:
                    total += _upper(there, work, m)
            _forget(work, n)
            here.q_upper[i, a] = min(here.q_upper[i, a], total)
        if here.q_upper[i, a] < here.upper[i]:
            gained += here.upper[i] - here.q_upper[i, a]
            here.drop[i] += here.upper[i] - here.q_upper[i, a]
            here.upper[i] = here.q_upper[i, a]
    return gained


@compiled
def improve(model, here, there, points, tie, least, work):
    """Back up the lower bound at points.

    A vector is added if it gains ``least``, or if it ties and has a lower action. ``here`` must
    have capacity for one vector per point. Returns the number of new vectors.
    """
    A, Y = work.pick.shape
    added = 0
    for i in points:
        own = _lower(here, work, _recall(here, i, work), tie)
        low, usual, most, best = work.score[own], here.action[own], -np.inf, -np.inf
        for k in range(here.used[0]):
            most = max(most, work.score[k])
        for a in range(A):
            work.q_lower[a] = -np.inf
            if here.q_upper[i, a] <= low + least and (a >= usual or here.q_upper[i, a] < low - tie):
                continue
            n, table = _predict(model, here, i, a, work), _table(model, i, a)
            work.q_lower[a] = _rewarded(here, i, a)
            for y in range(Y):
                m = _observe(model, table, work, n, y)
                work.pick[a, y] = -1
                if m > 0:
                    work.pick[a, y] = _lower(there, work, m, tie)
                    work.q_lower[a] += work.score[work.pick[a, y]]
            _forget(work, n)
            best = max(best, work.q_lower[a])
        for a in range(A):
            if work.q_lower[a] >= best - tie and work.q_lower[a] > -np.inf:
                if work.q_lower[a] > most + least or (a < usual and work.q_lower[a] >= low - tie):
                    _append(model, here, there, i, a, tie, work)
                    low = work.q_lower[a]
                    added += 1
                break
        here.lower[i] = low
    return added


@inner
def _append(model, here, there, i, a, tie, work):
    """Add the vector of action a and the picks.

    It is r(s, a) + sum_x' T(x'|x, a) sum_y O(y|x', a) alpha_{pick(y)}(s'), where x belongs to s,
    and s' to x' and y. After an observation that is impossible at this point, the policy follows
    the best vector for the predicted belief.
    """
    X, (A, Y), table = len(model.initial), work.pick.shape, _table(model, i, a)
    n = _predict(model, here, i, a, work)
    new, usual, offset = here.used[0], np.int64(-1), np.int64(-1)
    for y in range(Y):
        if work.pick[a, y] < 0:
            if model.offset[y] != offset:
                offset = model.offset[y]
                for t in range(n):
                    work.state[t] = offset + work.touched[t]
                    work.weight[t] = work.predicted[work.touched[t]]
                usual = _lower(there, work, n, tie)
            work.pick[a, y] = usual
        here.successor[new, y] = work.pick[a, y]
    _forget(work, n)
    for x in range(X):
        for y in range(Y):
            alpha = there.alpha[model.offset[y] + x, work.pick[a, y]]
            work.onward[x] += model.emission[table, x, y] * alpha
    for s in range(len(model.origin)):
        total, row = here.reward[a, s], model.origin[s] * A + a
        for t in range(model.rows[row], model.rows[row + 1]):
            total += model.chances[t] * work.onward[model.columns[t]]
        here.alpha[s, new] = total
    for x in range(X):
        work.onward[x] = 0.0
    here.action[new] = a
    here.used[0] = new + 1


@compiled
def descend(model, here, there, front, tie, work, children):
    """The beliefs that follow the points of a front under every action that may be optimal.

    Only children with a priority above ``front.floor`` are written to ``children``, which must have
    capacity for all. Returns their number, and the sums of all upper and of all lower bounds.
    """
    A, Y = work.pick.shape
    # A plain 0 has another type, and _write would be compiled twice.
    count, above, below = np.int64(0), 0.0, 0.0
    for j in range(len(front.points)):
        i = front.points[j]
        for a in range(A if i >= 0 else 1):
            share = 1.0
            if i >= 0:
                share = (here.q_upper[i, a] - here.lower[i]) / max(
                    here.upper[i] - here.lower[i], 1e-300
                )
                if share < SERIOUS:
                    continue
                share = min(share, 1.0) ** SHARPNESS
            n, table = _predict(model, here, i, a, work), _table(model, i, a)
            for y in range(Y):
                m = _observe(model, table, work, n, y)
                if m == 0:
                    continue
                upper = _upper(there, work, m)
                lower = work.score[_lower(there, work, m, tie)]
                above, below = above + upper, below + lower
                if share * front.reach[j] * (upper - lower) > front.floor:
                    bounds = (upper, lower)
                    _write(model, children, count, bounds, share * front.reach[j], m, work)
                    count += 1
            _forget(work, n)
    return count, above, below


@inner
def _write(model, children, count, bounds, reach, m, work):
    """Store the belief in ``work``, normalised.

    Beliefs whose entries agree to nine digits have the same key.
    """
    upper, lower = bounds
    mass, key, end = 0.0, 0.0, children.begin[count]
    for k in range(m):
        mass += work.weight[k]
    for k in range(m):
        label = model.labels[work.state[k]]
        children.state[end + k] = work.state[k]
        children.weight[end + k] = work.weight[k] / mass
        key += label * (math.log(children.weight[end + k]) + label)
    for a in range(len(work.base)):
        children.base[count, a] = work.base[a] / mass
    children.begin[count + 1] = end + m
    children.key[count] = key
    children.upper[count], children.lower[count] = upper / mass, lower / mass
    children.reach[count], children.priority[count] = reach * mass, reach * (upper - lower)
