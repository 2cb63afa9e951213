"""Small worlds for the particle planner, and sufficient budgets."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import POMDP, Kernels, Real, homdp, models
from tests.planners.exact import random_pomdp

ENOUGH = {"simulations": 400, "particles": 4000, "tree_particles": 256}
WIDENING = (4.0, 0.35)
MOVES = np.array([-1.0, 1.0])
DRIFT, BLUR = 0.5, 0.8  # standard deviations of a step and of an observation
SEEN, DONE = [0.3, -0.9, 0.4, -0.2], [0, 1, 0]
TIGER, RANDOM = models.load("tiger").pomdp, random_pomdp(5, 3, 3, 3, 3)


@homdp(
    states=Real(1),
    observations=Real(1),
    actions=("left", "right"),
    horizon=5,
    reward=lambda x, a: jnp.exp(-(x**2)),
)
def walk():
    """A random walk: x' = x + a + noise, y = x + noise."""
    blur = numpyro.sample("blur", dist.LogNormal(0.0, 1.0))
    return Kernels(
        initial=dist.Normal(0.0, 2.0),
        transition=lambda x, a: dist.Normal(x + jnp.asarray(MOVES)[a], DRIFT),
        emission=lambda x: dist.Normal(x, blur),
    )


@homdp(
    states=Real(2),
    observations=Real(2),
    actions=("stay", "turn"),
    horizon=3,
    reward=lambda x, a: jnp.exp(-jnp.sum(x**2)),
)
def spot():
    """A point in the plane, observed within a square around it: most numbers have density zero."""
    turns = jnp.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]]])
    return Kernels(
        initial=dist.Normal(jnp.ones(2), 1.0).to_event(1),
        transition=lambda x, a: dist.Normal(turns[a] @ x, 0.1).to_event(1),
        emission=lambda x: dist.Uniform(x - 1.0, x + 1.0).to_event(1),
    )


def peeking():
    """A prize is behind one of two doors. Peeking costs 0.7 and shows the door with probability
    0.95.

    With two steps, the value of peeking and then opening is 0.3 + 0.95; that of opening twice is
    0.5 + 0.5.
    """
    # states: (left, not peeked), (right, not peeked), (left, peeked), (right, peeked)
    moves = np.zeros((4, 3, 4))
    for x in range(4):
        moves[x, 0, 2 + x % 2] = moves[x, 1:, x % 2] = 1
    shows = np.array([[1, 0, 0], [1, 0, 0], [0, 0.95, 0.05], [0, 0.05, 0.95]])
    reward = np.tile([[0.3, 1.0, 0.0], [0.3, 0.0, 1.0]], (2, 1))
    return POMDP.of(np.array([0.5, 0.5, 0, 0]), moves, shows, np.stack([reward, reward]))
