"""Compiled pruning of alpha-vectors: which sums of two sets of vectors are needed at some belief,
and a bound on the loss.

Vectors are defined on a face of the simplex, the beliefs over d states. One state needs a maximum,
two states a convex hull of lines (_lines.py), more states a witness test by linear programming. A
vector is dropped only with a certificate: a mixture of kept vectors that is nowhere below it by
more than the bound. Vectors that the test cannot decide are kept.

Compiled functions are in the same file as the functions that they call, because numba recompiles a
file that has changed, but not its callers. They use loops, which compile ten times faster than
slices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from homdp_ppl.planners._lines import Floats, Integers, prune_lines

# number of kept vectors that a witness test tries first: those that entered a basis last
HOT = 32
SLACK = 0.1  # tolerance of a test, as a share of eps
ZERO = 1e-12  # weights of a belief and pivots below this are zero
STEPS = 50  # largest number of pivots of a test, per state
INWARD = 1e-3  # how far beliefs are moved away from the boundary, where vectors tie
DROP, WITNESS, UNKNOWN = 0, 1, 2
OPEN, DROPPED = -2, -1  # sums that are not decided yet, and sums that are not kept


class Kept(NamedTuple):
    """The kept sums of a left and a right vector."""

    left: Integers  # (k,)   i of each kept sum left_i + right_j
    right: Integers  # (k,)   j
    points: Floats  # (k, d)  a belief where each sum is needed
    loss: float  # the best kept sum is at most this much below the best sum, at any belief
    work: float  # approximate number of multiplications


def prune_sums(left: Floats, right: Floats, seeds: Floats, eps: float) -> Kept:
    """The sums left_i + right_j that are needed to stay within ``eps`` of the maximum of all sums
    at every belief.

    Parameters
    ----------
    left, right
        Vectors on a face, (n, d) and (m, d). To prune a single set, use one zero vector as the
        other.
    seeds
        Beliefs at which to look for maximal sums first, (k, d); at least one.
    eps
        The largest loss at any belief.
    """
    d = left.shape[1]
    if len(left) == len(right) == 1:
        return Kept(np.zeros(1, np.int64), np.zeros(1, np.int64), seeds[:1], 0.0, 0.0)
    if d == 1:
        return Kept(left.argmax(0), right.argmax(0), seeds[:1], 0.0, 0.0)
    if d == 2:
        return Kept(*prune_lines(left, right, eps))
    return Kept(*_prune_vectors(left, right, seeds, eps))


class _Workspace(NamedTuple):
    """Memory of a witness test.

    Vectors are columns, so that loops over them are contiguous in memory.
    """

    vectors: Floats  # (d, n)        the kept vectors
    points: Floats  # (n, d)        a belief where each is needed
    hot: Floats  # (d, HOT)      copies of some of them
    names: Integers  # (HOT + 1,)    their indices, and how many there have been
    inverse: Floats  # (d + 1, d + 1)  of the basis
    basis: Integers  # (d,)          its variables: kept vectors, or -1 - x for the slack of a state
    belief: Floats  # (d,)
    scores: Floats  # (n + HOT,)


@njit(cache=True)
def _prune_vectors(
    left: Floats, right: Floats, seeds: Floats, eps: float
) -> tuple[Integers, Integers, Floats, float, float]:
    """Lark's algorithm: a sum is covered by kept sums, or there is a belief at which the best sum
    must be added.
    """
    n, m, d = len(left), len(right), left.shape[1]
    # The parts of these arrays that are never written take no memory.
    place, points, vectors = np.full((n, m), OPEN), np.empty((n * m, d)), np.empty((d, n * m))
    hot, names, scores = np.empty((d, HOT)), np.zeros(HOT + 1, np.int64), np.empty(n * m + HOT)
    space = _Workspace(
        vectors,
        points,
        hot,
        names,
        np.empty((d + 1, d + 1)),
        np.empty(d, np.int64),
        np.empty(d),
        scores,
    )
    kept, loss, work, target = 0, 0.0, float(d * (n + m)), np.empty(d)
    for seed in range(len(seeds)):
        for x in range(d):
            space.belief[x] = seeds[seed, x]
        a, b, gain = _best(left, right, INWARD, kept, space)
        work += d * (n + m + kept)
        if gain > eps and place[a, b] == OPEN:
            kept = _keep(left, right, a, b, kept, place, space)
    for i in range(n):
        for j in range(m):
            for x in range(d):
                target[x] = left[i, x] + right[j, x]
            while place[i, j] == OPEN:
                status, lost, effort = _test(target, kept, eps, space)
                work += effort
                if status == DROP:
                    place[i, j], loss = DROPPED, max(loss, lost)
                    break
                a, b, gain = _best(left, right, INWARD, kept, space)
                if gain <= eps:
                    a, b, gain = _best(left, right, 0.0, kept, space)
                work += d * (n + m + kept)
                if status == UNKNOWN or place[a, b] != OPEN:
                    a, b = i, j
                kept = _keep(left, right, a, b, kept, place, space)
    pairs, sorted_points, k = np.empty((2, kept), np.int64), np.empty((kept, d)), 0
    for i in range(n):
        for j in range(m):
            if place[i, j] >= 0:
                pairs[0, k], pairs[1, k] = i, j
                for x in range(d):
                    sorted_points[k, x] = points[place[i, j], x]
                k += 1
    return pairs[0], pairs[1], sorted_points, loss, work


@njit(cache=True)
def _keep(
    left: Floats, right: Floats, a: int, b: int, kept: int, place: Integers, space: _Workspace
) -> int:
    """Keep the sum of left_a and right_b, which is needed at the current belief.

    Returns the number of kept sums.
    """
    place[a, b] = kept
    for x in range(len(space.belief)):
        space.points[kept, x], space.vectors[x, kept] = space.belief[x], left[a, x] + right[b, x]
    _heat(space, kept)
    return kept + 1


@njit(cache=True)
def _heat(space: _Workspace, name: int) -> None:
    """Replace the oldest hot vector by a kept vector. The first one fills all places."""
    first, oldest = space.names[HOT] == 0, space.names[HOT] % HOT
    for k in range(HOT):
        if first or k == oldest:
            space.names[k] = name
            for x in range(len(space.hot)):
                space.hot[x, k] = space.vectors[x, name]
    space.names[HOT] += 1


@njit(cache=True)
def _best(
    left: Floats, right: Floats, inward: float, kept: int, space: _Workspace
) -> tuple[int, int, float]:
    """The best sum at the current belief, moved inward, and its gain there over the kept sums."""
    d = len(space.belief)
    inside, total = np.empty(d), 0.0
    for x in range(d):
        inside[x] = inward / d + (1 - inward) * space.belief[x]
    a = b = 0
    for vectors in (left, right):
        best, value = 0, -np.inf
        for k in range(len(vectors)):
            score = 0.0
            for x in range(d):
                score += inside[x] * vectors[k, x]
            if score > value:
                best, value = k, score
        a, b, total = b, best, total + value
    if kept == 0:
        return a, b, np.inf
    return a, b, total - space.scores[_highest(space.vectors, kept, inside, space.scores)]


@njit(cache=True)
def _highest(columns: Floats, n: int, belief: Floats, scores: Floats) -> int:
    """The best of the first n columns at a belief; the values of all are written to ``scores``."""
    for k in range(n):
        scores[k] = 0.0
    for x in range(len(belief)):
        if belief[x] != 0.0:
            for k in range(n):
                scores[k] += belief[x] * columns[x, k]
    best = 0
    for k in range(1, n):
        if scores[k] > scores[best]:
            best = k
    return best


@njit(cache=True)
def _test(target: Floats, kept: int, eps: float, space: _Workspace) -> tuple[int, float, float]:
    """Whether the target is within ``eps`` of a mixture of kept vectors, or is better than all of
    them at some belief.

    This solves the matrix game max_b min_u b . (target - u) by the revised simplex method for the
    mixture: minimise v subject to sum_u l_u (target - u)(x) + s_x = v, sum_u l_u = 1. The last row
    of the basis inverse contains -b, its last column the basic variables and v. So v is an upper
    bound on the gain in every step, and b gives a lower bound once no weight is negative.
    """
    vectors, _, hot, names, inverse, basis, belief, scores = space
    d, work, column = len(target), 0.0, np.empty(len(target) + 1)
    _start(target, space)
    for _ in range(STEPS * d):
        v = inverse[d, d]
        work += d * (HOT + d)
        if v <= eps:
            lost = _shortfall(target, space)
            return DROP if lost <= (1 + SLACK) * eps else UNKNOWN, max(0.0, lost), work
        lowest, name, total, at = -ZERO, 0, 0.0, 0.0
        for x in range(d):
            weight = -inverse[d, x]
            if weight < lowest:
                lowest, name = weight, -1 - x
            belief[x] = max(0.0, weight)
            total += belief[x]
        if name < 0:
            for i in range(d + 1):
                column[i] = inverse[i, -1 - name]
        else:
            for x in range(d):
                belief[x] /= total
                at += belief[x] * target[x]
            k = _highest(hot, HOT, belief, scores)
            name = names[k]
            if scores[k] <= at - v + SLACK * eps:
                work += d * kept
                name = _highest(vectors, kept, belief, scores)
                if at - scores[name] > (1 - SLACK) * eps:
                    return WITNESS, 0.0, work
                _heat(space, name)
            for i in range(d + 1):
                column[i] = inverse[i, d]
                for x in range(d):
                    column[i] += inverse[i, x] * (target[x] - vectors[x, name])
        leave, ratio = -1, np.inf
        for i in range(d):
            if column[i] > ZERO and max(0.0, inverse[i, d]) < ratio * column[i]:
                leave, ratio = i, max(0.0, inverse[i, d]) / column[i]
        if leave < 0:
            return UNKNOWN, 0.0, work
        basis[leave] = name
        for k in range(d + 1):
            inverse[leave, k] /= column[leave]
            for i in range(d + 1):
                if i != leave:
                    inverse[i, k] -= column[i] * inverse[leave, k]
    return UNKNOWN, 0.0, work


@njit(cache=True)
def _start(target: Floats, space: _Workspace) -> None:
    """Start with the hot vector that the target exceeds least, and with slack at all states except
    the one where the target exceeds it most.
    """
    d, v, start, corner, inverse = len(target), np.inf, 0, 0, space.inverse
    for k in range(HOT):
        worst, where = -np.inf, 0
        for x in range(d):
            if target[x] - space.hot[x, k] > worst:
                worst, where = target[x] - space.hot[x, k], x
        if worst < v:
            v, start, corner = worst, space.names[k], where
    for i in range(d + 1):
        for k in range(d + 1):
            inverse[i, k] = 0.0
        if i < d:
            inverse[i, i], inverse[i, corner], space.basis[i] = 1.0, -1.0, -1 - i
            inverse[i, d] = v - (target[i] - space.vectors[i, start])
    inverse[corner, corner], inverse[corner, d], space.basis[corner] = 0.0, 1.0, start
    inverse[d, corner], inverse[d, d] = -1.0, v


@njit(cache=True)
def _shortfall(target: Floats, space: _Workspace) -> float:
    """The most by which the mixture of the basis is below the target, computed from the kept
    vectors.
    """
    d, total, shortfall = len(target), 0.0, -np.inf
    for i in range(d):
        if space.basis[i] >= 0:
            total += max(0.0, space.inverse[i, d])
    for x in range(d):
        mixture = 0.0
        for i in range(d):
            if space.basis[i] >= 0:
                mixture += max(0.0, space.inverse[i, d]) * space.vectors[x, space.basis[i]]
        shortfall = max(shortfall, target[x] - mixture / total)
    return shortfall
