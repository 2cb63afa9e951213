"""Values by simulation, compared with exact values."""

import math

import jax
import numpy as np
import pytest
from scipy.stats import binom

from homdp_ppl import HOMDPError, evaluate, rollout, uniform_policy, x64
from homdp_ppl.evaluation.simulation import Estimate, estimate, summary
from tests.raising import raises
from tests.worlds import Parity, random_policy, world

LEVEL, REPEATS, EPISODES = 0.9, 400, 50


def covered(distort: float = 1.0) -> int:
    """The number of 400 intervals at a level of 90 % that contain the exact value.

    Standard errors are multiplied by ``distort``.
    """
    tiger = world("tiger")
    policy = random_policy(tiger.spaces, 0)
    exact = evaluate(policy, tiger.pomdp)
    with x64():
        keys = jax.random.split(jax.random.key(3), REPEATS * EPISODES)
    returns = tiger.homdp.returns(rollout(keys, tiger, policy)).reshape(REPEATS, EPISODES)
    middle = returns.mean(1, keepdims=True)
    found = [
        summary(middle[k] + distort * (row - middle[k]), (0.0, 4.0), LEVEL).interval
        for k, row in enumerate(returns)
    ]
    return sum(low <= exact <= high for low, high in found)


def test_intervals_have_the_stated_coverage():
    """Binomial tails of 1e-4 each, for levels within 0.02 of the nominal one.

    This tolerance is needed because a mean of 50 bounded returns is only approximately normal.
    """
    low, high = binom.ppf(1e-4, REPEATS, LEVEL - 0.02), binom.isf(1e-4, REPEATS, LEVEL + 0.02)
    assert low <= covered() <= high
    # Standard errors that are too small or too large are caught.
    assert not low <= covered(distort=0.7) <= high
    assert not low <= covered(distort=1.5) <= high


def test_agrees_with_the_exact_value():
    """Within five standard errors of 400 returns: a false-alarm rate of 1e-6 each.

    The value of another policy is caught.
    """
    tiger = world("tiger")
    policies = uniform_policy(tiger), Parity(3)
    for policy, other in (policies, policies[::-1]):
        found = estimate(policy, tiger, jax.random.key(0), 400)
        assert abs(found.mean - evaluate(policy, tiger.pomdp)) < 5 * found.standard_error
        assert abs(found.mean - evaluate(other, tiger.pomdp)) > 5 * found.standard_error
        assert found.episodes == 400


def test_numbers_by_hand():
    found = summary(np.array([4.0, 5.0, 6.0]), (0.0, 10.0))
    assert found.mean == 5.0
    assert found.standard_error == pytest.approx(1 / math.sqrt(3))
    assert found.interval == pytest.approx(
        (5 - 4.302653 / math.sqrt(3), 5 + 4.302653 / math.sqrt(3)), abs=1e-5
    )
    assert summary(np.array([0.0, 2.0]), (0.0, 2.0)).interval == (0.0, 2.0)  # clipped to [0, H]


def test_estimates_from_one_or_no_return():
    assert summary(np.array([1.5]), (0.0, 4.0)) == Estimate(1.5, math.inf, 1, (0.0, 4.0))
    none = summary(np.zeros(0), (0.0, 4.0))
    assert none.episodes == 0
    assert np.isnan([none.mean, none.standard_error, *none.interval]).all()


def test_the_same_key_gives_the_same_estimate():
    tiger = world("tiger")
    first, again, other = (
        estimate(uniform_policy(tiger), tiger, jax.random.key(k), 50) for k in (1, 1, 2)
    )
    assert first == again != other


def test_invalid_arguments_raise():
    tiger = world("tiger")
    with raises(HOMDPError, "episodes", "level"):
        estimate(uniform_policy(tiger), tiger, jax.random.key(0), 0, level=2)
