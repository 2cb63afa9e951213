"""Sim-to-real: a robot trained in a simulator fetches a box in a hall that its camera sees only in
part.

    . # .      cell ──► the cell a move leads to (1 - slip), or no move at all (slip);
    . # *        │      walls stop the robot
                 ▼
    the cell itself where the camera sees it (. with probability `clear`), "nothing" where a shelf
    hides it (# and *)

An application of the paper (appendix A, after Pinto et al. 2017; map and numbers are ours). The
simulator prints the robot's cell after each episode; in the hall there is only the camera, so the
policy must work from pictures. The robot starts in the west, in the north or the south row alike.
The box (*) stands behind the shelf. Grasping there loads it, and every step from then on is worth
1; grasping elsewhere knocks something over and ends it all with nothing. So the robot has to find
out by what it saw, and by counting its own moves, when it must have arrived.

Known in `structured`: the map, what a shelf hides, where moves lead, what grasping does, the start.
Unknown: how often wheels slip and how often a picture is clear, one number each for all cells and
directions (Beta, so the posterior has a closed form). In `table` every row of T and O is unknown
under a flat Dirichlet prior.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_sizes_of
from homdp_ppl.errors import DeclarationError, Problem, shown
from homdp_ppl.models.flat import flat_table

HALL = (".#.", ".#*")
STEPS = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}  # (rows, columns)


def structured(
    hall: Sequence[str] = HALL, horizon: int = 4, slip: float = 0.2, clear: float = 0.9
) -> World:
    """The hall of someone who has its map, but has neither driven the robot nor looked through its
    camera.

    Parameters
    ----------
    hall
        The map, a string a row from the north: ``.`` is seen, ``#`` is hidden, ``*`` is the box,
        hidden too. The robot starts in the first column.
    horizon
        Number of actions in an episode.
    slip
        Chance that a move fails.
    clear
        Chance that the camera finds a robot that is not hidden.
    """
    _check(hall)
    cells = [(row, column) for row, line in enumerate(hall) for column in range(len(line))]
    marks = [hall[row][column] for row, column in cells]
    seen = [cell for cell, mark in enumerate(marks) if mark == "."]
    n, loaded, over = len(cells), len(cells), len(cells) + 1
    names = [f"row {row + 1}, column {column + 1}" for row, column in cells]
    meant = _meant(cells, marks.index("*"))
    reward = np.zeros((n + 2, len(STEPS) + 1))
    reward[loaded] = reward[marks.index("*"), -1] = 1.0
    start = np.array([float(column == 0) for _, column in cells] + [0.0, 0.0])

    @homdp(
        states=(*names, "loaded", "knocked over"),
        observations=(*(f"seen in {names[cell]}" for cell in seen), "nothing"),
        actions=(*STEPS, "grasp"),
        horizon=horizon,
        reward=reward,
    )
    def sim_to_real() -> Kernels:
        slip = numpyro.sample("slip", dist.Beta(1, 1))
        clear = numpyro.sample("clear", dist.Beta(1, 1))
        moves = jnp.concatenate(
            [(1 - slip) * meant[:, :-1] + slip * np.eye(n + 2)[:, None], meant[:, -1:]], axis=1
        )
        pictures = jnp.zeros((over + 1, len(seen) + 1)).at[:, -1].set(1.0)
        pictures = (
            pictures.at[np.array(seen), np.arange(len(seen))]
            .set(clear)
            .at[np.array(seen), -1]
            .set(1 - clear)
        )
        return Kernels(initial=start / start.sum(), transition=moves, emission=pictures)

    return sim_to_real.at(slip=slip, clear=clear)


def table(
    hall: Sequence[str] = HALL, horizon: int = 4, slip: float = 0.2, clear: float = 0.9
) -> World:
    """The same hall for a learner who knows no structure."""
    return flat_table(structured(hall, horizon, slip, clear))


def _meant(cells: list[tuple[int, int]], box: int) -> np.ndarray:
    """Where each action leads when the wheels hold, (X, A, X)."""
    n, loaded, over = len(cells), len(cells), len(cells) + 1
    moves = np.zeros((n + 2, len(STEPS) + 1, n + 2))
    for cell, (row, column) in enumerate(cells):
        for action, (down, right) in enumerate(STEPS.values()):
            beyond = (row + down, column + right)
            moves[cell, action, cells.index(beyond) if beyond in cells else cell] = 1.0
        moves[cell, -1, loaded if cell == box else over] = 1.0
    moves[loaded, :, loaded] = moves[over, :, over] = 1.0
    return moves


def _check(hall: Sequence[str]) -> None:
    rows = isinstance(hall, Sequence) and all(isinstance(line, str) for line in hall)
    if isinstance(hall, str) or not rows:
        expected = "a sequence of strings, one per row"
        raise DeclarationError("sim_to_real", [Problem("hall", shown(hall), expected)])
    lines, marks = list(hall), "".join(hall)
    check_sizes_of("sim_to_real", states=len(marks) + 2, actions=len(STEPS) + 1)
    checks = [
        (
            len({len(line) for line in lines}) == 1 and bool(marks),
            Problem("hall", str(lines), "rows of one length"),
        ),
        (
            set(marks) <= set(".#*") and marks.count("*") == 1,
            Problem("hall", str(lines), "the marks . and #, and one *"),
        ),
        ("." in marks, Problem("hall", str(lines), "a cell that the camera sees")),
    ]
    problems = [problem for fine, problem in checks if not fine]
    if problems:
        raise DeclarationError("sim_to_real", problems)
