"""Coverage: the radii contain the truth with the stated probability, for counts from random tables.

Coverage is a weak test of loose inequalities, as the last test here shows. The golden values of
test_counts.py are the strong test.
"""

import math

import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import Counts, tabular
from homdp_ppl.confidence.inequalities import bernstein, hoeffding
from homdp_ppl.confidence.radii import Radii, hop_b_class_radii, hop_b_radii, weissman_radii
from tests.chances import enough

X, Y, A, H = 3, 5, 2, 7
K, DELTA, SIZE = 11, 0.2, 13
FLAT = {"T": dist.Dirichlet(np.ones((X, A, X))), "O": dist.Dirichlet(np.ones((X, Y)))}
FREE = tabular(**FLAT, initial=np.full(X, 1 / X), reward=np.zeros((X, A)), horizon=H)
REPEATS = 4000


def simulated(seed, visits=400):
    """Random tables, and many samples of counts with ``visits`` draws from each row."""
    generator = np.random.default_rng(seed)
    T, O = generator.dirichlet(np.ones(X), (X, A)), generator.dirichlet(np.ones(Y), X)  # noqa: E741
    transition = generator.multinomial(visits, T, (REPEATS, X, A))
    emission = generator.multinomial(visits, O, (REPEATS, X))
    return T, O, transition, emission


def distances(seed, visits):
    T, O, transition, emission = simulated(seed, visits)  # noqa: E741
    return np.abs(transition / visits - T).sum(-1), np.abs(emission / visits - O).sum(-1)


def full(visits):
    return Counts(np.full((X, A, X), visits / X), np.full((X, Y), visits / Y))


@pytest.mark.parametrize("visits", [30, 400])
def test_weissman_covers_all_rows(visits):
    """False-alarm rate 1e-6 (exact binomial tail); a fifth of the radius is detected.

    K = H = 1 here, for a single number of visits.
    """
    once = FREE.with_horizon(1)
    radii = weissman_radii(once, full(visits), 1, DELTA)
    transition, emission = distances(1, visits)
    assert enough(inside(radii, transition, emission), 1 - DELTA)
    assert not enough(
        inside(Radii(radii.transition / 5, radii.emission / 5), transition, emission), 1 - DELTA
    )


def inside(radii, transition, emission):
    return (transition <= radii.transition).all((1, 2)) & (emission <= radii.emission).all(1)


def test_hop_b_covers_emissions():
    """E_O in one round. False-alarm rate 1e-6; a tenth of the radius is detected."""
    radius = hop_b_radii(FREE, full(2000), K, DELTA).emission
    _, emission = distances(2, 2000)
    assert radius.max() < 2
    assert enough((emission <= radius).all(1), 1 - DELTA)
    assert not enough((emission <= radius / 10).all(1), 1 - DELTA)


def test_class_radii_cover_transitions_and_the_most_likely_emissions():
    """The estimate is the most likely member of a class of 13.

    False-alarm rate 1e-6 each. A tenth of the transition radius and a fiftieth of the emission
    radius are detected.
    """
    T, O, transition, emission = simulated(3, visits := 300)  # noqa: E741
    generator = np.random.default_rng(4)
    others = 0.97 * O + 0.03 * generator.dirichlet(np.ones(Y), (SIZE - 1, X))
    members = np.concatenate([O[None], others])  # (SIZE, X, Y)
    likelihood = np.einsum("rxy,mxy->rm", emission, np.log(members))
    chosen = members[likelihood.argmax(1)]
    assert (likelihood.argmax(1) > 0).mean() > 0.1  # the truth is often not the most likely member
    radii = hop_b_class_radii(FREE, full(visits), K, SIZE, DELTA)
    errors_t, errors_o = np.abs(transition / visits - T).sum(-1), np.abs(chosen - O).sum(-1)
    assert enough((errors_t <= radii.transition).all((1, 2)), 1 - DELTA)
    assert enough((errors_o <= radii.emission).all(1), 1 - DELTA)
    assert not enough((errors_t <= radii.transition / 10).all((1, 2)), 1 - DELTA)
    assert not enough((errors_o <= radii.emission / 50).all(1), 1 - DELTA)


def means(seed, n):
    """Means and sample variances of n values that are 0 or 3 with equal probability.

    These have the largest possible variance.
    """
    values = 3.0 * np.random.default_rng(seed).integers(0, 2, (REPEATS, n))
    return values.mean(1), values.var(1, ddof=1)


@pytest.mark.parametrize("level", [0.05, 0.3])
def test_means_are_covered(level):
    """False-alarm rate 1e-6 each.

    A third of Hoeffding's radius and a quarter of Bernstein's radius are detected.
    """
    mean, variance = means(5, n := 100)
    error = np.abs(mean - 1.5)
    for radius, planted in ((hoeffding(n, 3.0, level), 3), (bernstein(n, variance, 3.0, level), 4)):
        assert enough(error <= radius, 1 - level)
        assert not enough(error <= radius / planted, 1 - level)


def test_golden_values_detect_wrong_constants_that_coverage_misses():
    """Inequalities are loose: without K H in the union bound, or with half the constant, the radii
    still cover the truth. Golden values detect both.
    """
    transition, emission = distances(6, visits := 400)
    radii = weissman_radii(FREE, full(visits), K, DELTA)
    rows = (X + X * A) / DELTA
    for wrong in (
        lambda d: math.sqrt(2 * math.log((2**d - 2) * rows) / visits),
        lambda d: math.sqrt(1 * math.log((2**d - 2) * rows * K * H) / visits),
    ):
        mutant = Radii(np.full((X, A), wrong(X)), np.full(X, wrong(Y)))
        assert enough(inside(mutant, transition, emission), 1 - DELTA)
        assert (mutant.transition < 0.9 * radii.transition).all()
        assert (mutant.emission < 0.9 * radii.emission).all()
