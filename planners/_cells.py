"""Finite experiments that bound a real-valued observation y in Blackwell's order.

    cell of y   <   y   <   one of the corners between which y lies, or the kind of the state

Less informative: the cell of y is a function of y.

More informative: on a cell, write the vector of likelihoods l(y) = (p(y | x))_x as sum_j w_j(y) v_j
+ sum_k s_k(y) e_k with weights w, s >= 0. The corners v_j are l at the two ends of the cell and,
for more than two kinds, a point on the outer side of the curve. States with the same density are of
the same kind, and e_k is 1 for the states of kind k. Consider the experiment that shows corner j
with probability v_j(x) int w_j, and reveals kind k with probability int s_k. Given j, draw y from
w_j / int w_j; given k, draw y from s_k / int s_k. Then y has density p(y | x) in every state x. So
every policy on y can be simulated on this experiment, step by step, and its optimum is an upper
bound on the optimum on y. This holds for any corners; good corners leave little mass for the e_k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.continuous.quadrature import Pieces, cut, log_densities
from homdp_ppl.continuous.tabulation import cell_of
from homdp_ppl.declare.model import World
from homdp_ppl.precision import Array

# The outer corner is at this multiple of the curve's largest distance from its chord. A triangle
# with factor 2 contains a parabola; curves are not exactly parabolas.
BULGE = 2.1
TINY = 1e-100  # smallest scale for relative comparisons of likelihoods
LOCAL, HALVINGS = 1e-12, 8  # tolerated difference of two rules per piece, and most halvings
BLIND = 2  # halvings of every piece, for kinks outside its outermost points
# Largest remaining error of all masses together: several times the difference from finer rules.
UNSEEN = 1e-7
# Smaller weights, relative to the largest, are rounding errors. They would remove all mass where a
# likelihood is zero.
SPECK = 1e-12


class Spread(NamedTuple):
    """The more informative experiment, by cell."""

    corners: Array  # (cells, K, kinds)  v_j: at the left end, at the right end, outside
    mass: Array  # (cells, K)  int w_j
    revealed: Array  # (cells, kinds)  int s_k
    kind: Array  # (X,)  of each state

    @property
    def emission(self) -> Array:
        """The emission table of the experiment, (X, corners + kinds).

        Neighbouring cells share the corners at their ends.
        """
        cells, _, kinds = self.corners.shape
        parts = self.corners * self.mass[:, :, None]
        shared = np.zeros((cells + 1, kinds))
        shared[:-1] += parts[:, 0]
        shared[1:] += parts[:, 1]
        shown = np.concatenate([shared, parts[:, 2:].reshape(-1, kinds)])
        shown = shown[shown.any(1)]
        shown = shown / max(1.0, float(shown.sum(0).max()))
        return np.concatenate([shown, np.diag(np.maximum(1 - shown.sum(0), 0.0))]).T[self.kind]


def spread(world: World, pieces: Pieces, edges: Array) -> Spread:
    """The experiment that is more informative than y, from pieces that are cut at the edges."""
    corners, inverse = _corners(world, pieces, edges)
    mass = _least_masses(world, pieces, edges, corners, inverse)
    revealed = _by_cell(cell_of(pieces, edges), pieces.masses[:, pieces.first], len(corners)) - (
        corners * mass[:, :, None]
    ).sum(1)
    return Spread(corners, mass, np.maximum(revealed, 0.0), pieces.kind)


def _least_masses(
    world: World, pieces: Pieces, edges: Array, corners: Array, inverse: Array
) -> Array:
    """Lower bounds on int w_j, (cells, K). Mass that is missing is moved to the kinds.

    The weights have kinks, which quadrature rules integrate badly. Pieces are halved where two
    rules disagree, and twice the remaining difference is subtracted.
    """
    for k in range(HALVINGS):
        cell = cell_of(pieces, edges)
        likelihood, density = _normalised(pieces.log)
        weights = _weights(likelihood, corners[cell], inverse[cell])
        fine, rough = pieces.integrate(weights * density[..., None])
        apart = np.abs(fine - rough)
        kinked = (apart.max(-1) > LOCAL) | (k < BLIND)
        if not kinked.any() or k + 1 == HALVINGS:
            break
        pieces = cut(world, pieces, ((pieces.breaks[:-1] + pieces.breaks[1:]) / 2)[kinked])
    return np.maximum(_by_cell(cell, fine - 2 * apart, len(corners)), 0.0)


def _normalised(log: Array) -> tuple[Array, Array]:
    """Likelihoods normalised over the kinds, and their sum; zero without density and at poles."""
    log = np.where(np.isposinf(log).any(-1, keepdims=True), -np.inf, log)
    top = log.max(-1, keepdims=True)
    shifted = np.exp(log - np.where(np.isfinite(top), top, 0.0))
    total = shifted.sum(-1, keepdims=True)
    return shifted / np.where(total > 0, total, 1.0), (total * np.exp(top))[..., 0]


def _corners(world: World, pieces: Pieces, edges: Array) -> tuple[Array, Array]:
    """The corners of each cell, (cells, 2 or 3, kinds), and their inverses."""
    cell = cell_of(pieces, edges)
    likelihood, density = _normalised(pieces.log)
    places = np.concatenate(
        [pieces.breaks[:1], np.clip(edges, pieces.breaks[0], pieces.breaks[-1]), pieces.breaks[-1:]]
    )
    ends = _normalised(log_densities(world, places)[:, pieces.first])[0]
    shown = np.flatnonzero(density.ravel() > 0)
    for k in np.flatnonzero(~ends.any(-1)):  # no density here: use the nearest point that has one
        nearest = shown[np.abs(pieces.points.ravel()[shown] - places[k]).argmin()]
        ends[k] = likelihood.reshape(-1, ends.shape[1])[nearest]
    pair = np.stack([ends[:-1], ends[1:]], axis=1)  # (cells, 2, kinds)
    scale = _scale(pair, cell, pieces)
    inverse = _inverse(pair, scale)
    if ends.shape[1] <= 2:
        return pair, inverse
    chord = likelihood @ inverse[cell] @ pair[cell]  # (P, 15, kinds)
    apart = np.where(
        density > 0, (((likelihood - chord) / scale[cell][:, None]) ** 2).sum(-1), -1.0
    )
    outer = pair.mean(1)
    for c in np.unique(cell):
        here = np.flatnonzero(cell == c)
        p, k = np.unravel_index(apart[here].argmax(), apart[here].shape)
        point = np.maximum(chord[here[p], k] + BULGE * (likelihood - chord)[here[p], k], 0.0)
        if point.any():
            outer[c] = point / point.sum()
    corners = np.concatenate([pair, outer[:, None]], axis=1)
    return corners, _inverse(corners, scale)


def _scale(pair: Array, cell: Array, pieces: Pieces) -> Array:
    """The scale of the likelihoods by cell and kind, (cells, kinds), for relative errors."""
    mean = _by_cell(cell, pieces.masses[:, pieces.first], len(pair))
    mean = mean / np.maximum(mean.sum(-1, keepdims=True), np.finfo(float).tiny)
    return np.maximum(mean + pair.mean(1), TINY)


def _inverse(corners: Array, scale: Array) -> Array:
    """Matrices from likelihoods to least-squares weights of the corners, (cells, kinds, K)."""
    inverse: Array = np.linalg.pinv(corners / scale[:, None]) / scale[..., None]
    return inverse


def _weights(likelihood: Array, corners: Array, inverse: Array) -> Array:
    """Weights w >= 0 of the corners at every point, (P, 15, K), with sum_j w_j v_j <= l."""
    weights = np.maximum(likelihood @ inverse, 0.0)
    weights = np.where(weights > SPECK * weights.max(-1, keepdims=True), weights, 0.0)
    mixed = weights @ corners
    ratio = np.where(mixed > 0, likelihood / np.where(mixed > 0, mixed, 1.0), np.inf).min(
        -1, keepdims=True
    )
    return weights * np.where(np.isfinite(ratio), ratio, 0.0)


def _by_cell(cell: Array, parts: Array, cells: int) -> Array:
    total = np.zeros((cells, *parts.shape[1:]))
    np.add.at(total, cell, parts)
    return total
