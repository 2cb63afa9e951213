"""Cells of the line as finite experiments.

One that says less than the observation, and one that says more.

    cell of y   <   y   <   one of the corners between which y lies, or the kind of the state

in Blackwell's order.

Less: whoever sees y knows its cell. More: on a cell the vector of likelihoods l(y) = (p(y | x))_x
is written as sum_j w_j(y) v_j + sum_k s_k(y) e_k with weights w, s >= 0, where the corners v_j are
l at the cell's ends, and for more than two kinds a point on the outer side of the curve. States
with one and the same density are of one kind, and e_k is 1 for those of kind k. The experiment that
shows j with probability v_j(x) int w_j, and the kind with probability int s_k, is at least as
informative: given j, draw y from w_j / int w_j (told k, from s_k / int s_k), and y has density p(y
| x) whatever the state is. So every policy on y is played by one on j, step by step, and the
optimum with j is an upper bound of the optimum with y. It holds for any corners; good ones leave
little for the e_k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.continuous.quadrature import Pieces, cut, log_densities
from homdp_ppl.continuous.tabulation import cell_of
from homdp_ppl.declare.model import World
from homdp_ppl.precision import Array

# a parabola lies within its chord and the point twice as far from it; a little more, for it is none
BULGE = 2.1
TINY = 1e-100  # likelihoods are compared relative to this at least
LOCAL, HALVINGS = (
    1e-12,
    8,
)  # disagreement of two rules that a piece may keep, and how often pieces are halved for it
BLIND = 2  # times that every piece is halved in any case, for kinks beyond its outermost points
# by how much all masses together may still be too large: several times what finer rules have shown
UNSEEN = 1e-7
# smaller weights relative to the largest are rounding, and would cost all where a likelihood is
# zero
SPECK = 1e-12


class Spread(NamedTuple):
    """The experiment that says more, cell by cell."""

    corners: Array  # (cells, K, kinds)  v_j: at the left end, at the right end, outside
    mass: Array  # (cells, K)  int w_j
    told: Array  # (cells, kinds)  int s_k
    kind: Array  # (X,)  of each state

    @property
    def emission(self) -> Array:
        """Its table (X, corners + kinds).

        The corners that neighbours share, those of their own, and the kinds.
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
    """The experiment that says more than y, from pieces that were cut at the edges."""
    corners, inverse = _corners(world, pieces, edges)
    mass = _least_masses(world, pieces, edges, corners, inverse)
    told = _by_cell(cell_of(pieces, edges), pieces.masses[:, pieces.first], len(corners)) - (
        corners * mass[:, :, None]
    ).sum(1)
    return Spread(corners, mass, np.maximum(told, 0.0), pieces.kind)


def _least_masses(
    world: World, pieces: Pieces, edges: Array, corners: Array, inverse: Array
) -> Array:
    """Each int w_j, (cells, K), from below: too little only moves mass to what is told.

    The weights have kinks, which no rule integrates well. Pieces are halved where two rules
    disagree, and twice as much as they still disagree by is left out.
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
    """Likelihoods that sum to one over the kinds, and their sum.

    Zero where there is no density, and at poles.
    """
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
    for k in np.flatnonzero(
        ~ends.any(-1)
    ):  # no density just there: as at the nearest point that has one
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
    """How large the likelihood of each kind is on each cell, (cells, kinds).

    Relative errors are what counts.
    """
    mean = _by_cell(cell, pieces.masses[:, pieces.first], len(pair))
    mean = mean / np.maximum(mean.sum(-1, keepdims=True), np.finfo(float).tiny)
    return np.maximum(mean + pair.mean(1), TINY)


def _inverse(corners: Array, scale: Array) -> Array:
    """What takes likelihoods to the least-squares weights of the corners, (cells, kinds, K)."""
    inverse: Array = np.linalg.pinv(corners / scale[:, None]) / scale[..., None]
    return inverse


def _weights(likelihood: Array, corners: Array, inverse: Array) -> Array:
    """Weights w >= 0 of the corners at every point, (P, 15, K), with sum_j w_j v_j <= l.

    What is left is told.
    """
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
