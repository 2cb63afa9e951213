"""A tree of beliefs for the first steps, on top of the alpha-vectors of the step after them.

Few beliefs are reachable in the first steps. alpha_vectors.py extends the tree as long as this is
cheaper than computing the vectors of another step.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.planners._lines import Floats, Integers

TREE_NUMBERS = 16_000_000  # largest number of floats of one level in memory
EPSILON = float(np.finfo(np.float64).eps)

Step: TypeAlias = tuple[
    Integers, Integers
]  # the action of each node (n,), and its node of the next step by observation (n, Y)


class Level(NamedTuple):
    """The beliefs of one step of the tree."""

    beliefs: Floats  # (n, X)
    # (parents, A, Y)  probability of the observation that leads here; (1, Y) at the first step
    chances: Floats
    # (parents, A, Y)  index of the belief that it leads to; if impossible, the predicted belief
    places: Integers


def observe(predicted: Floats, model: Stationary) -> Level:
    """The beliefs after each observation, (..., Y), from predicted beliefs (..., X)."""
    joint = predicted[..., None, :] * model.emission.T
    chances = joint.sum(-1)
    possible = chances > 0
    lacking = ~possible.all(-1)  # an impossible observation leaves the predicted belief unchanged
    beliefs = np.concatenate([joint[possible] / chances[possible, None], predicted[lacking]])
    places = np.full(chances.shape, -1)
    places[possible] = np.arange(possible.sum())
    extra = possible.sum() + np.cumsum(lacking).reshape(lacking.shape) - 1
    return Level(beliefs, chances, np.where(possible, places, extra[..., None]))


def reaches(tree: list[Level], h: int, model: Stationary, vectors: int, work: float) -> bool:
    """Whether extending the tree to step h, and evaluating it with ``vectors`` vectors, takes less
    than ``work`` multiplications.
    """
    numbers = model.transition[0].size * model.emission.shape[1]  # for the successors of a belief
    most = min(TREE_NUMBERS, work / vectors) / numbers
    while len(tree) <= h and len(tree[-1].beliefs) <= most:
        tree.append(observe(np.tensordot(tree[-1].beliefs, model.transition, 1), model))
    return len(tree) > h and len(tree[h].beliefs) <= most


def climb(
    tree: list[Level], depth: int, model: Stationary, alphas: Floats, level: float, tie: float
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
    alphas, level
        The alpha-vectors of the next step, (n, X), minus a common level.
    tie
        Actions within this distance of the best one count as tied; the lowest is taken.
    """
    values, best, steps, loss = np.zeros(0), np.zeros(0, np.int64), list[Step](), 0.0
    if depth < model.horizon:
        if len(tree) == depth:
            tree.append(observe(np.tensordot(tree[-1].beliefs, model.transition, 1), model))
        beliefs = tree[depth].beliefs
        size = max(1, TREE_NUMBERS // len(alphas))
        parts = (beliefs[k : k + size] @ alphas.T for k in range(0, len(beliefs), size))
        best = np.concatenate([scores.argmax(1) for scores in parts])
        values = np.einsum("nx,nx->n", beliefs, alphas[best]) + level
    for h in reversed(range(depth)):
        beliefs = tree[h].beliefs
        Q = beliefs @ model.reward[h]  # (n, A)
        onward = np.zeros((*Q.shape, model.emission.shape[1]), np.int64)
        if h + 1 < model.horizon:
            _, chances, places = tree[h + 1]
            Q += (chances * values[places]).sum(-1)
            onward = best[places] if h + 1 == depth else places
        action = (Q.max(1, keepdims=True) - tie <= Q).argmax(1)
        nodes = np.arange(len(beliefs))
        values = Q[nodes, action]
        loss += float((Q.max(1) - values).max()) + 4 * EPSILON * sum(model.emission.shape) * float(
            np.abs(values).max()
        )
        steps.insert(0, (action, onward[nodes, action]))
    root = tree[0]
    return root.places[0], float(root.chances[0] @ values[root.places[0]]), loss, steps
