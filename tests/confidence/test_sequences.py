"""Confidence sequences: the equation of their ends, coverage at all times, and tracing."""

from fractions import Fraction
from math import factorial, prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import betaln

from homdp_ppl import ParameterError, x64
from homdp_ppl.confidence import confidence_sequence
from tests.raising import raises

N = 400  # draws


@pytest.mark.parametrize(
    ("k", "n", "level", "a", "b"),
    [(3, 10, 0.1, 0.5, 0.5), (0, 7, 0.05, 0.5, 0.5), (250, 300, 1e-4, 8, 2), (1.3, 2.5, 0.2, 1, 3)],
)
def test_the_ends_solve_the_equation(k, n, level, a, b):
    """Each end is a root of the martingale minus 1 / level, or 0 or 1 if there is none."""

    def log_martingale(p):
        likelihood = (k * np.log(p) if k else 0) + ((n - k) * np.log1p(-p) if n - k else 0)
        return betaln(k + a, n - k + b) - betaln(a, b) - likelihood + np.log(level)

    low, high = confidence_sequence(k, n, level, a, b)
    for end, outer in ((low, 1e-12), (high, 1 - 1e-12)):
        if log_martingale(outer) < 0:
            assert end == round(outer)
        else:
            root = brentq(log_martingale, *sorted((outer, k / n)), xtol=1e-13)
            assert end == pytest.approx(root, abs=1e-10)


def test_in_rational_arithmetic():
    """For Jeffreys' mixture, B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) is rational."""
    k, n, level = 30, 100, Fraction(1, 10)

    def odd(m):  # 1 3 5 ... (2m - 1)
        return prod(range(1, 2 * m, 2))

    least = Fraction(odd(k) * odd(n - k), 2**n * factorial(n)) * level
    step = Fraction(1, 10**12)

    def is_inside(p):
        return p**k * (1 - p) ** (n - k) >= least

    low, high = (Fraction(float(end)) for end in confidence_sequence(k, n, float(level)))
    assert (is_inside(low - step), is_inside(low + step)) == (False, True)
    assert (is_inside(high - step), is_inside(high + step)) == (True, False)
    assert confidence_sequence(0, 0, 0.1) == (0.0, 1.0)


def test_symmetry_and_monotonicity():
    """The complement has the complementary interval; smaller levels give wider intervals."""
    k, n = np.arange(11), np.full(11, 10)
    low, high = confidence_sequence(k, n, 0.1, 2.0, 3.0)
    other = confidence_sequence(n - k, n, 0.1, 3.0, 2.0)
    np.testing.assert_allclose(low, 1 - other.high, atol=1e-12)
    np.testing.assert_allclose(high, 1 - other.low, atol=1e-12)
    assert ((low <= k / n) & (k / n <= high)).all()
    wider = confidence_sequence(k, n, 0.01, 2.0, 3.0)
    assert (wider.low <= low).all()
    assert (wider.high >= high).all()


def ever_missed(p, level, runs=4000, seed=0):
    """The share of runs in which p is outside the interval after some of the first N draws."""
    n, k = np.meshgrid(np.arange(N + 1), np.arange(N + 1), indexing="ij")
    low, high = confidence_sequence(np.minimum(k, n), n, level)
    draws = np.random.default_rng(seed).random((runs, N)) < p
    successes = np.cumsum(draws, axis=1)
    at = np.arange(1, N + 1), successes
    return np.mean(((p < low[at]) | (p > high[at])).any(1))


@pytest.mark.parametrize("p", [0.3, 0.5])
def test_coverage_at_all_times(p):
    """At level 0.1 the share is at most 0.1, and not much smaller. With 4,000 runs, the upper test
    fails by chance with probability below 1e-3 if the share is 0.085, and it is about 0.06.
    """
    assert 0.02 <= ever_missed(p, 0.1) <= 0.1
    # intervals for one time only, as if the level were ten times larger, miss too often
    assert ever_missed(p, 0.9) > 0.1


def test_traced_and_computed_intervals_agree():
    generator = np.random.default_rng(0)
    n = generator.integers(0, 10_000, 50)
    k = generator.integers(0, n + 1)
    with x64():
        traced = jax.jit(lambda k, n: confidence_sequence(k, n, 0.01))(jnp.array(k), jnp.array(n))
    for end, other in zip(traced, confidence_sequence(k, n, 0.01), strict=True):
        np.testing.assert_allclose(end, other, atol=1e-12)


def test_mistakes():
    with raises(ParameterError, "successes"):
        confidence_sequence(3, 2)
    with raises(ParameterError, "level", "a"):
        confidence_sequence(1, 2, level=1.0, a=0.0)
    with raises(ParameterError, "shapes"):
        confidence_sequence(np.zeros(2), np.zeros(3))
