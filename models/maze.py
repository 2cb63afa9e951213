"""Maze, 4x3: find the good exit and avoid the bad one on slippery ground, sensing only walls.

    . . . +      cell ──► cell ahead (1 - slip), or a cell to either side (slip / 2 each);
    . # . -        │      walls block moves
    . . . .        ▼
                 walls to the west and east

From Parr and Russell, "Approximating optimal policies for partially observable stochastic domains"
(1995), after the maze of Russell and Norvig; the numbers are those of Cassandra's file
4x3.95.POMDP. The observation is whether there is a wall to the west, to the east, both or neither,
without error; exits are recognised. Leaving by + earns 1, leaving by - costs 1, every other step
costs 0.04; rewards are rescaled to [0, 1] by (r + 1) / 2. After an exit, any action leads to a new
start somewhere in the maze. The file has an error that is kept here, because published values
depend on it: a walker who heads east in the third cell of the south row and slips south goes west
instead of staying.

Known: the maze, the observations, the rewards, the start. Unknown: how slippery the ground is, one
number for all cells and directions.
"""

import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World

MAZE = ("...+", ".#.-", "....")
STEPS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}  # (rows, columns)
OBSERVATIONS = ("wall west", "wall east", "no wall", "two walls", "good exit", "bad exit")
REWARDS = {".": 0.48, "+": 1.0, "-": 0.0}

CELLS = [
    (row, column)
    for row, line in enumerate(MAZE)
    for column, mark in enumerate(line)
    if mark != "#"
]
MARKS = [MAZE[row][column] for row, column in CELLS]
EXIT = np.array([mark != "." for mark in MARKS])
REWARD = np.repeat([[REWARDS[mark]] for mark in MARKS], len(STEPS), axis=1)  # (X, A)
START = np.where(EXIT, 0.0, round(1 / 9, 6))  # six decimals, as published
START[CELLS.index((2, 0))] += 1 - START.sum()  # the remainder goes to the south-west


def structured(horizon: int = 5, slip: float = 0.2) -> World:
    """The maze for a learner who has the map, but does not know how slippery the ground is.

    Parameters
    ----------
    horizon
        Number of actions in an episode.
    slip
        Probability to slip to one of the sides.
    """
    meant = _meant()
    aside = _aside(meant)

    @homdp(
        states=_names(),
        observations=OBSERVATIONS,
        actions=tuple(STEPS),
        horizon=horizon,
        reward=REWARD,
    )
    def maze() -> Kernels:
        slip = numpyro.sample("slip", dist.Beta(1, 4))
        return Kernels(
            initial=START, transition=(1 - slip) * meant + slip * aside, emission=_feels()
        )

    return maze.at(slip=slip)


def _names() -> tuple[str, ...]:
    return tuple(
        {"+": "good exit", "-": "bad exit"}.get(MAZE[r][c], f"row {r + 1}, column {c + 1}")
        for r, c in CELLS
    )


def _meant() -> np.ndarray:
    """Transitions without slipping, (X, A, X)."""
    moves = np.zeros((len(CELLS), len(STEPS), len(CELLS)))
    for cell, (row, column) in enumerate(CELLS):
        for action, (down, right) in enumerate(STEPS.values()):
            ahead = (row + down, column + right)
            moves[cell, action, CELLS.index(ahead) if ahead in CELLS else cell] = 1.0
    moves[EXIT] = START
    return moves


def _aside(meant: np.ndarray) -> np.ndarray:
    """Transitions with slipping, (X, A, X)."""
    north, south, east, west = range(4)
    moves = np.stack(
        [
            meant[:, sides].mean(1)
            for sides in ([east, west], [east, west], [north, south], [north, south])
        ],
        axis=1,
    )
    corner = CELLS.index((2, 2))
    # as published; by the rules it would be north and south
    moves[corner, east] = meant[corner, [north, west]].mean(0)
    return moves


def _feels() -> np.ndarray:
    """O(y | x), with entries 0 and 1."""
    shows = np.zeros((len(CELLS), len(OBSERVATIONS)))
    for cell, (row, column) in enumerate(CELLS):
        walls = ((row, column - 1) not in CELLS, (row, column + 1) not in CELLS)
        felt = {
            (True, False): "wall west",
            (False, True): "wall east",
            (False, False): "no wall",
            (True, True): "two walls",
        }
        shown = {"+": "good exit", "-": "bad exit"}.get(MARKS[cell], felt[walls])
        shows[cell, OBSERVATIONS.index(shown)] = 1.0
    return shows
