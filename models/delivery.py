"""Delivery: a robot carries parcels through a warehouse whose floor is slippery in unknown places.

    dock ◄──hand over (reward 1)── with parcel
      │                                ▲
      └──north, east, south, west──► shelf (the robot takes a parcel)
            (a wheel may slip: the robot stays where it is)

A large problem with local structure: `delivery(rows=50, columns=100)` has 10,000 states, and at
most two next states after each action. The robot does not know its position. At every step it reads
the colour of the floor, one of five in a regular pattern; sometimes it reads the next colour.

Known in `structured`: the map, the colours, and the rewards. Unknown: the probability that the
wheels grip, for each cell and direction, and the reliability of the reader. Cells that were never
visited keep their prior.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.sparse import Sparse, chosen
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array

ACTIONS = ("north", "east", "south", "west")
MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
COLOURS = ("white", "grey", "yellow", "green", "blue")
GRIP, OILY, SHARE = 0.9, 0.5, 0.2  # of dry and of oily cells, and the share of oily cells
READER = 0.9


def structured(rows: int = 4, columns: int = 4, distance: int = 1, horizon: int = 6) -> World:
    """The warehouse with a dock in the middle and a shelf east of it.

    Parameters
    ----------
    rows, columns
        The size of the map; the number of states is twice the number of cells.
    distance
        The number of cells from the dock to the shelf.
    horizon
        Number of steps of an episode.
    """
    check_counts("delivery", rows=rows, columns=columns, distance=distance, horizon=horizon)
    if columns // 2 + distance >= columns:
        expected = f"at most {columns - 1 - columns // 2}, so that the shelf is on the map"
        raise ParameterError("delivery", [Problem("distance", str(distance), expected)])
    cells = rows * columns
    dock = rows // 2 * columns + columns // 2
    following = _following(rows, columns, dock, dock + distance)
    reward = np.zeros((2 * cells, len(ACTIONS)))
    reward[2 * dock + 1] = 1.0
    start = np.zeros(2 * cells)
    start[2 * dock] = 1.0

    @homdp(
        states=[
            f"row {r + 1}, column {c + 1}, {load}"
            for r in range(rows)
            for c in range(columns)
            for load in ("empty", "with parcel")
        ],
        observations=COLOURS,
        actions=ACTIONS,
        horizon=horizon,
        reward=reward,
    )
    def delivery() -> Kernels:
        with numpyro.plate("cells", cells, dim=-2), numpyro.plate("directions", 4, dim=-1):
            grip = numpyro.sample("grip", dist.Beta(4, 1))
        reader = numpyro.sample("reader", dist.Beta(8, 2))
        by_state = jnp.repeat(grip, 2, axis=0)
        moves = Sparse.rows(following, jnp.stack([by_state, 1 - by_state], axis=-1))
        return Kernels(start, chosen(moves), _colours(rows, columns, reader))

    oily = np.random.default_rng(0).random((cells, 1)) < SHARE
    grip = np.where(oily, OILY, GRIP) * np.ones(len(ACTIONS))
    world: World = delivery.at(grip=grip, reader=READER)
    return world


def _following(rows: int, columns: int, dock: int, shelf: int) -> np.ndarray:
    """The next state if the wheels grip and if they slip, (X, A, 2); x = 2 cell + (with parcel)."""
    cell = np.arange(rows * columns)
    place = np.stack([cell // columns, cell % columns], -1)[:, None] + MOVES
    inside = ((place >= 0) & (place < [rows, columns])).all(-1)
    moved = np.where(inside, place[..., 0] * columns + place[..., 1], cell[:, None])
    after = np.stack([moved, np.broadcast_to(cell[:, None], moved.shape)], -1)  # (cells, A, 2)
    state = np.arange(2 * rows * columns)
    loaded = np.where(state // 2 == shelf, 1, np.where(state // 2 == dock, 0, state % 2))
    return 2 * after[state // 2] + loaded[:, None, None]


def _colours(rows: int, columns: int, reader: Array) -> Array:
    """O(y | x): the colour of the cell, or the next one in the list."""
    cell = np.arange(2 * rows * columns) // 2
    colour = (cell // columns + 2 * (cell % columns)) % len(COLOURS)
    own, next_one = (np.eye(len(COLOURS))[(colour + k) % len(COLOURS)] for k in (0, 1))
    return reader * own + (1 - reader) * next_one
