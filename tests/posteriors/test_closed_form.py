"""Closed forms and finite sites against rational arithmetic, known distributions and sums."""

from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy import stats

from homdp_ppl import Counts, posterior
from homdp_ppl.posteriors import Sampling
from homdp_ppl.posteriors.from_counts import _weighed
from tests.chances import ALARM
from tests.compiling import compilations
from tests.posteriors import programs
from tests.posteriors.programs import seen
from tests.worlds import world

KEY = jax.random.key(0)
DRAWS = 20_000


def dirichlet(alpha, counts):
    """Rational mean and variance of every entry of a Dirichlet row after counts."""
    after = [Fraction(float(a)) + int(n) for a, n in zip(alpha, counts, strict=True)]
    total = sum(after)
    means = [a / total for a in after]
    return means, [m * (1 - m) / (total + 1) for m in means]


def same(table, fractions):
    return np.allclose(table, np.array(fractions, dtype=float), rtol=1e-14, atol=0)


@pytest.mark.parametrize("seed", range(5))
def test_independent_rows_in_rational_arithmetic(seed):
    generator = np.random.default_rng(seed)
    counts = Counts(
        generator.integers(0, 10**seed, (3, 2, 3)), generator.integers(0, 10**seed, (3, 2))
    )
    belief = posterior(programs.tables(), counts)
    assert belief.method == "conjugate"
    for x in range(3):
        mean, variance = dirichlet(programs.ALPHA_O[x], counts.emission[x])
        assert same(belief.mean.shows(0)[x], mean)
        assert same(belief.variance.emission[x], variance)
        for a in range(2):
            mean, variance = dirichlet(programs.ALPHA_T[x, a], counts.transition[x, a])
            assert same(belief.mean.moves(0)[x, a], mean)
            assert same(belief.variance.transition[x, a], variance)


def test_pooled_rows_in_rational_arithmetic():
    """Tiger: a growl from the left and one from the right update the same Beta(8, 2)."""
    belief = posterior(
        world("tiger").homdp, Counts(np.zeros((2, 3, 2), int), np.array([[7, 2], [1, 4]]))
    )
    mean, variance = dirichlet([8, 2], [7 + 4, 2 + 1])
    assert same(belief.mean.shows(0), [mean, mean[::-1]])
    assert same(belief.variance.emission, [variance, variance])
    assert np.array_equal(belief.mean.moves(0), world("tiger").pomdp.moves(0))
    assert not belief.variance.transition.any()
    assert same(belief.closed, [Fraction(19), Fraction(5)])


def test_partly_known_rows_in_rational_arithmetic():
    """Rows (1/4, 3/4 r) and (1/2 reversed r, 1/2).

    Known entries carry no information, the others are pooled.
    """
    counts = Counts(
        np.array([[[3, 4], [9, 9]], [[0, 5], [2, 6]]]), np.array([[50, 1, 2, 3], [10, 20, 30, 70]])
    )
    belief = posterior(programs.partly(), counts)
    mean, variance = dirichlet([2, 1, 3], [1 + 30, 2 + 20, 3 + 10])
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    assert same(belief.mean.shows(0)[0], [quarter, *(3 * quarter * m for m in mean)])
    assert same(belief.mean.shows(0)[1], [*(half * m for m in mean[::-1]), half])
    assert same(belief.variance.emission[0], [0, *(9 * quarter**2 * v for v in variance)])
    assert same(belief.variance.emission[1], [*(half**2 * v for v in variance[::-1]), 0])
    first, of_first = dirichlet([1, 3], [4, 3])  # slip[0] is the second entry of T(. | 0, 0)
    second, of_second = dirichlet([2, 1], [2, 6])
    assert same(belief.mean.moves(0), [[first[::-1], [half, half]], [[0, 1], second]])
    assert same(belief.variance.transition, [[of_first[::-1], [0, 0]], [[0, 0], of_second]])


