"""The best of all pairs of a transition and an emission table, with as few plans as possible (for Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.explorers.explorer import Pairs
from homdp_ppl.plan import Solution
from homdp_ppl.pomdp import POMDP
from homdp_ppl.precision import Array
from homdp_ppl.relaxations import fast_informed_bound, qmdp, root_value

QMDP, INFORMED, PLANNED = range(3)  # how well the value of a pair is known


class Known(NamedTuple):
    """What is known about the optimal value of a pair: a bound, and of which kind."""

    bound: float
    kind: int


class Held(NamedTuple):
    """The best plan so far of a pair that is alive; the others are not kept, for plans can be large."""

    pair: tuple[int, int]
    solution: Solution


class PairSearch:
    """Finds the best pair again and again, while version spaces change; what is known of a pair is known for good.

    Pairs are visited in the order of an upper bound, which is first QMDP's, then the fast informed one, then the value itself.
    The search ends when the first in order is a value. QMDP's Q depends on T alone: one of them serves all O.

    Parameters
    ----------
    solve
        Plans for a model.
    """

    def __init__(self, solve: Callable[[POMDP], Solution]) -> None:
        self._solve = solve
        self._known: dict[tuple[int, int], Known] = {}
        self._held: Held | None = None

    def best(self, pairs: Pairs) -> tuple[Solution, POMDP, int]:
        """The best surviving pair's plan and model, and how many plans it took."""
        plans, alive = 0, self._alive(pairs)
        queue = [(-self._bound(pairs, t, o).bound, t, o) for t, o in alive]
        heapify(queue)
        if self._held is not None and self._held.pair not in alive:
            self._held = None
        while queue:
            _, t, o = heappop(queue)
            model, known = _model(pairs, t, o), self._known[t, o]
            if known.kind == PLANNED and self._held is not None and self._held.pair == (t, o):
                return self._held.solution, model, plans
            if known.kind == QMDP:
                known = Known(min(known.bound, float(root_value(model, fast_informed_bound(model)[0].T))), INFORMED)
            else:
                solution = self._solve(model)
                plans += 1
                known = Known(float(solution.upper), PLANNED)
                if self._held is None or (-known.bound, (t, o)) < (-float(self._held.solution.upper), self._held.pair):
                    self._held = Held((t, o), solution)
            self._known[t, o] = known
            heappush(queue, (-known.bound, t, o))
        problem = Problem("version spaces", "no pair left", "at least one T and one O that explain the data")
        raise PlanningError("hop_v", [problem])

    def _alive(self, pairs: Pairs) -> list[tuple[int, int]]:
        alive = (np.flatnonzero(mask).tolist() for mask in (pairs.alive_transitions, pairs.alive_emissions))
        transitions, emissions = alive
        return [(t, o) for t in transitions for o in emissions]

    def _bound(self, pairs: Pairs, t: int, o: int) -> Known:
        if (t, o) not in self._known:
            Q: Array = qmdp(_model(pairs, t, o))[0].T
            for other in range(len(pairs.emissions)):
                self._known[t, other] = Known(float(root_value(_model(pairs, t, other), Q)), QMDP)
        return self._known[t, o]


def _model(pairs: Pairs, t: int, o: int) -> POMDP:
    return POMDP(pairs.initial, pairs.transitions[t], pairs.emissions[o], pairs.reward)
