"""Search with forbidden actions: lower and upper bounds at histories instead of beliefs.

If the allowed actions depend on the history, so does the optimal value: histories with the same
belief can have different values, and bounds of one are not bounds of the other. This search keeps
one node per history (AO*). Each pass follows the action with the largest upper bound to all
observations, expands the histories that it reaches, and improves both bounds on the way back.

    worst case of all actions  <=  value after a history  <=  fast informed bound of all actions

hold for every restriction, and are the first bounds of a new history. At its expansion, only
allowed actions count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_after, check_again
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP, TIE
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.evaluation.relaxations import fast_informed_bound, mdp_values
from homdp_ppl.memory import memory_budget
from homdp_ppl.precision import Array

SUBJECT = "bounded_search"
MAX_POLICY = 200_000  # largest number of histories that a policy can reach


class OutOfLimitsError(Exception):
    """Signals the end of the time or of the memory inside this module."""


class Found(NamedTuple):
    """The result of a search."""

    policy: GraphPolicy
    allowed: Array  # (N, A)
    value: float  # of the policy
    upper: float
    passes: int
    nodes: int  # number of expanded histories


class History:
    """An expanded history with the bounds of its actions and of the histories after it."""

    __slots__ = (
        "actions",
        "after",
        "chance",
        "children",
        "high",
        "low",
        "lower",
        "reward",
        "upper",
    )

    def __init__(self, mask: Array, reward: Array) -> None:
        self.actions = np.flatnonzero(mask)  # (n,)  the allowed ones
        self.reward = reward[self.actions]  # (n,)
        self.children: dict[tuple[int, int], History] = {}  # by place of the action, observation
        self.after: Array = np.zeros(0)  # (n, Y, X)  beliefs
        self.chance: Array = np.zeros((len(self.actions), 0))  # (n, Y)
        self.high: Any = self.chance  # (n, Y)  bounds of the histories after it
        self.low: Any = self.chance
        self.upper: Array = self.reward  # (n,)
        self.lower: Array = self.reward

    def back_up(self) -> None:
        """Compute the bounds of actions from those of the histories after them."""
        self.upper = self.reward + (self.chance * self.high).sum(1)
        self.lower = self.reward + (self.chance * self.low).sum(1)

    @property
    def is_last(self) -> bool:
        """Whether no observation follows."""
        return not self.chance.size


class RestrictedSearch:
    """The search for one model and one restriction.

    Parameters
    ----------
    pomdp
        A validated model.
    allowed
        The allowed actions after each history.
    gap
        Stop when the bounds differ by at most this.
    deadline
        Stop at this time of ``time.perf_counter``.
    """

    def __init__(self, pomdp: POMDP, allowed: Allowed, gap: float, deadline: float) -> None:
        self.pomdp, self.allowed, self.gap, self.deadline = pomdp, allowed, gap, deadline
        X, Y, A = pomdp.sizes
        inside = pomdp.unscaled
        self.informed = fast_informed_bound(inside)  # (H, X, A) or (H, X, Y, A)
        self.worst = -mdp_values(inside._replace(reward=-pomdp.reward))  # (H, X) or (H, Y, X)
        self.most = memory_budget() // (8 * A * Y * (X + 4) + 1000)
        self.nodes = 0
        self.masks: dict[tuple[tuple[int, ...], tuple[int, ...]], Array] = {}
        joint = (pomdp.initial[:, None] * pomdp.shows(0)).T  # (Y, X)
        self.chance = joint.sum(1)
        self.first = [int(y) for y in np.flatnonzero(self.chance > 0)]
        self.beliefs = {y: joint[y] / self.chance[y] for y in self.first}
        self.roots: dict[int, History] = {}
        scale = pomdp.horizon * float(np.abs(pomdp.reward).max())
        self.rounding = float(np.finfo(np.float64).eps) * pomdp.horizon * (X + Y + 4) * scale

    def run(self) -> Found:
        """Search until the bounds are close enough, or the limit of time or memory is reached."""
        passes, changed = 0, True
        found = self._policy()
        while found.upper - found.value > self.gap and changed:
            try:
                changed = self._pass()
                passes += 1
                found = self._policy()
            except (KeyboardInterrupt, OutOfLimitsError):
                found = self._policy()
                break
        answers = [(*history, mask) for history, mask in self.masks.items()]
        check_again(self.allowed, answers, self.pomdp.spaces, SUBJECT)
        return found._replace(passes=passes, nodes=self.nodes)

    def _pass(self) -> bool:
        """One pass from every first observation; returns whether any history was expanded."""
        before = self.nodes
        for y in self.first:
            if y not in self.roots:
                self.roots[y] = self._expand((y,), (), self.beliefs[y])
            self._improve(self.roots[y], (y,), ())
        return self.nodes > before

    def _improve(self, node: History, seen: tuple[int, ...], done: tuple[int, ...]) -> None:
        """Follow the action with the largest upper bound, and update the bounds on the way back."""
        if node.is_last:
            return
        if time.perf_counter() > self.deadline or self.nodes > self.most:
            raise OutOfLimitsError
        place = int(node.upper.argmax())
        action = int(node.actions[place])
        try:
            # If all gaps of the next step are at most half of the requested one, so is this one.
            for y in np.flatnonzero(node.high[place] - node.low[place] > 0.5 * self.gap):
                further = (*seen, int(y)), (*done, action)
                child = node.children.get((place, int(y)))
                if child is None:
                    child = self._expand(*further, node.after[place, y])
                    node.children[place, int(y)] = child
                try:
                    self._improve(child, *further)
                finally:
                    node.high[place, y] = min(node.high[place, y], child.upper.max())
                    node.low[place, y] = max(node.low[place, y], child.lower.max())
        finally:
            node.back_up()

    def _mask(self, seen: tuple[int, ...], done: tuple[int, ...]) -> Array:
        if (seen, done) not in self.masks:
            spaces, history = self.pomdp.spaces, (np.array(seen), np.array(done, dtype=int))
            self.masks[seen, done] = allowed_after(self.allowed, *history, spaces, SUBJECT)
        return self.masks[seen, done]

    def _expand(self, seen: tuple[int, ...], done: tuple[int, ...], belief: Array) -> History:
        """A history with the first bounds of those that follow it."""
        h, model = len(done), self.pomdp
        rewards = model.rewards(h)
        reward = belief @ rewards[:, 0 if rewards.shape[1] == 1 else seen[-1]]
        node = History(self._mask(seen, done), reward)
        self.nodes += 1
        if h + 1 == model.horizon:
            return node
        ahead = np.asarray(model.predict(belief, None, h))[node.actions]  # (n, X)
        shows = model.shows_after(h + 1)  # (A|1, X, Y)
        shows = shows if len(shows) == 1 else shows[node.actions]
        joint = ahead[:, None, :] * np.swapaxes(shows, 1, 2)  # (n, Y, X)
        node.chance = joint.sum(-1)
        node.after = joint / np.where(node.chance > 0, node.chance, 1.0)[:, :, None]
        informed, worst = self.informed[h + 1], self.worst[h + 1]
        if informed.ndim == 2:
            node.high = (node.after @ informed).max(-1)
            node.low = node.after @ worst
        else:
            node.high = np.einsum("nyx,xya->nya", node.after, informed).max(-1)
            node.low = np.einsum("nyx,yx->ny", node.after, worst)
        node.back_up()
        return node

    def _upper(self) -> float:
        """The upper bound on the optimum."""
        total = self.rounding
        for y in self.first:
            if y in self.roots:
                total += float(self.chance[y] * self.roots[y].upper.max())
            else:
                by_action = self.informed[0] if self.informed.ndim == 3 else self.informed[0][:, y]
                total += float(self.chance[y] * (self.beliefs[y] @ by_action).max())
        return total

    def _policy(self) -> Found:
        """The policy of the lower bounds as a graph, with its value.

        After histories that were not expanded, it maximises the fast informed bound over the
        allowed actions.
        """
        rows = list(self._histories())
        A, Y = self.pomdp.sizes[2], self.pomdp.sizes[1]
        masks = np.stack([row.mask for row in rows])
        probabilities = np.eye(A)[[row.action for row in rows]]
        successor = np.repeat(np.arange(len(rows))[:, None], Y, axis=1)
        start = np.full(Y, -1)
        for n, row in enumerate(rows):
            if row.parent < 0:
                start[row.seen[-1]] = n
            else:
                known = successor[row.parent]
                if (known == row.parent).all():  # its likeliest observation comes first
                    known[:] = n
                known[row.seen[-1]] = n
        start[start < 0] = start[max(self.first, key=lambda y: self.chance[y])]
        policy = GraphPolicy(start, probabilities, successor[:, None])
        return Found(policy, masks, policy_value(policy, self.pomdp), self._upper(), 0, 0)

    def _histories(self) -> Iterator[Row]:
        """Yield the histories that the policy reaches, parents before children."""
        model, made = self.pomdp, 0
        front = [
            Step((y,), (), self.beliefs[y], -1, self.roots.get(y))
            for y in sorted(self.first, key=lambda y: -self.chance[y])
        ]
        while front:
            following: list[Step] = []
            for step in front:
                seen, done, belief, parent, node = step
                h = len(done)
                mask = self._mask(seen, done)
                action = self._choice(step, mask)
                yield Row(seen, mask, action, parent)
                if made + len(following) + len(front) > MAX_POLICY:
                    raise _too_many(model.horizon)
                if h + 1 < model.horizon:
                    ahead = np.asarray(model.predict(belief, action, h))
                    joint = ahead[:, None] * model.shows(h + 1, action)  # (X, Y)
                    place = -1 if node is None else int(np.searchsorted(node.actions, action))
                    chance = joint.sum(0)
                    for y in sorted(np.flatnonzero(chance > 0), key=lambda y: -chance[y]):
                        child = None if node is None else node.children.get((place, int(y)))
                        further = (*seen, int(y)), (*done, action)
                        following.append(Step(*further, joint[:, y] / chance[y], made, child))
                made += 1
            front = following

    def _choice(self, step: Step, mask: Array) -> int:
        """The action with the best lower or informed bound; ties go to the lowest action."""
        if step.node is not None:
            actions, score = step.node.actions, step.node.lower
        else:
            informed = self.informed[len(step.done)]
            informed = informed if informed.ndim == 2 else informed[:, step.seen[-1]]
            actions = np.flatnonzero(mask)
            score = (step.belief @ informed)[actions]
        return int(actions[np.argmax(score >= score.max() - TIE * self.pomdp.horizon)])


class Step(NamedTuple):
    """A history while the policy is written out."""

    seen: tuple[int, ...]
    done: tuple[int, ...]
    belief: Array
    parent: int
    node: History | None


class Row(NamedTuple):
    """A node of the policy."""

    seen: tuple[int, ...]
    mask: Array
    action: int
    parent: int


def search_allowed(pomdp: POMDP, allowed: Allowed, gap: float, limit: float | None) -> Found:
    """Search with restricted actions; ``limit`` is in seconds."""
    if (pomdp.emission > 0).all():  # every policy reaches all observations
        Y, H = pomdp.sizes[1], pomdp.horizon
        if Y > 1 and sum(Y**h for h in range(1, min(H, 60) + 1)) > MAX_POLICY:
            raise _too_many(H)
    deadline = math.inf if limit is None else time.perf_counter() + limit
    return RestrictedSearch(pomdp, allowed, gap, deadline).run()


def _too_many(horizon: int) -> PlanningError:
    got = f"more than {MAX_POLICY:,} histories that one policy can reach"
    remedy = "Use a shorter horizon: with forbidden actions, a plan has one node per history."
    problem = Problem(f"horizon {horizon}", got, f"at most {MAX_POLICY:,}", remedy)
    return PlanningError(SUBJECT, [problem])
