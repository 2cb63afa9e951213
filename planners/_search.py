"""The search of bounded_search: bounds at every step of one model, and passes that tighten them.

Each pass goes forward from the start of the episode and keeps the beliefs with the largest
probability times gap at each step. Then it goes back from the last step and improves both bounds at
these beliefs (heuristic search value iteration, Smith and Simmons 2004).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, make_plan
from homdp_ppl.core.pomdp import POMDP, TIE
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.planners._limits import Limits, StoppedError
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

MEMORY = 4_000_000_000  # bytes
# beliefs per step of a pass; doubled after a pass that closes less than half of the gap
WIDTH, MAX_WIDTH = 32, 1024
BLOCK, ENTRIES = 64, 2_000_000  # beliefs per compiled call, and entries of beliefs that it writes
BLOCK_WORK = 2e7  # approximate largest number of multiplications per compiled call
LEAST = 1e-14  # smallest improvement, relative to the largest value
QUIET = 2.0  # seconds before the first status message

ROOT = (np.array([-1]), np.ones(1))  # the start of the episode, as points and their reach


class Search:
    """The bounds at every step of one model, and the passes that tighten them."""

    def __init__(self, pomdp: POMDP, gap: float, limits: Limits) -> None:
        self.pomdp, self.gap, self.limits = pomdp, gap, limits
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

    def run(self) -> bool:
        """Repeat passes until the bounds are close enough, nothing changes, or a limit is reached.

        Returns False if this was a limit of time or work, so that more of it could help. The
        bounds are valid at any time.
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
        except StoppedError:
            return False
        except KeyboardInterrupt:
            self.limits.interrupted = True
            return False
        finally:
            if self.status is not None:
                self.status.stop()
        return True

    def plan(self, planner: str, seconds: float) -> Plan:
        """The plan of the lower bound, with the statistics of the search."""
        policy, upper = self.policy(), self.bounds()[0]
        value = policy_value(policy, self.pomdp)
        statistics = {
            "passes": self.passes,
            "vectors": sum(int(stage.used[0]) for stage in self.stages),
            "points": sum(int(stage.used[1]) for stage in self.stages),
            "seconds": seconds,
            **({"interrupted": 1.0} if self.limits.interrupted else {}),
        }
        value, upper = (float(self.pomdp.to_user(v)) for v in (value, max(upper, value)))
        return make_plan(policy, value, upper, self.pomdp, planner, **statistics)

    @property
    def closed(self) -> bool:
        """Whether the bounds are close enough."""
        upper, lower = self.bounds()
        return upper - lower <= self.gap

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
            for some in self._blocks(new, h):
                changed |= (
                    refine(self.models[h], self.stages[h], self.stages[h + 1], new[some], self.work)
                    > self.least
                )
        for h in reversed(range(len(kept))):
            for some in self._blocks(kept[h], h):
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
        for some in self._blocks(points, h - 1):
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

    def _blocks(self, points: Array, h: int) -> Iterator[slice]:
        """Yield blocks of points of step h for compiled calls.

        In between, check the limits and show the status.
        """
        work = self._work(h)
        size = int(min(max(BLOCK_WORK / work, 1), self.block))  # np.clip takes microseconds
        for start in range(0, len(points), size):
            self.limits.check()
            if time.perf_counter() > self.quiet and sys.stderr.isatty():
                self._show_status()
            yield slice(start, start + size)
            self.limits.spend(work * len(points[start : start + size]))

    def _work(self, h: int) -> float:
        """The approximate number of multiplications to back up one belief of step h."""
        _, Y, A = self.pomdp.sizes
        vectors, points, entries = map(int, self.stages[h + 1].used)
        return 1.0 + A * Y * (vectors + points + A) * (1 + entries / max(1, points))

    def _show_status(self) -> None:
        from rich.console import Console

        self.status = self.status or Console(stderr=True).status("")
        self.status.update(f"bounded_search, {self.message}")
        self.status.start()

    def _bytes(self) -> int:
        return sum(part.nbytes for stage in self.stages for part in stage)
