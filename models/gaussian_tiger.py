"""Gaussian tiger: behind one of two doors, and where its growl seems to come from is a number.

    tiger ──► tiger' (stays while you listen; opening a door resets it at random)
      │
      ▼
    growl ~ Normal(mean of that side, 1 / sqrt(precision of that side)), below 0 on the left, above
    0 on the right

The tiger of Kaelbling, Littman and Cassandra (1998, see tiger.py) with an ear that does not say
"left" or "right": a growl far out is worth more than one from the middle, so how often to listen
depends on what was heard. The doors, the tiger's moves and the rewards are those of `tiger`; a
growl is heard at every step, also before the first action.

Known: how the tiger moves, the rewards. Unknown: the mean and the precision of the growl on each
side, Normal-Gamma, so the posterior has a closed form.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.models.tiger import MOVES, RESET, REWARD, SPACES

SIDES = np.array([-1.0, 1.0])  # where a growl is expected to come from
CLEARNESS = np.array(
    [2.0, 2.0]
)  # shape of the precision's prior; its rate is the same, so one is expected


def structured(
    horizon: int = 4, mean: Sequence[float] = (-1.0, 1.0), scale: Sequence[float] = (1.0, 1.0)
) -> World:
    """Tiger for someone with a new pair of ears.

    Parameters
    ----------
    horizon
        Number of actions in an episode.
    mean
        Where growls of a tiger on the left and on the right seem to come from, on average.
    scale
        Their standard deviations.
    """

    @homdp(
        states=SPACES["states"],
        observations=Real(1),
        actions=SPACES["actions"],
        horizon=horizon,
        reward=REWARD,
    )
    def gaussian_tiger() -> Kernels:
        precision = numpyro.sample("precision", dist.Gamma(CLEARNESS, CLEARNESS).to_event(1))
        mean = numpyro.sample("mean", dist.Normal(SIDES, 1 / jnp.sqrt(precision)).to_event(1))
        return Kernels(RESET, MOVES, lambda x: dist.Normal(mean[x], 1 / jnp.sqrt(precision[x])))

    return gaussian_tiger.at(mean=np.array(mean), precision=1 / np.array(scale) ** 2)
