"""Worlds with real-valued observations, with optima in closed form or by quadrature."""

from functools import cache
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy.integrate import quad
from scipy.stats import norm

from homdp_ppl import POMDP, Kernels, Real, homdp

LISTEN = 0.85
MOVES = np.array([[[1, 0], [0.5, 0.5], [0.5, 0.5]], [[0, 1], [0.5, 0.5], [0.5, 0.5]]])
REWARD = np.array([[LISTEN, 0.0, 1.0], [LISTEN, 1.0, 0.0]])
MEANS = np.array([[-1.5, 1.0], [-1.0, 2.0], [0.0, 0.5]])
SCALES = np.array([[0.4, 1.0], [1.0, 0.5], [0.2, 1.5]])


@cache
def tiger():
    """A tiger whose growl is a number around -1 or 1, with unknown noise."""

    @homdp(
        states=("left", "right"),
        observations=Real(1),
        actions=("listen", "open left", "open right"),
        horizon=3,
        reward=REWARD,
    )
    def gaussian_tiger():
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        return Kernels([0.5, 0.5], MOVES, lambda x: dist.Normal(2.0 * x - 1, noise))

    return gaussian_tiger


@cache
def heard(horizon=3):
    """The tiger with noise 1."""
    return tiger().at(noise=1.0) if horizon == 3 else tiger().with_horizon(horizon).at(noise=1.0)


@cache
def door():
    """One door can be opened once.

    The return is 0 or 1. The optimum, after listening in all but the last step, is
    Phi(sqrt(H) / noise).
    """
    stay = np.zeros((3, 3, 3))
    stay[:, 0] = np.eye(3)
    stay[:, 1:, 2] = 1
    reward = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])

    @homdp(
        states=("left", "right", "over"),
        observations=Real(1),
        actions=("listen", "left", "right"),
        horizon=3,
        reward=reward,
    )
    def one_door():
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        return Kernels(
            [0.5, 0.5, 0.0], stay, lambda x: dist.Normal(jnp.array([-1.0, 1.0, 0.0])[x], noise)
        )

    return one_door


@cache
def screens():
    """Three states and one observation from a mixture with likelihood ratios that oscillate."""
    reward = np.random.default_rng(0).uniform(size=(3, 3))

    @homdp(states=3, observations=Real(1), actions=3, horizon=1, reward=reward)
    def mixed():
        return Kernels(
            [0.2, 0.5, 0.3],
            np.full((3, 3, 3), 1 / 3),
            lambda x: dist.MixtureSameFamily(
                dist.Categorical(probs=np.array([0.4, 0.6])),
                dist.Normal(jnp.asarray(MEANS)[x], jnp.asarray(SCALES)[x]),
            ),
        )

    return mixed.at(), reward


def screen_densities(y):
    """The densities of the mixture, (3, ...)."""
    mean, scale = (part[(..., *(None,) * np.ndim(y))] for part in (MEANS, SCALES))
    parts = np.exp(-0.5 * ((y - mean) / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
    return 0.4 * parts[:, 0] + 0.6 * parts[:, 1]


@cache
def screen_optimum():
    """The optimum with one observation: the integral of the weight of the best action."""
    prior, (_, reward) = np.array([0.2, 0.5, 0.3]), screens()
    return integral(
        lambda y: (reward.T @ (prior * screen_densities(y))).max(), np.linspace(-4, 5, 46)
    )


def integral(function, points):
    """The integral of a piecewise smooth function over [-14, 14], by SciPy."""
    return sum(
        quad(function, a, b, epsabs=1e-11, limit=200)[0]
        for a, b in pairwise([-14.0, *points, 14.0])
    )


def nodes(panels=2000, low=-12.0, high=12.0):
    """Points and weights of Gauss's rule on many panels, for integrals of arrays."""
    place, weight = np.polynomial.legendre.leggauss(12)
    ends = np.linspace(low, high, panels + 1)
    half = (high - low) / panels / 2
    return ((ends[:-1] + half)[:, None] + half * place).ravel(), np.tile(half * weight, panels)


def last_look(belief):
    """The value of a belief in "left" before the last observation, in closed form.

    Each door is opened beyond a threshold of y. With noise 1, log(P(left | y) / P(right | y)) =
    log(belief / (1 - belief)) - 2 y, and a door is better than listening if this is above
    log(LISTEN / (1 - LISTEN)) in absolute value.
    """
    prior, needed = np.log(belief / (1 - belief)), np.log(LISTEN / (1 - LISTEN))
    low, high = (prior - needed) / 2, (prior + needed) / 2
    left, right = norm(-1), norm(1)
    between = belief * (left.cdf(high) - left.cdf(low)) + (1 - belief) * (
        right.cdf(high) - right.cdf(low)
    )
    return belief * left.cdf(low) + (1 - belief) * right.sf(high) + LISTEN * between


@cache
def two_looks():
    """The optimum of two steps with noise 1: the integral over the first observation of the value
    of the better of listening and opening a door.
    """
    y, weights = nodes()
    left, right = 0.5 * norm.pdf(y, -1.0, 1.0), 0.5 * norm.pdf(y, 1.0, 1.0)
    total = left + right
    listen = total * (LISTEN + last_look(np.clip(left / total, 1e-12, 1 - 1e-12)))
    return np.maximum(listen, np.maximum(left, right) + total * last_look(0.5)) @ weights


def grid(horizon, cells):
    """The tiger on a uniform grid, by the normal distribution function."""
    edges = np.linspace(-6, 6, cells - 1)
    cumulative = np.array([[0.0, *norm.cdf(edges, mean), 1.0] for mean in (-1, 1)])
    return POMDP.of(
        np.array([0.5, 0.5]),
        MOVES,
        np.diff(cumulative),
        np.broadcast_to(REWARD, (horizon, 2, 3)).copy(),
    )
