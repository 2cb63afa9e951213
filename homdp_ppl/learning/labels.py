"""Buying labels: which missing states to reveal next, if revealing a state costs something."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode_values import Known, Values
from homdp_ppl.core.episodes import SAW_STATES, Episodes
from homdp_ppl.core.evidence import LIKELIHOOD
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import as_key
from homdp_ppl.core.spaces import require_finite
from homdp_ppl.errors import DataError, ParameterError, Problem, shown
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.learning.planning import Planner, plan_allowed
from homdp_ppl.posteriors import Posterior
from homdp_ppl.precision import Array, in_x64

DRAWS, POLICIES = 100, 10


class LabelValue(NamedTuple):
    """The value of revealing one missing state.

    Examples
    --------
    >>> LabelValue(episode=3, step=1, gain=0.02).gain
    0.02
    """

    episode: int  # the number of the episode in the data of the posterior
    step: int  # from 1 to L + 1; x_{L+1} is the state after the last action
    gain: float  # expected reduction of the loss of the planned policy, per future episode


@checked
@in_x64
def rank_labels(
    belief: Posterior,
    planner: Planner,
    key: Array | int = 0,
    *,
    draws: int = DRAWS,
    policies: int = POLICIES,
) -> list[LabelValue]:
    """Rank the missing states of recorded episodes by the value of revealing one of them.

    The planned policy is the one with the best posterior mean value among plans for the posterior
    mean model and for draws of the posterior. Its expected loss is the mean optimum minus its mean
    value. Revealing a state changes the posterior, and then the plan. The gain is the expected
    reduction of the loss, in the units of the reward and per future episode. So a label is worth
    buying while its price is below the gain times the number of future episodes.

    The gain is never negative, and 0 if no answer would change the plan. Values are exact for the
    drawn models and the plans considered; few draws make gains too large. Gains of several labels
    cannot be added: buy one, or a few, then update the posterior and rank again.

    Parameters
    ----------
    belief
        The posterior given episodes with missing states.
    planner
        The planner.
    key
        A JAX random key, or a seed.
    draws
        The number of draws that represent the posterior.
    policies
        The number of draws to plan for.

    Returns
    -------
    list of LabelValue
        One for every missing state, with the largest gain first.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Episodes, posterior, tabular
    >>> from homdp_ppl.planners import history_tree
    >>> guess = tabular(
    ...     T=np.full((2, 2, 2), 0.5),
    ...     O=dist.Dirichlet(np.ones((2, 2))),
    ...     initial=[0.5, 0.5],
    ...     reward=np.eye(2),
    ...     horizon=1,
    ... )
    >>> unlabelled = Episodes([[0], [0], [1]], [[0], [0], [0]], [[None, None]] * 3)
    >>> ranked = rank_labels(posterior(guess, unlabelled), history_tree())
    >>> [label.step for label in ranked], bool(ranked[0].gain > 0.01)
    ([1, 1, 1, 2, 2, 2], True)

    The state after the last action has no observation, so nothing is learned from it:

    >>> round(ranked[-1].gain, 9)
    0.0
    """
    homdp = belief.homdp
    require_finite(homdp.spaces, homdp.name, "rank_labels")
    problems = size_problems(draws=draws, policies=policies)
    if isinstance(key, int) and not 0 <= key < 2**63:
        problems.append(Problem("key", shown(key), "a JAX random key, or a seed below 2^63"))
    refuse(ParameterError, "rank_labels", problems)
    episodes = belief.episodes
    if episodes is None:
        got, remedy = "a posterior given counts", "Pass the episodes: posterior(homdp, episodes)."
        problem = Problem("belief", got, "a posterior given episodes", remedy)
        raise DataError("rank_labels", [problem])
    if episodes.behaviour == SAW_STATES:
        problem = Problem(
            "behaviour", SAW_STATES, "actions that depend on observations", LIKELIHOOD
        )
        raise DataError("rank_labels", [problem])
    typed = jax.random.key(key) if isinstance(key, int) else as_key(key, "rank_labels")
    models = belief.draws(typed, draws)
    values = _values(belief, planner, models, min(policies, draws))  # (P, S)
    now = values.mean(1).max()
    scale = float(homdp.rewards.scale)
    found = []
    for k in range(len(episodes)):
        L = int(episodes.length[k])
        missing = np.flatnonzero(~episodes.revealed[k, : L + 1])
        if not len(missing):
            continue
        beliefs = _smoothed(models, episodes, k, np.asarray(homdp.spaces.ends))  # (L + 1, S, X)
        for h in missing:
            after = (values @ beliefs[h]).max(0).sum() / draws
            gain = max(scale * float(after - now), 0.0)
            found.append(LabelValue(k, int(h) + 1, gain))
    return sorted(found, key=lambda label: -label.gain)


def _values(belief: Posterior, planner: Planner, models: POMDP, policies: int) -> Array:
    """The value of each plan in each drawn model, for rewards in [0, 1], (P, S)."""
    each = [jax.tree.map(lambda leaf, s=s: leaf[s], models) for s in range(len(models.initial))]
    allowed, planned = belief.homdp.allowed, [belief.mean, *each[:policies]]
    plans: list[GraphPolicy] = []
    for model in planned:
        graph = graph_of(plan_allowed(planner, model, allowed).policy, belief.homdp)
        if not any(_same(graph, other) for other in plans):
            plans.append(graph)
    return np.array([[float(policy_value(plan, model)) for model in each] for plan in plans])


def _same(one: GraphPolicy, other: GraphPolicy) -> bool:
    parts = zip(one.tree_flatten()[0], other.tree_flatten()[0], strict=True)
    return all(np.array_equal(mine, theirs) for mine, theirs in parts)


def _smoothed(models: POMDP, episodes: Episodes, k: int, ends: Known) -> Array:
    """P(x_h | everything recorded in an episode) in each drawn model, (L + 1, S, X)."""
    L, S = int(episodes.length[k]), len(models.initial)
    y, a, x = (part[k] for part in (episodes.observations, episodes.actions, episodes.states))
    clues = np.ones((L + 1, len(ends)))
    for known in np.flatnonzero(episodes.revealed[k, : L + 1]):
        clues[known] = np.arange(len(ends)) == x[known]
    if episodes.ended[k] == "terminal":
        clues[L] = clues[L] * ends
    elif ends.any():
        clues[:L] = clues[:L] * ~ends
    moves = [_moves(models, h)[:, :, a[h]] for h in range(L)]  # (S, X, X)
    shows = [_shows(models, h, a)[..., y[h]] for h in range(L)]  # (S, X)
    likelihoods = [clues[h] * (shows[h] if h < L else 1.0) for h in range(L + 1)]
    ahead = np.ones((L + 1, S, len(ends)))
    for h in reversed(range(L)):
        ahead[h] = np.einsum("sxz,sz->sx", moves[h], likelihoods[h + 1] * ahead[h + 1])
        ahead[h] /= ahead[h].max(-1, keepdims=True)
    found, before = np.empty_like(ahead), models.initial
    for h in range(L + 1):
        before = _normalised(before * likelihoods[h])
        found[h] = _normalised(before * ahead[h])
        if h < L:
            before = np.einsum("sx,sxz->sz", before, moves[h])
    return found


def _moves(models: POMDP, h: int) -> Array:
    """T_h of every model, (S, X, A, X)."""
    return models.transition[:, min(h, models.transition.shape[1] - 1)]


def _shows(models: POMDP, h: int, actions: Values) -> Array:
    """O_h of every model after the previous action, (S, X, Y)."""
    rows = models.emission[:, min(h, models.emission.shape[1] - 1)]
    previous = int(actions[h - 1]) if h else rows.shape[1] - 1
    return rows[:, min(previous, rows.shape[1] - 1)]


def _normalised(weights: Array) -> Array:
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)
