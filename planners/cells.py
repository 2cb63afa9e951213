"""Cells of the line as finite experiments: one that says less than the observation, and one that says more.

    cell of y   <   y   <   one of the corners between which y lies, or the state itself        (Blackwell's order)

Less: whoever sees y knows its cell. More: on a cell the vector of likelihoods l(y) = (p(y | x))_x is written as
sum_j w_j(y) v_j + sum_x s_x(y) e_x with weights w, s >= 0, where the corners v_j are l at the cell's ends, and for more than two
states a point on the outer side of the curve, and e_x are unit vectors. The experiment that shows j with probability
v_j(x) int w_j, and x itself with probability int s_x, is at least as informative: given j, draw y from w_j / int w_j (told x,
from s_x / int s_x), and y has density p(y | x) whatever the state is. So every policy on y is played by one on j, step by step, and the
optimum with j is an upper bound of the optimum with y. It holds for any corners; good ones leave little for the e_x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.continuous import ContinuousWorld
from homdp_ppl.continuous.quadrature import Pieces, log_densities
from homdp_ppl.continuous.tabulation import cell_of
from homdp_ppl.precision import Array

BULGE = 2.1  # a parabola lies within its chord and the point twice as far from it; a little more, for it is none
TINY = 1e-100  # likelihoods are compared relative to this at least
SPECK = 1e-12  # smaller weights relative to the largest are rounding, and would cost all where a likelihood is zero


class Spread(NamedTuple):
    """The experiment that says more, cell by cell."""

    corners: Array  # (cells, K, X)  v_j: at the left end, at the right end, outside; each sums to one
    mass: Array  # (cells, K)  int w_j
    told: Array  # (cells, X)  int s_x

    @property
    def emission(self) -> Array:
        """Its table (X, corners + X): the corners that neighbours share, those of their own, and the states."""
        cells, _, X = self.corners.shape
        parts = self.corners * self.mass[:, :, None]
        shared = np.zeros((cells + 1, X))
        shared[:-1] += parts[:, 0]
        shared[1:] += parts[:, 1]
        shown = np.concatenate([shared, parts[:, 2:].reshape(-1, X)])
        shown = shown[shown.any(1)]
        shown = shown / max(1.0, float(shown.sum(0).max()))
        return np.concatenate([shown, np.diag(1 - shown.sum(0))]).T


def spread(world: ContinuousWorld, pieces: Pieces, edges: Array) -> Spread:
    """The experiment that says more than y, from pieces that were cut at the edges.

    Each int w_j is taken too small by as much as two quadratures disagree, which only moves mass to the states themselves.
    """
    cell = cell_of(pieces, edges)
    likelihood, density = _normalised(pieces.log)
    corners = _corners(world, pieces, edges, cell, likelihood, density)
    weights = _weights(likelihood, corners[cell], _scale(corners, cell, pieces, likelihood, density)[cell])
    fine, rough = pieces.integrate(weights * density[..., None])
    mass, margin = (_by_cell(cell, part, len(corners)) for part in (fine, np.abs(fine - rough)))
    mass = np.maximum(mass - margin, 0.0)
    told = _by_cell(cell, pieces.masses, len(corners)) - (corners * mass[:, :, None]).sum(1)
    return Spread(corners, mass, np.maximum(told, 0.0))


def _normalised(log: Array) -> tuple[Array, Array]:
    """Likelihoods that sum to one over the states, and their sum; zero where there is no density."""
    top = log.max(-1, keepdims=True)
    shifted = np.exp(log - np.where(np.isfinite(top), top, 0.0))
    total = shifted.sum(-1, keepdims=True)
    return shifted / np.where(total > 0, total, 1.0), (total * np.exp(top))[..., 0]


def _corners(world: ContinuousWorld, pieces: Pieces, edges: Array, cell: Array, likelihood: Array, density: Array) -> Array:
    """The corners of each cell, (cells, 2 or 3, X)."""
    places = np.concatenate([pieces.breaks[:1], np.clip(edges, pieces.breaks[0], pieces.breaks[-1]), pieces.breaks[-1:]])
    ends = _normalised(_finite(log_densities(world, places)))[0]
    shown = np.flatnonzero(density.ravel() > 0)
    for k in np.flatnonzero(~ends.any(-1)):  # no density just there: as at the nearest point that has one
        nearest = shown[np.abs(pieces.points.ravel()[shown] - places[k]).argmin()]
        ends[k] = likelihood.reshape(-1, ends.shape[1])[nearest]
    pair = np.stack([ends[:-1], ends[1:]], axis=1)  # (cells, 2, X)
    if ends.shape[1] <= 2:
        return pair
    scale = _scale(pair, cell, pieces, likelihood, density)
    chord = _fit(likelihood, pair[cell], scale[cell]) @ pair[cell]  # (P, 15, X)
    apart = np.where(density > 0, (((likelihood - chord) / scale[cell][:, None]) ** 2).sum(-1), -1.0)
    outer = pair.mean(1)
    for c in np.unique(cell):
        here = np.flatnonzero(cell == c)
        p, k = np.unravel_index(apart[here].argmax(), apart[here].shape)
        point = np.maximum(chord[here[p], k] + BULGE * (likelihood - chord)[here[p], k], 0.0)
        if point.any():
            outer[c] = point / point.sum()
    return np.concatenate([pair, outer[:, None]], axis=1)


def _finite(log: Array) -> Array:
    """Log densities without poles, which have no likelihood: no density there."""
    return np.where(np.isposinf(log).any(-1, keepdims=True), -np.inf, log)


def _scale(corners: Array, cell: Array, pieces: Pieces, likelihood: Array, density: Array) -> Array:
    """How large the likelihood of each state is on each cell, (cells, X): relative errors are what counts."""
    mean = _by_cell(cell, pieces.integrate(likelihood * density[..., None])[0], len(corners))
    mean = mean / np.maximum(mean.sum(-1, keepdims=True), np.finfo(float).tiny)
    return np.maximum(mean + corners[:, :2].mean(1), TINY)


def _fit(likelihood: Array, corners: Array, scale: Array) -> Array:
    """Least-squares weights of the corners at every point, (P, 15, K)."""
    inverse = np.linalg.pinv(corners / scale[:, None])  # (P, X, K)
    weights: Array = (likelihood / scale[:, None]) @ inverse
    return weights


def _weights(likelihood: Array, corners: Array, scale: Array) -> Array:
    """Weights w >= 0 of the corners at every point, (P, 15, K), with sum_j w_j v_j <= l: what is left is told."""
    weights = np.maximum(_fit(likelihood, corners, scale), 0.0)
    weights = np.where(weights > SPECK * weights.max(-1, keepdims=True), weights, 0.0)
    mixed = weights @ corners
    ratio = np.where(mixed > 0, likelihood / np.where(mixed > 0, mixed, 1.0), np.inf).min(-1, keepdims=True)
    return weights * np.where(np.isfinite(ratio), ratio, 0.0)


def _by_cell(cell: Array, parts: Array, cells: int) -> Array:
    total = np.zeros((cells, *parts.shape[1:]))
    np.add.at(total, cell, parts)
    return total
