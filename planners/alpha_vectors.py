"""Exact planning with alpha-vectors: incremental pruning, backwards from the last step, on
reachable beliefs.

Known zeros make the sets small: the vectors of a step are pruned on the faces of the simplex that
are possible after an observation (_faces.py). The first steps, in which few beliefs are reachable,
are a tree of beliefs (_belief_tree.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from time import perf_counter
from typing import NamedTuple, cast

import numpy as np

from homdp_ppl.core.arguments import count_problems, number_problems, refuse
from homdp_ppl.core.gap import inside_gap
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, make_plan
from homdp_ppl.core.pomdp import POMDP, TIE, Stationary
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.planners._belief_tree import EPSILON, Step, climb, observe, reaches
from homdp_ppl.planners._faces import Faces, faces_of
from homdp_ppl.planners._lines import Floats, Integers
from homdp_ppl.planners._pruning import prune_sums

TOLERANCE = 1e-9  # default, for rewards in [0, 1]
LEAST_WORK = 100_000.0  # smallest number of multiplications of a step
TEST_WORK = 128.0  # approximate number of multiplications of a witness test, per state
TREE_TIES = 0.1  # share of the tolerance for ties between actions in the tree
TIES = 1e-3  # share of the tolerance of a step for ties between actions among vectors
# share of the tolerance of a step for sums over observations; the rest is for the union of actions
SUMS = 0.5
NOISE = 1e-13  # rounding error of vectors of size one: smaller gains are ignored


class Vectors(NamedTuple):
    """The alpha-vectors of one step, minus a common level."""

    alphas: Floats  # (n, X)
    level: float
    ends: list[int]  # face k has the vectors ends[k] to ends[k + 1] - 1
    loss: float  # largest distance to the optimum, including rounding
    work: float  # number of multiplications of the last backup


class Terms(NamedTuple):
    """Limits of a backup."""

    step: int
    budget: float  # largest loss at any belief
    noise: float  # rounding error
    limit: int  # largest number of sums of vectors
    enough: Callable[[float], bool]  # whether the tree is cheaper than this many multiplications


class Backup(NamedTuple):
    """The vectors of one step on one face."""

    actions: Integers  # (n,)
    choices: Integers  # (n, Y)  vectors of the next step; -1 if the observation is impossible
    vectors: Floats  # (n, d)
    points: Floats  # (n, d)  a belief where each vector is needed
    loss: float
    work: float


class Enough(Exception):  # noqa: N818
    """Signals that the tree of beliefs is cheaper than another step of vectors."""


@dataclass(frozen=True)
class AlphaVectors:
    """The planner returned by :func:`alpha_vectors`."""

    tolerance: float | None
    max_vectors: int

    def __call__(self, pomdp: POMDP) -> Plan:
        """Plan for a model."""
        began = perf_counter()
        given = validated(pomdp, "alpha_vectors")
        short = given.stationary("alpha_vectors")
        unit = float(np.abs(short.reward).max()) or 1.0
        model = short._replace(reward=short.reward / unit)
        (X, A, _), H = model.transition.shape, model.horizon
        faces, tree, steps, allowed = (
            faces_of(model),
            [observe(cast(Floats, model.initial)[None], model)],
            list[Step](),
            inside_gap(self.tolerance, None, TOLERANCE, float(given.scale), H) / unit,
        )
        vectors = Vectors(np.zeros((1, X)), 0.0, [0, 1], 0.0, 0.0)
        for h in reversed(range(1, H)):
            enough = partial(reaches, tree, h, model, len(vectors.alphas))
            if enough(max(LEAST_WORK, vectors.work)):
                break
            noise = NOISE * max(1.0, float(np.abs(vectors.alphas).max()))
            terms = Terms(h, max(0.0, allowed - vectors.loss) / h, noise, self.max_vectors, enough)
            try:
                step, vectors = _back(faces[h], model, vectors, terms)
            except Enough:
                break
            steps.insert(0, step)
        depth = H - len(steps)
        tie = min(TIE * H, TREE_TIES * max(0.0, allowed - vectors.loss) / depth)
        start, value, lost, first = climb(tree, depth, model, vectors.alphas, vectors.level, tie)
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


def alpha_vectors(tolerance: float | None = None, max_vectors: int = 200_000) -> AlphaVectors:
    """A planner that is exact up to a certified tolerance.

    Suitable for long horizons with few states, or with many states and known zeros.

    ``plan.value`` is the value of the policy, and ``upper - value`` is at most the tolerance plus
    floating-point rounding. After an observation that is impossible in the model, the policy
    follows the best vector for the predicted belief.

    Parameters
    ----------
    tolerance
        The largest total loss from dropping vectors that improve little, in the user's units.
        Default: 1e-9 times the range of one reward.
    max_vectors
        The largest number of sums of vectors to compare at once. If a step needs more, planning
        raises PlanningError.

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
        + count_problems(1, max_vectors=max_vectors),
    )

    return AlphaVectors(tolerance, max_vectors)


