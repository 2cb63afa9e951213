"""NUTS against closed forms and grids: compilation, warm starts and the gate.

All quick tests share one fit.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.nn import sigmoid
from scipy.special import expit
from scipy.stats import beta, gamma, norm

from homdp_ppl import Counts, DataError, InferenceError, Kernels, posterior
from homdp_ppl.posteriors import Gate, Sampling
from homdp_ppl.posteriors.diagnostics import diagnose
from homdp_ppl.posteriors.nuts import sampler as nuts_sampler
from tests.compiling import compilations
from tests.posteriors import programs
from tests.posteriors.programs import GRID, ear_posterior, grid_posterior, growls, seen
from tests.raising import raises
from tests.worlds import world

KEY = jax.random.key(0)
GROWLS = np.array([[14, 5], [3, 11]])


def deviations(draws, cdf):
    """Distance of the first two moments of cdf(draw) from a uniform number's, in standard errors.

    Draws are (chains, draws). The standard errors use the effective sample sizes of the two
    quantities, which are tested against ArviZ elsewhere.
    """
    uniform = cdf(draws)
    centred = np.stack([uniform - 1 / 2, (uniform - 1 / 2) ** 2 - 1 / 12], -1)
    sizes = [diagnose({"": centred[..., k]}, np.zeros(draws.shape, bool)).ess[""] for k in range(2)]
    return np.abs(centred.mean((0, 1))) / np.sqrt(np.array([1 / 12, 1 / 180]) / sizes)


STANDARD_ERRORS = 5  # false-alarm rate of the two moments: less than 1.2e-6 for normal averages


@cache
def tiger_by_nuts():
    return posterior(world("tiger").homdp, growls(GROWLS), method="nuts")


@cache
def logistic_by_nuts():
    return posterior(programs.logistic(), growls(GROWLS))


def chains(belief, site):
    return np.asarray(belief.dataset[site])


@pytest.mark.slow
def test_closed_form_grid_and_nuts_agree_on_the_accuracy_of_growls():
    """Planted bugs: data counted twice, and growls from the right counted as from the left."""
    sampled, closed = tiger_by_nuts(), posterior(world("tiger").homdp, growls(GROWLS))
    assert (sampled.method, closed.method) == ("nuts", "conjugate")
    right, wrong = 14 + 11, 5 + 3
    p = np.linspace(1e-6, 1 - 1e-6, 20_001)
    grid = grid_posterior(beta.logpdf(p, 8, 2) + right * np.log(p) + wrong * np.log(1 - p), p)
    exact = beta(8 + right, 2 + wrong).cdf
    assert np.abs(grid(p) - exact(p)).max() < 1e-6
    draws = chains(sampled, "accuracy")
    assert draws.shape == (4, 500)
    assert (deviations(draws, grid) < STANDARD_ERRORS).all()
    assert (deviations(draws, exact) < STANDARD_ERRORS).all()
    assert (deviations(draws, beta(8 + 2 * right, 2 + 2 * wrong).cdf) > STANDARD_ERRORS).any()
    assert (deviations(draws, beta(8 + 14 + 3, 2 + 5 + 11).cdf) > STANDARD_ERRORS).any()
    error = np.sqrt(closed.variance.emission / sampled.diagnostics.ess["accuracy"])
    assert (np.abs(sampled.mean.shows(0) - closed.mean.shows(0)) < STANDARD_ERRORS * error).all()
    assert np.allclose(sampled.variance.emission, closed.variance.emission, rtol=0.3)
    assert np.array_equal(sampled.mean.moves(0), closed.mean.moves(0))  # known rows are exact
    assert not sampled.variance.transition.any()


@pytest.mark.slow
def test_grid_and_nuts_agree_without_a_closed_form():
    """Planted bug: the prior is centred at 0 instead of 1."""
    belief = logistic_by_nuts()
    assert belief.method == "nuts"
    assert belief.explanation == "ear by NUTS, 4 chains of 500 draws"
    draws = chains(belief, "ear")
    assert (deviations(draws, ear_posterior(25, 8)) < STANDARD_ERRORS).all()
    wrong_prior = grid_posterior(
        norm.logpdf(GRID) + 25 * np.log(expit(GRID)) + 8 * np.log(expit(-GRID)), GRID
    )
    assert (deviations(draws, wrong_prior) > STANDARD_ERRORS).any()
    tables = belief.draws(KEY, 2000)
    assert sorted(tables.shows(0)[:, 0, 0]) == pytest.approx(sorted(expit(draws).ravel()))


def test_new_data_do_not_recompile():
    """Other counts, a million episodes, another key, horizon or round of the gate.

    The counter of compilations works.
    """
    model = programs.logistic()
    logistic_by_nuts().update(growls(GROWLS)).mean  # noqa: B018  everything once
    with compilations() as compiled:
        belief = posterior(model, growls(GROWLS[::-1] + 3), key=jax.random.key(5))
        belief = belief.update(growls(GROWLS * 1_000_000))
        belief.mean  # noqa: B018
        shorter = model.with_horizon(2)
        posterior(shorter, shorter.counts([]) + growls(GROWLS)).update(growls(GROWLS))
        posterior(model, growls(GROWLS), gate=Gate(ess=10_000), force=True)
    assert compiled == []
    with compilations() as compiled:
        jax.jit(lambda x: x + 1)(np.ones(3))
    assert compiled == ["jit(<lambda>)"]


def test_the_sampler_depends_on_sufficient_statistics_only():
    """Equal counts from 1 or 40 episodes give equal draws, and the stored data do not grow."""
    model = programs.logistic()
    batch = programs.episodes(programs.logistic, 40)
    one_by_one = posterior(model, batch)
    by_counts = posterior(model, model.counts(batch))
    assert np.array_equal(chains(one_by_one, "ear"), chains(by_counts, "ear"))
    sizes = [
        b.counts.transition.size + b.counts.emission.size for b in (logistic_by_nuts(), one_by_one)
    ]
    assert sizes[0] == sizes[1] == 12 + 4


def sampler():
    """What was compiled for the logistic program."""
    belief = logistic_by_nuts()
    return nuts_sampler(belief.homdp, (), belief.settings.sampling)


def test_an_update_starts_from_the_current_positions(monkeypatch):
    """The refit keeps positions, step sizes and mass matrices, and runs one round, not two."""
    belief = logistic_by_nuts()
    warm = belief.warm
    last = chains(belief, "ear")[:, -1]
    assert np.array_equal(warm.position["ear"], last)
    assert (warm.step_size != 1).all()
    assert (
        warm.inverse_mass[:, 0, 0] < 0.8
    ).all()  # adapted from the identity towards the posterior variance
    starts, compiled = [], sampler()._round
    monkeypatch.setattr(
        sampler(), "_round", lambda *arguments: starts.append(arguments[2]) or compiled(*arguments)
    )
    updated = belief.update(growls([[1, 0], [0, 1]]))
    assert len(starts) == 1
    assert np.array_equal(starts[0].position["ear"], last)
    posterior(belief.homdp, growls(GROWLS))
    assert len(starts) == 3
    assert (deviations(chains(updated, "ear"), ear_posterior(27, 8)) < STANDARD_ERRORS).all()


def test_a_failed_warm_start_is_followed_by_a_cold_start(monkeypatch):
    """Three rounds from the current positions, then a cold start and three more rounds."""
    kept = posterior(programs.logistic(), growls(GROWLS), gate=Gate(ess=10_000), force=True)
    starts, compiled = [], sampler()._round
    monkeypatch.setattr(
        sampler(), "_round", lambda *arguments: starts.append(arguments[2]) or compiled(*arguments)
    )
    kept.update(growls(GROWLS))
    assert len(starts) == 3 + 1 + 3
    assert np.array_equal(starts[0].position["ear"], chains(kept, "ear")[:, -1])
    assert np.array_equal(starts[3].step_size, np.ones(4))


def test_chains_that_find_no_start_share_one(monkeypatch):
    """Data may be possible only in a small part of the prior.

    One chain that finds it is enough; if none does, an error is raised.
    """
    logistic_by_nuts()
    for potential, expected in (
        ([np.inf, 1.0, np.inf, 2.0], [1, 1, 1, 3]),
        ([1.0, 2.0, 3.0, np.inf], [0, 1, 2, 0]),
    ):
        found = {"ear": np.arange(4.0)}, np.array(potential)
        monkeypatch.setattr(sampler(), "_start", lambda *_, found=found: found)
        assert np.array_equal(sampler()._cold(KEY, growls(GROWLS)).position["ear"], expected)
    monkeypatch.setattr(sampler(), "_start", lambda *_: (found[0], np.full(4, np.inf)))
    with raises(DataError, "data"):
        sampler()._cold(KEY, growls(GROWLS))


def test_an_update_far_away_is_correct():
    """From a posterior with sd 0.4 to one with sd 0.005, two prior standard deviations away."""
    belief = logistic_by_nuts().update(growls([[20_000, 80_000], [80_000, 20_000]]))
    assert (
        deviations(chains(belief, "ear"), ear_posterior(40_025, 160_008)) < STANDARD_ERRORS
    ).all()
    assert (
        deviations(chains(belief, "ear"), ear_posterior(40_000, 160_300)) > STANDARD_ERRORS
    ).any()  # planted bug


def test_the_gate_raises_and_force_keeps_the_fit():
    model = programs.logistic()
    with raises(InferenceError, "ESS of ear") as error:
        posterior(model, growls(GROWLS), gate=Gate(ess=10_000))
    assert "force=True" in str(error.value)
    kept = posterior(model, growls(GROWLS), gate=Gate(ess=10_000), force=True)
    assert kept.forced
    assert kept.dataset.attrs["forced"] == 1
    assert "force=True" in repr(kept)
    assert kept.update(growls(GROWLS)).forced
    good = logistic_by_nuts()
    assert (good.forced, good.dataset.attrs["forced"], "force" in repr(good)) == (False, 0, False)
    assert good.diagnostics.problems(Gate()) == []
    assert good.dataset.attrs["divergences"] == good.diagnostics.divergences


def test_the_key_determines_the_draws():
    model = programs.logistic()
    first, again, other = (
        posterior(model, growls(GROWLS), key=jax.random.key(k)) for k in (1, 1, 2)
    )
    assert np.array_equal(chains(first, "ear"), chains(again, "ear"))
    assert not np.array_equal(chains(first, "ear"), chains(other, "ear"))


@cache
def picks_by_nuts():
    return posterior(
        programs.picks(), Counts([[[5, 2], [1, 1]], [[3, 3], [2, 2]]], [[6, 0, 0], [2, 3, 7]])
    )


@pytest.mark.slow
def test_jointly_impossible_data_raise_in_an_update():
    """Two outcomes that are impossible together under every value of `side`.

    The error is raised after a cold start and after a warm start.
    """
    one, other = seen([[0, 4, 0], [0, 0, 0]]), seen([[0, 0, 1], [0, 0, 0]])
    with raises(DataError, "data"):
        posterior(programs.picks(), one + other)
    settled = picks_by_nuts().update(one)
    with raises(DataError, "data"):
        settled.update(other)


@pytest.mark.slow
def test_discrete_continuous_and_closed_sites_together():
    """`level` on a grid for each value of `side`, `slip` Beta(2 + 3, 3 + 6).

    Then data that determine `side`.
    """
    belief = picks_by_nuts()
    assert belief.method == "mixed"
    prior_and_likelihood = [  # side = 0, 1: both have p^6 for the first state
        np.log(0.7) + 2 * np.log(0.5) + 3 * np.log(0.3) + 7 * np.log(0.2),
        np.log(0.3) + 5 * np.log(0.2) + 7 * np.log(0.6),
    ]
    odds = np.exp(prior_and_likelihood[1] - prior_and_likelihood[0])
    sides = chains(belief, "side")
    share = odds / (1 + odds)
    size = belief.diagnostics.ess["side"]
    assert abs(sides.mean() - share) < STANDARD_ERRORS * np.sqrt(share * (1 - share) / size)
    assert abs(sides.mean() - 0.3) > STANDARD_ERRORS * np.sqrt(
        share * (1 - share) / size
    )  # planted bug: the prior
    level = grid_posterior(norm.logpdf(GRID) + 6 * np.log(expit(GRID)), GRID)
    assert (deviations(chains(belief, "level"), level) < STANDARD_ERRORS).all()
    assert np.array_equal(belief.closed, [2 + 3, 3 + 6])
    assert belief.mean.moves(0)[0, 0, 1] == pytest.approx(5 / 14)
    settled = belief.update(seen([[0, 4, 0], [0, 0, 0]]))
    assert (chains(settled, "side") == 1).all()
    level = grid_posterior(
        norm.logpdf(GRID) + 6 * np.log(expit(GRID)) + 4 * np.log(expit(-GRID)), GRID
    )
    assert (deviations(chains(settled, "level"), level) < STANDARD_ERRORS).all()
    assert settled.mean.shows(0)[0, 2] == 0


def two_modes():
    """The data identify |tilt| but not its sign: two narrow modes that chains cannot cross."""

    def two_modes():
        tilt = numpyro.sample("tilt", dist.Normal(0.0, 2.0))
        return Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), programs.pair(sigmoid(tilt**2 - 1)))

    return programs.declare(two_modes, states=2, observations=2)


def funnel():
    """Neal's funnel: centred effects whose unknown scale may be near zero, with few data."""

    def funnel():
        width = numpyro.sample("width", dist.Normal(0.0, 3.0))
        with numpyro.plate("effects", 3):
            effect = numpyro.sample("effect", dist.Normal(0.0, jnp.exp(width / 2)))
        p = sigmoid(effect)[:, None]
        return Kernels(
            programs.EYE[0], programs.STAY, p * programs.EYE + (1 - p) / 2 * (1 - programs.EYE)
        )

    return programs.declare(funnel)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "emission", "where"),
    [
        (two_modes, [[700, 300], [300, 700]], "R-hat of tilt"),
        (funnel, np.eye(3), "divergences"),
    ],
    ids=["two modes", "funnel"],
)
def test_bad_fits_do_not_pass(program, emission, where):
    model, counts = program(), seen(np.array(emission))
    with raises(InferenceError, where):
        posterior(model, counts)
    kept = posterior(model, counts, force=True)
    assert kept.forced
    assert kept.diagnostics.problems(Gate())


