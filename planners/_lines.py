"""Compiled pruning for two states, where vectors are lines: their upper envelope, and the fewest
lines that stay within a given loss of it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@njit(cache=True)
def _hull(lines: Floats) -> tuple[Integers, Floats]:
    """The upper envelope of the lines (1 - p) v_0 + p v_1 on [0, 1], from left to right, and the
    points where its lines begin.
    """
    slopes = lines[:, 1] - lines[:, 0]
    stack, begin, top = np.empty(len(lines), np.int64), np.empty(len(lines)), -1
    for k in np.argsort(slopes, kind="mergesort"):  # stable: the first of equal lines is kept
        enter, better = 0.0, True
        while top >= 0:
            s = stack[top]
            lead, rise = lines[s, 0] - lines[k, 0], slopes[k] - slopes[s]
            if rise <= 0.0 or lines[k, 1] <= lines[s, 1]:
                better = rise <= 0.0 and lead < 0.0
                if not better:
                    break
            elif lead > begin[top] * rise:
                enter = lead / rise
                break
            top -= 1
        if better:
            top += 1
            stack[top], begin[top] = k, enter
    return stack[: top + 1], begin[: top + 1]


@njit(cache=True)
def prune_lines(
    left: Floats, right: Floats, eps: float
) -> tuple[Integers, Integers, Floats, float, float]:
    """Prune the sums of two sets of lines.

    The pieces of two envelopes interleave in their sum, and thinning it greedily is optimal.
    """
    (first, begin_left), (second, begin_right) = _hull(left), _hull(right)
    size = len(first) + len(second)
    pairs, begin, lines = np.empty((2, size), np.int64), np.empty(size + 1), np.empty((size, 2))
    a = b = n = 0
    start = 0.0
    while start < 1.0:
        pairs[0, n], pairs[1, n], begin[n] = first[a], second[b], start
        for x in range(2):
            lines[n, x] = left[first[a], x] + right[second[b], x]
        n += 1
        next_left = begin_left[a + 1] if a + 1 < len(first) else 1.0
        next_right = begin_right[b + 1] if b + 1 < len(second) else 1.0
        start = min(next_left, next_right)
        a, b = a + (next_left == start), b + (next_right == start)
    begin[n] = 1.0
    keep, loss = _thin(lines[:n], eps)
    points = np.empty((len(keep), 2))
    for k in range(len(keep)):
        points[k, 1] = (begin[keep[k]] + begin[keep[k] + 1]) / 2
        points[k, 0] = 1 - points[k, 1]
    return pairs[0][keep], pairs[1][keep], points, loss, 20.0 * (len(left) + len(right))


@njit(cache=True)
def _thin(lines: Floats, eps: float) -> tuple[Integers, float]:
    """The fewest lines of an envelope that stay within ``eps`` of it, and their loss.

    Greedy: each next line is the furthest that ``eps`` allows.
    """
    n = len(lines)
    keep, kept, following = np.empty(n, np.int64), 0, 0
    # the first line is the highest at p = 0
    while following + 1 < n and lines[0, 0] - lines[following + 1, 0] <= eps:
        following += 1
    loss = max(0.0, lines[0, 0] - lines[following, 0])
    while True:
        k = keep[kept] = following
        kept += 1
        if lines[n - 1, 1] - lines[k, 1] <= eps:
            return keep[:kept], max(loss, lines[n - 1, 1] - lines[k, 1])
        following = k + 1
        while following + 1 < n and _between(lines, k, following + 1) <= eps:
            following += 1
        loss = max(loss, _between(lines, k, following))


@njit(cache=True)
def _between(lines: Floats, k: int, m: int) -> float:
    """The most by which the lines between k and m exceed both; it occurs where k and m meet."""
    lead, rise = lines[k, 0] - lines[m, 0], lines[m, 1] - lines[k, 1]
    p = lead / (lead + rise) if lead > 0.0 and rise > 0.0 else (0.0 if lead <= 0.0 else 1.0)
    level = max((1 - p) * lines[k, 0] + p * lines[k, 1], (1 - p) * lines[m, 0] + p * lines[m, 1])
    gap = 0.0
    for between in range(k + 1, m):
        gap = max(gap, (1 - p) * lines[between, 0] + p * lines[between, 1] - level)
    return gap
