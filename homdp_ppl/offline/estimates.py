"""Values of policies from logged returns, weighted by how likely the policy acts as recorded.

rho_t is the product of pi(a_s | history) / b(a_s | history) over steps s <= t, for the policy pi
and the behaviour b. All estimates but the self-normalised one are unbiased if b is the policy that
acted and takes every action of pi with positive probability.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.sets import confidence_sets
from homdp_ppl.core.alphas import after_observations, layers, policy_alphas
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.offline.logs import action_chances, walk
from homdp_ppl.precision import Array

FOLDS = 5
NORMAL = 1.96  # standard errors on either side of a 95 % interval


class Estimate(NamedTuple):
    """An estimated value with its standard error.

    Examples
    --------
    >>> Estimate("importance weighted", 2.0, 0.5)
    importance weighted: 2 ± 0.5
    """

    name: str
    value: float
    error: float  # standard error

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval, by the normal approximation."""
        return self.value - NORMAL * self.error

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        return self.value + NORMAL * self.error

    def __repr__(self) -> str:
        return f"{self.name}: {self.value:.4g} ± {self.error:.2g}"


class Weights(NamedTuple):
    """Importance weights of recorded episodes."""

    products: Array  # (N, H)  rho_t; constant after the end of an episode

    @classmethod
    def of(cls, graph: GraphPolicy, behaviour: Array, episodes: Episodes, homdp: HOMDP) -> Weights:
        """The weights of a policy, from the probabilities of the behaviour, (N, H)."""
        ratio = action_chances(graph, episodes, homdp.spaces) / behaviour
        return cls(np.cumprod(ratio, axis=1))

    @property
    def effective(self) -> float:
        """The number of episodes of the policy itself with the same spread of weights."""
        last = self.products[:, -1]
        square = float((last**2).sum())
        return float(last.sum()) ** 2 / square if square > 0 else 0.0


def mean_of(name: str, values: Array) -> Estimate:
    """The mean of two or more independent values."""
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Estimate(name, float(values.mean()), error)


def importance_weighted(rewards: Array, weights: Weights) -> Estimate:
    """The mean of rho_H times the return."""
    return mean_of("importance weighted", weights.products[:, -1] * rewards.sum(1))


def per_decision(rewards: Array, weights: Weights) -> Estimate:
    """The mean of the sum of rho_t r_t: later actions do not change earlier rewards."""
    return mean_of("per decision", (weights.products * rewards).sum(1))


def self_normalised(rewards: Array, weights: Weights) -> Estimate | None:
    """Rewards of each step, with weights that sum to 1. Biased, but never outside of the range.

    The standard error is that of the linearised estimate. None if all weights of a step are 0.
    """
    name, products = "self-normalised", weights.products
    mean = products.mean(0)
    if (mean <= 0).any():
        return None
    by_step = (products * rewards).mean(0) / mean
    parts = (products * (rewards - by_step) / mean).sum(1)
    return Estimate(name, float(by_step.sum()), mean_of(name, parts).error)


def doubly_robust(
    homdp: HOMDP, episodes: Episodes, rewards: Array, weights: Weights, graph: GraphPolicy
) -> Estimate:
    """The mean of the sum of rho_t (r_t - Q_t) + rho_{t-1} V_t, with rho_0 = 1.

    V_t is the value of the policy's node in the revealed state x_t, and Q_t that of the recorded
    action. They are control variates with mean zero: the estimate is unbiased for every model. The
    model has the relative frequencies of the other episodes, in ``FOLDS`` folds.
    """
    N = len(episodes)
    fold = np.arange(N) % min(FOLDS, N)
    totals = np.zeros(N)
    for k in range(fold.max() + 1):
        own, others = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        counts = homdp.counts(episodes[others if len(others) else own])
        model = confidence_sets(homdp, counts).centre
        some = Weights(weights.products[own])
        totals[own] = _corrected(model, episodes[own], rewards[own], some, graph)
    return mean_of("doubly robust", totals)


def _corrected(
    model: POMDP, episodes: Episodes, rewards: Array, weights: Weights, graph: GraphPolicy
) -> Array:
    """The sum of each episode, (N,)."""
    alphas, by_step = policy_alphas(graph, model), layers(graph, model.horizon)
    nodes, x, y, a = walk(graph, episodes), episodes.states, episodes.observations, episodes.actions
    total = np.zeros(len(episodes))
    before: Array = np.ones(len(episodes))
    for h in range(model.horizon):
        on = np.flatnonzero(episodes.steps[:, h] & (before > 0))
        place = np.searchsorted(by_step[h], nodes[on, h])
        alpha = alphas[h]
        value = alpha[place, x[on, h]] if alpha.ndim == 2 else alpha[place, y[on, h], x[on, h]]
        total[on] += before[on] * value
        products = weights.products[:, h]
        taken = np.flatnonzero(episodes.steps[:, h] & (products > 0))
        hoped = _action_values(model, graph, h, by_step, alphas, nodes[taken, h], a[taken, h])
        own = model.rewards(h)
        seen = y[taken, h] if own.shape[1] > 1 else 0
        reward = model.to_user(own[x[taken, h], seen, a[taken, h]], 1)
        onward = hoped[np.arange(len(taken)), x[taken, h]]
        total[taken] += products[taken] * (rewards[taken, h] - reward - onward)
        before = products
    return total


def _action_values(
    model: POMDP,
    graph: GraphPolicy,
    h: int,
    by_step: list[Array],
    alphas: list[Array],
    nodes: Array,
    actions: Array,
) -> Array:
    """Expected values after actions at nodes, for each state and without the reward, (n, X)."""
    X, _, A = model.sizes
    if h + 1 == model.horizon or not len(nodes):
        return np.zeros((len(nodes), X))
    pairs, which = np.unique(nodes * A + actions, return_inverse=True)
    node, action = np.divmod(pairs, A)
    values = np.zeros((len(pairs), X))
    for act in np.unique(action):
        some = np.flatnonzero(action == act)
        column = 0 if graph.successor.shape[1] == 1 else act
        places = np.searchsorted(by_step[h + 1], graph.successor[node[some], column])  # (n, Y)
        later = after_observations(alphas[h + 1], places)  # (n, Y, X)
        seen = np.einsum("nyx,xy->nx", later, model.shows(h + 1, int(act)))
        values[some] = seen @ model.moves(h)[:, act].T
    found: Array = values[which.ravel()]
    return found
