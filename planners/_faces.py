"""Faces of the simplex: the sets of states that are possible together at a step, given the zeros
of the model.

Reachable beliefs are on these faces, so alpha_vectors.py prunes the vectors of a step on each face.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.planners._lines import Floats, Integers
from homdp_ppl.precision import Array

MAX_FACES = 200  # per step; beyond, faces after the same observation are merged


class Faces(NamedTuple):
    """The maximal sets of states that are possible at a step, and the faces of the next step that
    they lead to.
    """

    states: list[Integers]  # of each face
    moves: list[Floats]  # (A, X, d)  T(x | s, a) from the states s of each face
    # by face, action and observation; -1 if the observation is impossible
    following: list[list[list[int]]]
    drift: Floats  # (X, A)  sum of the probabilities of states and observations, minus 1


def faces_of(model: Stationary) -> list[Faces]:
    """The faces of each step, given the zeros of the model; only maximal sets of states."""
    transition, emission = cast(Floats, model.transition), cast(Floats, model.emission)
    possible, sees = transition > 0, (emission > 0).T
    (X, A, _), found = possible.shape, list[Faces]()
    drift = transition @ emission.sum(1) - 1.0
    supports = _largest((sees & (model.initial > 0))[None, None])
    while len(found) < model.horizon:
        reach = (supports.astype(float) @ possible.reshape(X, A * X)).reshape(-1, A, X) > 0
        after = reach[:, :, None] & sees  # (faces, A, Y, X)
        following = _largest(after)
        within = after.astype(np.float64) @ ~following.T == 0
        into = np.where(after.any(-1), within.argmax(-1), -1)
        if len(found) + 1 == model.horizon:
            into = np.minimum(into, 0)  # after the last step the only vector is zero
        states = [np.flatnonzero(support) for support in supports]
        moves = [transition[face].transpose(1, 2, 0).copy() for face in states]
        found.append(Faces(states, moves, into.tolist(), drift))
        if np.array_equal(following, supports):
            found += [found[-1]] * (model.horizon - len(found) - 1)
        supports = following
    return found


def _largest(supports: Array) -> Array:
    """The maximal supports, (n, X), of (faces, A, Y, X). Too many are merged by observation."""
    flat = supports.reshape(-1, supports.shape[-1])
    where = {row.tobytes(): k for k, row in enumerate(np.packbits(flat, axis=1))}
    some = flat[[where[row] for row in sorted(where)]]
    some = some[some.any(1)]
    if len(some) > MAX_FACES and len(supports) * supports.shape[1] > 1:
        return _largest(np.any(supports, axis=(0, 1))[None, None])
    contained = some.astype(np.float64) @ ~some.T == 0
    return some[contained.sum(1) == 1]
