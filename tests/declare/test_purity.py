"""Programs whose results differ between runs raise an error that names what changed."""

import itertools
import time

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import DeclarationError, Kernels, Real, homdp
from homdp_ppl.declare.purity import abstract_run, changes

FINITE = {
    "states": ("off", "on"),
    "observations": ("dark", "light"),
    "actions": ("wait",),
    "horizon": 2,
}
LINE = {"states": Real(1), "observations": Real(1), "actions": ("wait", "go"), "horizon": 2}
MIXED = {**FINITE, "observations": Real(1)}
REWARD = [[0.0], [1.0]]
EYE = np.eye(2)


@pytest.fixture
def counter():
    return itertools.count(1)


@pytest.fixture
def generator():
    return np.random.default_rng(0)


def pair(p):
    return np.array([[p, 1 - p], [1 - p, p]])


def declare(spaces=FINITE, reward=REWARD, **kernels):
    given = {"initial": lambda: [0.5, 0.5], "transition": lambda: EYE[:, None]}
    given |= {"emission": lambda: EYE, **kernels}
    program = homdp(**spaces, reward=reward)
    return program(lambda: Kernels(**{name: make() for name, make in given.items()}))


def changed(*args, **kwargs):
    with pytest.raises(DeclarationError) as caught:
        declare(*args, **kwargs)
    return {problem.where for problem in caught.value.problems}


def test_numpy_randomness(generator):
    assert changed(emission=lambda: pair(generator.uniform())) == {"emission"}
    assert changed(transition=lambda: pair(generator.uniform())[:, None]) == {"transition"}
    assert changed(initial=lambda: pair(generator.uniform())[0]) == {"initial"}


def test_a_counter(counter):
    assert changed(emission=lambda: pair(1 / (1 + next(counter)))) == {"emission"}


def test_the_time():
    assert changed(emission=lambda: pair(time.perf_counter_ns() % 1000 / 1000)) == {"emission"}


def test_inside_a_kernel_function(generator):
    def emission():
        return lambda x: dist.Bernoulli(jnp.asarray(pair(generator.uniform()))[x, 1])

    assert changed(emission=emission) == {"emission"}


def test_a_prior(counter):
    def emission():
        p = numpyro.sample("p", dist.Beta(1 + next(counter), 1))
        return jnp.array([[p, 1 - p], [1 - p, p]])

    assert "site 'p'" in changed(emission=emission)


def test_another_order_of_the_same_operations(counter):
    def emission():
        p = numpyro.sample("p", dist.Beta(2, 1))
        row = [p, 1 - p] if next(counter) % 2 else [1 - p, p]
        return jnp.array([row, row[::-1]])

    assert changed(emission=emission) == {"emission"}


def test_another_site(counter):
    def emission():
        p = numpyro.sample(f"p{next(counter)}", dist.Beta(2, 1))
        return jnp.array([[p, 1 - p], [1 - p, p]])

    assert {"site 'p1'", "site 'p2'"} <= changed(emission=emission)


def test_rewards(generator):
    assert changed(reward=lambda x, a: generator.uniform()) == {"reward"}


def line(sigma=lambda: 1.0, drift=lambda: 0.0, centre=lambda: 0.0):
    return {
        "initial": lambda: dist.Normal(numpyro.sample("m", dist.Normal(centre(), 1.0)), 1.0),
        "transition": lambda: lambda x, a: dist.Normal(x + a * drift(), 1.0),
        "emission": lambda: lambda x: dist.Normal(x, sigma()),
    }


def clipped(x, a):
    return jnp.clip(x, 0, 1)


def test_densities(generator, counter):
    assert changed(LINE, clipped, **line(sigma=lambda: generator.uniform(1, 2))) == {"emission"}
    assert changed(LINE, clipped, **line(drift=lambda: next(counter))) == {"transition"}
    assert "site 'm'" in changed(LINE, clipped, **line(centre=generator.normal))
    assert changed(LINE, lambda x, a: jnp.clip(x * generator.uniform(), 0, 1), **line()) == {
        "reward"
    }


def test_tables_next_to_densities(generator):
    kernels = {
        "transition": lambda: pair(generator.uniform())[:, None],
        "emission": lambda: lambda x: dist.Normal(x * 1.0, 1.0),
    }
    assert changed(MIXED, **kernels) == {"transition"}


def test_pure_programs_are_accepted():
    """Also accepted: programs with the same random numbers in every run, or with a cache."""
    kept = {}

    def emission():
        kept.setdefault("table", pair(0.25))
        p = numpyro.sample("p", dist.Beta(2, 1))
        noise = np.random.default_rng(3).uniform(size=1)
        return (noise * kept["table"] + (1 - noise) * jnp.array([[p, 1 - p], [1 - p, p]]))[:2]

    assert [site.name for site in declare(emission=emission).sites] == ["p"]
    assert declare(LINE, clipped, **line()).spaces.horizon == 2


def test_operations_that_differ_without_effect_are_accepted(counter):
    def run(key):
        unused = jnp.ones(2) * next(counter)
        return {"table": jnp.zeros(2) + 0 * unused}

    assert changes(abstract_run(run), abstract_run(run)) == []
