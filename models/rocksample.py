"""RockSample: a rover samples good rocks, which it can check from a distance with a noisy sensor.

    (place, rocks) ──► (place', rocks')     gone after leaving in the east: the end
          │
          ▼
    reading after a check, correct with probability (1 + 2^(-distance / half_distance)) / 2;
    otherwise nothing

From Smith and Simmons, "Heuristic search value iteration for POMDPs" (2004). The rover moves
deterministically in a square of size x size places. Sampling a good rock earns 10 and makes it bad;
sampling a bad rock, or where there is no rock, costs 10; leaving in the east earns 10 and ends the
episode. With k rocks there are size^2 2^k states and the end.

Known: the places of the rocks, how the rover moves and samples, the rewards, and that each rock is
good with probability 1/2. Unknown: the distance at which the sensor has lost half its power, one
number for all rocks and places; every reading depends on it.
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
PRIZE = 10.0  # of a good rock, and for leaving in the east; the cost of sampling in vain


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
        states=size**2 * power(2, len(rocks)) + 1,
        observations=len(READINGS) + 1,
        actions=len(STEPS) + 1 + len(rocks),
    )
    problems = _problems(size, rocks, start)
    if problems:
        raise DeclarationError("rocksample", problems)
    # column, row, and quality of the rocks: bit k is set if rock k is good
    situations = list(product(range(size), range(size), range(2 ** len(rocks))))
    moves, reward = _drives(size, rocks)
    good = np.array(
        [[quality >> rock & 1 for rock in range(len(rocks))] for *_, quality in situations]
    )
    distance = np.array(
        [[np.hypot(c - column, r - row) for column, row in rocks] for c, r, _ in situations]
    )
    initial = np.array([*((c, r) == start for c, r, _ in situations), False])

    @homdp(
        states=(*(f"{c},{r} {_named(q, len(rocks))}" for c, r, q in situations), "gone"),
        observations=READINGS,
        actions=(*STEPS, "sample", *(f"check rock {k}" for k in range(1, len(rocks) + 1))),
        horizon=horizon,
        reward=reward,
        terminal=("gone",),
    )
    def rocksample() -> Kernels:
        half_distance = numpyro.sample("half_distance", dist.LogNormal(1.0, 1.0))
        right = (1 + 2 ** (-distance / half_distance)) / 2
        readings = _readings(jnp.where(good, right, 1 - right))
        return Kernels(
            initial / initial.sum(),
            moves,
            emission=lambda x, a: dist.Categorical(probs=readings[a, x]),
            first_emission=np.eye(3)[[0] * len(initial)],
        )

    return rocksample.at(half_distance=half_distance)


def _named(quality: int, rocks: int) -> str:
    return "/".join("good" if quality >> rock & 1 else "bad" for rock in range(rocks))


def _drives(size: int, rocks: list[Place]) -> tuple[np.ndarray, np.ndarray]:
    """T(x' | x, a), (X, A, X), and the reward, (X, A)."""
    qualities = 2 ** len(rocks)
    gone = size**2 * qualities
    A = SAMPLE + 1 + len(rocks)
    moves = np.repeat(np.eye(gone + 1)[:, None], A, axis=1)  # a check changes nothing
    reward = np.zeros((gone + 1, A))

    def state(column: int, row: int, quality: int) -> int:
        return (column * size + row) * qualities + quality

    def drive(here: int, action: int, there: int) -> None:
        moves[here, action] = np.eye(gone + 1)[there]

    for column, row, quality in product(range(size), range(size), range(qualities)):
        here = state(column, row, quality)
        for action, (east, north) in enumerate(STEPS.values()):
            c, r = column + east, row + north
            if c == size:
                drive(here, action, gone)
                reward[here, action] = PRIZE
            elif c >= 0 and 0 <= r < size:
                drive(here, action, state(c, r, quality))
        after = quality & ~(1 << rocks.index((column, row))) if (column, row) in rocks else quality
        drive(here, SAMPLE, state(column, row, after))
        reward[here, SAMPLE] = PRIZE if after != quality else -PRIZE
    return moves, reward


def _readings(says_good: Array) -> Array:
    """O(y | x, a) after each action a, (A, X, Y), from the probability of a good reading, (S, k).

    The end, the last state, has no readings; its rows are not used.
    """
    nothing = np.eye(3)[[0] * (len(says_good) + 1)]
    checks = jnp.stack([jnp.zeros_like(says_good), says_good, 1 - says_good], axis=-1)
    checks = jnp.concatenate([checks.swapaxes(0, 1), np.eye(3)[[[0]] * says_good.shape[1]]], axis=1)
    return jnp.concatenate([np.stack([nothing] * (SAMPLE + 1)), checks])


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
