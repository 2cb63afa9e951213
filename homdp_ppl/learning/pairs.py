"""Search for the best pair of a transition and an emission law with few plans (Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Protocol

import numpy as np

from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.relaxations import fast_informed_bound, qmdp, root_value
from homdp_ppl.explorers.state import Pairs
from homdp_ppl.precision import Array

ROUGH, BETTER, PLANNED = range(3)  # the kind of bound that is known for a pair


class Bounds(Protocol):
    """Upper bounds on the values of pairs that are cheaper than a plan."""

    def rough(self, pairs: Pairs, t: int) -> Array:
        """Bounds for one transition law with all emission laws, (M,)."""

    def better(self, pairs: Pairs, t: int, o: int) -> float:
        """A tighter bound for one pair."""


class TableBounds:
    """The QMDP bound, whose Q depends on T alone, then the fast informed bound.

    Like the solutions of finite models, they are for rewards in [0, 1].
    """

    def rough(self, pairs: Pairs, t: int) -> Array:
        """The QMDP bound."""
        Q = qmdp(pairs.model(t, 0).unscaled)[0].T
        return np.array(
            [float(root_value(pairs.model(t, o), Q)) for o in range(len(pairs.emissions))]
        )

    def better(self, pairs: Pairs, t: int, o: int) -> float:
        """The fast informed bound."""
        model = pairs.model(t, o).unscaled
        return float(root_value(model, fast_informed_bound(model)[0].T))


class Known(NamedTuple):
    """An upper bound on the optimal value of a pair, and its kind."""

    bound: float
    kind: int


class Held(NamedTuple):
    """The best plan so far of a pair that is alive.

    Other plans are not kept, because plans can be large.
    """

    pair: tuple[int, int]
    solution: Any  # with an upper bound on the optimum


class PairSearch:
    """Finds the best pair of changing version spaces.

    Bounds of pairs are kept between searches with the same initial distribution. Pairs are visited
    in the order of their upper bounds: first a rough bound, then a better one, then the certified
    bound of a plan. The search ends when the first pair in this order has been planned.

    Parameters
    ----------
    solve
        Plans for the model of a pair.
    bounds
        Upper bounds that are used before planning.
    """

    def __init__(self, solve: Callable[[Any], Any], bounds: Bounds) -> None:
        self._solve = solve
        self._bounds = bounds
        self._known: dict[tuple[int, int], Known] = {}
        self._held: Held | None = None
        self._initial: Array | None = None

    def best(self, pairs: Pairs) -> tuple[Any, tuple[int, int], int]:
        """The plan of the best surviving pair, the pair, and the number of plans made."""
        initial = None if pairs.reference is None else pairs.reference.initial
        before = () if self._initial is None else self._initial
        if initial is not None and not np.array_equal(initial, before):
            self._known, self._held, self._initial = {}, None, initial
        plans, alive = 0, self._alive(pairs)
        queue = [(-self._bound(pairs, t, o).bound, t, o) for t, o in alive]
        heapify(queue)
        if self._held is not None and self._held.pair not in alive:
            self._held = None
        while queue:
            _, t, o = heappop(queue)
            known = self._known[t, o]
            if known.kind == PLANNED and self._held is not None and self._held.pair == (t, o):
                return self._held.solution, (t, o), plans
            if known.kind == ROUGH:
                known = Known(min(known.bound, self._bounds.better(pairs, t, o)), BETTER)
            else:
                solution = self._solve(pairs.model(t, o))
                plans += 1
                known = Known(float(solution.upper), PLANNED)
                if self._held is None or (-known.bound, (t, o)) < (
                    -float(self._held.solution.upper),
                    self._held.pair,
                ):
                    self._held = Held((t, o), solution)
            self._known[t, o] = known
            heappush(queue, (-known.bound, t, o))
        problem = Problem(
            "version spaces", "no pair left", "at least one T and one O that explain the data"
        )
        raise PlanningError("hop_v", [problem])

    def _alive(self, pairs: Pairs) -> set[tuple[int, int]]:
        transitions, emissions = (
            np.flatnonzero(pairs.alive_transitions),
            np.flatnonzero(pairs.alive_emissions),
        )
        alive = {(t, o) for t in transitions.tolist() for o in emissions.tolist()}
        allowed = pairs.alive_pairs
        return alive if allowed is None else {pair for pair in alive if allowed[pair]}

    def _bound(self, pairs: Pairs, t: int, o: int) -> Known:
        if (t, o) not in self._known:
            for other, bound in enumerate(self._bounds.rough(pairs, t)):
                self._known[t, other] = Known(float(bound), ROUGH)
        return self._known[t, o]
