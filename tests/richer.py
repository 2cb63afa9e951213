"""Small declarations, each with a feature that the simplest declarations do not have."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import HOMDP, Kernels, World, homdp

REWARD = np.array([[0.2, 0.9], [0.6, 0.1]])
SIZES: dict[str, Any] = {
    "states": 2,
    "observations": 2,
    "actions": 2,
    "horizon": 3,
    "reward": REWARD,
}


@homdp(**SIZES)
def answers():
    """The observation answers the previous action: only action 0 is informative."""
    p = numpyro.sample("p", dist.Beta(4, 2))
    q = numpyro.sample("q", dist.Dirichlet(jnp.ones((2, 2))))
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 2))))
    return Kernels(
        [0.3, 0.7],
        moves,
        lambda x, a: dist.Bernoulli(jnp.where(a == 0, jnp.where(x == 1, p, 1 - p), 0.5)),
        lambda x: dist.Categorical(probs=q[x]),
    )


@homdp(**SIZES)
def tables():
    """One row for each step, previous action and state."""
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((3, 2, 2, 2))))
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((3, 3, 2, 2))))
    return Kernels([0.3, 0.7], moves, shows)


@homdp(**SIZES)
def steps():
    """Transitions and emissions depend on the step."""
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((3, 2, 2, 2))))
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((3, 2, 2))))
    return Kernels(
        [0.3, 0.7],
        lambda x, a, h: dist.Categorical(probs=moves[h - 1, x, a]),
        lambda x, h: dist.Categorical(probs=shows[h - 1, x]),
    )


@homdp(**SIZES)
def start():
    """The initial distribution is unknown."""
    rho = numpyro.sample("rho", dist.Dirichlet(jnp.ones(2)))
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 2))))
    return Kernels(rho, moves, shows)


@homdp(**SIZES)
def everything():
    """All of it, with parameters that have no closed form."""
    rho = numpyro.sample("rho", dist.Uniform(0.1, 0.9))
    slope = numpyro.sample("slope", dist.Uniform(-0.3, 0.3))
    return Kernels(
        jnp.array([rho, 1 - rho]),
        lambda x, a, h: dist.Bernoulli(0.5 + slope * (2 * x - 1) + 0.05 * (h + a)),
        lambda x, a, h: dist.Bernoulli(0.5 + slope * (2 * x - 1) * (1 - a) + 0.05 * h),
        lambda x: dist.Bernoulli(0.3 + 0.4 * x),
    )


RICHER: dict[str, HOMDP] = {
    model.name: model for model in (answers, tables, steps, start, everything)
}


@homdp(**{**SIZES, "states": 3, "reward": np.vstack([REWARD, [0, 0]]), "terminal": ("x2",)})
def ends():
    """Episodes end in the third state."""
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 3))))
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    return Kernels(
        [0.3, 0.7, 0.0],
        jnp.concatenate([moves, jnp.full((1, 2, 3), 1 / 3)]),  # the last rows are not used
        jnp.concatenate([shows, jnp.full((1, 2), 0.5)]),
    )


@homdp(**{**SIZES, "reward": lambda x, y, a: 0.2 * x + 0.8 * float(a == y)})
def bets():
    """The reward depends on the observation before the action."""
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 2))))
    return Kernels([0.3, 0.7], moves, shows)


def once(observations, actions):
    """Action 1 at most once."""
    return np.array([True, 1 not in actions])


@homdp(**SIZES, allowed=once)
def limited():
    """An action is allowed at most once."""
    p = numpyro.sample("p", dist.Beta(4, 2))
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 2))))
    return Kernels([0.3, 0.7], moves, jnp.array([[p, 1 - p], [1 - p, p]]))


FEATURES: dict[str, HOMDP] = {
    model.name: model for model in (answers, steps, ends, start, bets, limited)
}


@cache
def richer(name: str) -> World:
    """A world of one of these declarations, drawn from its prior."""
    return (RICHER | FEATURES)[name].draw(jax.random.key(11))
