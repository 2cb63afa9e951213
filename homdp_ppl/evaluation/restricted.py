"""The best blind and the best memoryless policy of a model.

A blind policy uses only the step; a memoryless policy also uses the last observation::

    best blind   <=   best memoryless            <=   optimum
    (the step)        (and the last observation)      (and all earlier ones)

If the three values are close, partial observability hardly matters. Both functions are exact
searches that take exponential time in the worst case, so they are meant for small models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP, TIE
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.evaluation.relaxations import fast_informed_bound
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

MAX_NODES = 200_000
COPIES = 4  # of the weights of unfinished policies
FIRST, WIDER = 100, 10  # unfinished policies kept in the first search; growth factor of the next


class Restricted(NamedTuple):
    """The best policy of a restricted class, up to a tolerance of 1e-9 H.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP
    >>> guess = POMDP.of(
    ...     [0.6, 0.4], np.full((2, 2, 2), 0.5), [[0.9, 0.1], [0.1, 0.9]], np.eye(2), horizon=1
    ... )
    >>> blind, seeing = best_blind(guess), best_memoryless(guess)
    >>> round(blind.value, 6), round(seeing.value, 6), seeing.policy.act([1], []).tolist()
    (0.6, 0.9, [0.0, 1.0])
    """

    value: float  # exact, in the user's units
    policy: GraphPolicy


def best_blind(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best blind policy: a sequence of actions that is fixed in advance.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        The largest number of unfinished policies in the search; raises :class:`PlanningError` if
        more are needed.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> tiger = models.load("tiger").pomdp
    >>> round(best_blind(tiger).value, 4)  # always listens
    3.6
    """
    pomdp = _checked(pomdp, "best_blind", max_nodes)
    return _restricted(_best_rules("best_blind", _blind(pomdp), pomdp, max_nodes), pomdp)


def best_memoryless(pomdp: POMDP, max_nodes: int = MAX_NODES) -> Restricted:
    """The best memoryless policy: it uses the step and the last observation.

    The value is linear in the action probabilities of each (step, observation). Stochastic policies
    are therefore no better than deterministic ones, and the search is over the latter.

    Parameters
    ----------
    pomdp
        The model.
    max_nodes
        The largest number of unfinished policies in the search; raises :class:`PlanningError` if
        more are needed.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger").pomdp
    >>> (
    ...     round(best_memoryless(tiger).value, 4),
    ...     round(history_tree()(tiger).value, 4),
    ... )  # one observation is not enough
    (3.6, 3.704)
    """
    pomdp = _checked(pomdp, "best_memoryless", max_nodes)
    rules = _best_rules("best_memoryless", _memoryless(pomdp), pomdp, max_nodes)
    return _restricted(rules, pomdp)


def _checked(pomdp: POMDP, subject: str, max_nodes: int) -> POMDP:
    refuse(PlanningError, subject, count_problems(max_nodes=max_nodes))
    return check_pomdp(pomdp, subject)


def _restricted(rules: Array, pomdp: POMDP) -> Restricted:
    """The policy with actions rules[h, y], (H, Y), or rules[h, 0] for all y, (H, 1)."""
    (H, n), (_, Y, A) = rules.shape, pomdp.sizes
    seen = np.arange(Y) % n
    following = np.minimum(np.arange(H) + 1, H - 1).repeat(n)[:, None] * n + seen  # (H n, Y)
    policy = GraphPolicy(seen, np.eye(A)[rules.ravel()], following[:, None])
    return Restricted(float(pomdp.to_user(policy_value(policy, pomdp))), policy)


