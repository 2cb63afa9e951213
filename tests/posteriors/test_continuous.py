"""Posteriors of continuous models: closed forms, quadrature, and statistics."""

from functools import cache

import jax
import numpy as np
import pytest
from scipy import stats

from homdp_ppl import DataError, Episodes, InferenceError, posterior, rollout, uniform_policy, x64
from homdp_ppl.posteriors.gaussian import gaussian_form
from homdp_ppl.posteriors.statistics import Moments, gaussian_emissions, log_likelihood, statistics
from tests.chances import ALARM
from tests.continuous.programs import hearing, plane, raw_log_likelihood, walk
from tests.raising import raises

KEYS = jax.random.split(jax.random.key(5), 60)


@cache
def all_data(model):
    world = model.draw(jax.random.key(1))
    return world, rollout(KEYS, world, uniform_policy(world))


def data(model, n=60):
    world, episodes = all_data(model)
    return world, episodes[:n]


@pytest.mark.parametrize(
    "model",
    [
        "hearing",
        "means",
        pytest.param("walk", marks=pytest.mark.slow),
        pytest.param("plane", marks=pytest.mark.slow),
    ],
)
def test_statistics_are_sufficient(model):
    """The likelihood from counts, moments or padded rows equals that of the raw episodes."""
    model = {"hearing": hearing, "means": lambda: hearing("means"), "walk": walk, "plane": plane}[
        model
    ]()
    _, episodes = data(model, 9)
    compressed = statistics(Episodes.of(episodes, model), model.spaces, gaussian_emissions(model))
    assert isinstance(compressed.sights, Moments) == (model.name == "sounds")
    with x64():
        parameters = model.sample_prior(jax.random.key(2))
        raw = raw_log_likelihood(model, parameters, episodes)
        np.testing.assert_allclose(
            log_likelihood(model.dynamics.laws(parameters), compressed), raw, rtol=1e-10
        )


def test_padding_grows_by_doubling():
    model = walk()
    sizes = []
    for n in (0, 1, 21, 22, 43, 60):
        _, episodes = data(model, max(n, 1))
        rows = statistics(Episodes.of(episodes[:n], model), model.spaces, gaussian=False).moves
        assert rows.weight.sum() == 3 * n
        sizes.append(len(rows.weight))
    assert sizes == [64, 64, 64, 128, 256, 256]


def test_precisions_in_closed_form():
    """Textbook Normal-Gamma posterior: k, m, a and b given n, the mean and the centred squares.

    Draws by Kolmogorov's test: false-alarm rate 6e-6 in total. A normal distribution that is too
    wide is caught.
    """
    model = hearing("precisions")
    _, episodes = data(model)
    belief = posterior(model, episodes)
    assert belief.method == "conjugate"
    x, y = episodes.states[:, :-1].ravel(), episodes.observations.ravel()
    drawn = belief.parameters(jax.random.key(7), 4000)
    for state, m in enumerate((-1.0, 1.0, 0.0)):
        seen = y[x == state]
        n, ybar = len(seen), seen.mean()
        k, a = 0.5 + n, 3.0 + n / 2
        b = 2.0 + 0.5 * ((seen - ybar) ** 2).sum() + 0.5 * n * 0.5 / k * (ybar - m) ** 2
        assert belief.site_means["mean"][state] == pytest.approx(
            (0.5 * m + n * ybar) / k, rel=1e-12
        )
        assert belief.site_means["precision"][state] == pytest.approx(a / b, rel=1e-12)
        assert (
            stats.kstest(drawn["precision"][:, state], stats.gamma(a, scale=1 / b).cdf).pvalue
            > ALARM
        )
        marginal = stats.t(2 * a, (0.5 * m + n * ybar) / k, np.sqrt(b / (a * k)))
        assert stats.kstest(drawn["mean"][:, state], marginal.cdf).pvalue > ALARM
        assert (
            stats.kstest(drawn["mean"][:, state], stats.norm(ybar, marginal.std() * 1.3).cdf).pvalue
            < ALARM
        )


