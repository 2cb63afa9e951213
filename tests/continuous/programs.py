"""Small continuous models for tests."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import Kernels, Real, homdp


@cache
def walk(horizon=3):
    """A controlled walk on the line with noisy observations; the noise is unknown."""

    @homdp(
        states=Real(1),
        observations=Real(1),
        actions=("left", "right"),
        horizon=horizon,
        reward=lambda x, a: jnp.exp(-(x**2)),
    )
    def steered_walk():
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        step = jnp.array([-1.0, 1.0])
        return Kernels(
            initial=dist.Normal(0.0, 1.0),
            transition=lambda x, a: dist.Normal(x + step[a], 0.3),
            emission=lambda x: dist.Normal(x, 0.1 + noise),
        )

    return steered_walk


@cache
def plane():
    """States in the plane, observed through a mixture; the effect of a push is unknown."""

    @homdp(
        states=Real(2),
        observations=Real(2),
        actions=3,
        horizon=4,
        reward=lambda x, a: jnp.clip(x[0] + a, 0, 1),
    )
    def pushed():
        push = numpyro.sample("push", dist.Normal(jnp.zeros((3, 2)), 1.0).to_event(2))
        return Kernels(
            initial=dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)),
            transition=lambda x, a: dist.MultivariateNormal(0.5 * x + push[a], 0.2 * jnp.eye(2)),
            emission=lambda x: dist.MixtureSameFamily(
                dist.Categorical(probs=jnp.array([0.7, 0.3])),
                dist.Normal(jnp.stack([x, jnp.zeros(2)]), jnp.array([[0.1], [2.0]])).to_event(1),
            ),
        )

    return pushed


@cache
def hearing(kind="precisions"):
    """Three states with normal observations; their unknown parameters depend on the kind."""

    @homdp(
        states=("low", "high", "between"),
        observations=Real(1),
        actions=2,
        horizon=2,
        reward=np.eye(3)[:, :2],
    )
    def sounds():
        middle = jnp.array([-1.0, 1.0, 0.0])
        deviation = jnp.array([0.5, 0.7, 1.0])
        if kind == "means":
            mean = numpyro.sample("mean", dist.Normal(middle, 2.0).to_event(1))
        elif kind == "one mean":
            mean = numpyro.sample("mean", dist.Normal(0.5, 2.0)) * jnp.ones(3)
            deviation = jnp.ones(3)
        elif kind == "precisions":
            precision = numpyro.sample("precision", dist.Gamma(3.0, 2.0).expand([3]).to_event(1))
            mean = numpyro.sample(
                "mean", dist.Normal(middle, 1 / jnp.sqrt(0.5 * precision)).to_event(1)
            )
            deviation = 1 / jnp.sqrt(precision)
        elif kind == "variances":
            variance = numpyro.sample(
                "variance", dist.InverseGamma(3.0, 2.0).expand([3]).to_event(1)
            )
            mean = numpyro.sample("mean", dist.Normal(middle, jnp.sqrt(variance / 0.5)).to_event(1))
            deviation = jnp.sqrt(variance)
        elif kind == "free scale":  # no closed form: the mean's prior does not depend on the scale
            precision = numpyro.sample("precision", dist.Gamma(3.0, 2.0).expand([3]).to_event(1))
            mean = numpyro.sample("mean", dist.Normal(middle, 2.0).to_event(1))
            deviation = 1 / jnp.sqrt(precision)
        elif kind == "factor":
            mean = numpyro.sample("mean", dist.Normal(middle, 2.0).to_event(1))
            numpyro.factor("belief", -((mean[0] - 0.3) ** 4))
        elif kind == "moves too":
            mean = numpyro.sample("mean", dist.Normal(middle, 2.0).to_event(1))
        moves = jnp.full((3, 2, 3), 1 / 3)
        if kind == "moves too":
            stay = 1 / (1 + jnp.exp(-mean[0]))
            moves = jnp.broadcast_to(jnp.array([stay, 1 - stay, 0.0]), (3, 2, 3))
        return Kernels(
            initial=np.ones(3) / 3,
            transition=moves,
            emission=lambda x: dist.Normal(mean[x], deviation[x]),
        )

    return sounds


def raw_log_likelihood(model, parameters, episodes):
    """The log density of episodes, one by one; call it inside x64."""
    each = jax.jit(jax.vmap(lambda *episode: model.dynamics.log_likelihood(parameters, *episode)))
    return each(episodes.states, episodes.observations, episodes.actions).sum()