class _Tables(NamedTuple):
    """A model as the search needs it: an action is chosen for each of n signals at each step.

    The signals of a memoryless policy are the observations; a blind policy has one signal. The
    situation of a step is (previous action, state), or the state alone if emissions do not depend
    on the previous action: S = B X, with B = A + 1 or 1.
    """

    initial: Array  # (S,)
    moves: list[Array]  # per step (S, A, X)
    signals: list[Array]  # per step (n, S), probabilities
    rewards: list[Array]  # per step (n, S, A), multiplied by the probability of the signal
    vectors: list[Array]  # per step (X, n|1, A); upper bounds of the value from this step on
    over: Array  # (S,)  whether the state is terminal

    @property
    def by_action(self) -> bool:
        """Whether situations include the previous action."""
        return len(self.initial) > self.moves[0].shape[-1]

    def following(self, reached: Array) -> Array:
        """Situations (N, A, S) from the next states (N, A, X) after each action."""
        if not self.by_action:
            return reached
        N, A, X = reached.shape
        blocks = np.zeros((N, A, A + 1, X))
        blocks[:, np.arange(A), np.arange(A)] = reached
        return blocks.reshape(N, A, (A + 1) * X)

    def bound(self, h: int) -> Array:
        """O_h(signal | situation) Q_h(x, signal, a), (S, n, A)."""
        shows, Q = self.signals[h].T, self.vectors[h]
        return shows[:, :, None] * np.tile(Q, (len(shows) // len(Q), 1, 1))


def _memoryless(pomdp: POMDP) -> _Tables:
    """One signal per observation."""
    signals = [_by_situation(pomdp, h) for h in range(pomdp.horizon)]
    rewards = []
    for h, shows in enumerate(signals):
        r = np.swapaxes(pomdp.rewards(h), 0, 1)  # (Y|1, X, A)
        rewards.append(shows[..., None] * np.tile(r, (1, shows.shape[1] // r.shape[1], 1)))
    return _tables(pomdp, signals, rewards, fast_informed_bound(pomdp.unscaled))


def _blind(pomdp: POMDP) -> _Tables:
    """One signal; rewards are averaged over the observations."""
    (X, _, A), H = pomdp.sizes, pomdp.horizon
    if not pomdp.rewards_by_observation:
        signals: list[Array] = [np.ones((1, X)) for _ in range(H)]
        rewards = [pomdp.rewards(h)[None, :, 0] for h in range(H)]
        unseen = pomdp.unscaled._replace(emission=np.ones((1, 1, X, 1)))
        return _tables(pomdp, signals, rewards, fast_informed_bound(unseen))
    seen = _memoryless(pomdp)
    rewards = [part.sum(0, keepdims=True) for part in seen.rewards]
    signals = [np.ones((1, part.shape[1])) for part in seen.signals]
    # the bound uses the largest mean reward over the previous actions
    largest = np.stack([part.reshape(-1, X, A).max(0) for part in rewards])
    unseen = pomdp.unscaled._replace(emission=np.ones((1, 1, X, 1)), reward=largest[:, :, None])
    return _tables(pomdp, signals, rewards, fast_informed_bound(unseen))


def _tables(pomdp: POMDP, signals: list[Array], rewards: list[Array], vectors: Array) -> _Tables:
    X = len(pomdp.initial)
    B = signals[0].shape[1] // X
    initial = np.zeros((B, X))
    initial[-1] = pomdp.initial
    return _Tables(
        initial.ravel(),
        [np.tile(pomdp.moves(h), (B, 1, 1)) for h in range(pomdp.horizon)],
        signals,
        rewards,
        [Q if Q.ndim == 3 else Q[:, None] for Q in np.asarray(vectors)],
        np.tile(pomdp.terminal, B),
    )


def _by_situation(pomdp: POMDP, h: int) -> Array:
    """O_h(y | x, b) as (Y, B X)."""
    tables = pomdp.emission[0 if len(pomdp.emission) == 1 else h]  # (B, X, Y)
    return tables.reshape(-1, tables.shape[-1]).T


def _best_rules(subject: str, tables: _Tables, pomdp: POMDP, max_nodes: int) -> Array:
    """The best action for each step and signal, (H, n).

    The search is repeated with more and more unfinished policies, until none is dropped.
    """
    search = _Search(tables)
    width = FIRST
    while search.run(min(width, max_nodes)):
        if width >= max_nodes:
            got = f"more than {max_nodes:,} unfinished policies that may still be optimal"
            remedy = (
                f"Increase max_nodes, or use a shorter horizon. The best value found so far is "
                f"{pomdp.to_user(search.value):.6g}."
            )
            raise PlanningError(
                subject, [Problem("max_nodes", got, f"at most {max_nodes:,}", remedy)]
            )
        width *= WIDER
    return search.rules


class _Search:
    """Branch and bound, forward over steps and, within a step, over signals.

    For a policy without memory, the situation of the next step depends on the past only through
    that of this step. The value of an unfinished policy is at most its expected reward so far plus
    the fast informed bound of the remaining steps. This bound is sublinear, so the parts of the
    next situation that come from different signals can be bounded separately.
    """

    def __init__(self, tables: _Tables) -> None:
        self.tables = tables
        self.value = -np.inf
        self.rules = np.zeros((len(tables.moves), len(tables.signals[0])), dtype=np.int16)

    def run(self, width: int) -> bool:
        """Search with the ``width`` most promising unfinished policies.

        Returns whether any were dropped.
        """
        tables, (H, n) = self.tables, self.rules.shape
        gained, weights, past = (
            np.zeros(1),
            tables.initial[None],
            np.zeros((1, 0), dtype=np.int16),
        )
        dropped = False
        for h in range(H):
            T, shows, r = tables.moves[h], tables.signals[h], tables.rewards[h]
            _require_room(len(weights), T.shape[:2], n)
            vectors = tables.bound(h + 1) if h + 1 < H else None
            alone = np.zeros((len(weights), n + 1))  # upper bound for each signal
            for y in range(n):
                after = tables.following(np.einsum("ns,saz->naz", weights * shows[y], T))
                alone[:, y] = (weights @ r[y] + _hoped(after, vectors)).max(-1)
            undecided = alone[:, ::-1].cumsum(1)[:, ::-1]
            parent, onward = np.arange(len(weights)), np.zeros_like(weights)
            for y in range(n):
                seen = weights[parent] * shows[y]
                collected = gained[:, None] + weights[parent] @ r[y]  # (N, A)
                moved = tables.following(np.einsum("ns,saz->naz", seen, T))
                reached = onward[:, None] + moved  # (N, A, S)
                bound = collected + _hoped(reached, vectors) + undecided[parent, y + 1, None]
                # the action is irrelevant if the signal is impossible or the episode has ended:
                # keep only the first
                bound[(seen * ~tables.over).sum(-1) == 0, 1:] = -np.inf
                left, action = np.nonzero(bound > self.value + TIE * H)
                if len(left) > width:
                    dropped = True
                    best = np.argpartition(-bound[left, action], width - 1)[:width]
                    left, action = left[best], action[best]
                gained, onward, parent = (
                    collected[left, action],
                    reached[left, action],
                    parent[left],
                )
                past = np.concatenate([past[left], action[:, None].astype(np.int16)], axis=1)
            first = _distinct(onward, gained)
            gained, weights, past = gained[first], onward[first], past[first]
        if len(gained):
            self.value, self.rules = float(gained.max()), past[gained.argmax()].reshape(H, n)
        return dropped


def _hoped(weights: Array, vectors: Array | None) -> Array:
    """The bound of the next step, given its situation as weights (..., S)."""
    if vectors is None:
        return np.zeros(weights.shape[:-1])
    S, *rest = vectors.shape
    return (weights @ vectors.reshape(S, -1)).reshape(*weights.shape[:-1], *rest).max(-1).sum(-1)


def _require_room(policies: int, sizes: tuple[int, ...], signals: int) -> None:
    """Raise an error for a step of the search that does not fit in memory."""
    S, A = sizes
    got = f"{count(policies)} unfinished policies"
    needed = COPIES * NUMBER * policies * A * (S + A * signals)
    remedy = "Use a smaller max_nodes."
    require_memory(PlanningError, "restricted policies", "max_nodes", got, needed, remedy)


def _distinct(weights: Array, gained: Array) -> Array:
    """The indices of the best policy for each distinct situation."""
    order = np.argsort(-gained, kind="stable")
    return order[np.unique(weights[order].round(12), axis=0, return_index=True)[1]]
