"""Which cells to split: how much each contributes to the bracket, and where to cut it.

Both are estimates that guide the refinement; no bound depends on them. The value of a vector w of
joint weights over the states at step h is V_h(w) = max over alpha-vectors of w . alpha, with the
alpha-vectors of the policies planned so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from homdp_ppl.continuous.quadrature import FINE, ORDER, Pieces
from homdp_ppl.continuous.tabulation import cell_of
from homdp_ppl.core.alphas import alphas_of
from homdp_ppl.core.plan import Plan
from homdp_ppl.planners._cells import Spread
from homdp_ppl.precision import Array

BELIEFS = 32  # number of beliefs per step, the likeliest
# candidate positions of a cut, and passes; each pass refines between the neighbours of the best
PLACES, PASSES = 12, 2
NUMBERS = 200_000  # largest number of floats in memory
SHARE = 0.8  # split the cells that contribute this share of the total
# A cut that gains less than this share of the contribution is not where the policy changes.
KINK = 0.02


class Step(NamedTuple):
    """Beliefs before an observation, and alpha-vectors after it, by kinds of states (Pieces.kind).

    ``weighted`` contains sums of b(x) alpha(x) over the states of each kind.
    """

    weighted: Array  # (beliefs, alpha-vectors, kinds)

    def value_of(self, vectors: Array) -> Array:
        """Values of vectors of likelihoods, (N, kinds): the sum over beliefs b of V(b * vector)."""
        return np.concatenate([values.max(-1).sum(-1) for values in self._values(vectors)])

    def needed(self, vectors: Array) -> Step:
        """The same step, only with alpha-vectors that are best for one of the vectors."""
        best = np.concatenate([values.argmax(-1).ravel() for values in self._values(vectors)])
        return Step(self.weighted[:, np.unique(best)])

    def _values(self, vectors: Array) -> Iterator[Array]:
        """Yield (b * vector) . alpha for some vectors at a time, (n, beliefs, alphas)."""
        beliefs, alphas, kinds = self.weighted.shape
        flat = self.weighted.reshape(-1, kinds)
        for some in np.array_split(vectors, 1 + len(vectors) * len(flat) // NUMBERS):
            yield (some @ flat.T).reshape(len(some), beliefs, alphas)


def look_ahead(less: Plan, more: Plan, kind: Array) -> list[Step]:
    """Beliefs of the policy on cells at each step, with the alpha-vectors of both policies."""
    vectors = zip(alphas_of(*less.finite), alphas_of(*more.finite), strict=True)
    members = np.eye(int(kind.max()) + 1)[kind]  # (X, kinds)
    # Vectors with the same product with ``probe`` are treated as equal.
    probe = np.random.default_rng(0).normal(size=len(kind))
    steps = []
    for beliefs, both in zip(_beliefs(less), vectors, strict=True):
        alphas = np.concatenate([part.reshape(-1, len(kind)) for part in both])
        alphas = alphas[np.unique((alphas @ probe).round(10), return_index=True)[1]]
        steps.append(Step(np.stack([alphas @ (belief[:, None] * members) for belief in beliefs])))
    return steps


def _beliefs(plan: Plan) -> Iterator[Array]:
    """Yield joint weights of the states before each observation, for the likeliest nodes.

    Histories that end in the same node are added up.
    """
    policy, pomdp = plan.finite
    before, following = pomdp.initial[None], policy.start[None]
    shows = pomdp.shows(0).T[None]  # (1, Y, X)
    for h in range(pomdp.horizon):
        yield before
        if h + 1 == pomdp.horizon:
            return
        nodes, place = np.unique(following, return_inverse=True)
        weights = np.zeros((len(nodes), before.shape[1]))
        np.add.at(weights, place.reshape(following.shape), before[:, None, :] * shows)
        likely = np.argsort(-weights.sum(1), kind="stable")[:BELIEFS]
        nodes, weights = nodes[likely], weights[likely]
        action = policy.probabilities[nodes].argmax(1)
        before = np.einsum("nx,nxz->nz", weights, pomdp.moves(h).transpose(1, 0, 2)[action])
        following = policy.successor[nodes, 0 if policy.successor.shape[1] == 1 else action]
        after = pomdp.shows_after(h + 1).swapaxes(1, 2)  # (A|1, Y, X)
        shows = after if len(after) == 1 else after[action]


def contributions(steps: list[Step], masses: Array, spread: Spread) -> tuple[Array, list[Step]]:
    """The contribution of each cell to the bracket, (cells,), and the steps with the alpha-vectors
    that are needed.

    The contribution is the sum over steps and beliefs b of sum_j V(b * v_j) int w_j + sum_k V(b *
    e_k) int s_k - V(b * P), where P are the masses of the cell.
    """
    cells, K, kinds = spread.corners.shape
    shown = (spread.corners * spread.mass[:, :, None]).reshape(-1, kinds)
    vectors = np.concatenate([shown, np.eye(kinds), masses.T])
    score, kept = np.zeros(cells), []
    for step in steps:
        more, known, less = np.split(step.value_of(vectors), [cells * K, cells * K + kinds])
        score += more.reshape(cells, K).sum(1) + spread.revealed @ known - less
        kept.append(step.needed(vectors))
    return score, kept


def split(pieces: Pieces, edges: Array, steps: list[Step], score: Array, most: int) -> Array:
    """The edges, with at most ``most`` new ones through the cells that contribute most."""
    order = np.argsort(-score, kind="stable")
    enough = np.searchsorted(np.cumsum(score[order]), SHARE * score.sum()) + 1
    cell = cell_of(pieces, edges)
    cuts = [
        _cut(pieces, np.flatnonzero(cell == c), steps, score[c]) for c in order[: min(enough, most)]
    ]
    return np.union1d(edges, [place for place in cuts if place is not None])


def _cut(pieces: Pieces, here: Array, steps: list[Step], score: Array | float) -> float | None:
    """Where to cut a cell: where the gain of observing the parts is largest, else at the median."""
    if len(here) == 0:
        return None
    points, half = pieces.points[here].ravel(), np.diff(pieces.breaks)[here] / 2
    weights = np.exp(pieces.log[here]) * half[:, None, None] * FINE[:, None]
    left = np.cumsum(weights.reshape(len(points), -1), axis=0)  # (n, kinds)  mass up to each point
    share = left.sum(1) / left[-1].sum()
    last = len(points) - 2
    places = np.unique(np.searchsorted(share, np.linspace(0, 1, PLACES)).clip(0, last))
    for _ in range(PASSES):
        vectors = np.concatenate(
            [left[places], np.maximum(left[-1] - left[places], 0.0), left[-1:]]
        )
        values = sum(step.value_of(vectors) for step in steps)
        left_value, right_value, whole = np.split(values, [len(places), 2 * len(places)])
        gain = left_value + right_value - whole
        k = gain.argmax()
        best = places[k]
        around = places[max(k - 1, 0)], places[min(k + 1, len(places) - 1)]
        places = np.unique(np.linspace(*around, PLACES).astype(int))
    if gain.max() < KINK * score:
        best = min(int(np.searchsorted(share, 0.5)), last)
    if (best + 1) % ORDER == 0:  # between two pieces, where a density may be discontinuous
        return float(pieces.breaks[here[(best + 1) // ORDER]])
    return float((points[best] + points[best + 1]) / 2)
