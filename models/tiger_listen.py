"""Tiger, listening: the tiger growls only after the action listen.

    (tiger, listened?) ──► (tiger', did I listen?)
            │
            ▼
    growl if listened, else silence

In the classic tiger problem, observations depend on the last action. Here emissions depend on the
state only, so the state includes whether the last action was to listen. An episode starts in
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

STATES = ("left, unheard", "right, unheard", "left, heard", "right, heard")
OBSERVATIONS = ("silence", "growl left", "growl right")
ACTIONS = ("listen", "open left", "open right")
HEARD = {0: 2, 1: 3, 2: 2, 3: 3}  # the state after listening


def _moves() -> np.ndarray:
    moves = np.zeros((4, 3, 4))
    for state, heard in HEARD.items():
        moves[state, 0, heard] = 1.0  # listening leaves the tiger where it is
        moves[state, 1:, :2] = 0.5  # opening a door puts it behind a random door
    return moves


MOVES = _moves()
REWARD = np.array([[0.9, 0.0, 1.0], [0.9, 1.0, 0.0]] * 2)  # (X, A): tiger on the left, on the right


def structured(horizon: int = 5, accuracy: float = 0.85) -> World:
    """Tiger that growls only after listening, with an unknown accuracy of growls."""

    @homdp(
        states=STATES, observations=OBSERVATIONS, actions=ACTIONS, horizon=horizon, reward=REWARD
    )
    def tiger_listen() -> Kernels:
        accuracy = numpyro.sample("accuracy", dist.Beta(8, 2))
        left = jnp.array([0.0, accuracy, 1 - accuracy])
        right = jnp.array([0.0, 1 - accuracy, accuracy])
        silence = jnp.array([1.0, 0.0, 0.0])
        return Kernels(
            initial=[0.5, 0.5, 0, 0],
            transition=MOVES,
            emission=jnp.stack([silence, silence, left, right]),
        )

    return tiger_listen.at(accuracy=accuracy)
