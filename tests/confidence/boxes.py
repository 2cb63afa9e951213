"""Small declarations with random data, and models at the vertices of their confidence sets."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import HOMDP, POMDP, Counts, Kernels, homdp, models, tabular
from homdp_ppl.confidence import Box, Sets
from homdp_ppl.precision import Array
from tests.random_rewards import native
from tests.richer import RICHER

GUESS = tabular(  # one step: only the emission is unknown
    T=np.full((2, 2, 2), 0.5),
    O=dist.Dirichlet(np.ones((2, 3))),
    initial=[0.4, 0.6],
    reward=np.eye(2),
    horizon=1,
)


@homdp(
    states=2,
    observations=2,
    actions=2,
    horizon=2,
    reward=lambda x, y, a: 0.6 * (a == y) + 0.4 * (x == 1) * (a == 0),
)
def echoes():
    """The reward depends on the observation."""
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 2))))
    return Kernels([0.5, 0.5], moves, shows)


@homdp(
    states=("well", "ill", "gone"),
    observations=2,
    actions=2,
    horizon=3,
    reward=[[1.0, 0.6], [0.1, 0.4], [0.0, 0.0]],
    terminal=("gone",),
)
def ends():
    """Episodes can end early."""
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 3))))
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    stay = jnp.broadcast_to(jnp.array([0.0, 0.0, 1.0]), (1, 2, 3))
    return Kernels(
        [0.7, 0.3, 0.0],
        jnp.concatenate([moves, stay]),
        lambda x: dist.Categorical(shows[jnp.minimum(x, 1)]),
    )


@homdp(states=3, observations=2, actions=1, horizon=3, reward=[[0.1], [0.4], [1.0]])
def wall():
    """Moving left, staying and moving right share one row; in two states two of them look alike."""
    left, stay, right = numpyro.sample("step", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))
    seen = numpyro.sample("seen", dist.Beta(2.0, 1.0))
    moves = jnp.array([[left + stay, right, 0], [left, stay, right], [0, left + stay, right]])
    shows = jnp.array([[seen, 1 - seen], [0.5, 0.5], [1 - seen, seen]])
    return Kernels([0.0, 1.0, 0.0], moves[:, None], shows)


DECLARATIONS: dict[str, HOMDP] = {
    "guess": GUESS,
    "lock": models.load("lock", length=2, dials=2).homdp,
    "echoes": echoes,
    "ends": ends,
    "shop": native(),
    "wall": wall,
    **RICHER,
}


def random_counts(model: HOMDP, seed: int, most: int = 40) -> Counts:
    """Counts of possible outcomes; rows have between 0 and ``most`` draws of each outcome."""
    generator = np.random.default_rng(seed)

    def some(possible: Array) -> Array:
        size = generator.integers(0, most + 1, (*possible.shape[:-1], 1))
        return generator.integers(0, size + 1, possible.shape) * possible

    support = model.structure.support
    rewards = Counts.zero(model).rewards
    if rewards is not None and rewards.outcomes is not None:  # of 0 or 1
        outcomes = some(np.ones(rewards.outcomes.shape, dtype=int))
        number, total = outcomes.sum(-1), outcomes[..., 1]
        rewards = replace(rewards, number=number, total=1.0 * total, outcomes=outcomes)
    return Counts(
        some(support.transition), some(support.emission), None, some(support.initial), rewards
    )


def vertex(box: Box, goal: Array) -> Array:
    """The distributions of a box with the largest p . goal, row by row."""
    low, high = np.asarray(box.centre - box.down), np.asarray(box.centre + box.up)
    rows = low.copy().reshape(-1, low.shape[-1])
    tops, goals = high.reshape(rows.shape), np.broadcast_to(goal, low.shape).reshape(rows.shape)
    for row, top, wanted in zip(rows, tops, goals, strict=True):
        for i in np.argsort(-wanted, kind="stable"):
            row[i] += min(top[i] - row[i], 1 - row.sum())
    return rows.reshape(low.shape)


def inside(sets: Sets, seed: int, models_drawn: int) -> Iterator[POMDP]:
    """Models whose rows are at vertices of their boxes."""
    generator = np.random.default_rng(seed)
    centre, up, down, _ = sets
    boxes = [
        Box(getattr(centre, name), getattr(up, name), getattr(down, name))
        for name in ("initial", "transition", "emission")
    ]
    few = [int((box.up.sum(-1) > 0).sum()) for box in boxes]
    if sum(few) <= 6 and all(box.centre.shape[-1] == 2 for box in boxes):
        goals: Iterable[tuple[float, ...] | None] = product((-1.0, 1.0), repeat=sum(few))
    else:
        goals = (None for _ in range(models_drawn))
    for goal in goals:
        tables = []
        for box, rows in zip(boxes, few, strict=True):
            wanted = generator.normal(size=box.centre.shape)
            if goal is not None:
                wanted[box.up.sum(-1) > 0, 0] = 0.0
                wanted[box.up.sum(-1) > 0, 1] = goal[:rows]
                goal = goal[rows:]
            tables.append(vertex(box, wanted))
        upper = generator.random(centre.reward.shape) < 0.5
        reward = np.where(upper, sets.reward.high, sets.reward.low)
        yield centre._replace(
            initial=tables[0], transition=tables[1], emission=tables[2], reward=reward
        )
