"""Simulation-based calibration of closed forms and NUTS, and ten planted bugs that it catches."""

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from scipy.special import expit

from homdp_ppl import posterior
from homdp_ppl.posteriors import Gate, Sampling
from tests.posteriors import programs, sbc
from tests.posteriors.programs import ALPHA_O, ALPHA_T

CLOSED_REPLICAS = 300
FIRST = ("double counting", "shifted emission", "wrong action index", "wrong prior")
BUGS = (*sbc.CORRUPTIONS, "stale cache", "lost update", "wrong prior")


def dirichlets(alpha, replicas, generator):
    weights = generator.gamma(alpha, size=(replicas, *alpha.shape))
    return weights / weights.sum(-1, keepdims=True)


@cache
def closed_study(replicas=CLOSED_REPLICAS, episodes=8):
    """Independent Dirichlet rows."""
    generator = np.random.default_rng(1)
    truth = {
        "T": dirichlets(ALPHA_T, replicas, generator),
        "O": dirichlets(ALPHA_O, replicas, generator),
    }
    return sbc.study(
        truth, lambda v: (v["T"], v["O"]), sbc.INITIAL, horizon=3, episodes=episodes, seed=2
    )


@cache
def closed_beliefs(replicas=CLOSED_REPLICAS, episodes=8):
    return [posterior(programs.tables(), data) for data in closed_study(replicas, episodes).data]


def test_closed_forms_are_calibrated():
    """24 parameters and the log-likelihood; false-alarm rate sbc.LEVEL = 1e-4."""
    assert sbc.alarms(sbc.uniforms(closed_study(), closed_beliefs())) == []


@pytest.mark.parametrize(
    "bug", [bug if bug in FIRST else pytest.param(bug, marks=pytest.mark.slow) for bug in BUGS]
)
def test_planted_bugs_in_closed_forms_are_caught(bug):
    study, beliefs, model = closed_study(), closed_beliefs(), programs.tables()
    prior = model.structure.conjugate.concentration
    if bug == "stale cache":
        wrong = [beliefs[-1], *beliefs[:-1]]
    elif bug == "lost update":
        wrong = [posterior(model, data[:-1]) for data in study.data]
    elif bug == "wrong prior":
        wrong = [replace(belief, closed=belief.closed - prior + 1) for belief in beliefs]
    else:
        wrong = [
            posterior(model, sbc.CORRUPTIONS[bug](data, model.counts(data))) for data in study.data
        ]
    found = sbc.alarms(sbc.uniforms(study, wrong))
    assert found
    if bug in (
        "dropped last transition",
        "data dropped",
        "lost update",
    ):  # the remaining data are calibrated
        assert found == ["log-likelihood 0"]


NUTS_REPLICAS, MANY = 60, 250
SAMPLING = Sampling(chains=2, warmup=100, draws=300)
OPEN = Gate(divergences=1.0, r_hat=np.inf, ess=0.0)  # a gate would select replicas by their draws


def rates_tables(values):
    """The tables of `programs.rates` in NumPy."""
    q = expit(values["drift"][..., None] + np.array([0.0, 1.5]))
    p = expit(values["ear"])
    T = np.stack([np.stack([1 - q, q], -1), np.stack([0.5 * q, 1 - 0.5 * q], -1)], -3)
    O = np.stack([np.stack([p, 1 - p], -1), np.stack([1 - p, p], -1)], -2)  # noqa: E741
    return T, O


@cache
def nuts_study(replicas=NUTS_REPLICAS, episodes=16):
    """Logistic-normal accuracy and a regression on the action."""
    generator = np.random.default_rng(3)
    truth = {
        "ear": generator.normal(1.0, 1.0, replicas),
        "drift": generator.normal(-0.5, 0.8, replicas),
    }
    return sbc.study(
        truth, rates_tables, np.array([0.7, 0.3]), horizon=4, episodes=episodes, seed=4
    )


def sampled(counts, r):
    return posterior(programs.rates(), counts, key=jax.random.key(r), sampling=SAMPLING, gate=OPEN)


