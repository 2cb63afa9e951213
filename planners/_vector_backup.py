"""One backup of alpha-vectors: the vectors of a step, on each of its faces, from those of the next.

Incremental pruning (Cassandra, Littman and Zhang 1997): for each action, sums over observations are
added and pruned one at a time; then the actions are united and pruned once more. If rewards depend
on the observation that is seen before the action, each observation has its own union, while the
sums are shared by all faces with the same states.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple, cast

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.planners._belief_tree import EPSILON, Step
from homdp_ppl.planners._faces import Faces, restricted
from homdp_ppl.planners._limits import Limits
from homdp_ppl.planners._lines import Floats, Integers
from homdp_ppl.planners._pruning import prune_sums

TEST_WORK = 128.0  # approximate number of multiplications of a witness test, per state
TIES = 1e-3  # share of the tolerance of a step for ties between actions among vectors
# share of the tolerance of a step for sums over observations; the rest is for the union of actions
SUMS = 0.5


class Vectors(NamedTuple):
    """The alpha-vectors of one step, minus a common level."""

    alphas: Floats  # (n, X)
    seen: Integers  # (n,)  the observation of each vector; empty if rewards do not depend on it
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
    limits: Limits  # of time and work


class Sums(NamedTuple):
    """The sums over observations on one face, one set per action."""

    vectors: list[Floats]  # (n, d)
    choices: list[Integers]  # (n, Y)  vectors of the next step; -1 if the observation is impossible
    points: list[Floats]  # (n, d)  a belief where each vector is needed
    loss: float
    work: float


class Union(NamedTuple):
    """The vectors of one step on one face."""

    actions: Integers  # (n,)
    choices: Integers  # (n, Y)  as in Sums
    vectors: Floats  # (n, d)
    points: Floats  # (n, d)  as in Sums
    loss: float
    work: float


class Enough(Exception):  # noqa: N818
    """Signals that the tree of beliefs is cheaper than another step of vectors."""


def back(faces: Faces, model: POMDP, vectors: Vectors, terms: Terms) -> tuple[Step, Vectors]:
    """The vectors of a step on all its faces, from the vectors of the next step."""
    alphas, level, ends = vectors.alphas, vectors.level, vectors.ends
    table, shows, rewards = faces.table, faces.shows, cast(Floats, model.reward[terms.step])
    (X, A, _), Y, split = table.shape, shows.shape[2], rewards.shape[1] > 1
    common = level * faces.drift if split else rewards[:, 0] + level * faces.drift  # (X, A)
    weighted = [[emission[:, y] * alphas for y in range(Y)] for emission in shows] * (
        A // len(shows)
    )
    parts, predicted, new_ends, work = list[Union](), [], [0], 0.0
    known: dict[bytes, Sums] = {}  # by states; only faces of different observations share them
    moved = faces.moves or restricted(table, faces.states)
    for k, (states, moves) in enumerate(zip(faces.states, moved, strict=True)):
        name = states.tobytes()
        if name not in known:
            rows = [
                [(ends[f], ends[f + 1]) if f >= 0 else (0, 0) for f in by_action]
                for by_action in faces.following[k]
            ]
            known[name] = _sums(common[states], moves, weighted, rows, work, terms)
            work = known[name].work
        own = rewards[states, faces.seen[k]] if split else None
        part = _united(known[name], own, work, terms)
        ahead = np.zeros((len(part.actions), X))
        for a in np.unique(part.actions) if (part.choices < 0).any() else ():
            ahead[part.actions == a] = part.points[part.actions == a] @ moves[a].T
        parts.append(part)
        predicted.append(ahead)
        new_ends.append(new_ends[-1] + len(ahead))
        work = part.work
    action = np.concatenate([part.actions for part in parts])
    choice = np.concatenate([part.choices for part in parts])
    seen = np.repeat(faces.seen, np.diff(new_ends)) if split else vectors.seen
    if (choice < 0).any():  # an impossible observation leaves the predicted belief unchanged
        scores = np.concatenate(predicted) @ alphas.T
        choice = np.where(choice < 0, _best(scores, vectors.seen, Y if split else 1), choice)
    if min(map(len, faces.states)) == X:
        onward = np.concatenate([part.vectors for part in parts])
    else:  # extend the vectors to all states
        onward = np.empty((len(action), X))
        later = _later(weighted[0], choice) if len(shows) == 1 else None
        for a in range(A):
            mine = action == a
            hoped = _later(weighted[a], choice[mine]) if later is None else later[mine]
            onward[mine] = common[:, a] + hoped @ table[:, a].T
            if split:
                onward[mine] += rewards[:, seen[mine], a].T
    top = float(onward.max())
    loss = (
        vectors.loss
        + max(part.loss for part in parts)
        + EPSILON * (4 * (X + Y) * float(np.abs(onward).max()) + abs(level + top))
    )
    return (action, choice), Vectors(onward - top, seen, level + top, new_ends, loss, work)


def _later(weighted: list[Floats], choice: Integers) -> Floats:
    """The sum of the chosen vectors over observations, (n, X)."""
    return cast(Floats, sum(part[choice[:, y]] for y, part in enumerate(weighted)))


def _best(scores: Floats, seen: Integers, observations: int) -> Integers:
    """The best vectors, (n, 1), or the best of each observation, (n, Y), from scores (n, m)."""
    if observations == 1:
        return scores.argmax(1)[:, None]
    return np.stack(
        [np.where(seen == y, scores, -np.inf).argmax(1) for y in range(observations)], axis=1
    )


def _sums(
    start: Floats,
    moves: Floats,
    weighted: list[list[Floats]],
    rows: list[list[tuple[int, int]]],
    work: float,
    terms: Terms,
) -> Sums:
    """prune(start(., a) + sum_y T_a (O_ay alpha)) on a face, for each action.

    ``weighted`` contains O_ay alpha, and ``rows`` the first and last index, both by action and
    observation.
    """
    (d, A), Y = start.shape, len(weighted[0])
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
            part, names, where = weighted[a][y][low:high] @ moves[a], np.arange(low, high), corners
            if d != 2 and high - low > 1:  # lines are pruned when they are added
                terms.limits.check(work + TEST_WORK * d * (high - low))
                kept = prune_sums(part, zero, corners, share)
                part, names, where = part.take(kept.left, 0), names.take(kept.left), kept.points
                lost, work = lost + kept.loss, work + kept.work
            parts.append((len(names), y, part, names, where))
        vectors, choices, points = start[None, :, a], np.full((1, Y), -1), corners
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
            terms.limits.check(work + TEST_WORK * d * sums)
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
    return Sums(sets, chosen, seeds, spent, work)


def _united(sums: Sums, reward: Floats | None, work: float, terms: Terms) -> Union:
    """prune(union_a of the sums), with the reward (d, A) of the observation added if given."""
    A, d = len(sums.vectors), sums.vectors[0].shape[1]
    action = np.repeat(np.arange(A), [len(vectors) for vectors in sums.vectors])
    tie = TIES * terms.budget / A
    spent = sums.loss + (A - 1) * tie
    united, eps = np.concatenate(sums.vectors), max(terms.noise, terms.budget - spent)
    if reward is not None:
        united = united + reward.T[action]
    seeds = np.concatenate(sums.points)
    terms.limits.check(work + TEST_WORK * d * len(united))
    kept = prune_sums(united - tie * action[:, None], np.zeros((1, d)), seeds, eps)
    names = kept.left
    return Union(
        action[names],
        np.concatenate(sums.choices)[names],
        united[names],
        kept.points,
        spent + kept.loss,
        work + kept.work,
    )


def _too_many(terms: Terms, left: int, right: int) -> PlanningError:
    got = f"{left:,} x {right:,} = {left * right:,} sums of vectors at step {terms.step + 1}"
    remedy = "Increase max_vectors or the tolerance, or use the planner bounded_search."
    return PlanningError(
        "alpha_vectors", [Problem("max_vectors", got, f"at most {terms.limit:,}", remedy)]
    )
