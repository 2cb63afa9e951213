"""Declarations for tests of posteriors, each created (and compiled) once, and data for them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import sigmoid
from scipy.special import expit
from scipy.stats import norm

from homdp_ppl import HOMDP, Counts, Episodes, Kernels, homdp, tabular
from tests.worlds import simulate, world

EYE = np.eye(3)
STAY = np.repeat(EYE[:, None, :], 2, axis=1)  # (X, A, X)  states never change
ALPHA_T = np.array([[[1.0, 2, 3], [4, 1, 1]], [[0.5, 1, 2], [2, 2, 2]], [[3, 1, 0.5], [1, 1, 5]]])
ALPHA_O = np.array([[5.0, 1], [2, 3], [1, 4]])
GRID = np.linspace(-8, 8, 20_001)  # of a logistic accuracy


def declare(
    program: Callable[[], Kernels],
    states: int = 3,
    observations: int = 3,
    actions: int = 2,
    horizon: int = 3,
) -> HOMDP:
    """A HOMDP without rewards."""
    reward = np.zeros((states, actions))
    return homdp(
        states=states, observations=observations, actions=actions, horizon=horizon, reward=reward
    )(program)


def pair(p):
    """The symmetric emission table of a growl that is right with probability p."""
    return jnp.array([[p, 1 - p], [1 - p, p]])


@cache
def tables() -> HOMDP:
    """Independent Dirichlet rows, all concentrations different."""
    return tabular(
        T=dist.Dirichlet(ALPHA_T),
        O=dist.Dirichlet(ALPHA_O),
        initial=[0.6, 0.3, 0.1],
        reward=np.zeros((3, 2)),
        horizon=3,
    )


@cache
def partly() -> HOMDP:
    """Partly known rows: one Dirichlet site in two emission rows, and a Beta site in T.

    The emission rows use the site with a different order and mass.
    """

    def program():
        rest = numpyro.sample("rest", dist.Dirichlet(np.array([2.0, 1.0, 3.0])))
        slip = numpyro.sample(
            "slip", dist.Beta(np.array([1.0, 2.0]), np.array([3.0, 1.0])).to_event(1)
        )
        first, second = jnp.append(0.25, 0.75 * rest), jnp.append(0.5 * rest[::-1], 0.5)
        moves = jnp.array(
            [[[1 - slip[0], slip[0]], [0.5, 0.5]], [[0.0, 1.0], [slip[1], 1 - slip[1]]]]
        )
        return Kernels([0.5, 0.5], moves, jnp.stack([first, second]))

    return declare(program, states=2, observations=4)


@cache
def logistic() -> HOMDP:
    """One parameter without a closed form.

    The tiger's accuracy is normal on the logistic scale.
    """
    tiger = world("tiger").homdp

    @homdp(
        states=tiger.states,
        observations=tiger.observations,
        actions=tiger.actions,
        horizon=4,
        reward=tiger.reward[0],
    )
    def logistic():
        ear = numpyro.sample("ear", dist.Normal(1.0, 1.0))
        return Kernels(
            tiger.structure.reference.initial,
            tiger.structure.reference.transition,
            pair(sigmoid(ear)),
        )

    return logistic


@cache
def rates() -> HOMDP:
    """T depends on a regression on the action, O on a logistic-normal accuracy."""

    def rates():
        ear = numpyro.sample("ear", dist.Normal(1.0, 1.0))
        drift = numpyro.sample("drift", dist.Normal(-0.5, 0.8))
        q = sigmoid(drift + jnp.array([0.0, 1.5]))
        moves = jnp.stack([jnp.stack([1 - q, q], -1), jnp.stack([0.5 * q, 1 - 0.5 * q], -1)])
        return Kernels([0.7, 0.3], moves, pair(sigmoid(ear)))

    return declare(rates, states=2, observations=2, horizon=4)


@cache
def hierarchy() -> HOMDP:
    """A hierarchy: accuracies by state with an unknown centre and spread.

    Tables depend on centre and spread only through the accuracies.
    """

    def hierarchy():
        centre = numpyro.sample("centre", dist.Normal(1.0, 1.0))
        spread = numpyro.sample("spread", dist.Gamma(4.0, 8.0))
        with numpyro.plate("states", 3):
            logit = numpyro.sample("logit", dist.Normal(centre, spread))
        p = sigmoid(logit)[:, None]
        return Kernels(EYE[0], np.full((3, 2, 3), 1 / 3), p * EYE + (1 - p) / 2 * (1 - EYE))

    return declare(hierarchy)


@cache
def switch() -> HOMDP:
    """Discrete sites only, one of them in a plate and one of small prior probability."""

    def switch():
        grade = numpyro.sample("grade", dist.Categorical(probs=np.array([0.5, 0.3, 0.2])))
        with numpyro.plate("actions", 2):
            slippery = numpyro.sample("slippery", dist.Bernoulli(np.array([0.3, 0.01])))
        p = jnp.array([0.6, 0.75, 0.9])[grade]
        slip = jnp.where(slippery == 1, 0.4, 0.1)
        return Kernels([0.5, 0.5], jnp.stack([jnp.stack([1 - slip, slip], -1)] * 2), pair(p))

    return declare(switch, states=2, observations=2)


@cache
def closed_switch() -> HOMDP:
    """A discrete site and a Beta site in closed form."""

    def closed_switch():
        grade = numpyro.sample("grade", dist.DiscreteUniform(0, 2))
        slip = numpyro.sample("slip", dist.Beta(1.0, 4.0))
        moves = jnp.array([[[1 - slip, slip]] * 2, [[0.0, 1.0]] * 2])
        return Kernels([0.5, 0.5], moves, pair(jnp.array([0.6, 0.75, 0.9])[grade]))

    return declare(closed_switch, states=2, observations=2)


@cache
def picks() -> HOMDP:
    """A discrete site selects the impossible outcome; normal and Beta sites give probabilities."""

    def picks():
        side = numpyro.sample("side", dist.Bernoulli(0.3))
        level = numpyro.sample("level", dist.Normal(0.0, 1.0))
        slip = numpyro.sample("slip", dist.Beta(2.0, 3.0))
        p = sigmoid(level)
        quiet = jnp.where(side == 1, jnp.array([p, 1 - p, 0.0]), jnp.array([p, 0.0, 1 - p]))
        loud = jnp.where(side == 1, jnp.array([0.2, 0.2, 0.6]), jnp.array([0.5, 0.3, 0.2]))
        moves = jnp.array([[[1 - slip, slip]] * 2, [[0.5, 0.5]] * 2])
        return Kernels([1.0, 0.0], moves, jnp.stack([quiet, loud]))

    return declare(picks, states=2)


@cache
def one_of_two() -> HOMDP:
    """A discrete site selects one of two supports.

    Each observation is possible, but not both together.
    """

    def program():
        side = numpyro.sample("side", dist.Bernoulli(0.5))
        rows = jnp.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
        return Kernels(EYE[0], STAY, jnp.stack([rows[side], EYE[1], EYE[2]]))

    return declare(program)


@cache
def weighed() -> HOMDP:
    """The logistic accuracy with an observed site, a factor, and a prior with scale 2."""

    def weighed():
        with numpyro.handlers.scale(scale=2.0):
            ear = numpyro.sample("ear", dist.Normal(1.0, 1.0))
        numpyro.sample("survey", dist.Normal(sigmoid(ear), 0.1), obs=0.6)
        numpyro.factor("nudge", 0.3 * ear)
        return Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), pair(sigmoid(ear)))

    return declare(weighed, states=2, observations=2)


@cache
def nothing_unknown() -> HOMDP:
    """Everything is known."""
    return declare(lambda: Kernels(EYE[0], STAY, EYE))


PROGRAMS = (
    tables,
    partly,
    logistic,
    rates,
    hierarchy,
    switch,
    closed_switch,
    picks,
    weighed,
    nothing_unknown,
)


KINDS = {  # draws of the sites in NumPy, because JAX takes seconds to compile a Dirichlet draw
    "simplex": ("T", "O", "rest"),
    "unit": ("slip", "accuracy", "sensitivity", "specificity"),
    "positive": ("spread",),
    "real": ("ear", "drift", "centre", "logit", "level", "pace", "logit_rates"),
}


def values(model: HOMDP, number: int, seed: int) -> dict[str, np.ndarray]:
    """Some values of all sites, (number, ...)."""
    generator = np.random.default_rng(seed)
    kinds = {site: kind for kind, sites in KINDS.items() for site in sites}
    draw: dict[str, Callable[..., Any]] = {
        "simplex": lambda shape: generator.dirichlet(np.full(shape[-1], 2.0), shape[:-1]),
        "unit": lambda shape: generator.beta(4.0, 2.0, shape),
        "positive": lambda shape: generator.gamma(4.0, 0.2, shape),
        "real": lambda shape: generator.normal(size=shape),
    }
    return {
        site.name: generator.integers(0, site.values, (number, *site.shape))
        if site.discrete
        else draw[kinds[site.name]]((number, *site.shape))
        for site in model.sites
    }


@cache
def episodes(program: Callable[[], HOMDP], number: int = 12, seed: int = 0) -> Episodes:
    """Episodes under the uniform policy at some values of the sites."""
    model = program()
    point = {name: value[0] for name, value in values(model, 1, seed).items()}
    initial, transition, emission, _ = model.tables(point).stationary()
    batches = simulate(
        initial[None],
        transition[None],
        emission[None],
        model.horizon,
        number,
        np.random.default_rng(seed),
    )
    return batches[0]


def seen(emission, transition=None) -> Counts:
    """Counts of emissions, optionally with transitions."""
    X = len(emission)
    return Counts(
        np.zeros((X, 2, X)) if transition is None else np.array(transition), np.array(emission)
    )


def growls(emission) -> Counts:
    """Counts of growls, without transitions."""
    return seen(emission, np.zeros((2, 3, 2), int))


def grid_posterior(log_density, values):
    """Distribution function of a parameter on a grid from its unnormalised log density there."""
    weights = np.exp(log_density - log_density.max())
    steps = np.concatenate([[0.0], np.cumsum((weights[1:] + weights[:-1]) / 2)])
    return lambda x: np.interp(x, values, steps / steps[-1])


def ear_posterior(right, wrong):
    """The log density of the logistic accuracy, up to a constant.

    The prior is Normal(1, 1); each of `right` growls has probability expit(ear), and each of
    `wrong` growls 1 - expit(ear).
    """
    return grid_posterior(
        norm.logpdf(GRID, 1, 1) + right * np.log(expit(GRID)) + wrong * np.log(expit(-GRID)), GRID
    )
