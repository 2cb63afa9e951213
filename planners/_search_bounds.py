"""The bounds of bounded_search at each step: alpha-vectors as lower bounds; the fast informed bound
and sawtooth points as upper bounds.

They are tuples of arrays that the compiled code in _search_kernels.py reads and writes. Beliefs are
compressed: only positive entries are stored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.moves import matrix
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.sparse import Sparse
from homdp_ppl.evaluation.relaxations import fast_informed_bound
from homdp_ppl.planners._bounds import blind_policies
from homdp_ppl.precision import Array

SAME = 1e-9  # keys of equal beliefs differ by at most this


class Model(NamedTuple):
    """The tables from one step to the next, with transitions compressed by rows.

    Bounds are functions of the belief, or of the observation and the belief if rewards depend on
    the observation that is seen before the action. Their states s are then pairs: s = y X + x,
    otherwise s = x. A belief has positive entries for one observation only.
    """

    initial: Array  # (X,)
    # (A + 1 or 2, X, Y)  O(y|x', a) of the next step, one table if it depends on no action; the
    # last one is the emission before the first action
    emission: Array
    rows: Array  # (X A + 1,)  start of the row of (x, a)
    columns: Array  # x' of each positive T(x'|x, a)
    chances: Array  # T(x'|x, a)
    labels: Array  # (S,)  arbitrary numbers to distinguish beliefs
    origin: Array  # (S,)  x of each s
    offset: Array  # (Y,)  s - x after each observation


class Stage(NamedTuple):
    """The bounds at one step."""

    used: Array  # (3,)  numbers of vectors, points and entries of points in the arrays
    reward: Array  # (A, S)
    informed: Array  # (A, S)  the fast informed bound
    alpha: Array  # (S, vectors)  the value of a policy from each state, one column per vector
    action: Array  # (vectors,)  its action
    successor: Array  # (vectors, Y)  its vector at the next step, after each observation
    begin: Array  # (points + 1,)  start of the entries of each point
    state: Array  # (entries,)
    weight: Array  # (entries,)  b(s) > 0
    size: Array  # (points,)  number of entries
    inverse: Array  # (S, points)  1 / b(s), infinite if b(s) = 0
    base: Array  # (points, A)  b . informed_a
    q_upper: Array  # (points, A)  upper bounds on Q(b, a)
    upper: Array  # (points,)  upper bound on V(b)
    drop: Array  # (points,)  max_a base - upper
    lower: Array  # (points,)  lower bound on V(b) at the last visit
    key: Array  # (points,)


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


class Work(NamedTuple):
    """Working memory of the compiled functions."""

    onward: Array  # (X,)  all zero between calls
    predicted: Array  # (X,)  all zero between calls
    touched: Array  # (X,)  where predicted is not zero
    state: Array  # (X,)  one belief, not normalised
    weight: Array  # (X,)
    base: Array  # (A,)
    fresh: Array  # (A,)  actions that were backed up
    score: Array  # (vectors,)
    ratio: Array  # (points,)
    shared: Array  # (points,)
    q_lower: Array  # (A,)  lower bounds on Q(b, a)
    pick: Array  # (A, Y)


def compressed(pomdp: POMDP) -> list[Model]:
    """The tables from each step to the next; steps with equal tables share their memory."""
    H, (X, Y, _) = pomdp.horizon, pomdp.sizes
    split, steps = pomdp.rewards_by_observation, range(max(1, H - 1))
    moves = [_rows_of(pomdp, h) for h in (steps if len(pomdp.transition) > 1 else steps[:1])]
    shows = [
        np.concatenate([pomdp.shows_after(min(h + 1, H - 1)), pomdp.shows(0)[None]])
        for h in (steps if len(pomdp.emission) > 1 else steps[:1])
    ]
    origin = np.tile(np.arange(X), Y if split else 1)
    offset = X * np.arange(Y) if split else np.zeros(Y, np.int64)
    labels = np.random.default_rng(0).random(len(origin))
    return [
        Model(pomdp.initial, shows[h % len(shows)], *moves[h % len(moves)], labels, origin, offset)
        for h in steps
    ]


def _rows_of(pomdp: POMDP, h: int) -> tuple[Array, Array, Array]:
    """The non-zero entries of T_h by rows: the start of each row, next states, probabilities."""
    if isinstance(pomdp.transition, Sparse):
        stored = matrix(pomdp, h).copy()
        stored.eliminate_zeros()  # stored zeros are no possible transitions
        rows, columns = (part.astype(np.int64) for part in (stored.indptr, stored.indices))
        return rows, columns, stored.data
    X, _, A = pomdp.sizes
    table = pomdp.moves(h).reshape(X * A, X)
    rows = np.concatenate([[0], np.cumsum(np.count_nonzero(table, axis=1))])
    columns = np.nonzero(table)[1].copy()  # contiguous: numba compiles for one type only
    return rows, columns, table[table != 0]


def first_stages(pomdp: POMDP) -> list[Stage]:
    """The initial bounds of each step: blind policies and the fast informed bound."""
    H, (_, Y, A) = pomdp.horizon, pomdp.sizes
    informed, blind = fast_informed_bound(pomdp.unscaled), blind_policies(pomdp)
    by_step = zip(
        pomdp.reward.swapaxes(1, 2).reshape(H, -1, A),
        (informed.swapaxes(1, 2) if informed.ndim == 4 else informed).reshape(H, -1, A),
        blind.reshape(H, A, -1),
        strict=True,
    )
    return [_first_stage(*parts, Y) for parts in by_step]


def _first_stage(reward: Array, informed: Array, blind: Array, Y: int) -> Stage:
    A = len(blind)
    return Stage(
        used=np.array([A, 0, 0]),
        reward=np.ascontiguousarray(reward.T),
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
        names = ("size", "base", "q_upper", "upper", "drop", "lower", "key")
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
    stage.used[1:] = end, last
    return stage


def make_work(X: int, Y: int, A: int) -> Work:
    """Working memory; score, ratio and shared must grow with the largest stage."""
    numbers = {name: np.zeros(X) for name in ("onward", "predicted", "weight")}
    places = {name: np.zeros(X, np.int64) for name in ("touched", "state")}
    by_action = {"base": np.zeros(A), "fresh": np.zeros(A, bool), "q_lower": np.zeros(A)}
    sets = {name: np.zeros(A) for name in ("score", "ratio", "shared")}
    return Work(pick=np.zeros((A, Y), np.int64), **numbers, **places, **by_action, **sets)


def make_children(n: int, X: int, A: int) -> Children:
    """Memory for n children of any support."""
    columns = (np.empty(n) for _ in range(5))
    return Children(
        np.zeros(n + 1, np.int64),
        np.empty(n * X, np.int64),
        np.empty(n * X),
        np.empty((n, A)),
        *columns,
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
