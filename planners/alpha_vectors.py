"""Exact planning with alpha-vectors: incremental pruning, backwards from the last step, on
reachable beliefs.

Known zeros make the sets small: the vectors of a step (_vector_backup.py) are pruned on the faces
of the simplex that are possible after an observation (_faces.py). The first steps, in which few
beliefs are reachable, are a tree of beliefs (_belief_tree.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np

from homdp_ppl.core.allowed import Allowed, refuse_allowed
from homdp_ppl.core.arguments import count_problems, number_problems, refuse
from homdp_ppl.core.gap import inside_gap
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, make_plan
from homdp_ppl.core.pomdp import POMDP, TIE
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners._belief_tree import Following, Step, climb, first_level, reaches
from homdp_ppl.planners._faces import faces_of
from homdp_ppl.planners._limits import Limits, StoppedError, limited, time_problems
from homdp_ppl.planners._lines import Integers
from homdp_ppl.planners._search import Search
from homdp_ppl.planners._vector_backup import Enough, Terms, Vectors, back

TOLERANCE = 1e-9  # default, for rewards in [0, 1]
MAX_VECTORS = 200_000  # default
LEAST_WORK = 100_000.0  # smallest number of multiplications of a step
TREE_TIES = 0.1  # share of the tolerance for ties between actions in the tree
NOISE = 1e-13  # rounding error of vectors of size one: smaller gains are ignored


@dataclass(frozen=True)
class AlphaVectors:
    """The planner returned by :func:`alpha_vectors`."""

    tolerance: float | None
    max_vectors: int
    time_limit: float | None = None

    def __call__(self, pomdp: POMDP, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a model; a restriction of the actions raises PlanningError."""
        began = perf_counter()
        refuse_allowed("alpha_vectors", allowed)
        model = validated(pomdp, "alpha_vectors")
        with limited(self.time_limit) as limits:
            try:
                return solved(model, self.tolerance, self.max_vectors, limits)
            except (KeyboardInterrupt, StoppedError):
                search = Search(model, 0.0, limits)  # only its first bounds are used
                return search.plan("alpha_vectors", perf_counter() - began)


def solved(given: POMDP, tolerance: float | None, max_vectors: int, limits: Limits) -> Plan:
    """The plan for a validated model; raises StoppedError at a limit.

    The other parameters are those of :func:`alpha_vectors`.
    """
    began = perf_counter()
    unit = float(np.abs(given.reward).max()) or 1.0
    model, H = given._replace(reward=given.reward / unit), given.horizon
    tolerated = inside_gap(tolerance, None, TOLERANCE, float(given.scale), H) / unit
    X, _, A = model.sizes
    faces, tree, steps = faces_of(model, limits), [first_level(model)], list[Step]()
    vectors = Vectors(np.zeros((1, X)), np.zeros(1, np.int64), 0.0, [0, 1], 0.0, 0.0)
    for h in reversed(range(1, H)):
        enough = partial(reaches, tree, h, model, len(vectors.alphas))
        if enough(max(LEAST_WORK, vectors.work)):
            break
        noise = NOISE * max(1.0, float(np.abs(vectors.alphas).max()))
        budget = max(0.0, tolerated - vectors.loss) / h
        terms = Terms(h, budget, noise, max_vectors, enough, limits)
        try:
            step, vectors = back(faces[h], model, vectors, terms)
        except Enough:
            break
        limits.spend(vectors.work)
        steps.insert(0, step)
    depth = H - len(steps)
    tie = min(TIE * H, TREE_TIES * max(0.0, tolerated - vectors.loss) / depth)
    following = Following(vectors.alphas, vectors.seen, vectors.level)
    start, value, lost, first = climb(tree, depth, model, following, tie)
    policy = _policy(start, first + steps, A)
    sizes = [0, *(len(action) for action, _ in steps)]
    numbers = {
        "vectors": sum(sizes),
        "largest": max(sizes),
        "tree": depth,
        "seconds": perf_counter() - began,
    }
    return make_plan(
        policy,
        float(given.to_user(unit * value)),
        float(given.to_user(unit * (value + vectors.loss + lost))),
        given,
        "alpha_vectors",
        **numbers,
    )


def alpha_vectors(
    tolerance: float | None = None,
    max_vectors: int = MAX_VECTORS,
    time_limit: float | None = None,
) -> AlphaVectors:
    """A planner that is exact up to a certified tolerance.

    Suitable for long horizons with few states, or with many states and known zeros.

    ``plan.value`` is the value of the policy, and ``upper - value`` is at most the tolerance plus
    floating-point rounding. After an observation that is impossible in the model, the policy
    follows the best vector for the predicted belief.

    At the time limit or after Ctrl-C, the plan is the best policy that repeats one action, with the
    fast informed bound as ``upper``. Use auto or bounded_search for better bounds in a given time.

    Parameters
    ----------
    tolerance
        The largest total loss from dropping vectors that improve little, in the user's units.
        Default: 1e-9 times the range of one reward.
    max_vectors
        The largest number of sums of vectors to compare at once. If a step needs more, planning
        raises PlanningError.
    time_limit
        Stop after this many seconds. Default: no limit.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> plan = alpha_vectors()(models.load("tiger", horizon=30).pomdp)
    >>> round(plan.value, 6), plan.gap < 2e-9
    (27.78, True)
    """
    refuse(
        PlanningError,
        "alpha_vectors",
        number_problems(tolerance=0.0 if tolerance is None else tolerance)
        + count_problems(1, max_vectors=max_vectors)
        + time_problems(time_limit),
    )
    return AlphaVectors(tolerance, max_vectors, time_limit)


def _policy(start: Integers, steps: list[Step], actions: int) -> GraphPolicy:
    """The graph of all nodes that are reachable with any observations."""
    chosen, successors, met, size = [], [], np.unique(start), 0
    first = np.searchsorted(met, start)
    for action, following in steps:
        chosen.append(action[met])
        nodes, after = np.arange(size, size + len(met)), following[met]
        size, met = size + len(met), np.unique(after)
        successors.append(size + np.searchsorted(met, after))
    successors[-1] = np.broadcast_to(nodes[:, None], after.shape)  # never used: the last step
    return GraphPolicy(
        first, np.eye(actions)[np.concatenate(chosen)], np.concatenate(successors)[:, None]
    )
