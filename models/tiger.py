"""Tiger: a tiger behind one of two doors growls at every step.

    tiger ──► tiger' (stays while you listen; opening a door resets it at random)
      │
      ▼
    growl   left or right, correct with probability `accuracy`

From Kaelbling, Littman and Cassandra, "Planning and acting in partially observable stochastic
domains" (1998), with the rewards -1 (listen), 10 (treasure) and -100 (tiger) rescaled to [0, 1] by
(r + 100) / 110. There is a growl at every step, also after a door was opened and before the first
action. In `tiger_listen` there is a growl only after listening.

Known: how the tiger moves, the rewards. Unknown in `structured`: the accuracy, one number for both
sides. Unknown in `table`: every row of T and O, under flat Dirichlet priors, without the knowledge
that both sides sound alike.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.models.flat import flat_table

SPACES: dict[str, Any] = {
    "states": ("left", "right"),
    "observations": ("growl left", "growl right"),
    "actions": ("listen", "open left", "open right"),
}
RESET = [0.5, 0.5]
MOVES = np.array([[[1, 0], RESET, RESET], [[0, 1], RESET, RESET]])  # (X, A, X)
REWARD = np.array([[0.9, 0.0, 1.0], [0.9, 1.0, 0.0]])  # (X, A)


def structured(horizon: int = 4, accuracy: float = 0.85) -> World:
    """Tiger with one unknown parameter: the accuracy of growls."""

    @homdp(**SPACES, horizon=horizon, reward=REWARD)
    def tiger() -> Kernels:
        accuracy = numpyro.sample("accuracy", dist.Beta(8, 2))
        hears = jnp.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
        return Kernels(
            initial=RESET, transition=MOVES, emission=lambda x: dist.Categorical(probs=hears[x])
        )

    return tiger.at(accuracy=accuracy)


def table(horizon: int = 4, accuracy: float = 0.85) -> World:
    """The same tiger for a learner who knows no structure.

    Every row of T and O has a flat Dirichlet prior.
    """
    return flat_table(structured(horizon, accuracy))
