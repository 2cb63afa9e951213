"""Classes of densities: their likelihoods by hand, and candidates from the prior."""

import jax
import numpy as np
import pytest
from scipy.stats import kstest, norm

from homdp_ppl import ParameterError, models
from homdp_ppl.explorers import candidates
from homdp_ppl.explorers._densities import DensityClass
from tests.chances import ALARM
from tests.continuous.programs import hearing, walk
from tests.raising import raises


def test_log_likelihoods_of_a_class_by_hand():
    """One call for all members and points, compared with SciPy and with each member's program."""
    model = walk()
    members = [model.at(noise=n) for n in (0.2, 0.9, 3.0)]
    x, y, a = np.array([0.3, -1.2]), np.array([0.1, 2.0]), np.array([0, 1])
    following = np.array([-0.8, 0.1])
    shown = DensityClass.of("test", "emissions", members).log_likelihoods(x, 0 * x, 0 * x, y)
    moved = DensityClass.of("test", "transitions", members).log_likelihoods(x, a, 0 * a, following)
    for k, n in enumerate((0.2, 0.9, 3.0)):
        np.testing.assert_allclose(shown[k], norm.logpdf(y, x, 0.1 + n), rtol=1e-12)
        np.testing.assert_allclose(
            moved[k], norm.logpdf(following, x + np.array([-1.0, 1.0]), 0.3), rtol=1e-12
        )


@pytest.mark.slow
def test_members_of_several_programs():
    one, other = (
        hearing("means").draw(jax.random.key(0)),
        hearing("variances").draw(jax.random.key(1)),
    )
    mixed = DensityClass.of("test", "emissions", [one, other, one])
    x, y = np.array([0, 1, 2]), np.array([0.1, -0.3, 1.0])
    table = mixed.log_likelihoods(x, 0 * x, 0 * x, y)
    np.testing.assert_array_equal(table[0], table[2])
    for row, member in zip(table, (one, other, one), strict=True):
        own = DensityClass.of("test", "emissions", [member]).log_likelihoods(x, 0 * x, 0 * x, y)[0]
        np.testing.assert_allclose(row, own, rtol=1e-13)


def test_candidates_come_from_the_prior():
    """Kolmogorov's test against the half-normal distribution: false-alarm rate 1e-6.

    Another scale is caught.
    """
    drawn = candidates(walk(), 400, jax.random.key(0))
    noise = np.array([float(world.parameters["noise"]) for world in drawn])
    assert kstest(noise, "halfnorm").pvalue > ALARM
    assert kstest(2 * noise, "halfnorm").pvalue < ALARM
    for number in (0, 2.5):
        with raises(ParameterError, "n"):
            candidates(walk(), number, jax.random.key(0))
    with raises(ParameterError, "homdp"):
        candidates(models.load("tiger").homdp, 3, jax.random.key(0))
