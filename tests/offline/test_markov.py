"""The test that the revealed state is Markov: its size, its moments, and planted violations."""

from itertools import permutations

import numpy as np
import pytest

from homdp_ppl import DataError, Episodes, models, offline
from homdp_ppl.offline.markov import conditional_dependence, exchange_moments
from tests.chances import enough
from tests.offline.simulated import declaration, random_world, seeing, simulate
from tests.raising import raises


@pytest.mark.parametrize(
    ("rows", "columns"), [((3, 2, 1), (4, 2)), ((3, 3), (2, 2, 2)), ((1, 5), (3, 3))]
)
def test_moments_are_those_of_all_exchanges(rows, columns):
    """Enumeration of all 720 permutations of six observations."""
    r, c = (np.repeat(np.arange(len(m)), m) for m in (rows, columns))
    expected, found = np.outer(rows, columns) / 6, []
    for order in permutations(range(6)):
        table = np.zeros(expected.shape)
        np.add.at(table, (r, c[list(order)]), 1)
        found.append(((table - expected) ** 2 / expected).sum())
    mean, variance = exchange_moments(np.array(rows), np.array(columns))
    assert mean == pytest.approx(np.mean(found))
    assert variance == pytest.approx(np.var(found))


def p_values(break_it=False, worlds=200, episodes=80):
    """P-values of the whole test over random worlds and a behaviour that sees the state."""
    homdp, found = declaration(), []
    for seed in range(worlds):
        world = random_world(homdp, seed)
        table = np.random.default_rng(seed).dirichlet([1, 1], 2)
        log = simulate(world.pomdp, seeing(table), episodes, seed, saw_states=True)
        if break_it:  # the last state repeats the first with probability 1/2
            states = log.states.copy()
            coin = np.random.default_rng(seed).random(episodes) < 0.5
            states[coin, 3] = states[coin, 1]
            log = Episodes(log.observations, log.actions, states)
        found.append(offline.markov_test(homdp, log).p_value)
    return np.array(found)


def test_the_false_alarm_rate_is_at_most_the_stated_one():
    """At levels 0.01 and 0.1; false-alarm rate 1e-6 each."""
    found = p_values()
    for level in (0.01, 0.1):
        assert enough(found >= level, 1 - level)


def test_a_planted_violation_is_caught():
    assert (p_values(break_it=True, worlds=20, episodes=300) < 0.01).mean() > 0.8


def test_a_dependence_on_the_observation_is_named():
    homdp = declaration()
    world = random_world(homdp, 0)
    log = simulate(world.pomdp, seeing(np.full((2, 2), 0.5)), 400, 0)
    states = log.states.copy()
    states[::2, 2] = log.observations[::2, 1]
    found = offline.markov_test(homdp, Episodes(log.observations, log.actions, states))
    assert found.violated
    assert (
        min(found.p_values, key=found.p_values.get) == "the next state depends on the observation"
    )
    assert "violated" in found.words


def test_few_data_and_missing_states():
    homdp = models.load("tiger", horizon=2).homdp
    assert offline.markov_test(homdp, Episodes([[0, 1]], [[0, 0]], [[0, 0, 0]])).p_value == 1.0
    with raises(DataError, "states"):
        offline.markov_test(homdp, Episodes([[0, 1]], [[0, 0]], [[0, None, 0]]))
    assert conditional_dependence(np.zeros(3, int), np.zeros(3, int), np.zeros(3, int), 2) is None