def _back(faces: Faces, model: Stationary, vectors: Vectors, terms: Terms) -> tuple[Step, Vectors]:
    """The vectors of a step on all its faces, from the vectors of the next step."""
    _, T, O, r = (cast(Floats, table) for table in model)  # noqa: E741
    alphas, level, ends, loss, _ = vectors
    X, Y = O.shape
    reward = r[terms.step] + level * faces.drift
    weighted = [O[:, y] * alphas for y in range(Y)]
    parts, predicted, new_ends, work = list[Backup](), [], [0], 0.0
    for states, moves, following in zip(faces.states, faces.moves, faces.following, strict=True):
        rows = [
            [(ends[f], ends[f + 1]) if f >= 0 else (0, 0) for f in by_action]
            for by_action in following
        ]
        part = _back_face(reward[states], moves, weighted, rows, work, terms)
        ahead = np.zeros((len(part.actions), X))
        for a in np.unique(part.actions) if (part.choices < 0).any() else ():
            ahead[part.actions == a] = part.points[part.actions == a] @ moves[a].T
        parts.append(part)
        predicted.append(ahead)
        new_ends.append(new_ends[-1] + len(ahead))
        work = part.work
    action, choice = (
        np.concatenate([part.actions for part in parts]),
        np.concatenate([part.choices for part in parts]),
    )
    if (choice < 0).any():  # an impossible observation leaves the predicted belief unchanged
        choice = np.where(
            choice < 0, (np.concatenate(predicted) @ alphas.T).argmax(1)[:, None], choice
        )
    onward = parts[0].vectors
    if len(faces.states[0]) < X:
        later = cast(Floats, sum(weighted[y][choice[:, y]] for y in range(Y)))
        onward = np.empty((len(action), X))
        for a in range(T.shape[1]):
            onward[action == a] = reward[:, a] + later[action == a] @ T[:, a].T
    top = float(onward.max())
    loss += max(part.loss for part in parts) + EPSILON * (
        4 * (X + Y) * float(np.abs(onward).max()) + abs(level + top)
    )
    return (action, choice), Vectors(onward - top, level + top, new_ends, loss, work)


def _back_face(
    reward: Floats,
    moves: Floats,
    weighted: list[Floats],
    rows: list[list[tuple[int, int]]],
    work: float,
    terms: Terms,
) -> Backup:
    """prune(union_a r(., a) + sum_y T_a (O_y alpha)) on a face.

    ``weighted`` contains O_y alpha; ``rows`` contains the first and last index by action and
    observation.
    """
    (d, A), Y = reward.shape, len(weighted)
    zero, corners = np.zeros((1, d)), np.concatenate([np.full((1, d), 1 / d), np.eye(d)])
    sets, chosen, seeds, spent = [], [], [], 0.0
    for a in range(A):
        parts, lost = [], 0.0
        share = max(
            terms.noise,
            SUMS * terms.budget / max(1, 2 * sum(high - low > 1 for low, high in rows[a]) - 1),
        )
        for y, (low, high) in enumerate(rows[a]):
            if low == high:
                continue
            part, names, where = weighted[y][low:high] @ moves[a], np.arange(low, high), corners
            if d != 2 and high - low > 1:  # lines are pruned when they are added
                kept = prune_sums(part, zero, corners, share)
                part, names, where = part.take(kept.left, 0), names.take(kept.left), kept.points
                lost, work = lost + kept.loss, work + kept.work
            parts.append((len(names), y, part, names, where))
        vectors, choices, points = reward[None, :, a], np.full((1, Y), -1), corners
        for size, y, part, names, where in sorted(parts, key=itemgetter(0)):
            if size == 1 or len(vectors) == 1:
                vectors, choices, points = (
                    vectors + part,
                    np.repeat(choices, size, 0),
                    points if size == 1 else where,
                )
                choices[:, y] = names
                continue
            sums = len(vectors) + size if d == 2 else len(vectors) * size
            if terms.enough(work + TEST_WORK * d * sums):
                raise Enough
            if sums > terms.limit:
                raise _too_many(terms, len(vectors), size)
            kept = prune_sums(vectors, part, np.concatenate([points, where]), share)
            vectors = vectors.take(kept.left, 0) + part.take(kept.right, 0)  # faster than indexing
            choices, points = choices.take(kept.left, 0), kept.points
            choices[:, y] = names.take(kept.right)
            lost, work = lost + kept.loss, work + kept.work
        sets.append(vectors)
        chosen.append(choices)
        seeds.append(points)
        spent = max(spent, lost)
    action, tie = (
        np.repeat(np.arange(A), [len(vectors) for vectors in sets]),
        TIES * terms.budget / A,
    )
    spent += (A - 1) * tie
    united, eps = np.concatenate(sets), max(terms.noise, terms.budget - spent)
    kept = prune_sums(united - tie * action[:, None], zero, np.concatenate(seeds), eps)
    names, loss, work = kept.left, spent + kept.loss, work + kept.work
    return Backup(
        action[names], np.concatenate(chosen)[names], united[names], kept.points, loss, work
    )


def _too_many(terms: Terms, left: int, right: int) -> PlanningError:
    got = f"{left:,} x {right:,} = {left * right:,} sums of vectors at step {terms.step + 1}"
    remedy = "Increase max_vectors or the tolerance, or use the planner bounded_search."
    return PlanningError(
        "alpha_vectors", [Problem("max_vectors", got, f"at most {terms.limit:,}", remedy)]
    )


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
