"""Tiger, listening: the tiger growls only after the action listen.

    tiger ──► tiger' (stays while you listen; opening a door resets it at random)
      │
      ▼
    growl after listening, correct with probability `accuracy`; otherwise silence

The classic tiger problem, in which observations answer the last action. An episode starts in
silence. A collector that sees the tiger never listens, and so never learns the accuracy of growls:
foresight fails on this model, but not on `tiger`, which growls at every step.

Known: how the tiger moves, when it is silent, the rewards of `tiger`. Unknown: the accuracy of a
growl.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.models.tiger import MOVES, RESET, REWARD, SPACES
from homdp_ppl.precision import Array

OBSERVATIONS = ("silence", *SPACES["observations"])
SILENCE = np.array([1.0, 0.0, 0.0])
LISTEN = 0


def structured(horizon: int = 5, accuracy: float = 0.85) -> World:
    """Tiger that growls only after listening, with an unknown accuracy of growls."""

    @homdp(**{**SPACES, "observations": OBSERVATIONS}, horizon=horizon, reward=REWARD)
    def tiger_listen() -> Kernels:
        accuracy = numpyro.sample("accuracy", dist.Beta(8, 2))
        growl = jnp.array([[0.0, accuracy, 1 - accuracy], [0.0, 1 - accuracy, accuracy]])

        def answer(x: Array, a: Array) -> dist.Distribution:
            return dist.Categorical(probs=jnp.where(a == LISTEN, growl[x], SILENCE))

        return Kernels(RESET, MOVES, emission=answer, first_emission=np.array([SILENCE] * 2))

    return tiger_listen.at(accuracy=accuracy)
