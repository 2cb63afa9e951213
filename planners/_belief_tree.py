"""A tree of beliefs for the first steps, where few can be met, over the alpha-vectors of the step
after them.

It is grown only as far as it is cheaper than the vectors of another step: alpha_vectors.py asks.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.planners._lines import Floats, Integers

TREE_NUMBERS = 16_000_000  # held at once of one level of the tree
EPSILON = float(np.finfo(np.float64).eps)

Step: TypeAlias = tuple[
    Integers, Integers
]  # the action of each node (n,), and its node of the next step by observation (n, Y)


class Level(NamedTuple):
    """The beliefs of one step of the tree."""

    beliefs: Floats  # (n, X)
    chances: (
        Floats  # (parents, A, Y)  probability of the observation that leads here; first step (1, Y)
    )
    # (parents, A, Y)  which belief it leads to; an impossible one to the predicted belief
    places: Integers


def observe(predicted: Floats, model: Stationary) -> Level:
    """The beliefs after each observation (..., Y) from predicted ones (..., X)."""
    joint = predicted[..., None, :] * model.emission.T
    chances = joint.sum(-1)
    possible = chances > 0
    lacking = ~possible.all(-1)  # here an impossible observation leaves the predicted belief
    beliefs = np.concatenate([joint[possible] / chances[possible, None], predicted[lacking]])
    places = np.full(chances.shape, -1)
    places[possible] = np.arange(possible.sum())
    extra = possible.sum() + np.cumsum(lacking).reshape(lacking.shape) - 1
    return Level(beliefs, chances, np.where(possible, places, extra[..., None]))


def reaches(tree: list[Level], h: int, model: Stationary, vectors: int, work: float) -> bool:
    """Whether the tree can be had down to step h, and valued with that many vectors, for less than
    this work.
    """
    numbers = model.transition[0].size * model.emission.shape[1]  # of one belief's successors
    most = min(TREE_NUMBERS, work / vectors) / numbers
    while len(tree) <= h and len(tree[-1].beliefs) <= most:
        tree.append(observe(np.tensordot(tree[-1].beliefs, model.transition, 1), model))
    return len(tree) > h and len(tree[h].beliefs) <= most


def climb(
    tree: list[Level], depth: int, model: Stationary, alphas: Floats, level: float, tie: float
) -> tuple[Integers, float, float, list[Step]]:
    """Solve the first steps on the tree, over the vectors of the step after it.

    Start, value, loss, and the steps.

    Parameters
    ----------
    tree
        Its levels; one more is made if that is missing.
    depth
        How many steps are solved on the tree.
    model
        What is planned for.
    alphas, level
        The alpha-vectors of the step after it, (n, X), minus a common level.
    tie
        By how much the action that is taken may be worse than the best.
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
        worth = beliefs @ model.reward[h]  # (n, A)
        onward = np.zeros((*worth.shape, model.emission.shape[1]), np.int64)
        if h + 1 < model.horizon:
            _, chances, places = tree[h + 1]
            worth += (chances * values[places]).sum(-1)
            onward = best[places] if h + 1 == depth else places
        action = (worth >= worth.max(1, keepdims=True) - tie).argmax(1)
        nodes = np.arange(len(beliefs))
        values = worth[nodes, action]
        loss += float((worth.max(1) - values).max()) + 4 * EPSILON * sum(
            model.emission.shape
        ) * float(np.abs(values).max())
        steps.insert(0, (action, onward[nodes, action]))
    root = tree[0]
    return root.places[0], float(root.chances[0] @ values[root.places[0]]), loss, steps
