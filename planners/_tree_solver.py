"""Solution of a history tree: beliefs forward, values backward, one generation at a time.

The code is the same for NumPy and JAX; ``xp`` is the array module. A complete tree is regular and
needs reshapes only; a tree with impossible branches uses the index arrays of _histories.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.core.optimism import Limits, Spread, kept_deficit
from homdp_ppl.core.pomdp import POMDP, TIE
from homdp_ppl.planners._histories import Generation
from homdp_ppl.precision import Array


class Beliefs(NamedTuple):
    """Beliefs after each history, by generation."""

    state: list[Array]  # (N, X)  P(x_h | history)
    chance: list[Array]  # (N,)    P(y_h | history before it)


class Values(NamedTuple):
    """The value of the tree, and the action at each history, by generation."""

    value: Array  # ()  of the chosen actions
    upper: Array  # ()  of the best actions, slightly above if actions tie
    first: Array  # (N, X)  alpha-vectors of the first generation; constant without vectors
    actions: list[Array]  # (N,)


def forward(xp: ModuleType, shape: list[Generation], model: POMDP) -> Beliefs:
    """Beliefs after each history, normalised at each step."""
    joint = model.initial * model.shows(0).T[shape[0].observation]
    state, chance = _condition(xp, joint, xp.broadcast_to(model.initial, joint.shape))
    beliefs = Beliefs([state], [chance])
    for h, steps in enumerate(pairwise(shape)):
        state, chance = _condition(xp, *_joint(xp, steps, model, state, h))
        beliefs.state.append(state)
        beliefs.chance.append(chance)
    return beliefs


def _joint(
    xp: ModuleType, steps: tuple[Generation, Generation], model: POMDP, state: Array, h: int
) -> tuple[Array, Array]:
    """P(x', y | history, a) and P(x' | history, a) for each history of the next step, (N', X)."""
    X, Y, _ = model.sizes
    before, generation = steps
    predicted = model.predict(state, None, h)  # (N, A, X)
    shows = xp.swapaxes(model.shows_after(h + 1), 1, 2)  # (A|1, Y, X)
    if before.regular and len(shows) == 1:
        predicted = xp.repeat(predicted.reshape(-1, 1, X), Y, axis=1)  # (N A, Y, X)
        joint = predicted * shows[0]
    elif before.regular:
        predicted = xp.repeat(predicted[:, :, None], Y, axis=2)  # (N, A, Y, X)
        joint = predicted * shows
    else:
        predicted = predicted[generation.parent, generation.action]
        joint = predicted * seen_at(generation, shows)
    return joint.reshape(-1, X), predicted.reshape(-1, X)


def seen_at(generation: Generation, shows: Array) -> Array:
    """O(y | x, a) of the observation and the action that lead to each node, (N, X)."""
    if len(shows) == 1:
        return shows[0][generation.observation]
    return shows[generation.action, generation.observation]


def rewards_at(model: POMDP, h: int, generation: Generation, nodes: int) -> Array:
    """r_h(x, y, a) of the observation y at each node, (N, X, A), or (1, X, A) if all are equal."""
    return _at_nodes(model.rewards(h), generation, nodes)


def _at_nodes(table: Array, generation: Generation, nodes: int) -> Array:
    """The part of a table (X, Y|1, A) for the observation at each node, (N|1, X, A)."""
    by_observation = table.swapaxes(0, 1)
    Y = len(by_observation)
    if Y == 1:
        return by_observation
    return by_observation[np.arange(nodes) % Y if generation.regular else generation.observation]


def expected_rewards(weights: Array, rewards: Array) -> Array:
    """sum_x w(x) r(x, a) at each node, (N, A), from the rewards of :func:`rewards_at`."""
    if len(rewards) == 1:
        return weights @ rewards[0]
    return (weights[:, :, None] * rewards).sum(1)


def _condition(xp: ModuleType, joint: Array, predicted: Array) -> tuple[Array, Array]:
    """Condition on the observation.

    An observation with probability zero leaves the predicted belief, with weight zero.
    """
    chance = joint.sum(-1)
    possible = chance > 0
    return xp.where(
        possible[:, None], joint / xp.where(possible, chance, 1.0)[:, None], predicted
    ), chance


def backward(
    xp: ModuleType,
    shape: list[Generation],
    model: POMDP,
    beliefs: Beliefs,
    limits: Limits | None = None,
) -> Values:
    """Values by the Bellman recursion on beliefs.

    With limits, the value of a history and an action is at most the mean of the caps under the
    belief, minus what later values are known to be below their largest. Actions whose capped values
    tie are compared without caps. Caps apply to values of histories. Capping the entries of an
    alpha-vector would not be optimistic: actions would be chosen for states whose values are capped
    afterwards, at the expense of other states.
    """
    H = model.horizon
    actions: list[Array] = []  # from the last step back
    value = upper = xp.zeros_like(beliefs.chance[-1])
    for h in reversed(range(H)):
        rewards = rewards_at(model, h, shape[h], len(beliefs.state[h]))
        Q = best = expected_rewards(beliefs.state[h], rewards)  # (N, A)
        if h + 1 < H:
            Q = Q + at_children(xp, shape[h], beliefs.chance[h + 1] * value).sum(-1)
            best = best + at_children(xp, shape[h], beliefs.chance[h + 1] * upper).sum(-1)
        if shape[h].allowed is not None:
            Q, best = (xp.where(shape[h].allowed, some, -math.inf) for some in (Q, best))
        if limits is None:
            actions.append(_choose(xp, Q, H))
        else:
            cap = _cap(limits.caps[h], shape[h], beliefs.state[h])
            if limits.spread is not None and h + 1 < H:
                cap = cap - _missing(xp, shape[h : h + 2], beliefs, limits.spread, upper, h)
            free, Q, best = Q, xp.minimum(Q, cap), xp.minimum(best, cap)
            tied = Q.max(-1, keepdims=True) - TIE * H <= Q
            actions.append(_choose(xp, xp.where(tied, free, -math.inf), H))
        value = xp.take_along_axis(Q, actions[-1][:, None], axis=1)[:, 0]
        upper = best.max(-1)
    chance = beliefs.chance[0]
    constant = xp.broadcast_to(upper[:, None], beliefs.state[0].shape)
    return Values((chance * value).sum(), (chance * upper).sum(), constant, actions[::-1])


def _cap(caps: Array, generation: Generation, state: Array) -> Array:
    """The caps of one step, (X|1, Y|1, A|1), for each node, (N|1, A|1)."""
    each = _at_nodes(caps, generation, len(state))
    return each[:, 0] if each.shape[1] == 1 else expected_rewards(state, each)


def _missing(
    xp: ModuleType,
    steps: list[Generation],
    beliefs: Beliefs,
    spread: Spread,
    upper: Array,
    h: int,
) -> Array:
    """How much the next values miss their largest, at least, in every possible model, (N, A)."""
    before, after = steps
    joint = beliefs.chance[h + 1][:, None] * beliefs.state[h + 1]  # (N', X)
    least, _ = _joint(xp, (before, after), spread.least, beliefs.state[h], h)
    high, width = (
        _at_nodes(part[h + 1][..., None], after, len(joint))[..., 0]
        for part in (spread.high, spread.width)
    )
    below = (joint * high).sum(-1) - beliefs.chance[h + 1] * upper
    return at_children(xp, before, kept_deficit(joint, least, width, below)).sum(-1)


def backward_vectors(
    xp: ModuleType,
    shape: list[Generation],
    model: POMDP,
    beliefs: Beliefs,
    backup: Callable[[int, Array], Array],
) -> Values:
    """Values as alpha-vectors, for optimistic backups, which act on single entries."""
    H = model.horizon
    actions: list[Array] = []  # from the last step back
    alpha = xp.zeros_like(beliefs.state[-1])
    for h in reversed(range(H)):
        N = len(beliefs.state[h])
        Q = rewards_at(model, h, shape[h], N)  # (N, X, A)
        Q = xp.repeat(Q, N, axis=0) if len(Q) == 1 else Q
        if h + 1 < H:
            following = at_children(xp, shape[h], alpha)  # (N, A, Y, X)
            Q = Q + _map(xp, partial(backup, h + 1), following)
        score = (beliefs.state[h][:, :, None] * Q).sum(1)  # (N, A)
        if shape[h].allowed is not None:
            score = xp.where(shape[h].allowed, score, -math.inf)
        actions.append(_choose(xp, score, H))
        alpha = xp.take_along_axis(Q, actions[-1][:, None, None], axis=2)[:, :, 0]
    value = (beliefs.chance[0] * (beliefs.state[0] * alpha).sum(-1)).sum()
    return Values(value, value, alpha, actions[::-1])


def at_children(xp: ModuleType, generation: Generation, later: Array) -> Array:
    """The entries of the children of each node, (N, A, Y, ...); zero for impossible branches."""
    if generation.regular:
        return later.reshape(-1, *generation.child.shape[1:], *later.shape[1:])
    padded = xp.concatenate([later, xp.zeros((1, *later.shape[1:]))])
    return padded[generation.child]  # index -1 is the zero at the end


def _choose(xp: ModuleType, Q: Array, horizon: int) -> Array:
    return xp.argmax(Q.max(-1, keepdims=True) - TIE * horizon <= Q, axis=-1)


def _map(xp: ModuleType, function: Callable[[Array], Array], nodes: Array) -> Array:
    return (
        np.stack([np.asarray(function(node)) for node in nodes])
        if xp is np
        else jax.vmap(function)(nodes)
    )
