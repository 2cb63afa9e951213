"""What bounded_search knows at each step.

Alpha-vectors below, the fast informed bound and points of a sawtooth above.

Tuples of arrays that the compiled code in search_kernels.py reads and writes, how they begin and
how they grow. Beliefs are kept compressed, their positive entries only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.precision import Array

SAME = 1e-9  # keys of equal beliefs differ by less


class Model(NamedTuple):
    """A POMDP with its transition table compressed by rows."""

    initial: Array  # (X,)
    emission: Array  # (X, Y)
    rows: Array  # (X A + 1,)  where the row of (x, a) begins
    columns: Array  # x' of each positive T(x'|x, a)
    chances: Array  # T(x'|x, a)
    labels: Array  # (X,)  arbitrary numbers that tell beliefs apart


class Stage(NamedTuple):
    """The bounds at one step. ``used`` says how much of the arrays is in use.

    Vectors, points, entries of the points.
    """

    used: Array  # (3,)
    reward: Array  # (A, X)
    informed: Array  # (A, X)  the fast informed bound
    alpha: Array  # (X, vectors)  the value of a policy from each state, one column a vector
    action: Array  # (vectors,)  its action
    successor: Array  # (vectors, Y)  the vector of the next step it goes on with
    begin: Array  # (points + 1,)  where the entries of a point's belief begin
    state: Array  # (entries,)
    weight: Array  # (entries,)  b(x) > 0
    size: Array  # (points,)  how many
    inverse: Array  # (X, points)  1 / b(x), infinite where b(x) = 0
    base: Array  # (points, A)  b . informed_a
    hope: Array  # (points, A)  upper bounds of Q(b, a)
    upper: Array  # (points,)  upper bound of V(b)
    drop: Array  # (points,)  how far it lies below max_a base
    lower: Array  # (points,)  lower bound of V(b) when last seen
    key: Array  # (points,)


class Front(NamedTuple):
    """Points to continue from."""

    points: Array  # (n,)  -1 is the start of the episode
    reach: Array  # (n,)  probability of getting there, as in Children
    floor: float  # children with less reach times gap are left out


class Children(NamedTuple):
    """Beliefs at the next step that look worth a visit."""

    begin: Array  # (n + 1,)
    state: Array
    weight: Array
    base: Array  # (n, A)
    upper: Array  # (n,)
    lower: Array  # (n,)
    key: Array  # (n,)
    reach: (
        Array  # (n,)  probability of getting there, less for actions that look worse than the best
    )
    worth: Array  # (n,)  reach times gap


class Work(NamedTuple):
    """Room to compute in."""

    onward: Array  # (X,)  all zero between calls
    predicted: Array  # (X,)  all zero between calls
    touched: Array  # (X,)  where predicted is not zero
    state: Array  # (X,)  one belief, its mass not divided out
    weight: Array  # (X,)
    base: Array  # (A,)
    fresh: Array  # (A,)  actions looked at
    score: Array  # (vectors,)
    ratio: Array  # (points,)
    shared: Array  # (points,)
    promise: Array  # (A,)
    pick: Array  # (A, Y)


def compressed(pomdp: Stationary) -> Model:
    """A model with the zeros of its transition table left out."""
    X, A, _ = pomdp.transition.shape
    table = pomdp.transition.reshape(X * A, X)
    rows = np.concatenate([[0], np.cumsum(np.count_nonzero(table, axis=1))])
    columns, labels = (
        np.nonzero(table)[1].copy(),
        np.random.default_rng(0).random(X),
    )  # contiguous: one type, compiled once
    return Model(pomdp.initial, pomdp.emission, rows, columns, table[table != 0], labels)


def first_stage(reward: Array, informed: Array, blind: Array, Y: int) -> Stage:
    """The bounds of one step before any search.

    Blind policies (A, X) below, the fast informed bound (X, A) above.
    """
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
        hope=np.zeros((0, A)),
        upper=np.zeros(0),
        drop=np.zeros(0),
        lower=np.zeros(0),
        key=np.zeros(0),
    )


def with_vectors(stage: Stage, vectors: int) -> Stage:
    """The same bounds, with room for so many more vectors."""
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
    """The bounds with some of the children stored as points."""
    _, m, e = stage.used
    sizes = np.diff(children.begin)[which]
    ends = np.cumsum(sizes)
    end, last = m + len(which), e + int(sizes.sum())
    if end > len(stage.key):
        names = ("size", "base", "hope", "upper", "drop", "lower", "key")
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
    tiny = np.finfo(
        np.float64
    ).tiny  # below it, 1 / b(x) overflows; a larger b(x) only makes the ratio smaller
    stage.inverse[stage.state[e:last], np.repeat(np.arange(m, end), sizes)] = 1 / np.maximum(
        stage.weight[e:last], tiny
    )
    stage.base[m:end] = stage.hope[m:end] = children.base[which]
    stage.drop[m:end] = children.base[which].max(1) - children.upper[which]
    stage.upper[m:end], stage.lower[m:end], stage.key[m:end] = (
        part[which] for part in children[4:7]
    )
    stage.used[1:] = end, last
    return stage


def make_work(X: int, Y: int, A: int) -> Work:
    """Room for models of a size; score, ratio and shared must grow with the largest stage."""
    numbers = {name: np.zeros(X) for name in ("onward", "predicted", "weight")}
    places = {name: np.zeros(X, np.int64) for name in ("touched", "state")}
    by_action = {"base": np.zeros(A), "fresh": np.zeros(A, bool), "promise": np.zeros(A)}
    sets = {name: np.zeros(A) for name in ("score", "ratio", "shared")}
    return Work(pick=np.zeros((A, Y), np.int64), **numbers, **places, **by_action, **sets)


def make_children(n: int, X: int, A: int) -> Children:
    """Room for n children of any support."""
    columns = (np.empty(n) for _ in range(5))
    return Children(
        np.zeros(n + 1, np.int64),
        np.empty(n * X, np.int64),
        np.empty(n * X),
        np.empty((n, A)),
        *columns,
    )


def merged(children: Children, width: int) -> tuple[Array, Array, bool]:
    """Equal beliefs put together, the ``width`` most worthwhile.

    One child of each, their reach, whether more were left out.
    """
    order = np.argsort(children.key, kind="stable")
    first = np.diff(children.key[order], prepend=-np.inf) > SAME
    group = np.cumsum(first) - 1
    worth = np.bincount(group, children.worth[order])
    best = np.argsort(-worth, kind="stable")[:width]
    return (
        order[first][best],
        np.bincount(group, children.reach[order])[best],
        len(best) < len(worth),
    )


def lookup(stage: Stage, key: Array) -> tuple[Array, Array]:
    """Which beliefs are stored at a step already, and where."""
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
    """Several sets of children as one."""
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
