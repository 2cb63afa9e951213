"""Camera: sim-to-real with a pose in the plane and pictures that are numbers.

`sim_to_real` is the same story with cells.

    pose ──► pose + move + drift (and a little noise); grasping: loaded if the box is in reach,
      │      else knocked over, for good
      ▼
    scale * pose, with little noise in the west and much behind the shelf in the east

An application of the paper (appendix A, after Pinto et al. 2017; the numbers are ours). The
simulator prints the robot's pose after each episode; in the hall there is only the camera. The
robot starts in the west, and does not know how far north. The box stands behind the shelf. Grasping
it pays 1, and so does every step from then on; grasping elsewhere knocks something over and ends it
all with nothing. So the robot has to look before it goes behind the shelf, and to count its moves
there.

Known: where box and shelf are, what moves do in the simulator, the start. Unknown: where the floor
of the hall makes wheels drift with every move (`drift`, a vector, of the transitions), and how many
units of a picture are a metre (`scale`, of the emissions).
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.precision import Array

ACTIONS = ("north", "south", "east", "west", "grasp")
MOVES, GRASP = (
    np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]),
    4,
)  # (east, north)
START, UNSURE, UNSTEADY = (
    np.array([0.0, 0.5]),
    np.array([0.1, 0.6]),
    0.05,
)  # first pose, its deviation; deviation of a step
BOX, REACH = np.array([2.0, 1.0]), 0.5
LOADED, OVER = np.array([100.0, 0.0]), np.array([-100.0, 0.0])  # poses for what does not end
FAR = 50.0  # east or west of all real poses
SHELF, SHARP, HIDDEN = 1.5, 0.1, 1.0  # where it begins; deviations of pictures before and behind it


def structured(
    horizon: int = 5, drift: tuple[float, float] = (0.1, -0.1), scale: float = 1.2
) -> World:
    """The hall of someone who has its map, but has neither driven the robot there nor measured a
    picture.

    Parameters
    ----------
    horizon
        Number of actions in an episode.
    drift
        What is added to each move, (east, north).
    scale
        Units of a picture in a metre.
    """

    @homdp(states=Real(2), observations=Real(2), actions=ACTIONS, horizon=horizon, reward=reward)
    def camera() -> Kernels:
        drift = numpyro.sample("drift", dist.Normal(np.zeros(2), 0.2).to_event(1))
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 0.3))

        def transition(x: Array, a: Array) -> dist.Distribution:
            driven = jnp.where(
                jnp.abs(x[0]) > FAR,
                jnp.where(x[0] > 0, LOADED, OVER),
                x + jnp.asarray(MOVES)[a] + drift,
            )
            grasped = jnp.where(reward(x, a) > 0, LOADED, OVER)
            return dist.Normal(jnp.where(a == GRASP, grasped, driven), UNSTEADY).to_event(1)

        def emission(x: Array) -> dist.Distribution:
            return dist.Normal(
                scale * x, SHARP + HIDDEN * jax.nn.sigmoid(8 * (x[0] - SHELF))
            ).to_event(1)

        return Kernels(
            initial=dist.Normal(START, UNSURE).to_event(1), transition=transition, emission=emission
        )

    return camera.at(drift=np.array(drift), scale=scale)


def reward(x: Array, a: Array) -> Array:
    """1 for grasping the box, and for every step with it."""
    held = x[0] > FAR
    taken = (a == GRASP) & (jnp.sum((x - BOX) ** 2) < REACH**2)
    return jnp.where(held | taken, 1.0, 0.0)
