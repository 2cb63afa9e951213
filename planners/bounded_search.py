"""bounded_search: an anytime planner with lower and upper bounds on the optimum.

This is heuristic search value iteration (Smith and Simmons 2004) for finite horizons. Each pass
goes forward from the start of the episode and keeps the beliefs with the largest probability times
gap at each step. Then it goes back from the last step and improves both bounds at these beliefs.
The search stops when the bounds at the start are close enough.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_problems
from homdp_ppl.core.arguments import number_problems, refuse
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.gap import gap_problems, inside_gap
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, make_plan
from homdp_ppl.core.pomdp import POMDP, TIE
from homdp_ppl.core.pomdp_validation import sizes_of, validated
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.planners._allowed_search import search_allowed
from homdp_ppl.planners._search_bounds import (
    Front,
    Stage,
    compressed,
    first_rows,
    first_stages,
    joined,
    lookup,
    make_children,
    make_work,
    merged,
    with_points,
    with_vectors,
)
from homdp_ppl.planners._search_kernels import descend, improve, refine
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from rich.status import Status

GAP = 1e-3  # default, for rewards in [0, 1]
MEMORY = 4_000_000_000  # bytes
# beliefs per step of a pass; doubled after a pass that closes less than half of the gap
WIDTH, MAX_WIDTH = 32, 1024
BLOCK, ENTRIES = 64, 2_000_000  # beliefs per compiled call, and entries of beliefs that it writes
LEAST = 1e-14  # smallest improvement, relative to the largest value
QUIET = 2.0  # seconds before the first status message

ROOT = (np.array([-1]), np.ones(1))  # the start of the episode, as points and their reach


class OutOfTimeError(Exception):
    """Signals the end of the time limit inside this module."""


@dataclass(frozen=True)
class BoundedSearch:
    """The planner returned by :func:`bounded_search`."""

    gap: float | None
    time_limit: float | None
    relative_gap: float | None = None

    def __call__(self, pomdp: POMDP, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a model; ``allowed`` restricts the actions by the history."""
        refuse(PlanningError, "bounded_search", allowed_problems(allowed))
        if allowed is not None:
            return self._restricted(_fitting(pomdp), allowed)
        started = time.perf_counter()
        deadline = math.inf if self.time_limit is None else started + self.time_limit
        model = _fitting(pomdp)
        given = self.gap, self.relative_gap, GAP, float(model.scale), model.horizon
        search = Search(model, inside_gap(*given), deadline)
        search.run()
        policy, upper = search.policy(), search.bounds()[0]
        value = policy_value(policy, model)
        statistics = {
            "passes": search.passes,
            "vectors": sum(int(stage.used[0]) for stage in search.stages),
            "points": sum(int(stage.used[1]) for stage in search.stages),
            "seconds": time.perf_counter() - started,
        }
        value, upper = (float(model.to_user(v)) for v in (value, max(upper, value)))
        return make_plan(policy, value, upper, model, "bounded_search", **statistics)

    def _restricted(self, model: POMDP, allowed: Allowed) -> Plan:
        started = time.perf_counter()
        given = self.gap, self.relative_gap, GAP, float(model.scale), model.horizon
        found = search_allowed(model, allowed, inside_gap(*given), self.time_limit)
        statistics = {"passes": found.passes, "nodes": found.nodes}
        seconds = time.perf_counter() - started
        bounds = found.value, max(found.upper, found.value)
        value, upper = (float(model.to_user(v)) for v in bounds)
        plan = make_plan(
            found.policy,
            value,
            upper,
            model,
            "bounded_search",
            **statistics,
            seconds=seconds,
        )
        return replace(plan, allowed=found.allowed)


@checked_but("gap", "relative_gap")
def bounded_search(
    gap: float | None = None,
    time_limit: float | None = None,
    *,
    relative_gap: float | None = None,
) -> BoundedSearch:
    """A planner that searches until its policy is proved to be within a given gap of the optimum.

    The search can be stopped at any time, by ``time_limit`` or Ctrl-C, and then returns the best
    policy so far. It also stops at its memory limit. In every case ``value <= optimum <= upper``,
    where ``upper`` includes an allowance for rounding. After an observation that is impossible in
    the model, the policy follows the best plan for the belief predicted before it.

    With forbidden actions, the search keeps bounds for histories instead of beliefs. It then needs
    a horizon for which the histories of one policy fit into memory. Its policy is defined after
    histories that its own actions can lead to; rules that add random actions need history_tree.

    Parameters
    ----------
    gap
        Stop when ``upper - value`` is at most this, in the user's units. Default: 0.001 times the
        range of one reward.
    time_limit
        Stop after this many seconds. Default: no limit.
    relative_gap
        The gap as a share of the range of returns, instead of ``gap``.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> plan = bounded_search(gap=1e-6)(models.load("tiger", horizon=10).pomdp)
    >>> plan.gap <= 1e-6, round(plan.value, 6)
    (True, 9.26)
    """
    endless = time_limit is None or time_limit == math.inf
    seconds = 0.0 if endless else time_limit
    refuse(
        PlanningError,
        "bounded_search",
        gap_problems(gap, relative_gap) + number_problems(time_limit=seconds),
    )

    return BoundedSearch(gap, time_limit, relative_gap)