def test_known_scales_in_closed_form():
    """Draws by Kolmogorov's test: false-alarm rate 3e-6 in total.

    Data that are counted twice are caught.
    """
    model = hearing("means")
    _, episodes = data(model)
    belief = posterior(model, episodes)
    assert belief.method == "conjugate"
    x, y = episodes.states[:, :-1].ravel(), episodes.observations.ravel()
    for state, (m, deviation) in enumerate(((-1.0, 0.5), (1.0, 0.7), (0.0, 1.0))):
        seen = y[x == state]
        precision = 1 / 4 + len(seen) / deviation**2
        middle = (m / 4 + seen.sum() / deviation**2) / precision
        assert belief.site_means["mean"][state] == pytest.approx(middle, rel=1e-12)
        drawn = belief.parameters(jax.random.key(7), 4000)["mean"][:, state]
        assert stats.kstest(drawn, stats.norm(middle, precision**-0.5).cdf).pvalue > ALARM
        assert (
            stats.kstest(drawn, stats.norm(middle, (2 * precision - 1 / 4) ** -0.5).cdf).pvalue
            < ALARM
        )
    shared = posterior(hearing("one mean"), data(hearing("one mean"))[1])
    assert shared.method == "conjugate"
    assert len(shared.closed) == 1


@pytest.mark.parametrize(
    ("kind", "closed"),
    [("variances", True), ("free scale", False), ("factor", False), ("moves too", False)],
)
def test_the_certificate_can_fail(kind, closed):
    with x64():
        assert (gaussian_form(hearing(kind)) is not None) == closed


@pytest.mark.slow
def test_closed_form_and_nuts_agree():
    """Means within 6 standard errors of 1,000 effective draws, false-alarm rate 1e-8 each.

    Using half of the data is caught.
    """
    model = hearing("precisions")
    _, episodes = data(model)
    exact, sampled = posterior(model, episodes), posterior(model, episodes, method="nuts")
    assert sampled.method == "nuts"
    errors = {
        name: values.std(0) / np.sqrt(1000)
        for name, values in exact.parameters(jax.random.key(0), 4000).items()
    }

    def agree(belief):
        return all(
            (np.abs(sampled.site_means[name] - belief.site_means[name]) < 6 * error).all()
            for name, error in errors.items()
        )

    assert agree(exact)
    assert not agree(posterior(model, episodes[:30]))
    more = sampled.update(episodes[:5])
    assert len(more.data) == 65
    assert more.dataset["mean"].shape == (4, 500, 3)
    assert "by NUTS" in repr(more)


@pytest.mark.slow
def test_nuts_against_quadrature():
    """One unknown number, continuous states: the mean of NUTS against a fine grid.

    Within 6 standard errors of 400 effective draws, the fewest that pass the gate: false-alarm rate
    2e-9.
    """
    model = walk()
    _, episodes = data(model, 20)
    belief = posterior(model, episodes)
    grid = np.linspace(1e-4, 3, 3001)
    residual = (episodes.observations - episodes.states[:, :-1]).ravel()
    log_density = stats.halfnorm.logpdf(grid) + stats.norm.logpdf(
        residual[:, None], 0, 0.1 + grid
    ).sum(0)
    weights = np.exp(log_density - log_density.max())
    exact = np.average(grid, weights=weights)
    deviation = np.sqrt(np.average((grid - exact) ** 2, weights=weights))
    assert abs(belief.site_means["noise"] - exact) < 6 * deviation / np.sqrt(400)
    assert abs(belief.site_means["noise"] - 0.1 - exact) > 6 * deviation / np.sqrt(
        400
    )  # omitting the 0.1 would be caught
    assert belief.diagnostics.divergences == 0
    assert [w.homdp for w in belief.worlds(jax.random.key(0), 2)] == [model, model]
    before = posterior(model, [])
    assert before.method == "prior"
    assert abs(before.site_means["noise"] - np.sqrt(2 / np.pi)) < 0.1


def test_unsupported_data_and_methods_raise():
    model = hearing("means")
    with raises(InferenceError, "method"):
        posterior(model, [], method="laplace")
    with raises(DataError, "episodes"):
        posterior(model, data(walk(), 2)[1])