def test_draws_have_the_claimed_distribution():
    """Kolmogorov-Smirnov test of single entries, ALARM each; planted bug: an extra count."""
    counts = Counts(
        np.array([[[3, 4], [9, 9]], [[0, 5], [2, 6]]]), np.array([[50, 1, 2, 3], [10, 20, 30, 70]])
    )
    belief = posterior(programs.partly(), counts)
    sites, tables = belief.parameters(KEY, DRAWS), belief.draws(KEY, DRAWS)
    alpha = np.array([2 + 31, 1 + 22, 3 + 13])
    for k in range(3):
        assert (
            stats.kstest(
                sites["rest"][:, k], stats.beta(alpha[k], alpha.sum() - alpha[k]).cdf
            ).pvalue
            > ALARM
        )
    assert (
        stats.kstest(sites["rest"][:, 0], stats.beta(alpha[0] + 1, alpha[1:].sum()).cdf).pvalue
        < ALARM
    )
    assert stats.kstest(sites["slip"][:, 0], stats.beta(1 + 4, 3 + 3).cdf).pvalue > ALARM
    assert stats.kstest(sites["slip"][:, 1], stats.beta(2 + 2, 1 + 6).cdf).pvalue > ALARM
    assert np.allclose(tables.shows(0)[:, 0, 1:], 0.75 * sites["rest"])
    assert np.allclose(tables.moves(0)[:, 0, 0, 1], sites["slip"][:, 0])
    assert np.allclose(tables.shows(0).sum(-1), 1, atol=1e-12)
    assert tables.reward.shape == (DRAWS, 3, 2, 1, 2)
    again = belief.parameters(KEY, DRAWS)
    assert all(np.array_equal(sites[name], again[name]) for name in sites)


def test_draws_of_tiny_concentrations_are_probabilities():
    """Beta(1e-3, 1e-3) has much of its mass below the smallest float.

    Draws are still probabilities, half of them at each end.
    """
    belief = posterior(programs.partly(), Counts.zero(programs.partly()))
    draws = replace(belief, closed=np.full(7, 1e-3)).draws(KEY, DRAWS)
    for table in draws[1:3]:
        assert np.isfinite(table).all()
        assert np.allclose(table.sum(-1), 1, atol=1e-12)
    ends = int(np.sum(draws.moves(0)[:, 0, 0, 0] > 0.5))
    assert stats.binomtest(ends, DRAWS).pvalue > ALARM


def test_updates_add_up():
    """Updates by single episodes equal one update by all; only the counts are kept."""
    model, batch = programs.tables(), programs.episodes(programs.tables)
    step = posterior(model, batch[:1])
    for episode in batch[1:]:
        step = step.update(episode)
    at_once = posterior(model, list(batch))
    by_counts = posterior(model, model.counts(batch))
    for belief in (step, by_counts):
        assert np.array_equal(belief.closed, at_once.closed)
    assert len(step.closed) == 24


def test_nothing_unknown():
    model = programs.nothing_unknown()
    belief = posterior(model, Counts.zero(model))
    assert belief.method == "known"
    assert belief.parameters(KEY, 3) == {}
    assert belief.draws(KEY, 3).moves(0).shape == (3, 3, 2, 3)
    assert np.array_equal(belief.mean.shows(0), np.eye(3))
    assert not belief.variance.transition.any()
    assert not belief.dataset.data_vars
    assert belief.update(Counts.zero(model)).method == "known"
    assert posterior(model, Counts.zero(model), method="nuts").method == "known"


def finite_posterior(weights):
    """Normalised rational weights."""
    total = sum(weights.values())
    return {value: weight / total for value, weight in weights.items()}


def binomial(p, yes, no):
    return p**yes * (1 - p) ** no


def test_discrete_sites_are_summed_over_exactly():
    """Three sites with 12 joint values: probabilities, mean and variance in rational arithmetic."""
    T, O = np.array([[[9, 2], [8, 3]], [[7, 0], [4, 4]]]), np.array([[8, 3], [2, 9]])  # noqa: E741
    belief = posterior(programs.switch(), Counts(T, O))
    assert belief.method == "enumerated"
    assert posterior(programs.switch(), Counts(T, O), method="laplace").method == "enumerated"
    accuracy = [Fraction(6, 10), Fraction(75, 100), Fraction(9, 10)]
    slip = [Fraction(1, 10), Fraction(4, 10)]
    rare = [Fraction(3, 10), Fraction(1, 100)]
    weights = {}
    for grade, *slippery in product(range(3), range(2), range(2)):
        weight = Fraction(5 - 2 * grade if grade < 2 else 2, 10) * binomial(
            accuracy[grade], 8 + 9, 3 + 2
        )
        for a, wet in enumerate(slippery):
            prior = rare[a] if wet else 1 - rare[a]
            weight *= prior * binomial(slip[wet], int(T[:, a, 1].sum()), int(T[:, a, 0].sum()))
        weights[grade, *slippery] = weight
    exact = finite_posterior(weights)
    values = belief.atoms.values
    for grade, slippery, probability in zip(
        values["grade"], values["slippery"], belief.atoms.weights, strict=True
    ):
        assert probability == pytest.approx(float(exact[int(grade), *map(int, slippery)]), rel=1e-9)
    mean = sum(p * accuracy[value[0]] for value, p in exact.items())
    variance = sum(p * accuracy[value[0]] ** 2 for value, p in exact.items()) - mean**2
    assert belief.mean.shows(0)[0, 0] == pytest.approx(float(mean), rel=1e-12)
    assert belief.variance.emission[0, 0] == pytest.approx(float(variance), rel=1e-9)
    first = belief.parameters(KEY, 4000)["grade"]
    top = sum(p for value, p in exact.items() if value[0] == 2)
    assert stats.binomtest(int(np.sum(first == 2)), 4000, float(top)).pvalue > ALARM
    assert (
        stats.binomtest(int(np.sum(first == 2)), 4000, 0.2).pvalue < ALARM
    )  # planted bug: the prior


