"""Diagnostics, which ArviZ computes, against an independent implementation; the gate."""

import numpy as np
import pytest

from homdp_ppl.posteriors import Diagnostics, Gate
from homdp_ppl.posteriors.diagnostics import diagnose
from tests.posteriors import mixing


def chains(seed, number, draws, correlation):
    """Autoregressive chains that start apart."""
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(number, draws))
    for t in range(1, draws):
        values[:, t] += correlation * values[:, t - 1]
    return values


KINDS = {
    "normal": lambda x: x,
    "skewed": np.exp,
    "heavy": lambda x: x**5,
    "integer": np.round,
    "sign": lambda x: x > 0.4,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("number", "draws"), [(2, 50), (4, 101), (3, 500), (4, 8)])
def test_r_hat_and_ess_equal_another_implementation(kind, number, draws):
    """Also for odd numbers of draws, and for anticorrelated chains, whose ESS is bounded.

    The gate decides in the same way.
    """
    for seed, correlation in enumerate((-0.9, -0.4, 0.0, 0.6, 0.95, 0.999)):
        values = KINDS[kind](chains(seed, number, draws, correlation)) * 1.0
        found = diagnose({"site": values}, np.zeros((number, draws), bool))
        split = mixing.split(values[..., None])
        r_hat, ess = float(mixing.r_hat(split)[0]), float(mixing.ess(split)[0])
        assert found.r_hat["site"] == pytest.approx(max(r_hat, 1.0), rel=1e-9)
        assert found.ess["site"] == pytest.approx(ess, rel=1e-9)
        expected = found._replace(r_hat={"site": r_hat}, ess={"site": ess})
        assert found.problems(Gate()) == expected.problems(Gate())


def test_a_single_chain_is_compared_half_by_half():
    """R-hat of a chain that moves to another level is large; NaN if the halves are too short."""
    steady = chains(0, 1, 400, 0.0)
    moved = steady + 3 * (np.arange(400) >= 200)
    found = diagnose({"steady": steady, "moved": moved}, np.zeros((1, 400), bool))
    halves = mixing.split(steady.reshape(2, 200, 1))
    assert found.r_hat["steady"] == pytest.approx(float(mixing.r_hat(halves)[0]), rel=1e-9)
    assert found.ess["steady"] == pytest.approx(
        float(mixing.ess(mixing.split(steady[..., None]))[0])
    )
    assert found.problems(Gate())[0].where == "R-hat of moved"
    short = diagnose({"steady": steady[:, :4]}, np.zeros((1, 4), bool))
    assert short.problems(Gate(ess=0.0))


def test_the_worst_entry_counts_and_all_divergences():
    good, bad = chains(0, 4, 200, 0.0), chains(1, 4, 200, 0.99)
    both = diagnose(
        {"site": np.stack([good, bad], -1).reshape(4, 200, 2, 1)},
        np.arange(800).reshape(4, 200) % 100 == 0,
    )
    alone = diagnose({"site": bad}, np.zeros((4, 200), bool))
    assert both.r_hat["site"] == alone.r_hat["site"]
    assert both.ess["site"] == pytest.approx(alone.ess["site"])
    assert (both.divergences, both.draws, both.chains) == (8, 800, 4)


def test_constant_sites_pass_but_separated_chains_fail():
    """A discrete site that the data determine is constant.

    If each chain has a different constant value, sampling has failed.
    """
    still, apart = np.ones((4, 100), int), np.repeat(np.arange(4), 100).reshape(4, 100)
    found = diagnose({"still": still, "apart": apart}, np.zeros((4, 100), bool))
    assert found.r_hat["still"] == 1.0
    assert found.ess["still"] == 400
    assert found.r_hat["apart"] > 1e6
    assert [p.where for p in found.problems(Gate())] == ["R-hat of apart", "ESS of apart"]


def test_the_gate_names_each_number_and_a_remedy():
    found = Diagnostics(9, 1000, 2, {"p": 1.04, "q": float("nan")}, {"p": 150.0, "q": 300.0})
    text = "\n".join(map(str, found.problems(Gate())))
    assert "divergences: got 9 of 1000; expected at most 0.2%. Reparametrise" in text
    assert "R-hat of p: got 1.040; expected at most 1.02" in text
    assert "R-hat of q: got nan" in text
    assert "ESS of p: got 150; expected at least 200" in text
    assert "ESS of q" not in text
    assert found._replace(divergences=2, r_hat={"p": 1.0}, ess={"p": 200.0}).problems(Gate()) == []