class Search:
    """The bounds at every step of one model, and the passes that tighten them."""

    def __init__(self, pomdp: POMDP, gap: float, deadline: float) -> None:
        self.pomdp, self.gap, self.deadline = pomdp, gap, deadline
        # when to show the status, and its text
        self.quiet, self.message = time.perf_counter() + QUIET, "first pass"
        self.status: Status | None = None
        H, (X, Y, A) = pomdp.horizon, pomdp.sizes
        self.models, self.stages = compressed(pomdp), first_stages(pomdp)
        self.work = make_work(X, Y, A)
        self.passes, self.width = 0, WIDTH
        self.block = int(np.clip(ENTRIES // (A * Y * X), 1, BLOCK))
        self.children = make_children(self.block * A * Y, X, A)
        scale = H * float(np.abs(pomdp.reward).max())
        self.tie, self.least = TIE * H, LEAST * scale
        # sums of about X + Y + 4 terms at each step
        self.rounding = float(np.finfo(np.float64).eps) * H * (X + Y + 4) * scale

    def run(self) -> None:
        """Repeat passes until the bounds are close enough, nothing changes, or the limit of time or
        memory is reached.
        """
        try:
            upper, lower = self.bounds()
            # arrays grow by doubling
            while upper - lower > self.gap and 2 * self._bytes() < MEMORY:
                before = upper - lower
                changed, cut = self._pass()
                if not (changed or cut):
                    break
                upper, lower = self.bounds()
                if not changed or (upper - lower > before / 2 and self.width < MAX_WIDTH):
                    self.width *= 2
                scale, least, most = self.pomdp.scale, *map(self.pomdp.to_user, (lower, upper))
                self.message = (
                    f"pass {self.passes}: {least:.6g} <= optimum <= {most:.6g}, "
                    f"gap {most - least:.2g} of {scale * self.gap:.2g}"
                )
        except (KeyboardInterrupt, OutOfTimeError):
            pass  # the bounds in the stages are valid at any time
        finally:
            if self.status is not None:
                self.status.stop()

    def bounds(self) -> tuple[float, float]:
        """Upper and lower bounds on the optimum."""
        stage = self.stages[0]
        front = Front(*ROOT, math.inf)
        _, upper, lower = descend(
            self.models[0], stage, stage, front, self.tie, self.work, self.children
        )
        return upper + self.rounding, lower

    def policy(self) -> GraphPolicy:
        """The policy of the lower bound: one node for each reachable vector."""
        rho, O, A = self.pomdp.initial, self.pomdp.shows(0), self.pomdp.sizes[2]  # noqa: E741
        stage = self.stages[0]
        joint = np.where((rho @ O > 0)[:, None], (rho[:, None] * O).T, rho)  # (Y, X)
        alpha, action = stage.alpha[:, : stage.used[0]], stage.action[: stage.used[0]]
        if self.pomdp.rewards_by_observation:
            score = np.einsum("yx,yxn->yn", joint, alpha.reshape(*joint.shape, -1))
        else:
            score = joint @ alpha
        near = score >= score.max(1, keepdims=True) - self.tie * joint.sum(1, keepdims=True)
        lowest = np.where(near, action, A).min(1, keepdims=True)
        best = np.where(near & (action == lowest), score, -np.inf).argmax(1)
        met, start = np.unique(best, return_inverse=True)
        actions, successor, offset = [], [], 0
        for stage in self.stages[:-1]:
            actions.append(stage.action[met])
            offset += len(met)
            following = stage.successor[met]
            met, place = np.unique(following, return_inverse=True)
            successor.append(offset + place.reshape(following.shape))
        actions.append(self.stages[-1].action[met])
        # the last nodes lead to themselves
        successor.append(np.repeat(offset + np.arange(len(met))[:, None], len(start), axis=1))
        return GraphPolicy(
            start, np.eye(A)[np.concatenate(actions)], np.concatenate(successor)[:, None]
        )

    def _pass(self) -> tuple[bool, bool]:
        """One pass forward and back. Returns whether any bound changed, and whether any belief was
        left out.
        """
        points: Array
        reach: Array
        points, reach = ROOT
        kept: list[Array] = []
        changed = cut = False
        last = len(self.stages) - 1  # both bounds are exact at the last step
        for h in range(last):
            points, reach, new, left = self._forward(h, points, reach)
            cut |= left
            if len(points) == 0:
                break
            kept.append(points)
            for some in self._blocks(new):
                changed |= (
                    refine(self.models[h], self.stages[h], self.stages[h + 1], new[some], self.work)
                    > self.least
                )
        for h in reversed(range(len(kept))):
            for some in self._blocks(kept[h]):
                self._store(h, with_vectors(self.stages[h], self.block))
                stages = self.models[h], self.stages[h], self.stages[h + 1]
                changed |= refine(*stages, kept[h][some], self.work) > self.least
                changed |= improve(*stages, kept[h][some], self.tie, self.least, self.work) > 0
        self.passes += 1
        return changed, cut

    def _forward(self, h: int, points: Array, reach: Array) -> tuple[Array, Array, Array, bool]:
        """From points of the previous step to the points to visit at step h.

        Returns the points, their reach, the new points, and whether some were left out.
        """
        H, (_, Y, A) = self.pomdp.horizon, self.pomdp.sizes
        # The children below the floor, at all steps together, contribute at most a tenth of the
        # requested gap.
        floor = max(0.1 * self.gap / (H * self.width * A * Y), self.least)
        found = []
        for some in self._blocks(points):
            before = max(h - 1, 0)
            stages = self.models[before], self.stages[before], self.stages[h]
            front = Front(points[some], reach[some], floor)
            n, _, _ = descend(*stages, front, self.tie, self.work, self.children)
            found.append(first_rows(self.children, n))
        children = joined(found)
        leader, reach, left = merged(children, self.width)
        known, place = lookup(self.stages[h], children.key[leader])
        new = np.flatnonzero(~known)
        place[new] = self.stages[h].used[1] + np.arange(len(new))
        self._store(h, with_points(self.stages[h], children, leader[new]))
        return place, reach, place[new], left

    def _store(self, h: int, stage: Stage) -> None:
        vectors, points = len(stage.action), len(stage.key)
        if vectors > len(self.work.score):
            self.work = self.work._replace(score=np.zeros(vectors))
        if points > len(self.work.ratio):
            self.work = self.work._replace(ratio=np.zeros(points), shared=np.zeros(points))
        self.stages[h] = stage

    def _blocks(self, points: Array) -> Iterator[slice]:
        """Yield blocks of points for compiled calls; in between check the time and show the
        status.
        """
        for start in range(0, len(points), self.block):
            now = time.perf_counter()
            if now > self.deadline:
                raise OutOfTimeError
            if now > self.quiet and sys.stderr.isatty():
                self._show_status()
            yield slice(start, start + self.block)

    def _show_status(self) -> None:
        from rich.console import Console

        self.status = self.status or Console(stderr=True).status("")
        self.status.update(f"bounded_search, {self.message}")
        self.status.start()

    def _bytes(self) -> int:
        return sum(part.nbytes for stage in self.stages for part in stage)


def _fitting(pomdp: POMDP) -> POMDP:
    """Validate the model; raise PlanningError for models that do not fit into memory.

    The size is checked before anything is allocated.
    """
    X, Y, A, H = sizes_of(pomdp, "bounded_search")
    S = X * np.shape(pomdp.reward)[2]  # states of the bounds
    needed = 8 * (
        6 * H * S * A
        + 3 * np.shape(pomdp.transition)[0] * X * A * X
        + H * WIDTH * (X + S + 4 * A + Y)
        + 2 * max(ENTRIES, A * Y * X)
    )
    if needed > MEMORY:
        got = (
            f"{X} states, {Y} observations, {A} actions, horizon {H}: about "
            f"{needed / 1e9:,.1f} GB before any search"
        )
        raise PlanningError(
            "bounded_search",
            [
                Problem(
                    "model",
                    got,
                    f"at most {MEMORY / 1e9:g} GB",
                    "Use a smaller model or a shorter horizon.",
                )
            ],
        )
    return validated(pomdp, "bounded_search")
