"""Protocols of partial hindsight."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from homdp_ppl import Episode, ParameterError, Reveal
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.reveal import revealed
from tests.raising import raises

PROTOCOLS = [
    Reveal(),
    Reveal(unit="episode"),
    Reveal(states="last"),
    Reveal(episodes=30),
    Reveal(unit="episode", states="last", episodes=40),
]


def masks(reveal, seed=0, episodes=60, steps=5):
    return np.array([reveal.mask(seed, k, steps) for k in range(episodes)])


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_a_smaller_share_reveals_a_subset(protocol):
    shares = (0.0, 0.1, 0.4, 0.8, 1.0)
    found = [masks(protocol.with_share(share)) for share in shares]
    for less, more in pairwise(found):
        assert (less <= more).all()
    assert not found[0].any()
    assert found[1].sum() < found[3].sum()


def test_shares_are_those_of_the_revealed_states():
    """Binomial tests at 1e-5 each; a coin with 0.33 instead of 0.3 is caught."""
    for unit, number in (("step", 6 * 2000), ("episode", 2000)):
        found = masks(Reveal(0.3, unit=unit), episodes=2000)
        number_of = found.sum() if unit == "step" else found.all(1).sum()
        assert stats.binomtest(int(number_of), number, 0.3).pvalue > 1e-5
    wrong = masks(Reveal(0.33), episodes=2000).sum()
    assert stats.binomtest(int(wrong), 6 * 2000, 0.3).pvalue < 1e-5


def test_what_each_protocol_reveals():
    assert masks(Reveal(0.5, unit="episode")).any(1).tolist() == (
        masks(Reveal(0.5, unit="episode")).all(1).tolist()
    )
    last = masks(Reveal(states="last"))
    assert last[:, -1].all()
    assert not last[:, :-1].any()
    first = masks(Reveal(episodes=30))
    assert first[:30].all()
    assert not first[30:].any()


def test_random_numbers_depend_on_seed_and_episode_only():
    whole, short = Reveal(0.5).mask(3, 8, 10), Reveal(0.5).mask(3, 8, 4)
    assert whole[:5].tolist() == short.tolist()
    assert masks(Reveal(0.5), seed=1).tolist() != masks(Reveal(0.5), seed=2).tolist()
    assert len({tuple(row) for row in masks(Reveal(0.5), steps=40).tolist()}) == 60


def test_hidden_states_are_masked():
    states = np.array([0, 1, 1, 0])
    episode = Episode(Trajectory(np.zeros(3, int), np.zeros(3, int)), states)
    assert revealed(Reveal(), episode, 0, 0) is episode
    shown = revealed(Reveal(states="last"), episode, 0, 0)
    assert shown.states.tolist() == [None, None, None, 0]
    assert episode.states is states


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"share": 1.5}, "share"),
        ({"share": float("nan")}, "share"),
        ({"unit": "state"}, "unit"),
        ({"states": "first"}, "states"),
        ({"episodes": -1}, "episodes"),
        ({"episodes": 1.5}, "episodes"),
    ],
)
def test_invalid_protocols(wrong, where):
    with raises(ParameterError, where):
        Reveal(**wrong)


def test_which_protocols_are_coins():
    assert [p.with_share(0.5).coin for p in PROTOCOLS] == [True, True, False, False, False]
    assert [p.complete for p in PROTOCOLS] == [True, True, False, False, False]