def test_discrete_sites_with_a_closed_form():
    T, O = np.array([[[9, 2], [8, 3]], [[0, 6], [0, 4]]]), np.array([[8, 3], [2, 9]])  # noqa: E741
    belief = posterior(programs.closed_switch(), Counts(T, O))
    assert belief.method == "mixed"
    assert belief.explanation == "slip in closed form; grade summed over exactly"
    accuracy = [Fraction(6, 10), Fraction(75, 100), Fraction(9, 10)]
    exact = finite_posterior({grade: binomial(p, 17, 5) for grade, p in enumerate(accuracy)})
    mean = sum(p * accuracy[grade] for grade, p in exact.items())
    assert belief.mean.shows(0)[1, 1] == pytest.approx(float(mean), rel=1e-12)
    beta, variance = dirichlet([1, 4], [2 + 3, 9 + 8])
    assert same(belief.mean.moves(0)[0], [beta[::-1], beta[::-1]])
    assert same(belief.variance.transition[0, 0], variance)
    assert np.array_equal(belief.mean.moves(0)[1], [[0, 1], [0, 1]])  # known, hence exact
    assert not belief.variance.transition[1].any()
    with compilations() as compiled:
        assert len(belief.update(Counts(T, O)).atoms.weights) == 3
    assert compiled == []


def test_without_data_the_prior_is_sampled():
    model = programs.hierarchy()
    belief = posterior(model, Counts.zero(model), sampling=Sampling(4, 10, 500))
    assert belief.method == "prior"
    drawn = belief.parameters(KEY, 2000)
    assert stats.kstest(drawn["centre"], stats.norm(1, 1).cdf).pvalue > ALARM
    assert stats.kstest(drawn["spread"], stats.gamma(4, scale=1 / 8).cdf).pvalue > ALARM
    noise = (drawn["logit"] - drawn["centre"][:, None]) / drawn["spread"][:, None]
    assert stats.kstest(noise[:, 1], stats.norm.cdf).pvalue > ALARM
    assert (
        stats.kstest(drawn["logit"][:, 1], stats.norm.cdf).pvalue < ALARM
    )  # planted bug: centre and spread left out


@pytest.mark.parametrize("weigh", ["factor", "observed", "scaled", "masked", "nothing"])
def test_a_reweighted_prior_is_sampled_by_nuts(weigh):
    """Draws of the sites would ignore the weights, so NUTS must sample such a prior."""

    def program():
        around = {"scaled": handlers.scale(scale=2.0), "masked": handlers.mask(mask=False)}.get(
            weigh, nullcontext()
        )
        with around:
            p = numpyro.sample("p", dist.Beta(2.0, 2.0))
        if weigh == "factor":
            numpyro.factor("nudge", p)
        if weigh == "observed":
            numpyro.sample("survey", dist.Normal(p, 1.0), obs=0.0)

    assert _weighed(SimpleNamespace(function=program)) == (weigh != "nothing")


def test_equally_likely_draws_are_picked_without_replacement():
    model = programs.hierarchy()
    belief = posterior(model, seen(np.zeros((3, 3))), sampling=Sampling(4, 10, 500))
    taken = belief.parameters(KEY, 2000)["centre"]
    assert np.array_equal(np.sort(taken), np.sort(belief.atoms.values["centre"]))
    more = belief.parameters(KEY, 4500)["centre"]
    assert set(np.unique(more, return_counts=True)[1]) == {2, 3}
    assert belief.parameters(KEY, 0)["centre"].shape == (0,)
