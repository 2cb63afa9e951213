"""Exact values of many policies on the same history tree in one world.

The expected reward at each history, P(history) E[r_h(x, a) | history], does not depend on the
policy and is computed once. The value of a policy is a sum over the histories that it reaches.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.planners._histories import Generation
from homdp_ppl.planners._tree_solver import at_children, expected_rewards, rewards_at, seen_at
from homdp_ppl.precision import Array, namespace


def history_rewards(shape: list[Generation], world: POMDP) -> list[Array]:
    """sum_x P(y_1..y_h, x_h = x | a_1..a_{h-1}) r_h(x, a) at each history, (N, A) for each step."""
    X, _, _ = world.sizes
    joint = world.initial * world.shows(0).T[shape[0].observation]
    rewards = [expected_rewards(joint, rewards_at(world, 0, shape[0], len(joint)))]
    for h, (before, generation) in enumerate(pairwise(shape), 1):
        onward = world.predict(joint, None, h - 1)  # (N, A, X)
        shows = world.shows_after(h).swapaxes(1, 2)  # (A|1, Y, X)
        if before.regular:
            joint = (onward[:, :, None, :] * shows).reshape(-1, X)
        else:
            joint = onward[generation.parent, generation.action] * seen_at(generation, shows)
        rewards.append(expected_rewards(joint, rewards_at(world, h, generation, len(joint))))
    return [np.asarray(reward) for reward in rewards]


def follow(shape: list[Generation], rewards: list[Array], probabilities: Array) -> Array:
    """The value of action probabilities at all nodes, (N, A) in the order of the generations.

    JAX can trace this function.
    """
    xp = namespace(probabilities)
    end = len(probabilities)
    value = xp.zeros(0)
    for h in reversed(range(len(shape))):
        Q = rewards[h]
        if h + 1 < len(shape):
            Q = Q + at_children(xp, shape[h], value).sum(-1)
        value = (probabilities[end - len(Q) : end] * Q).sum(-1)
        end -= len(Q)
    return value.sum()
