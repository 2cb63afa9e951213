"""Counting lemmas, which bound sums of bonuses: two pigeonhole lemmas and the elliptical potential.

Each is given as a bound, and with both sides for given sequences.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import check_sizes
from homdp_ppl.core.checked import checked
from homdp_ppl.core.policy import range_problems
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory


def root_pigeonhole(cells: int, horizon: int, episodes: int) -> float:
    """Bound on sum_{k, h} 1 / sqrt(max(1, n_k)): H S + 3 sqrt(H S K) (pigeonhole, appendix F).

    The lemma holds as printed. Where its proof has n_K, read n_{K+1}, the visits of all K episodes.

    Parameters
    ----------
    cells
        S, the number of counted cells: X states, or X A pairs of state and action.
    horizon, episodes
        H and K.

    Examples
    --------
    >>> root_pigeonhole(4, 4, 100)
    136.0
    """
    S, H, K = check_sizes("root_pigeonhole", cells=cells, horizon=horizon, episodes=episodes)
    return H * S + 3 * math.sqrt(H * S * K)


def reciprocal_pigeonhole(cells: int, horizon: int, episodes: int) -> float:
    """Bound on sum_{k, h} 1 / max(1, n_k): H S (2 + log K) (second pigeonhole lemma, appendix F).

    This is a correction. The paper prints 1 + log K, which is false at H = S = 1, K = 2: both
    visits count 1. At a visit to a cell with i earlier visits, n_k >= i - H + 1, since counts lag
    by less than an episode. So a cell adds at most H + 1 + log(H K) <= H (2 + log K).

    Parameters
    ----------
    cells
        S, the number of counted cells: X A pairs of state and action.
    horizon, episodes
        H and K.

    Examples
    --------
    >>> reciprocal_pigeonhole(1, 1, 1)
    2.0
    """
    S, H, K = check_sizes("reciprocal_pigeonhole", cells=cells, horizon=horizon, episodes=episodes)
    return H * S * (2 + math.log(K))


class Pigeonhole(NamedTuple):
    """Both sides of both lemmas: ``root <= root_bound`` and ``reciprocal <= reciprocal_bound``."""

    root: float  # sum_{k, h} 1 / sqrt(max(1, n_k))
    root_bound: float
    reciprocal: float  # sum_{k, h} 1 / max(1, n_k)
    reciprocal_bound: float


@checked
def pigeonhole(visited: ArrayLike, cells: int) -> Pigeonhole:
    """Both pigeonhole lemmas for given visits to cells. Counts are updated after each episode.

    Parameters
    ----------
    visited
        The cell (x, or an index of (x, a)) of every step, (K, H).
    cells
        The number of cells.

    Examples
    --------
    >>> pigeonhole([[0], [0]], cells=1).reciprocal  # the printed bound is 1 + log 2
    2.0
    """
    steps = np.asarray(visited)
    (cells,) = check_sizes("pigeonhole", cells=cells)
    if steps.ndim != 2 or not steps.size:
        raise ParameterError(
            "pigeonhole", [Problem("visited", f"shape {steps.shape}", "shape (K, H)")]
        )
    problems = range_problems("visited", steps, cells)
    if problems:
        raise ParameterError("pigeonhole", problems)
    K, H = steps.shape
    require_memory(
        ParameterError, "pigeonhole", "cells", count(cells), NUMBER * cells, "Use fewer cells."
    )
    counts = np.zeros(cells, dtype=np.int64)
    seen = np.empty((K, H))
    for k, row in enumerate(steps):
        seen[k] = np.maximum(1, counts[row])
        np.add.at(counts, row, 1)
    root, reciprocal = float((1 / np.sqrt(seen)).sum()), float((1 / seen).sum())
    return Pigeonhole(
        root, root_pigeonhole(cells, H, K), reciprocal, reciprocal_pigeonhole(cells, H, K)
    )


class EllipticalPotential(NamedTuple):
    """Both sides of the elliptical potential lemma: ``potential <= bound``."""

    potential: float  # sum_k min(1, ||phi_k||^2 in the norm of Sigma_k^-1)
    bound: float  # 2 d log((d lambda + K) / (d lambda))


@checked
def elliptical_potential(
    features: ArrayLike, regulariser: float | None = None
) -> EllipticalPotential:
    """Both sides of the elliptical potential lemma (appendix F, after Lattimore and Szepesvari).

    Sigma_k = lambda I + sum_{l < k} phi_l phi_l'.

    Parameters
    ----------
    features
        phi_1 .. phi_K, (K, d), with Euclidean norms of at most 1.
    regulariser
        lambda > 0. The default is 1/d, as in the analysis of HOP-V.

    Examples
    --------
    >>> elliptical_potential([[1.0], [1.0]])  # 1 + 1/2 <= 2 log 3
    EllipticalPotential(potential=1.5, bound=2.1972245773362196)
    """
    phi = np.asarray(features, dtype=np.float64)
    if phi.ndim != 2 or not phi.size:
        raise ParameterError(
            "elliptical_potential", [Problem("features", f"shape {phi.shape}", "shape (K, d)")]
        )
    K, d = phi.shape
    ridge = 1 / d if regulariser is None else regulariser
    check_sizes("elliptical_potential", {"regulariser": (ridge, (0.0, math.inf))})
    ridge = float(ridge)
    longest = float(np.linalg.norm(phi, axis=1).max())
    if not longest <= 1 + 1e-12:
        raise ParameterError(
            "elliptical_potential",
            [Problem("features", f"a norm of {longest:.6g}", "norms of at most 1")],
        )
    sigma = ridge * np.eye(d)
    potential = 0.0
    for row in phi:
        potential += min(1.0, float(row @ np.linalg.solve(sigma, row)))
        sigma += np.outer(row, row)
    return EllipticalPotential(potential, 2 * d * math.log((d * ridge + K) / (d * ridge)))
