"""Light-dark: a walker on a line sees its position only near a lamp, and its goal is in the dark.

    place ──► place + gain * move (with noise); declaring moves the walker far away, permanently
      │
      ▼
    place, observed with noise that grows by `blur` per metre from the lamp

After Platt, Tedrake, Kaelbling and Lozano-Perez, "Belief space planning assuming maximum likelihood
observations" (2010), on a line and with finitely many moves; the numbers are ours. The start is
uncertain. Declaring to be at 0 pays 1 if the position is within 0.6 of 0, and 0 otherwise, once. So
it pays to walk away from the goal first, look, and come back by counting steps.

Known: where the lamp and the goal are, the start, the noise of steps. Unknown: the length of a step
(`gain`, a site of the transitions) and how fast vision fades (`blur`, a site of the emissions).
Each has its own prior, so classes of models factorise.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.errors import DeclarationError, Problem
from homdp_ppl.precision import Array

ACTIONS = ("two left", "left", "right", "two right", "declare")
MOVES, DECLARE = np.array([-2.0, -1.0, 1.0, 2.0, 0.0]), 4
START, UNSTEADY = (2.0, 1.5), 0.05  # mean and deviation of the first place; deviation of a step
GOAL, AWAY = 0.6, 100.0  # radius of the goal; place of a walker who has declared
SHARPEST = 0.1  # deviation of observations at the lamp
FARTHEST = 10.0  # beyond this distance from the lamp, the noise is constant


def structured(horizon: int = 6, light: float = 5.0, gain: float = 1.0, blur: float = 0.5) -> World:
    """The line for a learner who knows where the lamp is, but neither its stride nor its vision.

    Parameters
    ----------
    horizon
        Number of actions in an episode.
    light
        Position of the lamp.
    gain
        Actual length of a step of nominal length 1.
    blur
        Increase of the deviation of observations per metre from the lamp.
    """
    if not abs(light) <= FARTHEST:
        raise DeclarationError(
            "light_dark",
            [Problem("light", repr(light), f"a number within {FARTHEST:g} of the goal")],
        )

    @homdp(states=Real(1), observations=Real(1), actions=ACTIONS, horizon=horizon, reward=reward)
    def light_dark() -> Kernels:
        gain = numpyro.sample("gain", dist.LogNormal(0.0, 0.2))
        blur = numpyro.sample("blur", dist.LogNormal(np.log(0.5), 0.5))

        def transition(x: Array, a: Array) -> dist.Distribution:
            gone = (a == DECLARE) | (x > AWAY / 2)
            return dist.Normal(jnp.where(gone, AWAY, x + gain * jnp.asarray(MOVES)[a]), UNSTEADY)

        def emission(x: Array) -> dist.Distribution:
            return dist.Normal(x, SHARPEST + blur * jnp.minimum(jnp.abs(x - light), FARTHEST))

        return Kernels(initial=dist.Normal(*START), transition=transition, emission=emission)

    return light_dark.at(gain=gain, blur=blur)


def reward(x: Array, a: Array) -> Array:
    """1 for declaring at the goal."""
    return jnp.where((a == DECLARE) & (jnp.abs(x) < GOAL), 1.0, 0.0)
