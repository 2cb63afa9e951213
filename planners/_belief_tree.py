"""A tree of beliefs for the first steps, on top of the alpha-vectors of the step after them.

Few beliefs are reachable in the first steps. alpha_vectors.py extends the tree as long as this is
cheaper than computing the vectors of another step.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, cast

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.planners._lines import Floats, Integers
from homdp_ppl.precision import Array

TREE_NUMBERS = 16_000_000  # largest number of floats of one level in memory
EPSILON = float(np.finfo(np.float64).eps)

Step: TypeAlias = tuple[
    Integers, Integers
]  # the action of each node (n,), and its node of the next step by observation (n, Y)


class Level(NamedTuple):
    """The beliefs of one step of the tree."""

    beliefs: Floats  # (n, X)
    # (n,)  the observation that leads to each belief; the likeliest one for predicted beliefs.
    # Empty if rewards do not depend on it.
    seen: Integers
    # (parents, A, Y)  probability of the observation that leads here; (1, Y) at the first step
    chances: Floats
    # (parents, A, Y)  index of the belief that it leads to; if impossible, the predicted belief
    places: Integers


class Following(NamedTuple):
    """The alpha-vectors of the step after the tree."""

    alphas: Floats  # (m, X)  minus a common level
    seen: Integers  # (m,)  the observation of each vector; all 0 if rewards do not depend on it
    level: float


def first_level(model: POMDP) -> Level:
    """The beliefs after the first observation."""
    initial = cast(Floats, model.initial)[None]
    return _observe(initial, model.shows(0), model.rewards_by_observation)


def reaches(tree: list[Level], h: int, model: POMDP, vectors: int, work: float) -> bool:
    """Whether extending the tree to step h, and evaluating it with ``vectors`` vectors, takes less
    than ``work`` multiplications.
    """
    # numbers for the successors of a belief
    numbers = model.transition[0, 0].size * model.emission.shape[3]
    most = min(TREE_NUMBERS, work / vectors) / numbers
    while len(tree) <= h and len(tree[-1].beliefs) <= most:
        _extend(tree, model)
    return len(tree) > h and len(tree[h].beliefs) <= most


def climb(
    tree: list[Level], depth: int, model: POMDP, following: Following, tie: float
) -> tuple[Integers, float, float, list[Step]]:
    """Solve the first steps on the tree, given the vectors of the step after it.

    Returns the start nodes, the value, the loss and the steps.

    Parameters
    ----------
    tree
        The levels of the tree; another one is added if it is missing.
    depth
        Number of steps to solve on the tree.
    model
        The model to plan for.
    following
        The alpha-vectors of the next step.
    tie
        Actions within this distance of the best one count as tied; the lowest is taken.
    """
    values, best, steps, loss = np.zeros(0), np.zeros(0, np.int64), list[Step](), 0.0
    X, Y, _ = model.sizes
    if depth < model.horizon:
        if len(tree) == depth:
            _extend(tree, model)
        beliefs = tree[depth].beliefs
        best = _best(tree[depth], following, model.rewards_by_observation)
        values = np.einsum("nx,nx->n", beliefs, following.alphas[best]) + following.level
    for h in reversed(range(depth)):
        beliefs = tree[h].beliefs
        Q = _rewards(tree[h], cast(Floats, model.rewards(h)))  # (n, A)
        onward = np.zeros((*Q.shape, Y), np.int64)
        if h + 1 < model.horizon:
            chances, places = tree[h + 1].chances, tree[h + 1].places
            Q += (chances * values[places]).sum(-1)
            onward = best[places] if h + 1 == depth else places
        action = (Q.max(1, keepdims=True) - tie <= Q).argmax(1)
        nodes = np.arange(len(beliefs))
        values = Q[nodes, action]
        loss += float((Q.max(1) - values).max()) + 4 * EPSILON * (X + Y) * float(
            np.abs(values).max()
        )
        steps.insert(0, (action, onward[nodes, action]))
    root = tree[0]
    return root.places[0], float(root.chances[0] @ values[root.places[0]]), loss, steps


def _extend(tree: list[Level], model: POMDP) -> None:
    """Add the beliefs of the next step."""
    h = len(tree) - 1
    predicted = np.tensordot(tree[-1].beliefs, model.moves(h), 1)
    tree.append(_observe(predicted, model.shows_after(h + 1), model.rewards_by_observation))


def _observe(predicted: Floats, shows: Array, split: bool) -> Level:
    """The beliefs after each observation, from predicted beliefs: (n, A, X) with emissions
    (A or 1, X, Y), or (n, X) with (X, Y). If ``split``, observations are kept.
    """
    joint = predicted[..., None, :] * np.swapaxes(shows, -1, -2)
    chances = joint.sum(-1)
    possible = chances > 0
    lacking = ~possible.all(-1)  # an impossible observation leaves the predicted belief unchanged
    beliefs = np.concatenate([joint[possible] / chances[possible, None], predicted[lacking]])
    seen = np.zeros(0, np.int64)
    if split:
        seen = np.concatenate([np.nonzero(possible)[-1], chances[lacking].argmax(-1)])
    places = np.full(chances.shape, -1)
    places[possible] = np.arange(possible.sum())
    extra = possible.sum() + np.cumsum(lacking).reshape(lacking.shape) - 1
    return Level(beliefs, seen, chances, np.where(possible, places, extra[..., None]))


def _rewards(level: Level, rewards: Floats) -> Floats:
    """Expected rewards of each belief and action, (n, A), from r(x, y, a), (X, Y or 1, A)."""
    if rewards.shape[1] == 1:
        return level.beliefs @ rewards[:, 0]
    expected = np.empty((len(level.beliefs), rewards.shape[2]))
    for y in range(rewards.shape[1]):
        expected[level.seen == y] = level.beliefs[level.seen == y] @ rewards[:, y]
    return expected


def _best(level: Level, following: Following, split: bool) -> Integers:
    """The best vector of each belief, (n,); if ``split``, among those of its observation."""
    alphas, best = following.alphas, np.empty(len(level.beliefs), np.int64)
    size = max(1, TREE_NUMBERS // len(alphas))
    for k in range(0, len(best), size):
        scores = level.beliefs[k : k + size] @ alphas.T
        if split:
            scores[level.seen[k : k + size, None] != following.seen] = -np.inf
        best[k : k + size] = scores.argmax(1)
    return best
