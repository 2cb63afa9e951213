"""Camera: a robot with an unknown drift fetches a box, guided by real-valued images of its pose.

    pose ──► pose + move + drift (with a little noise); grasping: loaded if the box is in reach,
      │      otherwise knocked over, permanently
      ▼
    scale * pose, with little noise in the west and much noise behind the shelf in the east

The continuous version of `sim_to_real`, an application of the paper (appendix A, after Pinto et al.
2017; the numbers are ours). The simulator reveals the robot's pose after each episode. In the hall
there is only the camera. The robot starts in the west at an unknown position from south to north.
The box is behind the shelf. Grasping it pays 1, and so does every later step. Grasping elsewhere
knocks something over, and no reward is possible afterwards. So the robot has to look before it goes
behind the shelf, and to count its moves there.

Known: where the box and the shelf are, the effect of moves in the simulator, the start. Unknown:
how much the wheels drift with every move on the floor of the hall (`drift`, a vector, a site of the
transitions), and how many units of an image are one metre (`scale`, a site of the emissions).
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
MOVES = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])  # (east, north)
GRASP = 4
START, UNSURE = np.array([0.0, 0.5]), np.array([0.1, 0.6])  # mean and deviation of the first pose
UNSTEADY = 0.05  # deviation of a step
BOX, REACH = np.array([2.0, 1.0]), 0.5
LOADED, OVER = np.array([100.0, 0.0]), np.array([-100.0, 0.0])  # poses of the absorbing states
FAR = 50.0  # all real poses are nearer than this
SHELF = 1.5  # where the shelf begins
SHARP, HIDDEN = 0.1, 1.0  # deviation of images, and what is added to it behind the shelf


def structured(
    horizon: int = 5, drift: tuple[float, float] = (0.1, -0.1), scale: float = 1.2
) -> World:
    """The hall for a learner who has a map, but knows neither the drift nor the scale of images.

    Parameters
    ----------
    horizon
        Number of actions in an episode.
    drift
        Displacement added to each move, (east, north).
    scale
        Units of an image per metre.
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
    """1 for grasping the box, and for every step while holding it."""
    held = x[0] > FAR
    taken = (a == GRASP) & (jnp.sum((x - BOX) ** 2) < REACH**2)
    return jnp.where(held | taken, 1.0, 0.0)
