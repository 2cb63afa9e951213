"""Simulation-based calibration of an unknown start, and planted bugs that it catches."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Kernels, posterior
from tests.posteriors import programs, sbc
from tests.posteriors.programs import ALPHA_O

RHO = np.array([2.0, 1.0, 0.5])
MOVES = np.array([[[1, 2, 3], [4, 1, 1]], [[1, 4, 3], [2, 2, 2]], [[3, 1, 2], [1, 1, 4]]])
MOVES = MOVES / MOVES.sum(-1, keepdims=True)
REPLICAS, EPISODES = 400, 6


@cache
def model():
    def program():
        rho = numpyro.sample("rho", dist.Dirichlet(RHO))
        shows = numpyro.sample("shows", dist.Dirichlet(ALPHA_O).to_event(1))
        return Kernels(rho, MOVES, shows)

    return programs.declare(program, observations=2)


@cache
def study():
    """The start and the emissions are unknown, the transitions are known."""
    generator = np.random.default_rng(7)
    shows = generator.gamma(ALPHA_O, size=(REPLICAS, *ALPHA_O.shape))
    truth = {
        "rho": generator.dirichlet(RHO, REPLICAS),
        "shows": shows / shows.sum(-1, keepdims=True),
    }

    def tables(values):
        moves = np.broadcast_to(MOVES, (len(values["rho"]), *MOVES.shape))
        return moves, values["shows"], values["rho"]

    return sbc.study(truth, tables, None, horizon=3, episodes=EPISODES, seed=8)


def test_an_unknown_start_is_calibrated():
    """9 parameters and the log-likelihood; false-alarm rate sbc.LEVEL = 1e-4."""
    beliefs = [posterior(model(), data) for data in study().data]
    assert beliefs[0].method == "conjugate"
    assert sbc.alarms(sbc.uniforms(study(), beliefs)) == []


def starts(states: np.ndarray) -> np.ndarray:
    return np.bincount(states.ravel(), minlength=3)


BUGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # from the states of the episodes
    "starts dropped": lambda states: 0 * starts(states[:, 0]),
    "starts counted twice": lambda states: 2 * starts(states[:, 0]),
    "one step late": lambda states: starts(states[:, 1]),
    "every visit": lambda states: starts(states[:, :-1]),
    "first episode only": lambda states: starts(states[:1, 0]),
    "other order of states": lambda states: starts(states[:, 0])[::-1],
}


FIRST = ("starts dropped", "one step late")


@pytest.mark.parametrize(
    "bug", [bug if bug in FIRST else pytest.param(bug, marks=pytest.mark.slow) for bug in BUGS]
)
def test_planted_bugs_are_caught(bug):
    wrong = []
    for data in study().data:
        counts = model().counts(data)
        assert np.array_equal(counts.initial, starts(data.states[:, 0]))
        wrong.append(posterior(model(), replace(counts, initial=BUGS[bug](data.states))))
    found = sbc.alarms(sbc.uniforms(study(), wrong))
    assert found
    if bug in ("starts dropped", "first episode only"):  # the remaining data are calibrated
        assert found == ["log-likelihood 0"]
