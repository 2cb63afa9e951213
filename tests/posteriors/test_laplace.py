"""Laplace's approximation and its calibration check, against a grid."""

from functools import cache

import jax
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from homdp_ppl import InferenceError, posterior
from homdp_ppl.confidence import quantile_radii
from homdp_ppl.posteriors import Sampling
from tests.compiling import compilations
from tests.posteriors import programs
from tests.posteriors.programs import GRID, ear_posterior, growls, seen
from tests.raising import raises

KEY = jax.random.key(0)
SAMPLING = Sampling(chains=4, draws=5000)
NEAR, SKEWED = np.array([[300, 100], [100, 300]]), np.array([[4, 0], [0, 3]])


@cache
def approximation(skewed):
    return posterior(
        programs.logistic(), growls(SKEWED if skewed else NEAR), method="laplace", sampling=SAMPLING
    )


def mode_and_deviation(right, wrong):
    """Newton's method on the log posterior of the ear, by hand."""
    z = 1.0
    for _ in range(50):
        p = expit(z)
        slope, curvature = -(z - 1) + right * (1 - p) - wrong * p, 1 + (right + wrong) * p * (1 - p)
        z += slope / curvature
    return z, curvature**-0.5


@pytest.mark.parametrize("skewed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_draws_are_normal_at_the_mode_and_the_check_agrees_with_the_grid(skewed):
    """True mass in each tail of the 90% interval: Monte Carlo error below 0.01 at six deviations.

    0.05 is the planted bug.
    """
    belief = approximation(skewed)
    right, wrong = (7, 0) if skewed else (600, 200)
    mode, deviation = mode_and_deviation(right, wrong)
    draws = np.sort(belief.dataset["ear"].values.ravel())
    error = deviation / np.sqrt(len(draws))
    assert abs(draws.mean() - mode) < 5 * error
    assert abs(draws.std() / deviation - 1) < 5 / np.sqrt(2 * len(draws))
    cdf = ear_posterior(right, wrong)
    low, high = mode + deviation * norm.ppf([0.05, 0.95])
    efficiency, lower, upper = belief.calibration
    assert lower == pytest.approx(float(cdf(low)), abs=0.01)
    assert upper == pytest.approx(1 - float(cdf(high)), abs=0.01)
    if skewed:
        assert abs(1 - float(cdf(high)) - 0.05) > 0.01
    density = np.gradient(cdf(GRID), GRID)
    normal = norm.pdf(GRID, mode, deviation)
    weight = density / np.maximum(normal, 1e-300)
    assert efficiency == pytest.approx(
        1 / np.trapezoid(np.where(normal > 1e-12, weight**2 * normal, 0.0), GRID), abs=0.05
    )


def test_a_near_normal_posterior_passes():
    belief = approximation(False)
    assert belief.method == "laplace"
    assert belief.calibration.passed
    belief.require_quantiles()
    assert quantile_radii(belief, KEY, delta=0.1).emission.max() < 0.1
    assert abs(belief.mean.shows(0)[0, 0] - 0.75) < 0.02


def test_a_skewed_posterior_fails_and_has_no_quantiles():
    belief = approximation(True)
    assert not belief.calibration.passed
    for ask in (belief.require_quantiles, lambda: quantile_radii(belief, KEY)):
        with raises(InferenceError, "laplace") as error:
            ask()
        assert 'Use method="nuts"' in str(error.value)
    assert np.isfinite(belief.mean.shows(0)).all()  # the mean is still available
    more = belief.update(growls(NEAR))
    assert more.calibration.passed


def test_updates_compile_nothing():
    belief = approximation(False).update(growls(NEAR))
    with compilations() as compiled:
        belief.update(growls(SKEWED * 1000))
    assert compiled == []


def test_posteriors_without_a_mode_raise():
    with raises(InferenceError, "laplace"):
        posterior(programs.picks(), seen([[1, 0, 0], [0, 0, 0]]), method="laplace")