def nuts_beliefs(study, corrupt=None):
    for r, data in enumerate(study.data):
        counts = programs.rates().counts(data)
        yield sampled(corrupt(data, counts) if corrupt else counts, r)


def test_the_tables_in_numpy_are_those_of_the_program():
    values = {"ear": np.array(0.3), "drift": np.array(-1.2)}
    world = programs.rates().at(**values)
    for mine, table in zip(rates_tables(values), world.pomdp.stationary()[1:3], strict=True):
        assert np.allclose(mine, table, atol=1e-15)


@pytest.mark.slow
def test_nuts_is_calibrated():
    """Two parameters and the log-likelihood.

    False-alarm rate sbc.LEVEL = 1e-4 for nearly independent draws. Planted: beliefs of the previous
    data.
    """
    study = nuts_study(MANY)
    beliefs = list(nuts_beliefs(study))
    assert sbc.alarms(sbc.uniforms(study, beliefs)) == []
    assert sbc.alarms(sbc.uniforms(study, [beliefs[-1], *beliefs[:-1]]))


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["shifted emission", "data dropped"])
def test_planted_bugs_in_nuts_are_caught(bug):
    study = nuts_study()
    assert sbc.alarms(sbc.uniforms(study, nuts_beliefs(study, sbc.CORRUPTIONS[bug])))


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["double counting", "lost update", "wrong prior"])
def test_more_replicas_catch_other_bugs(bug):
    """Two parameters have less power than 24.

    250 replicas detect dropped data only if half of the data are lost.
    """
    study = nuts_study(MANY)
    if bug == "lost update":
        beliefs = (
            sampled(programs.rates().counts(data[:8]), r) for r, data in enumerate(study.data)
        )
    elif bug == "wrong prior":  # the centres of both priors are shifted by one standard deviation
        moved = {"ear": study.truth["ear"] + 1.0, "drift": study.truth["drift"] - 0.8}
        study = sbc.study(moved, rates_tables, np.array([0.7, 0.3]), horizon=4, episodes=16, seed=4)
        beliefs = nuts_beliefs(study)
    else:
        beliefs = nuts_beliefs(study, sbc.CORRUPTIONS[bug])
    assert sbc.alarms(sbc.uniforms(study, beliefs))


@pytest.mark.slow
def test_pooled_and_partly_known_rows_are_calibrated():
    """One Dirichlet site in two emission rows, and two Beta sites.

    Planted bug: the two rows are not pooled.
    """
    generator = np.random.default_rng(5)
    R, model = 2000, programs.partly()
    truth = {
        "rest": generator.dirichlet([2.0, 1.0, 3.0], R),
        "slip": np.stack([generator.beta(1.0, 3.0, R), generator.beta(2.0, 1.0, R)], -1),
    }

    def tables(values):
        rest, (first, second) = values["rest"], np.moveaxis(values["slip"], -1, 0)
        known = np.ones_like(first)
        moves = [1 - first, first, known / 2, known / 2, 0 * known, known, second, 1 - second]
        quarter, half = np.full((*first.shape, 1), 0.25), np.full((*first.shape, 1), 0.5)
        emission = np.stack(
            [
                np.concatenate([quarter, 0.75 * rest], -1),
                np.concatenate([0.5 * rest[..., ::-1], half], -1),
            ],
            -2,
        )
        return np.stack(moves, -1).reshape(*first.shape, 2, 2, 2), emission

    study = sbc.study(truth, tables, np.array([0.5, 0.5]), horizon=3, episodes=6, seed=6)
    assert sbc.alarms(sbc.uniforms(study, [posterior(model, data) for data in study.data])) == []

    def first_row_only(data):
        counts = model.counts(data)
        return replace(counts, emission=counts.emission * [[1], [0]])

    wrong = [posterior(model, first_row_only(data)) for data in study.data]
    assert sbc.alarms(sbc.uniforms(study, wrong)) == ["log-likelihood 0"]
