"""Posteriors of several sensors: closed forms per sensor, products of rows, calibration."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy import stats

from homdp_ppl import Counts, Episodes, posterior, tabular, x64
from homdp_ppl.posteriors import Sampling
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.posteriors.tables import tables_at
from tests.posteriors import sbc
from tests.sensors import SENSORS, data, declared

ALPHA = {"ear": np.array([[3.0, 1.0], [1.0, 2.0]]), "eye": np.array([[1.0, 2, 1], [1, 1, 4]])}


def by_hand(kind, episodes, depends):
    """Counts of each sensor, one observation at a time."""
    shapes = {
        name: declared(kind).structure.tables[f"emission[{name}]"].reference.shape
        for name in SENSORS
    }
    found = {name: np.zeros(shape, int) for name, shape in shapes.items()}
    space = declared(kind).spaces.observations
    for episode in episodes:
        for h, y in enumerate(episode.observations):
            previous = int(episode.actions[h - 1]) if h else 2
            for name, outcome in space.split(int(y)).items():
                k = SENSORS[name].index(outcome)
                found[name][(*depends[name](h, previous), int(episode.states[h]), k)] += 1
    return found


@pytest.mark.parametrize(
    ("kind", "ear", "eye"),
    [
        ("plain", lambda h, a: (), lambda h, a: ()),
        ("answers", lambda h, a: (a,), lambda h, a: ()),
        ("steps", lambda h, a: (a,), lambda h, a: (h, 0)),
        ("ended", lambda h, a: (), lambda h, a: ()),
    ],
)
def test_joint_counts_give_the_counts_of_each_sensor(kind, ear, eye):
    expected = by_hand(kind, data(kind), {"ear": ear, "eye": eye})
    model = declared(kind)
    found = counted(model, model.counts(data(kind)))
    for name, table in expected.items():
        assert np.array_equal(found[f"emission[{name}]"], table)


def test_closed_forms_are_those_of_each_sensor():
    seen = by_hand("plain", data("plain"), dict.fromkeys(SENSORS, lambda h, a: ()))
    belief = posterior(declared("plain"), data("plain"))
    assert belief.method == "conjugate"
    total = {name: ALPHA[name] + seen[name] for name in SENSORS}
    means = {name: alpha / alpha.sum(-1, keepdims=True) for name, alpha in total.items()}
    for name, mean in means.items():
        assert np.allclose(belief.site_means[name], mean, atol=1e-12)
    joint = np.einsum("xi,xj->xij", means["ear"], means["eye"]).reshape(2, 6)
    assert np.allclose(belief.mean.shows(0), joint, atol=1e-12)
    squares = {
        name: alpha
        * (alpha + 1)
        / (alpha.sum(-1, keepdims=True) * (alpha.sum(-1, keepdims=True) + 1))
        for name, alpha in total.items()
    }
    square = np.einsum("xi,xj->xij", squares["ear"], squares["eye"]).reshape(2, 6)
    assert np.allclose(belief.variance.emission, square - joint**2, atol=1e-12)


def test_a_parameter_that_two_sensors_share_is_not_counted_as_two():
    """The accuracy of `shared` by quadrature: the mean of a product is no product of means."""
    counts = declared("shared").counts(data("shared", episodes=6))
    belief = posterior(declared("shared"), counts)
    assert belief.method == "conjugate"
    p = (np.arange(200_000) + 0.5) / 200_000
    one, zero = np.ones_like(p), np.zeros_like(p)
    ear = np.array([[p, 1 - p], [1 - p, p]])
    eye = np.array([[p, 1 - p, zero], [0.75 * (1 - p), 0.75 * p, 0.25 * one]])
    joint = np.einsum("xin,xjn->xijn", ear, eye).reshape(2, 6, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.nansum(
            np.where(counts.emission[..., None] > 0, np.log(joint), 0.0)
            * counts.emission[..., None],
            axis=(0, 1),
        )
    weight = np.exp(log - log.max()) * stats.beta(3, 2).pdf(p)
    weight /= weight.sum()
    mean, square = joint @ weight, joint**2 @ weight
    assert np.allclose(belief.mean.shows(0), mean, atol=1e-9)
    assert np.allclose(belief.variance.emission, square - mean**2, atol=1e-9)
    naive = np.einsum("xi,xj->xij", ear @ weight, eye @ weight).reshape(2, 6)
    assert np.abs(naive - mean).max() > 1e-3  # the test can tell the difference
    draws = belief.draws(jax.random.key(0), 4000).shows(0)
    assert np.abs(draws.mean(0) - mean).max() < 5 * np.sqrt((square - mean**2).max() / 4000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_numpyro_on_the_program_agrees(kind):
    """Means within 0.03 and joint means within 0.01: more than 5 standard errors of 1,600 draws."""
    model = declared(kind)
    belief = posterior(model, data(kind), sampling=Sampling(chains=2, warmup=300, draws=1000))
    with x64():
        sampler = MCMC(
            NUTS(model.hindsight(data(kind))),
            num_warmup=200,
            num_samples=400,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
        )
        sampler.run(jax.random.key(1))
        found = {name: np.asarray(v) for name, v in sampler.get_samples(True).items()}
    for name, draws in found.items():
        assert np.abs(belief.site_means[name] - draws.mean((0, 1))).max() < 0.03
    batch = {name: v.reshape(-1, *v.shape[2:]) for name, v in found.items()}
    tables = tables_at(model, batch, 1600).emission
    assert np.abs(np.mean(tables, 0) - belief.mean.shows(0)).max() < 0.01
    assert np.abs(np.var(tables, 0) - belief.variance.emission).max() < 0.002


def test_mixed_rows_use_the_posterior_of_their_closed_factor():
    """The ear has a closed form, the eye does not: moments of the product of both."""
    belief = posterior(
        declared("mixed"), data("mixed"), sampling=Sampling(chains=2, warmup=200, draws=500)
    )
    assert belief.method == "mixed"
    slope = np.asarray(belief.atoms.values["slope"]).reshape(-1)
    weights = np.array([[1.0, 0.0, -1.0], [-1.0, 0.5, 1.0]])
    eye = np.exp(slope[:, None, None] * weights)
    eye /= eye.sum(-1, keepdims=True)
    alpha = belief.closed.reshape(2, 2)
    total = alpha.sum(-1, keepdims=True)
    ear, ear_square = alpha / total, alpha * (alpha + 1) / (total * (total + 1))
    mean = np.einsum("xi,xj->xij", ear, eye.mean(0)).reshape(2, 6)
    square = np.einsum("xi,xj->xij", ear_square, (eye**2).mean(0)).reshape(2, 6)
    assert np.allclose(belief.mean.shows(0), mean, atol=1e-9)
    assert np.allclose(belief.variance.emission, square - mean**2, atol=1e-9)


def test_nested_rows_of_a_sensor():
    """The mean and the variance of 20,000 draws, which do not use the moments of products."""
    belief = posterior(declared("nested"), data("nested", episodes=6))
    assert belief.method == "conjugate"
    draws = belief.draws(jax.random.key(0), 20_000).shows(0)
    error = 5 * np.sqrt(belief.variance.emission / 20_000) + 1e-12
    assert (np.abs(draws.mean(0) - belief.mean.shows(0)) < error).all()
    assert np.allclose(draws.var(0), belief.variance.emission, rtol=0.1, atol=1e-12)


@pytest.mark.slow
def test_gaps_are_summed_over():
    """Gibbs sampling of sensors against NUTS on the same declaration with joint observations."""
    seen = data("plain", episodes=30)
    hidden = np.random.default_rng(0).random(seen.states.shape) < 0.3
    gaps = Episodes(seen.observations, seen.actions, seen.states, revealed=~hidden)
    sampling = Sampling(chains=4, warmup=200, draws=500)
    mine = posterior(declared("plain"), gaps, sampling=sampling)
    theirs = posterior(declared("plain", joint=True), gaps, sampling=sampling)
    assert mine.method == "gibbs"
    assert theirs.method == "nuts"
    for name in SENSORS:
        assert np.abs(mine.site_means[name] - theirs.site_means[name]).max() < 0.03


def test_an_uninformative_sensor_changes_no_posterior():
    model = declared("plain")
    coin = tabular(
        T=np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]]),
        O={
            "ear": dist.Dirichlet(ALPHA["ear"]),
            "coin": [[0.25, 0.75]] * 2,
            "eye": dist.Dirichlet(ALPHA["eye"]),
        },
        initial=[0.5, 0.5],
        reward=[[1.0, 0.1], [0.0, 0.7]],
        horizon=3,
    )
    seen = data("plain")
    ear, eye = np.unravel_index(seen.observations, (2, 3))
    flips = np.random.default_rng(0).integers(0, 2, ear.shape)
    more = replace(seen, observations=np.ravel_multi_index((ear, flips, eye), (2, 2, 3)))
    mine, theirs = posterior(coin, more), posterior(model, seen)
    assert np.array_equal(mine.site_means["O_ear"], theirs.site_means["ear"])
    assert np.array_equal(mine.site_means["O_eye"], theirs.site_means["eye"])
    assert np.array_equal(mine.closed, theirs.closed)


REPLICAS = 250


@cache
def study():
    generator = np.random.default_rng(1)
    truth = {}
    for name, alpha in ALPHA.items():
        weights = generator.gamma(alpha, size=(REPLICAS, *alpha.shape))
        truth[name] = weights / weights.sum(-1, keepdims=True)
    moves = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])

    def tables(values):
        joint = np.einsum("...xi,...xj->...xij", values["ear"], values["eye"])
        joint = joint.reshape(*joint.shape[:-2], 6)
        return np.broadcast_to(moves, (*joint.shape[:-2], 2, 2, 2)), joint

    return sbc.study(truth, tables, np.array([0.5, 0.5]), horizon=3, episodes=8, seed=2)


BUGS = {
    "sensors swapped": lambda n: n.reshape(2, 3, 2).transpose(0, 2, 1).reshape(2, 6),
    "outcomes of the ear exchanged": lambda n: n.reshape(2, 2, 3)[:, ::-1].reshape(2, 6),
    "counts of the eye dropped": lambda n: (
        np.repeat(n.reshape(2, 2, 3).sum(-1, keepdims=True), 3, axis=-1).reshape(2, 6)
        * np.array([1, 0, 0] * 2)
    ),
    "counts of all dropped": lambda n: 0 * n,
}


def beliefs(change=None):
    model = declared("plain")
    for episodes in study().data:
        counts = model.counts(episodes)
        yield posterior(
            model,
            counts if change is None else Counts(counts.transition, change(counts.emission)),
        )


def test_sensors_are_calibrated():
    """10 parameters and the log-likelihood; false-alarm rate sbc.LEVEL = 1e-4."""
    assert sbc.alarms(sbc.uniforms(study(), beliefs())) == []


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug):
    assert sbc.alarms(sbc.uniforms(study(), beliefs(BUGS[bug])))
