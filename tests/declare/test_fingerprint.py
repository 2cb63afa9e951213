"""Equality of declarations by the results of their programs, and of worlds by parameters."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Kernels, Real, homdp, models
from homdp_ppl.declare.fingerprint import fingerprint, probe_digest


def lamp(
    prior=(1.0, 9.0), reward=1.0, horizon=2, name="lamp", site="breaks", light="light", seen=1
):
    """A finite declaration, changed in one place."""

    def program():
        breaks = numpyro.sample(site, dist.Beta(*prior))
        return Kernels(
            [0.0, 1.0], lambda x, a: dist.Bernoulli(x * (1 - breaks)), [[seen, 1 - seen], [0, 1]]
        )

    program.__name__ = name
    spaces = {"states": 2, "observations": ("dark", light), "actions": 1}
    return homdp(**spaces, horizon=horizon, reward=[[0.0], [reward]])(program)


def walk(width=1.0, goal=1.0, horizon=2, noise=0.5, weighed=False):
    """A declaration with real-valued spaces, changed in one place."""

    def walk():
        drift = numpyro.sample("drift", dist.Normal(0.0, width))
        if weighed:
            numpyro.factor("weight", -drift)
        return Kernels(
            dist.Normal(0.0, 1.0),
            lambda x, a: dist.Normal(x + a * drift, 1.0),
            lambda x: dist.Normal(x, noise),
        )

    reward = lambda x, a: jnp.where(jnp.abs(x) < goal, 1.0, 0.0)  # noqa: E731
    spaces = {"states": Real(1), "observations": Real(1), "actions": 2}
    return homdp(**spaces, horizon=horizon, reward=reward)(walk)


CHANGES = {
    lamp: [
        {"prior": (1.0, 8.0)},
        {"reward": 0.5},
        {"horizon": 3},
        {"name": "bulb"},
        {"site": "fails"},
        {"light": "bright"},
        {"seen": 0.9},
    ],
    walk: [{"width": 1.1}, {"goal": 1.2}, {"horizon": 3}, {"noise": 0.6}, {"weighed": True}],
}


@pytest.mark.parametrize("declare", [lamp, pytest.param(walk, marks=pytest.mark.slow)])
def test_declarations_are_equal_by_value(declare):
    one, same = declare(), declare()
    assert one is not same
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same}) == 1
    assert one != "lamp"
    for change in CHANGES[declare]:
        assert one != declare(**change), change
    assert one.with_horizon(3) == declare(horizon=3)
    assert one.with_horizon(3).with_horizon(2) == one


def test_equal_finite_declarations_share_compiled_functions():
    one = lamp()
    assert one.cache is lamp().cache is one.with_horizon(5).cache
    assert one.cache is not lamp(reward=0.5).cache
    assert walk().cache is not walk().cache


def test_worlds_are_equal_by_value():
    tiger = models.load("tiger")
    assert tiger == models.load("tiger")
    assert hash(tiger) == hash(models.load("tiger"))
    assert tiger == tiger.homdp.at(accuracy=0.85)
    assert tiger.with_horizon(6) == models.load("tiger", horizon=6)
    assert tiger != models.load("tiger", horizon=6)
    assert tiger != models.load("tiger", accuracy=0.7)
    assert tiger != tiger.homdp.at(accuracy=np.nextafter(0.85, 1))
    assert tiger != models.load("tiger_table")
    assert tiger != tiger.homdp
    assert walk().at(drift=0.5) == walk().at(drift=0.5) != walk().at(drift=0.6)


def test_digests_distinguish_arrays():
    """They depend on shape, type and place of an array, not only on its bytes."""
    arrays = [np.zeros(4), np.zeros((2, 2)), np.zeros(4, np.int64), np.zeros(8, np.float32)]
    assert len({fingerprint(array) for array in arrays}) == 4
    shown = {"T": np.array([0.5, np.nan, np.inf, -np.inf, 0.0, 1e300])}
    assert probe_digest(shown) == probe_digest({"T": shown["T"] * (1 + 1e-15)})
    others = [{"O": shown["T"]}, {"T": -shown["T"]}, {"T": shown["T"] * (1 + 1e-6)}]
    assert probe_digest(shown) not in [probe_digest(other) for other in others]
