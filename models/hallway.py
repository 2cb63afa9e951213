"""Hallway: a robot with unreliable turns and wall sensors looks for one room along a corridor.

    . . . . . . . . . . .      (cell, heading) ──► (cell', heading')
        .   .   .   *                 │
                                      ▼
                               walls ahead, right, behind and left; or a landmark; or the star

From Littman, Cassandra and Kaelbling, "Learning policies for partially observable environments:
scaling up" (1995), with the numbers of their file Hallway.POMDP. The file rounds the probabilities
of the 16 wall reports to six decimals; here they are exact. Four rooms lie south of the corridor. A
robot that faces a room from the corridor sees its landmark. In the room of the star it sees the
star, and any action moves it to a random start. Everywhere else four independent sensors report
whether there is a wall on their side. Going forward works with probability 0.8. Otherwise the robot
stays or slides to one of the other sides and then faces that way (when it slides back, it keeps its
heading half of the time). The reward of an action is the probability that it leads to the star.

Known: the map, the landmarks, the effect of going forward (the rewards reveal it), the start.
Unknown: the outcomes of a quarter turn (the same for both sides) and of a turn about, and how often
a sensor reports a wall that is there, and one that is not.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpy.typing import ArrayLike

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World

MAP = ("...........", "##.#.#.#*##")
# (rows, columns), clockwise
HEADINGS = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}
ACTIONS = ("stay", "forward", "turn right", "turn about", "turn left")
AHEAD, ASTRAY = 0.8, 0.05  # going forward: as intended; each other side, and no move
TRUTH: dict[str, ArrayLike] = {
    "quarter": np.array([0.1, 0.7, 0.1, 0.1]),
    "about": np.array([0.1, 0.15, 0.6, 0.15]),
    "hit": 0.9,
    "false_alarm": 0.05,
}

CELLS = [
    (row, column) for row, line in enumerate(MAP) for column, mark in enumerate(line) if mark != "#"
]
STATES = tuple(
    f"row {row + 1}, column {column + 1}, {heading}"
    for row, column in CELLS
    for heading in HEADINGS
)
POSES = [divmod(state, 4) for state in range(len(STATES))]  # cell and heading
# (16, 4) walls ahead, right, behind, left
REPORTS = np.array(list(product([False, True], repeat=4)))
SIDES = np.array(["ahead", "right", "behind", "left"])
OBSERVATIONS = (
    *("walls: " + (" ".join(SIDES[report]) or "none") for report in REPORTS),
    *(f"landmark {k}" for k in range(1, 5)),
    "star",
)
STAR = np.repeat([MAP[row][column] == "*" for row, column in CELLS], 4)  # (X,)
START = np.where(STAR, 0.0, round(1 / 56, 6))  # six decimals, as published
START[0] += 1 - START.sum()  # the remainder goes to the first state
# (4, X, X) turns by k quarters
TURNED = np.stack([np.kron(np.eye(len(CELLS)), np.roll(np.eye(4), k, axis=1)) for k in range(4)])


def structured(horizon: int = 4) -> World:
    """The hallway for a learner who has the map, but knows neither the turns nor the sensors."""
    forward, walls = _forward(), _walls()
    sights = _sights(walls)
    reward = np.zeros((len(STATES), len(ACTIONS)))
    reward[:, ACTIONS.index("forward")] = forward @ STAR

    @homdp(
        states=STATES, observations=OBSERVATIONS, actions=ACTIONS, horizon=horizon, reward=reward
    )
    def hallway() -> Kernels:
        # outcomes: none, as intended, half a turn, opposite
        quarter = numpyro.sample("quarter", dist.Dirichlet(np.array([1.0, 4.0, 1.0, 1.0])))
        # outcomes: none, right, as intended, left
        about = numpyro.sample("about", dist.Dirichlet(np.array([1.0, 1.0, 4.0, 1.0])))
        hit = numpyro.sample("hit", dist.Beta(8, 2))
        false_alarm = numpyro.sample("false_alarm", dist.Beta(1, 9))
        # right, about, left, by quarters clockwise
        turns = jnp.stack([quarter, about, quarter[np.array([0, 3, 2, 1])]])
        turned = jnp.einsum("ak,kxz->xaz", turns, TURNED)
        still = np.stack([np.eye(len(STATES)), forward], axis=1)
        moves = jnp.where(STAR[:, None, None], START, jnp.concatenate([still, turned], axis=1))
        reported = jnp.where(walls, hit, false_alarm)[:, None]  # (X, 1, 4)
        reports = jnp.prod(jnp.where(REPORTS, reported, 1 - reported), axis=-1)  # (X, 16)
        sees = jnp.where(
            sights.any(axis=1, keepdims=True), sights, jnp.pad(reports, ((0, 0), (0, 5)))
        )
        return Kernels(initial=START, transition=moves, emission=sees)

    return hallway.at(**TRUTH)


def _neighbour(cell: int, heading: int) -> int | None:
    """The next cell in a direction, or None if there is a wall."""
    (row, column), (down, right) = CELLS[cell], list(HEADINGS.values())[heading % 4]
    beyond = (row + down, column + right)
    return CELLS.index(beyond) if beyond in CELLS else None


def _walls() -> np.ndarray:
    """Whether there is a wall ahead, right, behind and left, (X, 4)."""
    return np.array(
        [[_neighbour(cell, heading + side) is None for side in range(4)] for cell, heading in POSES]
    )


def _forward() -> np.ndarray:
    """T(x' | x, forward): to each side, in quarters clockwise, unless there is a wall."""
    moves = ASTRAY * np.eye(len(STATES))
    for state, (cell, heading) in enumerate(POSES):
        for side in range(4):
            beyond = _neighbour(cell, heading + side)
            faces = (0, 2) if side == 2 else (side,)
            ends = (
                [state] if beyond is None else [4 * beyond + (heading + face) % 4 for face in faces]
            )
            moves[state, ends] += (AHEAD if side == 0 else ASTRAY) / len(ends)
    moves[STAR] = START
    return moves


def _sights(walls: np.ndarray) -> np.ndarray:
    """O(y | x) for states that show a landmark or the star, and zeros for others."""
    sights = np.zeros((len(STATES), len(OBSERVATIONS)))
    doors = [
        state
        for state, (cell, heading) in enumerate(POSES)
        if CELLS[cell][0] == 0 and heading == 2 and not walls[state, 0]
    ]
    sights[doors, [OBSERVATIONS.index(f"landmark {k}") for k in range(1, 5)]] = 1.0
    sights[STAR, OBSERVATIONS.index("star")] = 1.0
    return sights
