"""Claims about complete runs: where exploration is needed, and how the lower bound scales."""

from functools import cache

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import binom, norm

from homdp_ppl import HOMDP, Kernels, explorers, homdp, learn, models
from homdp_ppl.models import checkup, lock
from tests.runs import TREE

pytestmark = pytest.mark.slow

ALIKE = 1e-4  # false-alarm rate for two rules that fail equally often


def separated(fails: np.ndarray, holds: np.ndarray) -> bool:
    """Whether the first rule fails more often than the second on paired seeds.

    This is an exact sign test at level ``ALIKE``: if the rules fail equally often, a seed on which
    only one of them fails is a fair coin toss.
    """
    only_first, only_second = int((fails & ~holds).sum()), int((holds & ~fails).sum())
    return bool(binom.sf(only_first - 1, only_first + only_second, 0.5) < ALIKE)


def failing(
    world, rule, episodes: int, seeds: int, gap: float, last: int, model: HOMDP | None = None
) -> np.ndarray:
    """Whether the mean gap over the last episodes is above ``gap``, for each seed."""
    runs = learn(world, rule, TREE, episodes, range(seeds), model, compiled=True)
    assert all(run.gaps.min() >= -1e-9 for run in runs)
    return np.array([run.gaps[-last:].mean() > gap for run in runs])


def test_the_lock_needs_exploration():
    """On some seeds, greedy goes home forever and stays 0.64 below the optimum of 0.73.

    Rules that explore do not.

    A greedy learner that fails with the correct first dial (probability 0.1) and with the two wrong
    ones (0.95 each) never dials again. It fails with probability at least 0.09, so 60 seeds show no
    failure with probability at most 0.0035. Planted: greedy that plans less often fails equally
    often, and the test finds no difference.
    """
    world = models.load("lock")
    fails = failing(world, explorers.greedy(), 150, 60, gap=0.3, last=50)
    assert 1 <= fails.sum() < 60
    for rule in (explorers.quantile_backup(), explorers.posterior_sampling()):
        holds = failing(world, rule, 150, 60, gap=0.3, last=50)
        assert holds.sum() == 0
        assert separated(fails, holds)
    assert not separated(
        fails,
        failing(world, explorers.replan_on_doubling(explorers.greedy()), 150, 60, gap=0.3, last=50),
    )


@cache
def sceptic() -> HOMDP:
    """A small lock; the learner expects each dial to work with probability 0.1."""

    @homdp(**lock._spaces(2, 2), reward=lock._reward(2, 2))
    def sceptic():
        works = numpyro.sample(
            "works", dist.Beta(np.ones((2, 2)), np.full((2, 2), 9.0)).to_event(2)
        )
        lamp = numpyro.sample("lamp", dist.Beta(8, 2))
        return Kernels(np.eye(5)[0], lock._moves(works), lock._sees(lamp, 2))

    return sceptic


def test_a_sceptic_needs_optimism():
    """With a flat prior, the posterior mean alone is enough to explore.

    A sceptical learner expects 0.01 from two dials in a row and 0.06 from going home. Without
    optimism (z = 0) the rule therefore goes home in every episode of every seed and learns nothing.
    With optimism, and with posterior sampling, it opens the lock on all seeds.
    """
    world = models.load("lock", length=2, dials=2)
    fails, *others = (
        failing(world, rule, 600, 30, gap=0.3, last=100, model=sceptic())
        for rule in (
            explorers.quantile_backup(z=0.0),
            explorers.quantile_backup(),
            explorers.posterior_sampling(),
        )
    )
    assert fails.all()
    for holds in others:
        assert holds.sum() == 0
        assert separated(fails, holds)


@cache
def conjugate_checkup() -> HOMDP:
    """A check-up with flat priors on the two rates, the sensitivities and the specificity."""

    @homdp(
        states=checkup.STATES,
        observations=checkup.OBSERVATIONS,
        actions=checkup.ACTIONS,
        horizon=4,
        reward=checkup.REWARD,
    )
    def conjugate_checkup():
        flat = dist.Beta(np.ones(2), np.ones(2)).to_event(1)
        rates = numpyro.sample("rates", flat)
        sensitivity = numpyro.sample("sensitivity", flat)
        specificity = numpyro.sample("specificity", dist.Beta(1.0, 1.0))
        return Kernels(
            checkup.INITIAL, checkup._moves(rates), checkup._results(sensitivity, specificity)
        )

    return conjugate_checkup


