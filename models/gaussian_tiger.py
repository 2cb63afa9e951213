"""Gaussian tiger: a tiger behind one of two doors, heard at a real-valued position.

    tiger ──► tiger' (stays while you listen; opening a door resets it at random)
      │
      ▼
    growl ~ Normal(mean of that side, 1 / sqrt(precision of that side)), mostly below 0 on the left
    and above 0 on the right

The tiger of Kaelbling, Littman and Cassandra (1998, see tiger.py) with real-valued observations
instead of "left" or "right". A growl far from the middle is more informative than one near it, so
how often to listen depends on what was heard. The doors, the tiger's moves and the rewards are
those of `tiger`. There is a growl at every step, also before the first action.

Known: how the tiger moves, the rewards. Unknown: the mean and the precision of the growl on each
side, with a Normal-Gamma prior, so the posterior has a closed form.
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

SIDES = np.array([-1.0, 1.0])  # prior means of growls on each side
CLEARNESS = np.array([2.0, 2.0])  # shape and rate of the prior of the precision, whose mean is 1


def structured(
    horizon: int = 4, mean: Sequence[float] = (-1.0, 1.0), scale: Sequence[float] = (1.0, 1.0)
) -> World:
    """Tiger with unknown means and precisions of the growls.

    Parameters
    ----------
    horizon
        Number of actions in an episode.
    mean
        Mean positions of the growls of a tiger on the left and on the right.
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
