"""Gamma draws against scipy's exact distribution function."""

import jax
import numpy as np
import pytest
from scipy import stats

from homdp_ppl import x64
from homdp_ppl.posteriors import dirichlet
from homdp_ppl.posteriors.dirichlet import draw_log_gamma
from tests.chances import ALARM

SHAPES = np.array([0.02, 0.3, 1.0, 2.5, 40.0, 5000.0])
DRAWS = 40_000


@pytest.fixture(scope="module")
def draws():
    with x64():
        keys = jax.random.split(jax.random.key(3), DRAWS)
        return np.asarray(jax.jit(jax.vmap(lambda key: draw_log_gamma(key, SHAPES)))(keys))


def distance(draws, shape):
    """Kolmogorov-Smirnov p-value of logarithms of Gamma draws."""
    return stats.kstest(draws, stats.loggamma(shape).cdf).pvalue


@pytest.mark.parametrize("k", range(len(SHAPES)))
def test_distribution(draws, k):
    """False-alarm rate 1e-6 per shape."""
    assert distance(draws[:, k], SHAPES[k]) > ALARM


def independent(draws):
    """Whether the 15 correlations of some draws are within 6 standard errors.

    False-alarm rate below 1e-7.
    """
    correlation = np.corrcoef(draws.T)[np.triu_indices(len(SHAPES), 1)]
    return np.abs(correlation).max() < 6 / np.sqrt(len(draws))


def test_entries_are_independent(draws):
    """Entries that use the same random number are caught."""
    assert independent(draws)
    uniform = np.random.default_rng(0).uniform(size=(500, 1))
    assert not independent(stats.loggamma(SHAPES).ppf(uniform))


def test_planted_bugs_are_caught(draws):
    """A missing boost and a proposal that is always accepted are caught."""
    assert distance(draws[:, 2], 2.0) < ALARM
    d = SHAPES[0] + 2 / 3
    v = (1 + np.random.default_rng(0).normal(size=10 * DRAWS) / np.sqrt(9 * d)) ** 3
    assert distance(np.log(d * v[v > 0]), SHAPES[0] + 1) < ALARM


def test_sums_over_groups_need_no_padding(monkeypatch):
    """Many groups of very different sizes are summed without a padded array, also when traced."""
    generator = np.random.default_rng(0)
    labels = np.where(generator.random((500, 2)) < 0.5, 0, generator.integers(-1, 40, (500, 2)))
    flat = np.append(generator.random((3, 500)), np.zeros((3, 1)), axis=1)
    padded = dirichlet._Sums(labels, 40)
    monkeypatch.setattr(dirichlet, "PADDED", 0)
    single = dirichlet._Sums(labels, 40)
    assert padded.places is not None
    assert single.places is None
    np.testing.assert_allclose(single(flat), padded(flat), rtol=1e-12)
    with x64():
        np.testing.assert_allclose(jax.jit(single)(flat), padded(flat), rtol=1e-12)
