"""Certified bounds on the full tree of histories: worst models, differences, and best responses.

The histories of step h are numbered so that observation y after action a in history n leads to
history (n A + a) Y + y of the next step. A policy is a list of action probabilities, (N_h, A) for
each step h.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.confidence.sets import Box, Sets
from homdp_ppl.core.allowed import Allowed, allowed_table
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.precision import Array

Rule: TypeAlias = list[Array]  # action probabilities of each step, (N_h, A)

LARGEST = 20_000_000  # numbers in the worst rows of one step


class Worst(NamedTuple):
    """The worst models for a rule, chosen again after every history, and the values in them."""

    lower: float  # the certified lower bound, for rewards in [0, 1]
    values: list[Array]  # (N_h, X, A)  of each action, continued by the rule
    start: Array  # (X,)
    first: Array  # (X, Y)
    moves: list[Array]  # (N_h, X, A, X)
    shows: list[Array]  # (N_h, A, X, Y)


def fits(sets: Sets) -> bool:
    """Whether the tree of all histories is small enough."""
    X, Y, A = sets.centre.sizes
    last = Y * (A * Y) ** (sets.centre.horizon - 1)
    return bool(last * A * X * max(X, Y) <= LARGEST)


def unroll(graph: GraphPolicy, sets: Sets) -> Rule:
    """The action probabilities of a graph after every history."""
    _, Y, A = sets.centre.sizes
    nodes: Array = np.asarray(graph.start)
    rule: Rule = []
    for _ in range(sets.centre.horizon):
        rule.append(np.array(graph.probabilities[nodes], dtype=np.float64))
        following = np.broadcast_to(graph.successor[nodes], (len(nodes), A, Y))
        nodes = following.reshape(-1)
    return rule


def as_graph(rule: Rule, observations: int) -> GraphPolicy:
    """The policy of a rule, with a node for every history."""
    sizes = [len(step) for step in rule]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    A, successor = rule[0].shape[1], []
    for h, n in enumerate(sizes):
        following = np.arange(n * A * observations) + offsets[h + 1]
        if h + 1 == len(sizes):
            following = np.repeat(np.arange(n) + offsets[h], A * observations)
        successor.append(following.reshape(n, A, observations))
    return GraphPolicy(np.arange(observations), np.concatenate(rule), np.concatenate(successor))


def allowed_in(allowed: Allowed | None, spaces: Spaces) -> list[Array] | None:
    """The allowed actions after every history, (N_h, A) for each step; None: all."""
    if allowed is None:
        return None
    _, Y, A, H = spaces.sizes
    seen, done = np.arange(Y)[:, None], np.zeros((Y, 0), dtype=int)
    masks: list[Array] = []
    for h in range(H):
        masks.append(np.asarray(allowed_table(allowed, seen, done, spaces, "offline.choose")))
        if h + 1 < H:
            n = len(seen)
            act, sight = (part.ravel() for part in np.meshgrid(range(A), range(Y), indexing="ij"))
            seen, done = np.repeat(seen, A * Y, axis=0), np.repeat(done, A * Y, axis=0)
            done = np.concatenate([done, np.tile(act, n)[:, None]], axis=1)
            seen = np.concatenate([seen, np.tile(sight, n)[:, None]], axis=1)
    return masks


def smallest(box: Box, g: Array) -> tuple[Array, Array]:
    """The smallest p . g over the distributions of a box, and a p that attains it."""
    low = box.centre - box.down
    g, low, room = np.broadcast_arrays(g, low, box.up + box.down)
    order = np.argsort(g, axis=-1, kind="stable")
    room = np.take_along_axis(room, order, axis=-1)
    before = np.cumsum(room, axis=-1) - room
    added = np.clip(1 - low.sum(-1, keepdims=True) - before, 0.0, room)
    p = low.copy()
    np.put_along_axis(p, order, np.take_along_axis(low, order, axis=-1) + added, axis=-1)
    return (p * g).sum(-1), p


def worst_models(sets: Sets, rule: Rule, reward: Array | None = None) -> Worst:
    """The certified lower bound of a rule, and the models that attain it.

    Parameters
    ----------
    sets
        The confidence sets.
    rule
        The policy.
    reward
        (H, X, Y|1, A), in [0, 1]; by default the lower ends of their intervals.
    """
    model = sets.centre
    reward = sets.reward.low if reward is None else reward
    X, Y, A = model.sizes
    values: list[Array] = []
    moves: list[Array] = []
    shows: list[Array] = []
    later: Array = np.zeros(0)
    for h in reversed(range(model.horizon)):
        n = len(rule[h])
        value = _rewards(reward[h], n)  # (N, X, A)
        if h + 1 < model.horizon:
            hoped, seen = _observed(sets, h, later.reshape(n, A, Y, X))
            box = sets.moves(h)
            reached, moved = smallest(box, hoped[:, None])  # (N, X, A)
            value = value + reached
            moves.insert(0, moved)
            shows.insert(0, seen)
        values.insert(0, value)
        later = (value * rule[h][:, None]).sum(-1)  # (N, X)
    hoped, first = smallest(sets.shows(0, None), later.T)  # (X, Y)
    lower, start = smallest(sets.start(), hoped)
    return Worst(float(lower), values, start, first, moves, shows)


def best_value(sets: Sets, rule: Rule) -> Worst:
    """The certified upper bound of a rule, as minus the lower bound for minus the rewards."""
    return worst_models(sets, rule, -sets.reward.high)


def difference(sets: Sets, rule: Rule, base: Rule) -> float:
    """A certified lower bound on the value of a rule minus that of another, in [-H, H].

    As long as both take the same action after the same history, they earn the same, and the worst
    row is the same for both. Where they differ, it is a lower minus an upper bound.
    """
    model = sets.centre
    _, Y, A = model.sizes
    low, high = worst_models(sets, rule).values, best_value(sets, base).values
    later: Array = np.zeros(0)
    for h in reversed(range(model.horizon)):
        n = len(rule[h])
        both = np.minimum(rule[h], base[h])
        gain = ((rule[h] - both)[:, None] * low[h]).sum(-1)
        loss = ((base[h] - both)[:, None] * -high[h]).sum(-1)
        found = gain - loss
        if h + 1 < model.horizon:
            hoped, _ = _observed(sets, h, later.reshape(n, A, Y, -1))
            shared, _ = smallest(sets.moves(h), hoped[:, None])
            found = found + (both[:, None] * shared).sum(-1)
        later = found
    hoped, _ = smallest(sets.shows(0, None), later.T)
    return float(smallest(sets.start(), hoped)[0])


def best_response(
    sets: Sets, rule: Rule, worst: Worst, masks: list[Array] | None = None
) -> tuple[Rule, Rule]:
    """Two better rules against the worst models of a rule: by planning, and by single deviations.

    The first plans for these models. The second takes, after each history, the action that is best
    if the rule is followed afterwards.
    """
    model = sets.centre
    weights = _weights(worst, [np.ones_like(step) for step in rule])
    own = _weights(worst, rule)
    planned: Rule = []
    later: Array = np.zeros(0)
    for h in reversed(range(model.horizon)):
        n = len(rule[h])
        earned = (weights[h][:, :, None] * _rewards(sets.reward.low[h], n)).sum(1)  # (N, A)
        if h + 1 < model.horizon:
            earned = earned + later.reshape(n, rule[h].shape[1], -1).sum(-1)
        chosen, later = _better(earned, rule[h], None if masks is None else masks[h])
        planned.insert(0, chosen)
    deviating = [
        _better((w[:, :, None] * q).sum(1), step, None if masks is None else masks[h])[0]
        for h, (w, q, step) in enumerate(zip(own, worst.values, rule, strict=True))
    ]
    return planned, deviating


def mixed(one: Rule, other: Rule, share: float) -> Rule:
    """A rule that acts like another with a probability at every step."""
    return [(1 - share) * a + share * b for a, b in zip(one, other, strict=True)]


def _better(values: Array, current: Array, mask: Array | None) -> tuple[Array, Array]:
    """The best actions, (N, A), and their values; the current ones where nothing is gained."""
    values = values if mask is None else np.where(mask, values, -np.inf)
    finite = np.where(current > 0, values, 0.0)
    kept = (current * finite).sum(1)
    best = values.max(1)
    gained = best > kept + 1e-12
    chosen = np.where(gained[:, None], np.eye(values.shape[1])[values.argmax(1)], current)
    return chosen, np.where(gained, best, kept)


def _weights(worst: Worst, rule: Rule) -> list[Array]:
    """P(history, x) in the worst models, times the weights of the actions in a rule, (N_h, X)."""
    weights = [(worst.start[:, None] * worst.first).T]
    for step, moves, shows in zip(rule, worst.moves, worst.shows, strict=False):
        reached = np.einsum("nx,na,nxaz->naz", weights[-1], step, moves)
        joint = reached[:, :, None] * shows.swapaxes(2, 3)  # (N, A, Y, X)
        weights.append(joint.reshape(-1, joint.shape[-1]))
    return weights


def _rewards(reward: Array, nodes: int) -> Array:
    """r(x, y, a) of the last observation of each history, (N, X, A)."""
    by_observation = reward.swapaxes(0, 1)  # (Y|1, X, A)
    return by_observation[np.arange(nodes) % len(by_observation)]


def _observed(sets: Sets, h: int, later: Array) -> tuple[Array, Array]:
    """Worst means over the observation after each action, (N, A, X), and the worst rows."""
    A = later.shape[1]
    boxes = [sets.shows(h + 1, a) for a in range(A)]
    box = Box(*(np.stack(parts) for parts in zip(*boxes, strict=True)))  # (A, X, Y)
    return smallest(box, later.swapaxes(2, 3))
