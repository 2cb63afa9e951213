"""RockSample: a rover samples good rocks, which it can check from a distance with a noisy sensor.

    (place, rocks, reading) ──► (place', rocks', reading')     a check sets the reading,
               │                                               any other action clears it
               ▼
            reading   correct with probability (1 + 2^(-distance / half_distance)) / 2

From Smith and Simmons, "Heuristic search value iteration for POMDPs" (2004). The rover moves
deterministically in a square of size x size places. Sampling a good rock earns 10 and makes it bad;
sampling a bad rock, or where there is no rock, costs 10; leaving in the east earns 10 and ends the
task. Rewards are rescaled to [0, 1] by (r + 10) / 20, so a step without reward is 0.5. The state
includes the last reading, since emissions depend on the state only. With k rocks there are
3 size^2 2^k + 1 states.

Known: the places of the rocks, how the rover moves and samples, the rewards, that each rock is good
with probability 1/2, and that the reading is observed exactly. Unknown: the distance at which the
sensor has lost half its power, one number for all rocks and places; every row of T for a check
depends on it.
"""

from collections.abc import Sequence
from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of, power
from homdp_ppl.errors import DeclarationError, Problem, shown
from homdp_ppl.precision import Array

Place = tuple[int, int]  # columns from the west, rows from the south, both from 0

READINGS = ("nothing", "good", "bad")
STEPS = {"north": (0, 1), "south": (0, -1), "west": (-1, 0), "east": (1, 0)}
SAMPLE = len(STEPS)


def structured(
    size: int = 4,
    rocks: Sequence[Place] = ((1, 1), (3, 2)),
    start: Place = (0, 2),
    half_distance: float = 4.0,
    horizon: int = 6,
) -> World:
    """RockSample with an unknown range of the sensor.

    The default is the instance with 4 x 4 places and 2 rocks.

    Parameters
    ----------
    size
        Number of places per row and per column.
    rocks
        Places of the rocks: (column, row) from the south-west corner (0, 0).
    start
        First place of the rover.
    half_distance
        Distance at which the sensor has lost half its power.
    horizon
        Number of actions in an episode.
    """
    check_counts("rocksample", size=size)
    rocks, start = _places("rocks", rocks), _places("start", [start])[0]
    check_sizes_of(
        "rocksample",
        states=3 * size**2 * power(2, len(rocks)) + 1,
        observations=len(READINGS),
        actions=len(STEPS) + 1 + len(rocks),
    )
    problems = _problems(size, rocks, start)
    if problems:
        raise DeclarationError("rocksample", problems)
    # column, row, and quality of the rocks: bit k is set if rock k is good
    situations = list(product(range(size), range(size), range(2 ** len(rocks))))
    names = tuple(
        f"{c},{r} {_named(q, len(rocks))} {reading}"
        for c, r, q in situations
        for reading in READINGS
    )
    moves, reward = _drives(size, rocks)
    good = np.array(
        [[quality >> rock & 1 for rock in range(len(rocks))] for _, _, quality in situations],
        dtype=bool,
    )
    distance = np.array(
        [[np.hypot(c - column, r - row) for column, row in rocks] for c, r, _ in situations]
    )
    initial = np.array(
        [(c, r) == start and reading == "nothing" for c, r, _ in situations for reading in READINGS]
        + [False]
    )

    @homdp(
        states=(*names, "gone"),
        observations=READINGS,
        actions=(*STEPS, "sample", *(f"check rock {k}" for k in range(1, len(rocks) + 1))),
        horizon=horizon,
        reward=reward,
    )
    def rocksample() -> Kernels:
        half_distance = numpyro.sample("half_distance", dist.LogNormal(1.0, 1.0))
        right = (1 + 2 ** (-distance / half_distance)) / 2
        checks = _checks(jnp.where(good, right, 1 - right))
        emission = np.eye(3)[[*range(3)] * len(situations) + [0]]
        return Kernels(initial / initial.sum(), jnp.concatenate([moves, checks], axis=1), emission)

    return rocksample.at(half_distance=half_distance)


def _named(quality: int, rocks: int) -> str:
    return "/".join("good" if quality >> rock & 1 else "bad" for rock in range(rocks))


def _drives(size: int, rocks: list[Place]) -> tuple[np.ndarray, np.ndarray]:
    """T(x' | x, a) of moves and of sampling, (X, 5, X), and the reward of all actions, (X, A)."""
    qualities = 2 ** len(rocks)
    X = 3 * size**2 * qualities + 1
    gone = X - 1
    moves, reward = np.zeros((X, len(STEPS) + 1, X)), np.full((X, len(STEPS) + 1 + len(rocks)), 0.5)
    moves[gone, :, gone] = 1.0

    def state(column: int, row: int, quality: int) -> int:
        return int(3 * ((column * size + row) * qualities + quality))

    for column, row, quality in product(range(size), range(size), range(qualities)):
        here = state(column, row, quality)
        readings = slice(here, here + 3)
        for action, (east, north) in enumerate(STEPS.values()):
            c, r = column + east, row + north
            inside = 0 <= c < size and 0 <= r < size
            moves[
                readings, action, gone if c == size else state(c, r, quality) if inside else here
            ] = 1.0
            if c == size:
                reward[readings, action] = 1.0
        after = quality & ~(1 << rocks.index((column, row))) if (column, row) in rocks else quality
        moves[readings, SAMPLE, state(column, row, after)] = 1.0
        reward[readings, SAMPLE] = float(after != quality)
    return moves, reward


def _checks(says_good: Array) -> Array:
    """T(x' | x, check), (X, rocks, X), from the probability of a good reading, (S, rocks)."""
    situations, rocks = says_good.shape
    # (S, rocks, 3)
    readings = jnp.stack([jnp.zeros_like(says_good), says_good, 1 - says_good], axis=-1)
    blocks = jnp.eye(situations)[:, None, :, None] * readings[:, :, None, :]  # (S, rocks, S, 3)
    stays = jnp.repeat(blocks.reshape(situations, rocks, 3 * situations), 3, axis=0)
    return (
        jnp.zeros((3 * situations + 1, rocks, 3 * situations + 1))
        .at[:-1, :, :-1]
        .set(stays)
        .at[-1, :, -1]
        .set(1.0)
    )


def _places(where: str, given: Sequence[Place]) -> list[Place]:
    """Places as pairs of integers."""
    try:
        pairs = np.asarray(given)
    except ValueError:  # of NumPy, for pairs and longer lists together
        pairs = np.zeros(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        expected = "pairs (column, row) of integers"
        raise DeclarationError("rocksample", [Problem(where, shown(given), expected)])
    return [(int(column), int(row)) for column, row in pairs]


def _problems(size: int, rocks: list[Place], start: Place) -> list[Problem]:
    def inside(place: Place) -> bool:
        return all(0 <= k < size for k in place)

    checks = [
        (
            bool(rocks) and all(map(inside, rocks)),
            Problem("rocks", str(rocks), f"places in 0..{size - 1}, at least one"),
        ),
        (len(set(rocks)) == len(rocks), Problem("rocks", str(rocks), "different places")),
        (inside(start), Problem("start", str(start), f"a place in 0..{size - 1}")),
    ]
    return [problem for fine, problem in checks if not fine]
