"""The bounds of bounded_search at each step: alpha-vectors as lower bounds; the fast informed bound
and sawtooth points as upper bounds.

They are tuples of arrays that the compiled code in _search_kernels.py reads and writes. Beliefs are
compressed: only positive entries are stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.evaluation.relaxations import fast_informed_bound
from homdp_ppl.planners._bounds import blind_policies
from homdp_ppl.precision import Array

SAME = 1e-9  # keys of equal beliefs differ by at most this


class Model(NamedTuple):
    """The tables from one step to the next, with transitions compressed by rows."""

    initial: Array  # (X,)
    first: Array  # (X, Y)  O(y|x) before the first action
    emission: Array  # (A|1, X, Y)  O(y|x', a) of the next step
    rows: Array  # (X A + 1,)  start of the row of (x, a)
    columns: Array  # x' of each positive T(x'|x, a)
    chances: Array  # T(x'|x, a)
    labels: Array  # (X,)  arbitrary numbers to distinguish beliefs
    marks: Array  # (Y,)  the same for observations; zero if rewards do not depend on them


class Stage(NamedTuple):
    """The bounds at one step.

    If rewards depend on the observation y that is seen before the action, values do too:
    V(b, y) = max_a [b . extra_ya + Q(b, a)]. Vectors and the fast informed bound then contain the
    part Q without the reward of this step, and serve all observations. Points belong to one
    observation.
    """

    used: Array  # (3,)  numbers of vectors, points and entries of points in the arrays
    reward: Array  # (A, X)  zero if it depends on the observation
    extra: Array  # (Y|0, A, X)  the reward by observation; empty if it does not depend on it
    informed: Array  # (A, X)  the fast informed bound
    alpha: Array  # (X, vectors)  the value of a policy from each state, one column per vector
    action: Array  # (vectors,)  its action
    successor: Array  # (vectors, Y)  its vector at the next step, after each observation
    begin: Array  # (points + 1,)  start of the entries of each point
    state: Array  # (entries,)
    weight: Array  # (entries,)  b(x) > 0
    size: Array  # (points,)  number of entries
    inverse: Array  # (X, points)  1 / b(x), infinite if b(x) = 0
    base: Array  # (points, A)  b . informed_a
    q_upper: Array  # (points, A)  upper bounds on Q(b, a)
    upper: Array  # (points,)  upper bound on V(b)
    drop: Array  # (points,)  max_a base - upper
    lower: Array  # (points,)  lower bound on V(b) at the last visit
    key: Array  # (points,)
    seen: Array  # (points,)  the observation of a point; 0 if rewards do not depend on it


class Front(NamedTuple):
    """Points from which the search continues."""

    points: Array  # (n,)  -1 is the start of the episode
    reach: Array  # (n,)  as in Children
    floor: float  # children with a smaller priority are left out


class Children(NamedTuple):
    """Candidate beliefs at the next step."""

    begin: Array  # (n + 1,)
    state: Array
    weight: Array
    base: Array  # (n, A)
    upper: Array  # (n,)
    lower: Array  # (n,)
    key: Array  # (n,)
    # (n,)  probability of reaching the belief, reduced for actions that seem worse than the best
    reach: Array
    priority: Array  # (n,)  reach times gap
    seen: Array  # (n,)  as in Stage


class Work(NamedTuple):
    """Working memory of the compiled functions."""

    onward: Array  # (X,)  all zero between calls
    predicted: Array  # (X,)  all zero between calls
    touched: Array  # (X,)  where predicted is not zero
    state: Array  # (X,)  one belief, not normalised
    weight: Array  # (X,)
    base: Array  # (A,)
    extra: Array  # (A,)  expected rewards by observation
    fresh: Array  # (A,)  actions that were backed up
    score: Array  # (vectors,)
    ratio: Array  # (points,)
    shared: Array  # (points,)
    q_lower: Array  # (A,)  lower bounds on Q(b, a)
    pick: Array  # (A, Y)


def compressed(pomdp: POMDP) -> list[Model]:
    """The tables from each step to the next; equal tables share their memory."""
    X, Y, A = pomdp.sizes
    labels, marks = np.split(np.random.default_rng(0).random(X + Y), [X])
    if not pomdp.rewards_by_observation:
        marks = np.zeros(Y)
    parts = []
    for table in pomdp.transition.reshape(-1, X * A, X):
        rows = np.concatenate([[0], np.cumsum(np.count_nonzero(table, axis=1))])
        columns = np.nonzero(table)[1].copy()  # contiguous: numba compiles for one type only
        parts.append((rows, columns, table[table != 0]))
    H, first = pomdp.horizon, pomdp.shows(0)
    parts = parts[: max(1, H - 1)] if len(parts) > 1 else parts * max(1, H - 1)
    return [
        Model(pomdp.initial, first, pomdp.shows_after(min(h + 1, H - 1)), *moves, labels, marks)
        for h, moves in enumerate(parts)
    ]


def first_stages(pomdp: POMDP) -> list[Stage]:
    """The initial bounds of each step: blind policies and the fast informed bound."""
    rewards = np.ascontiguousarray(pomdp.reward.transpose(0, 2, 3, 1))  # (H, Y|1, A, X)
    informed, blind = fast_informed_bound(pomdp), blind_policies(pomdp)
    if not pomdp.rewards_by_observation:
        values = zip(rewards[:, 0], rewards[:, :0], informed, blind, strict=True)
    else:  # without the reward of the step, which is the same for all observations
        onward = informed[:, :, 0] - pomdp.reward[:, :, 0]
        after = blind[:, :, 0] - rewards[:, 0]
        values = zip(np.zeros_like(rewards[:, 0]), rewards, onward, after, strict=True)
    Y = pomdp.sizes[1]
    return [_first_stage(*parts, Y) for parts in values]


def _first_stage(reward: Array, extra: Array, informed: Array, blind: Array, Y: int) -> Stage:
    A = len(blind)
    return Stage(
        used=np.array([A, 0, 0]),
        reward=reward,
        extra=extra,
        informed=np.ascontiguousarray(informed.T),
        alpha=np.ascontiguousarray(blind.T),
        action=np.arange(A),
        successor=np.repeat(np.arange(A)[:, None], Y, axis=1),
        begin=np.zeros(1, np.int64),
        state=np.zeros(0, np.int64),
        weight=np.zeros(0),
        size=np.zeros(0),
        inverse=np.zeros((blind.shape[1], 0)),
        base=np.zeros((0, A)),
        q_upper=np.zeros((0, A)),
        upper=np.zeros(0),
        drop=np.zeros(0),
        lower=np.zeros(0),
        key=np.zeros(0),
        seen=np.zeros(0, np.int64),
    )


def with_vectors(stage: Stage, vectors: int) -> Stage:
    """The same bounds, with capacity for ``vectors`` more vectors."""
    size = int(stage.used[0]) + vectors
    if size <= len(stage.action):
        return stage
    alpha = np.ascontiguousarray(_longer(stage.alpha.T, 2 * size).T)
    return stage._replace(
        alpha=alpha,
        action=_longer(stage.action, 2 * size),
        successor=_longer(stage.successor, 2 * size),
    )


def with_points(stage: Stage, children: Children, which: Array) -> Stage:
    """The bounds, with some of the children added as points."""
    _, m, e = stage.used
    sizes = np.diff(children.begin)[which]
    ends = np.cumsum(sizes)
    end, last = m + len(which), e + int(sizes.sum())
    if end > len(stage.key):
        names = ("size", "base", "q_upper", "upper", "drop", "lower", "key", "seen")
        grown = {name: _longer(getattr(stage, name), 2 * end) for name in names}
        inverse = np.ascontiguousarray(_longer(stage.inverse.T, 2 * end).T)
        stage = stage._replace(begin=_longer(stage.begin, 2 * end + 1), inverse=inverse, **grown)
    if last > len(stage.state):
        stage = stage._replace(
            state=_longer(stage.state, 2 * last), weight=_longer(stage.weight, 2 * last)
        )
    entries = np.repeat(children.begin[which] - ends + sizes, sizes) + np.arange(last - e)
    stage.begin[m + 1 : end + 1] = e + ends
    stage.state[e:last], stage.weight[e:last] = children.state[entries], children.weight[entries]
    stage.size[m:end] = sizes
    stage.inverse[:, m:end] = np.inf
    # For smaller b(x), 1 / b(x) overflows. A larger b(x) only makes the ratio smaller.
    tiny = np.finfo(np.float64).tiny
    stage.inverse[stage.state[e:last], np.repeat(np.arange(m, end), sizes)] = 1 / np.maximum(
        stage.weight[e:last], tiny
    )
    stage.base[m:end] = stage.q_upper[m:end] = children.base[which]
    stage.drop[m:end] = children.base[which].max(1) - children.upper[which]
    stage.upper[m:end], stage.lower[m:end], stage.key[m:end] = (
        part[which] for part in children[4:7]
    )
    stage.seen[m:end] = children.seen[which]
    stage.used[1:] = end, last
    return stage


def make_work(X: int, Y: int, A: int) -> Work:
    """Working memory; score, ratio and shared must grow with the largest stage."""
    numbers = {name: np.zeros(X) for name in ("onward", "predicted", "weight")}
    places = {name: np.zeros(X, np.int64) for name in ("touched", "state")}
    sets = ("base", "extra", "q_lower", "score", "ratio", "shared")
    by_action = {name: np.zeros(A) for name in sets}
    pick, fresh = np.zeros((A, Y), np.int64), np.zeros(A, bool)
    return Work(pick=pick, fresh=fresh, **numbers, **places, **by_action)


def make_children(n: int, X: int, A: int) -> Children:
    """Memory for n children of any support."""
    upper, lower, key, reach, priority = np.empty((5, n))
    return Children(
        np.zeros(n + 1, np.int64),
        np.empty(n * X, np.int64),
        np.empty(n * X),
        np.empty((n, A)),
        upper,
        lower,
        key,
        reach,
        priority,
        np.empty(n, np.int64),
    )


def merged(children: Children, width: int) -> tuple[Array, Array, bool]:
    """Merge equal beliefs, and select the ``width`` ones with the highest priority.

    Returns one child for each belief, their reach, and whether others were left out.
    """
    order = np.argsort(children.key, kind="stable")
    first = np.diff(children.key[order], prepend=-np.inf) > SAME
    group = np.cumsum(first) - 1
    priority = np.bincount(group, children.priority[order])
    best = np.argsort(-priority, kind="stable")[:width]
    return (
        order[first][best],
        np.bincount(group, children.reach[order])[best],
        len(best) < len(priority),
    )


def lookup(stage: Stage, key: Array) -> tuple[Array, Array]:
    """Which beliefs are already stored at a step, and their indices."""
    size = int(stage.used[1])
    if size == 0:
        return np.zeros(len(key), bool), np.zeros(len(key), np.int64)
    order = np.argsort(stage.key[:size], kind="stable")
    place = order[np.minimum(np.searchsorted(stage.key[:size][order], key - SAME), size - 1)]
    return np.abs(stage.key[place] - key) <= SAME, place


def first_rows(children: Children, n: int) -> Children:
    """A copy of the first n children."""
    begin = children.begin[: n + 1].copy()
    state, weight = (part[: begin[-1]].copy() for part in (children.state, children.weight))
    return Children(begin, state, weight, *(part[:n].copy() for part in children[3:]))


def joined(parts: list[Children]) -> Children:
    """Concatenate several sets of children."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([0, *(len(part.state) for part in parts)])
    begin = np.concatenate(
        [part.begin[:-1] + end for part, end in zip(parts, ends, strict=False)] + [ends[-1:]]
    )
    return Children(
        begin, *(np.concatenate(columns) for columns in list(zip(*parts, strict=True))[1:])
    )


def _longer(array: Array, size: int) -> Array:
    grown = np.zeros((size, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
