"""Where cells are worth splitting.

What each contributes to the bracket, and at which number to cut it.

Both are estimates that steer the refinement; no bound rests on them. A vector w of joint weights
over the states is worth V_h(w) = max over alpha-vectors of w . alpha at step h, with the
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

BELIEFS = 32  # the likeliest at each step
PLACES, PASSES = (
    12,
    2,
)  # at which a cell may be cut: so many, and as many again between the best one's neighbours
NUMBERS = 200_000  # held at once
SHARE = 0.8  # the cells split at once hold this part of what all contribute
# a cut that wins less than this part of what a cell contributes is not where the policy changes
KINK = 0.02


class Step(NamedTuple):
    """What may be believed before an observation, and what is worth what after it, by kinds of
    states (Pieces.kind).
    """

    weighted: (
        Array  # (beliefs, alpha-vectors, kinds)  sums of b(x) alpha(x) over the states of each kind
    )

    def worth(self, vectors: Array) -> Array:
        """What each vector of likelihoods (N, kinds) is worth.

        The sum over beliefs b of V(b * vector).
        """
        return np.concatenate([values.max(-1).sum(-1) for values in self._values(vectors)])

    def needed(self, vectors: Array) -> Step:
        """The same step, with those alpha-vectors alone that are best somewhere."""
        best = np.concatenate([values.argmax(-1).ravel() for values in self._values(vectors)])
        return Step(self.weighted[:, np.unique(best)])

    def _values(self, vectors: Array) -> Iterator[Array]:
        """(b * vector) . alpha for some vectors at a time, (n, beliefs, alphas)."""
        beliefs, alphas, kinds = self.weighted.shape
        flat = self.weighted.reshape(-1, kinds)
        for some in np.array_split(vectors, 1 + len(vectors) * len(flat) // NUMBERS):
            yield (some @ flat.T).reshape(len(some), beliefs, alphas)


def look_ahead(less: Plan, more: Plan, kind: Array) -> list[Step]:
    """Beliefs of the policy planned on cells, step by step, with the alpha-vectors of both
    policies.
    """
    vectors = zip(alphas_of(*less.finite), alphas_of(*more.finite), strict=True)
    members = np.eye(int(kind.max()) + 1)[kind]  # (X, kinds)
    probe = np.random.default_rng(0).normal(
        size=len(kind)
    )  # vectors with the same product are taken to be the same
    steps = []
    for beliefs, both in zip(_beliefs(less), vectors, strict=True):
        alphas = np.concatenate(both)
        alphas = alphas[np.unique((alphas @ probe).round(10), return_index=True)[1]]
        steps.append(Step(np.stack([alphas @ (belief[:, None] * members) for belief in beliefs])))
    return steps


def _beliefs(plan: Plan) -> Iterator[Array]:
    """Joint weights of the states before each observation, of histories that end in the same node
    together; the likeliest.
    """
    policy, pomdp = plan.finite
    model = pomdp.stationary("quantised")
    before, following = model.initial[None], policy.start[None]
    for _ in range(model.horizon):
        yield before
        nodes, place = np.unique(following, return_inverse=True)
        weights = np.zeros((len(nodes), before.shape[1]))
        np.add.at(weights, place.reshape(following.shape), before[:, None, :] * model.emission.T)
        likely = np.argsort(-weights.sum(1), kind="stable")[:BELIEFS]
        nodes, weights = nodes[likely], weights[likely]
        action = policy.probabilities[nodes].argmax(1)
        before = np.einsum("nx,nxz->nz", weights, model.transition.transpose(1, 0, 2)[action])
        following = policy.successor[nodes, 0 if policy.successor.shape[1] == 1 else action]


def contributions(steps: list[Step], masses: Array, spread: Spread) -> tuple[Array, list[Step]]:
    """What each cell adds to the bracket, (cells,), and the steps with the alpha-vectors that
    matter there.

    With P the masses of a cell: sum over steps and beliefs b of sum_j V(b * v_j) int w_j + sum_k
    V(b * e_k) int s_k - V(b * P).
    """
    cells, K, kinds = spread.corners.shape
    shown = (spread.corners * spread.mass[:, :, None]).reshape(-1, kinds)
    vectors = np.concatenate([shown, np.eye(kinds), masses.T])
    score, kept = np.zeros(cells), []
    for step in steps:
        more, told, less = np.split(step.worth(vectors), [cells * K, cells * K + kinds])
        score += more.reshape(cells, K).sum(1) + spread.told @ told - less
        kept.append(step.needed(vectors))
    return score, kept


def split(pieces: Pieces, edges: Array, steps: list[Step], score: Array, most: int) -> Array:
    """The edges, with cuts through the cells that contribute most; at most so many new ones."""
    order = np.argsort(-score, kind="stable")
    enough = np.searchsorted(np.cumsum(score[order]), SHARE * score.sum()) + 1
    cell = cell_of(pieces, edges)
    cuts = [
        _cut(pieces, np.flatnonzero(cell == c), steps, score[c]) for c in order[: min(enough, most)]
    ]
    return np.union1d(edges, [place for place in cuts if place is not None])


def _cut(pieces: Pieces, here: Array, steps: list[Step], score: Array | float) -> float | None:
    """Where to cut one cell: where it wins most for a policy that sees the parts, else through the
    middle of its mass.
    """
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
        worth = np.split(sum(step.worth(vectors) for step in steps), [len(places), 2 * len(places)])
        won = worth[0] + worth[1] - worth[2]
        k = won.argmax()
        best = places[k]
        around = places[max(k - 1, 0)], places[min(k + 1, len(places) - 1)]
        places = np.unique(np.linspace(*around, PLACES).astype(int))
    if won.max() < KINK * score:
        best = min(int(np.searchsorted(share, 0.5)), last)
    if (best + 1) % ORDER == 0:  # between two pieces, where a density may jump
        return float(pieces.breaks[here[(best + 1) // ORDER]])
    return float((points[best] + points[best + 1]) / 2)
