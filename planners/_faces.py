"""Faces of the simplex: the sets of states that are possible together at a step, given the zeros
of the model.

Reachable beliefs are on these faces, so alpha_vectors.py prunes the vectors of a step on each face.
If rewards depend on the observation, so do the vectors, and each observation has its own faces.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.planners._limits import Limits
from homdp_ppl.planners._lines import Floats, Integers
from homdp_ppl.precision import Array

MAX_FACES = 200  # per step; beyond, faces after the same observation are merged
WORK = 4.0  # approximate number of multiplications per entry of a table


class Faces(NamedTuple):
    """The maximal sets of states that are possible at a step, and the faces of the next step that
    they lead to, with the tables that lead there.
    """

    table: Floats  # (X, A, X)  T(x'|x, a)
    shows: Floats  # (A|1, X, Y)  O(y|x', a) of the next step
    states: list[Integers]  # of each face
    seen: Integers  # (faces,)  the observation of each face; all 0 if rewards do not depend on it
    # (A, X, d)  T(x | s, a) from the states s of each face; empty if it depends on the step
    moves: list[Floats]
    # by face, action and observation; -1 if the observation is impossible
    following: list[list[list[int]]]
    drift: Floats  # (X, A)  sum of the probabilities of states and observations, minus 1


def faces_of(pomdp: POMDP, limits: Limits) -> list[Faces]:
    """The faces of each step, given the zeros of the model; only maximal sets of states."""
    H, (X, Y, A), split = pomdp.horizon, pomdp.sizes, pomdp.rewards_by_observation
    steady_moves, found = len(pomdp.transition) == 1, list[Faces]()
    steady = steady_moves and len(pomdp.emission) == 1
    supports, seen = _largest(((pomdp.shows(0) > 0).T & (pomdp.initial > 0))[None, None], split)
    while len(found) < H:
        h = len(found)
        work = WORK * A * X * (len(supports) * Y + int(supports.sum()) + X)
        limits.check(work)
        table = cast(Floats, pomdp.moves(h))
        # after the last step all vectors are zero, so any emission will do
        shows = cast(Floats, pomdp.shows_after(min(h + 1, H - 1)))
        possible = (table > 0).reshape(X, A * X)
        reach = (supports.astype(float) @ possible).reshape(-1, A, 1, X) > 0
        after = reach & np.swapaxes(shows > 0, 1, 2)  # (faces, A, Y, X)
        following, then = _largest(after, split)
        within = after.astype(np.float64) @ ~following.T == 0
        if split:
            within &= np.arange(after.shape[2])[:, None] == then
        into = np.where(after.any(-1), within.argmax(-1), -1)
        if h + 1 == H:
            into = np.minimum(into, 0)  # after the last step the only vector is zero
        states = [np.flatnonzero(support) for support in supports]
        moves = restricted(table, states) if steady_moves else []
        drift = _drift(table, shows)
        found.append(Faces(table, shows, states, seen, moves, into.tolist(), drift))
        limits.spend(work)
        if steady and np.array_equal(following, supports) and np.array_equal(then, seen):
            found += [found[-1]] * (H - len(found) - 1)
        supports, seen = following, then
    return found


def restricted(table: Floats, faces: list[Integers]) -> list[Floats]:
    """T(x | s, a) from the states s of each face, (A, X, d)."""
    return [table[states].transpose(1, 2, 0).copy() for states in faces]


def _drift(moves: Floats, shows: Floats) -> Floats:
    """The sum of T(x'|x, a) O(y|x', a) over x' and y, minus 1, (X, A)."""
    sums = shows.sum(-1)
    if len(sums) == 1:
        return cast(Floats, moves @ sums[0] - 1.0)
    return np.einsum("xaz,az->xa", moves, sums) - 1.0


def _largest(supports: Array, split: bool) -> tuple[Array, Integers]:
    """The maximal supports, (n, X), of (faces, A, Y, X), and their observations.

    If ``split``, those of each observation; otherwise of all together, with observation 0. Too many
    are merged by observation.
    """
    if not split:
        some = _maximal(supports)
        return some, np.zeros(len(some), np.int64)
    parts = [_maximal(supports[:, :, y : y + 1]) for y in range(supports.shape[2])]
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _maximal(supports: Array) -> Array:
    flat = supports.reshape(-1, supports.shape[-1])
    where = {row.tobytes(): k for k, row in enumerate(np.packbits(flat, axis=1))}
    some = flat[[where[row] for row in sorted(where)]]
    some = some[some.any(1)]
    if len(some) > MAX_FACES and len(supports) * supports.shape[1] > 1:
        return _maximal(np.any(supports, axis=(0, 1))[None, None])
    contained = some.astype(np.float64) @ ~some.T == 0
    return some[contained.sum(1) == 1]