@pytest.mark.slow
def test_a_hierarchy_is_recovered_on_a_grid():
    """`centre` and `spread`, with the accuracies integrated out by quadrature.

    Planted bug: the spread is fixed at its prior mean.
    """
    emission = np.array([[40, 1, 1], [3, 30, 5], [9, 9, 20]])
    belief = posterior(programs.hierarchy(), seen(emission), sampling=Sampling(4, 500, 1000))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    centre, spread = np.linspace(-4, 6, 401), np.linspace(0.005, 3, 300)
    logit = centre[:, None, None] + spread[None, :, None] * nodes
    log_joint = norm.logpdf(centre, 1, 1)[:, None] + gamma.logpdf(spread, 4, scale=1 / 8)
    for x in range(3):
        right, wrong = emission[x, x], emission[x].sum() - emission[x, x]
        likelihood = np.exp(right * np.log(expit(logit)) + wrong * np.log(expit(-logit)))
        log_joint = log_joint + np.log(likelihood @ weights)
    joint = np.exp(log_joint - log_joint.max())
    by_centre, fixed = (
        grid_posterior(np.log(w), centre)
        for w in (joint.sum(1), joint[:, np.argmin(np.abs(spread - 0.5))])
    )
    assert (deviations(chains(belief, "centre"), by_centre) < STANDARD_ERRORS).all()
    assert (
        deviations(chains(belief, "spread"), grid_posterior(np.log(joint.sum(0)), spread))
        < STANDARD_ERRORS
    ).all()
    assert (deviations(chains(belief, "centre"), fixed) > STANDARD_ERRORS).any()
