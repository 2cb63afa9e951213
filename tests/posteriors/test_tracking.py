"""Tracked posteriors: weights of the draws, and when to sample again."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.special import expit, softmax

from homdp_ppl import Counts, DataError, InferenceError, posterior
from homdp_ppl.posteriors import tracking
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.tracking import Moving, Tracked
from tests.posteriors import programs
from tests.posteriors.programs import seen
from tests.raising import raises

KEY = jax.random.key(0)


def test_finite_sites_with_a_closed_form_are_exact():
    """Many small updates equal one update: probabilities, concentrations and means."""
    model, batch = programs.closed_switch(), programs.episodes(programs.closed_switch)
    tracked, counts = Tracked.start(model), Counts.zero(model)
    for episode in batch:
        counts = counts + model.counts(episode)
        tracked = tracked.update(counts, KEY)
    exact = posterior(model, batch)
    assert np.allclose(tracked.belief.atoms.weights, exact.atoms.weights, rtol=1e-10)
    assert np.array_equal(tracked.belief.closed, exact.closed)
    for table in ("transition", "emission"):
        for mean in (tracked.mean(), tracked.belief.mean):
            assert np.allclose(getattr(mean, table), getattr(exact.mean, table), rtol=1e-10)
    assert not np.allclose(tracked.mean().shows(0), Tracked.start(model).mean().shows(0), atol=1e-3)


def test_weights_are_the_likelihood_since_the_last_fit():
    """Compared with NumPy, from the prior of the hierarchy.

    Planted bug: the data of the previous update are ignored.
    """
    start = Tracked.start(programs.hierarchy())
    first, second = np.diag([1, 0, 1]), np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    tracked = start.update(seen(first), KEY).update(seen(first + second), KEY)
    assert tracked.base is start.base
    p = expit(start.atoms.values["logit"])
    likelihood = p[:, 0] * p[:, 2] * (1 - p[:, 0]) / 2
    assert np.allclose(tracked.belief.atoms.weights, likelihood / likelihood.sum(), rtol=1e-10)
    assert not np.allclose(
        tracked.belief.atoms.weights, (1 - p[:, 0]) / np.sum(1 - p[:, 0]), rtol=1e-3
    )
    assert tracked.mean().shows(0)[0, 0] == pytest.approx(
        np.average(p[:, 0], weights=likelihood), rel=1e-10
    )
    assert tracked.belief.mean.shows(0)[0, 0] == pytest.approx(
        np.average(p[:, 0], weights=likelihood), rel=1e-10
    )


@pytest.fixture
def requested(monkeypatch):
    """The counts of requested fits; a fit keeps the draws."""
    requested = []

    def refit(belief, counts, key):
        requested.append(counts)
        return replace(belief, data=counts)

    monkeypatch.setattr(tracking, "refit", refit)
    return requested


def test_draws_are_sampled_again_from_all_data(requested):
    """When fewer than half of the draws are effective, a new fit uses all counts."""
    start = Tracked.start(programs.hierarchy())
    few, many = seen(np.eye(3)), seen(np.diag([30, 1, 1]))
    p = expit(start.atoms.values["logit"])
    effective = [
        1 / np.sum(softmax(np.log(p) @ np.diag(c.emission)) ** 2) / len(p) for c in (few, many)
    ]
    assert effective[0] > 0.5 > effective[1]
    assert start.update(few, KEY).base is start.base
    assert not requested
    refitted = start.update(many, KEY)
    assert requested == [many]
    assert refitted.belief.atoms.weights is None


def test_data_that_no_stored_draw_explains_cause_a_new_fit(requested):
    start = Tracked.start(programs.hierarchy())
    places, log = start.moving["emission"]
    start = replace(
        start, moving=start.moving | {"emission": Moving(places, np.full_like(log, -np.inf))}
    )
    unlikely = seen(np.eye(3))
    start.update(unlikely, KEY)
    assert requested == [unlikely]


def test_data_that_no_value_explains_raise():
    finite = Tracked.start(programs.one_of_two())
    with raises(DataError, "data"):
        finite.update(seen([[1, 1, 1], [0, 0, 0], [0, 0, 0]]), KEY)


def test_closed_forms_are_not_tracked():
    with raises(InferenceError, "posterior"):
        Tracked.start(programs.tables())


@pytest.mark.parametrize("program", [programs.hierarchy, programs.picks])
def test_the_mean_equals_that_of_the_posterior(program):
    """From stored tables, or by running the program at every draw.

    Rows in closed form are exact even with sampled sites.
    """
    model = program()
    start, counts = Tracked.start(model), Counts.zero(model)
    counts.emission[0, 0], counts.transition[0, 0, 1], counts.transition[0, 1, 0] = 1, 2, 1
    tracked = start.update(counts, KEY)
    assert tracked.base is start.base
    for table in ("initial", "transition", "emission", "reward"):
        assert np.allclose(
            getattr(tracked.mean(), table), getattr(tracked.belief.mean, table), rtol=1e-12
        )
    if program is programs.picks:  # slip ~ Beta(2, 3) changes the first state, for all actions
        assert np.allclose(tracked.mean().moves(0)[0, :, 1], (2 + 2) / (5 + 3), rtol=1e-14)


def test_weighted_draws_agree_with_the_closed_form(requested):
    """4,000 Beta draws of the tiger's accuracy, reweighted by single growls, against Beta means.

    The weighted mean of N independent draws has a standard error of sd sqrt(sum w^2), if at least
    half of the draws are effective. A deviation of 6 standard errors has probability 1e-8 at each
    growl. Planted bugs: data that are counted twice, and ignored data.
    """
    tiger = programs.world("tiger").homdp
    generator = np.random.default_rng(0)
    a, b = 8 + 15, 2 + 5
    first = seen([[8, 3], [2, 7]], np.zeros((2, 3, 2)))
    sampled = replace(
        posterior(tiger, first),
        atoms=Atoms({"accuracy": generator.beta(a, b, 4000)}),
        closed=np.zeros(0),
    )
    start = Tracked.of(sampled)
    right, wrong = 0, 0
    furthest = {"once": 0.0, "twice": 0.0, "forgotten": 0.0}
    for growl in range(200):
        right, wrong = (
            (right, wrong + 1) if growl % 5 < 2 else (right + 1, wrong)
        )  # now correct in 3 of 5 cases only
        tracked = start.update(seen([[8 + right, 3 + wrong], [2, 7]], np.zeros((2, 3, 2))), KEY)
        if requested:
            break
        total = a + b + growl + 1
        exact = (a + right) / total
        weights = tracked.belief.atoms.weights
        error = 6 * np.sqrt(exact * (1 - exact) / (total + 1) * np.sum(weights**2))
        twice = start.update(
            seen([[8 + 2 * right, 3 + 2 * wrong], [2, 7]], np.zeros((2, 3, 2))), KEY
        )
        for name, mean in (
            ("once", tracked.mean()),
            ("twice", twice.mean()),
            ("forgotten", start.mean()),
        ):
            furthest[name] = max(furthest[name], abs(mean.shows(0)[0, 0] - exact) / error)
        requested.clear()
    assert 5 < growl < 199  # some updates, then a new fit
    assert furthest["once"] < 1
    assert furthest["twice"] > 1
    assert furthest["forgotten"] > 1