def test_a_checkup_needs_exploration():
    """Greedy settles on patients from which it learns little, 0.013 or 0.05 below the optimum.

    Rules that explore find the tests. Planted: for greedy that plans less often, the test finds no
    difference.
    """
    world, model = models.load("checkup", horizon=4), conjugate_checkup()
    fails = failing(world, explorers.greedy(), 3000, 20, gap=0.01, last=300, model=model)
    for rule in (explorers.quantile_backup(), explorers.posterior_sampling()):
        holds = failing(world, rule, 3000, 20, gap=0.01, last=300, model=model)
        assert holds.sum() == 0
        assert separated(fails, holds)
    doubled = failing(
        world,
        explorers.replan_on_doubling(explorers.greedy()),
        3000,
        20,
        gap=0.01,
        last=300,
        model=model,
    )
    assert not separated(fails, doubled)


# The lower-bound tree

SEEDS = 300
LEVEL = 0.1  # the gap is epsilon times the share of (parent, observation) pairs whose sign is wrong


@cache
def episodes_needed(depth: int, observations: int, epsilon: float) -> int:
    """Episodes until the mean gap of greedy, T known, is epsilon / 10."""
    world = models.load("lower_bound_tree", depth=depth, observations=observations, epsilon=epsilon)
    longest = int(2.3 * leaves(depth, observations) / epsilon**2)
    runs = learn(world, explorers.greedy(), TREE, longest, range(SEEDS), compiled=True)
    mean = np.mean([run.gaps for run in runs], axis=0)
    assert mean[-1] < LEVEL * epsilon
    return int(np.argmax(mean <= LEVEL * epsilon)) + 1


def leaves(depth: int, observations: int) -> int:
    """X'Y': parents of leaves times observations of the last layer."""
    return 2 ** (depth - 2) * (observations - 2)


def predicted(depth: int, observations: int, epsilon: float) -> float:
    """Episodes at which a sign is wrong with probability 1/10, by the normal approximation.

    After n visits of a (parent, observation) pair the difference of the two estimates has mean
    epsilon and variance (1 - 1/Y')/n in units of 2/Y': n epsilon^2 = z^2 (1 - 1/Y'), and a pair is
    visited once in X'Y' episodes.
    """
    return float(
        norm.isf(LEVEL) ** 2
        * (1 - 1 / (observations - 2))
        * leaves(depth, observations)
        / epsilon**2
    )


def slope(x, y) -> float:
    """The slope of log y in log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def test_the_lower_bound_tree_scales_with_its_size():
    """Slope 1 in log X'Y', within 0.15.

    The tolerance is three standard errors of 0.03, and 0.05 for the factor 1 - 1/Y' at Y' = 8 and
    16.

    The share of wrong signs at the crossing is a mean over SEEDS X'Y' of them: standard error
    sqrt(0.09 / (300 X'Y')), which moves log K by 0.054 (X'Y' = 8) down to 0.027 (X'Y' = 32): a
    factor of 1.2 is more than three of the largest. False-alarm rate below 1e-3 for the slope and
    for each of the five. Planted: an exponent that is too large by a fifth is caught.
    """
    sizes = [(2, 10), (3, 10), (2, 18), (4, 10), (3, 18)]
    XY = np.array([leaves(*size) for size in sizes])
    needed = np.array([episodes_needed(*size, 0.3) for size in sizes])
    assert slope(XY, needed) == pytest.approx(1, abs=0.15)
    assert slope(XY, needed * XY**0.2) != pytest.approx(1, abs=0.15)
    np.testing.assert_allclose(needed, [predicted(*size, 0.3) for size in sizes], rtol=0.2)


def test_the_lower_bound_tree_scales_with_its_separation():
    """Slope 2 in log 1/epsilon, within 0.25.

    The tolerance is four standard errors of 0.05, and 0.05 for the few visits at epsilon = 0.4.

    False-alarm rate 1e-4 for the slope; a factor of 1.2 is four standard errors of 0.04 for each of
    the four, 1e-4 too. Planted: an exponent of 1.7 is caught.
    """
    separations = np.array([0.15, 0.2, 0.3, 0.4])
    needed = np.array([episodes_needed(3, 10, epsilon) for epsilon in separations])
    assert slope(1 / separations, needed) == pytest.approx(2, abs=0.25)
    assert slope(1 / separations, needed * separations**0.3) != pytest.approx(2, abs=0.25)
    np.testing.assert_allclose(
        needed, [predicted(3, 10, epsilon) for epsilon in separations], rtol=0.2
    )
