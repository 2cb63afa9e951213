"""Sets of members of finite classes: brute force over all subsets, and coverage."""

from fractions import Fraction
from itertools import combinations

import jax
import numpy as np
import pytest

from homdp_ppl import x64
from homdp_ppl.confidence import highest_density_set, likelihood_set
from tests.chances import ALARM


def smallest_set(weights, mass):
    """The smallest number of members with this mass, by brute force.

    All members with the same weight as the lightest of them are included.
    """
    needed = mass * sum(weights)
    size = next(
        n
        for n in range(1, len(weights) + 1)
        if any(sum(c) >= needed for c in combinations(weights, n))
    )
    return np.array(weights) >= sorted(weights)[-size]


@pytest.mark.parametrize("seed", range(6))
def test_highest_density_set_is_the_smallest(seed):
    """Weights are small integers, so that ties and exact masses are frequent."""
    weights = np.random.default_rng(seed).integers(1, 6 if seed % 2 else 60, 7).tolist()
    masses = [Fraction(k, 20) for k in range(1, 20)] + [
        Fraction(sum(sorted(weights)[k:]), sum(weights)) for k in range(1, 7)
    ]
    for mass in masses:
        expected = smallest_set(weights, mass)
        for shift in (0.0, -2000.0):
            np.testing.assert_array_equal(
                highest_density_set(np.log(weights) + shift, float(mass)), expected
            )


def test_highest_density_sets_are_likelihood_sets_under_a_uniform_prior():
    """For every member m, {p >= p(m)} is the likelihood set of beta = max - log p(m), and the
    highest-density set of its mass.
    """
    log_likelihood = np.log(np.random.default_rng(9).integers(1, 9, 8)) - 300.0
    p = np.exp(log_likelihood + 300)
    with x64():
        traced = jax.jit(highest_density_set, static_argnums=1)
        for m in range(8):
            superlevel = p >= p[m] * (1 - 1e-9)
            beta_m = log_likelihood.max() - log_likelihood[m] + 1e-9
            np.testing.assert_array_equal(likelihood_set(log_likelihood, beta_m), superlevel)
            np.testing.assert_array_equal(
                jax.jit(likelihood_set)(log_likelihood, beta_m), superlevel
            )
            mass = float(p[superlevel].sum() / p.sum())
            if mass < 1:
                np.testing.assert_array_equal(highest_density_set(log_likelihood, mass), superlevel)
        np.testing.assert_array_equal(
            traced(log_likelihood, 0.7), highest_density_set(log_likelihood, 0.7)
        )


def test_likelihood_set_includes_its_boundary():
    values = np.array([-1.0, -3.0, -3.5, -np.inf])
    np.testing.assert_array_equal(likelihood_set(values, 2.0), [True, True, False, False])
    np.testing.assert_array_equal(likelihood_set(values, 0.0), [True, False, False, False])


def test_highest_density_sets_have_the_stated_coverage():
    """One of six coins is drawn from the prior; its tosses give a set of some posterior mass.

    The number of hits is a sum of independent Bernoulli variables with these masses. False-alarm
    rate 1e-6. A set from the likelihood alone, under a prior that is not uniform, is detected.
    """
    generator, N = np.random.default_rng(10), 2000
    coins, prior = np.linspace(0.2, 0.8, 6), np.array([0.02, 0.02, 0.46, 0.46, 0.02, 0.02])
    truth = generator.choice(6, N, p=prior)
    heads = generator.binomial(4, coins[truth])
    log_likelihood = heads[:, None] * np.log(coins) + (4 - heads[:, None]) * np.log(1 - coins)

    def hits_are_believable(log_weights):
        sets = np.array([highest_density_set(row, 0.7) for row in log_weights])
        weights = np.exp(log_weights)
        mass = (weights * sets).sum(1) / weights.sum(1)
        assert (mass >= 0.7 - 1e-12).all()
        chances = np.ones(1)
        for m in mass:
            chances = np.convolve(chances, [1 - m, m])
        below = np.cumsum(chances)[int(sets[np.arange(N), truth].sum())]
        return ALARM / 2 < below < 1 - ALARM / 2

    assert hits_are_believable(log_likelihood + np.log(prior))
    assert not hits_are_believable(log_likelihood)
