"""Intervals for the value of a policy, from data that anyone gathered."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from homdp_ppl.confidence.ranges import largest_mean
from homdp_ppl.confidence.sequences import Interval
from homdp_ppl.confidence.sets import Box, MixtureName, Sets, confidence_sets
from homdp_ppl.core.alphas import CHUNK, after_observations, layers
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy, Searching
from homdp_ppl.core.spaces import require_finite
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.precision import Array, in_x64


@checked
@in_x64
def interval(
    homdp: HOMDP,
    data: Counts | Episode | Episodes | Iterable[Episode | Episodes],
    policy: Policy,
    delta: float = 0.1,
    mixture: MixtureName = "jeffreys",
    known: bool = True,
) -> Interval:
    """Bounds on the value of a policy in the true world, in the user's units.

    With probability 1 - delta they hold for all policies and at all times at once. So you may look
    at them after every episode, choose the policy from the same data, and stop when you like. The
    actions in the data may have been chosen by anyone, also by someone who saw the states.

    The lower bound is the value against the worst rows in :func:`confidence_sets`, chosen again
    after every history and in every state:

        lo_tau(x) = sum_a pi(a | tau) [r_h(x, a) + min_p sum_x' p(x') min_o sum_y o(y) lo_tay(x')],

    with p in the box of T_h(. | x, a) and o in that of O_{h+1}(. | x', a). The upper bound has
    maxima. Both are computed on the nodes of the policy's graph.

    Parameters
    ----------
    homdp
        The declaration, with finite spaces. The true world must be one of its worlds.
    data
        Revealed episodes, or their counts.
    policy
        The policy. If it is not a graph, it is converted to the tree of histories that it can
        reach. Policies that plan online raise PolicyError.
    delta, mixture, known
        As in :func:`confidence_sets`.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, rollout
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger")
    >>> plan = history_tree()(tiger.pomdp)
    >>> data = rollout(jax.random.split(jax.random.key(0), 100), tiger, plan.policy)
    >>> low, high = interval(tiger.homdp, data, plan.policy)
    >>> bool(low < plan.value < high), round(float(high - low), 2)
    (True, 0.09)
    """
    require_finite(homdp.spaces, homdp.name, "interval")
    refuse_searching(policy, "interval")
    counts = data if isinstance(data, Counts) else homdp.counts(data)
    sets = confidence_sets(homdp, counts, delta, mixture, known)
    return policy_interval(sets, graph_of(policy, homdp))


def refuse_searching(policy: Policy, subject: str) -> None:
    """Raise an error for a policy that plans online."""
    if isinstance(policy, Searching):
        expected = "a policy whose actions are known after every history"
        remedy = (
            "The bound needs the action after every history, and this policy would have to search "
            "after each of them. Use history_tree, alpha_vectors or bounded_search."
        )
        problem = Problem("policy", "a policy that plans online", expected, remedy)
        raise PolicyError(subject, [problem])


def policy_interval(sets: Sets, graph: GraphPolicy) -> Interval:
    """:func:`interval` for given sets, whose arrays are NumPy arrays, and a valid graph."""
    low = -_largest_value(sets, graph, -sets.reward.low)
    high = _largest_value(sets, graph, sets.reward.high)
    model = sets.centre
    return Interval(*(np.asarray(model.to_user(end)) for end in (low, high)))


def _largest_value(sets: Sets, graph: GraphPolicy, reward: Array) -> float:
    """The largest value over the models in the sets, with rewards (H, X, Y|1, A)."""
    model, by_step = sets.centre, layers(graph, sets.centre.horizon)
    alpha = np.zeros(0)
    for h in reversed(range(model.horizon)):
        chances = graph.probabilities[by_step[h]]  # (N, A)
        rewards = np.einsum("na,xya->nyx", chances, reward[h])  # (N, Y|1, X)
        if h + 1 < model.horizon:
            rewards = rewards + _continue(sets, graph, h, by_step, alpha)[:, None]
        alpha = rewards if rewards.shape[1] > 1 else rewards[:, 0]
    first = after_observations(alpha, np.searchsorted(by_step[0], graph.start))  # (Y, X)
    return float(largest_mean(sets.start(), largest_mean(sets.shows(0, None), first.T)))


def _continue(sets: Sets, graph: GraphPolicy, h: int, by_step: list[Array], alpha: Array) -> Array:
    """The largest expected value of the next step after each node of step h, (N, X)."""
    X, Y, A = sets.centre.sizes
    nodes, moves = by_step[h], sets.moves(h)
    onward = np.zeros((len(nodes), X))
    for action in range(A):
        chance = graph.probabilities[nodes, action]
        taken = np.flatnonzero(chance > 0)
        column = 0 if graph.successor.shape[1] == 1 else action
        shows, rows = sets.shows(h + 1, action), Box(*(part[:, action] for part in moves))
        for some in _chunks(taken, X * max(X, Y)):
            places = np.searchsorted(by_step[h + 1], graph.successor[nodes[some], column])
            seen = after_observations(alpha, places).swapaxes(1, 2)  # (n, X, Y)
            hoped = largest_mean(shows, seen)  # (n, X)
            onward[some] += chance[some, None] * largest_mean(rows, hoped[:, None])
    return onward


def _chunks(index: Array, width: int) -> Iterable[Array]:
    step = max(1, CHUNK // width)
    return (index[at : at + step] for at in range(0, len(index), step))
