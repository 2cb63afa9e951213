"""HOP-V with missing states: marginal likelihoods of pairs, their threshold, and optimism."""

from importlib import import_module
from math import log

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Kernels, ParameterError, Reveal, explorers, homdp, learn, tabular
from homdp_ppl.explorers._pair_versions import with_pairs
from homdp_ppl.report import versions_of
from tests.chances import enough
from tests.gaps import enumerated, with_gaps
from tests.raising import raises
from tests.runs import TREE

X = Y = A = 2
H, DELTA = 3, 0.1
GENERATOR = np.random.default_rng(0)
TRANSITIONS = GENERATOR.dirichlet(np.full(X, 2.0), (4, X, A))
EMISSIONS = GENERATOR.dirichlet(np.full(Y, 1.0), (3, X))
MODEL = tabular(
    T=dist.Dirichlet(np.ones((X, A, X))),
    O=dist.Dirichlet(np.ones((X, Y))),
    initial=np.array([0.6, 0.4]),
    reward=np.array([[1.0, 0.3], [0.0, 0.8]]),
    horizon=H,
)
WORLDS = [[MODEL.at(T=T, O=O) for O in EMISSIONS] for T in TRANSITIONS]  # noqa: E741
TRUE = WORLDS[1][2]
RULE = explorers.hop_v(TRANSITIONS, EMISSIONS, DELTA)


def memory_after(rule, episodes):
    state = with_pairs(rule.init(MODEL, 100))
    for k in range(len(episodes)):
        state = rule.update(state, episodes[k])
    return state.memory


def by_enumeration(episodes):
    return np.array([[enumerated(world, episodes) for world in row] for row in WORLDS])


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_likelihoods_equal_enumeration(share):
    """Every step of every episode is used; the mask of complete episodes changes nothing."""
    episodes = with_gaps(TRUE, 12, share)
    found = memory_after(RULE, episodes)
    assert np.allclose(found.log_likelihood, by_enumeration(episodes), rtol=1e-12, atol=1e-12)


def test_the_threshold_is_that_of_pairs():
    """Nested sets of pairs within log(size / delta) of the best survivor, after every episode."""
    episodes = with_gaps(TRUE, 40, 0.4, seed=3)
    alive = np.ones((4, 3), dtype=bool)
    for n in range(1, 41):
        scores = np.where(alive, by_enumeration(episodes[:n]), -np.inf)
        alive &= scores >= scores.max() - log(12 / DELTA)
    found = memory_after(RULE, episodes)
    assert np.array_equal(found.alive, alive)
    assert 1 <= alive.sum() < 12
    assert np.array_equal(found.transitions, alive.any(1))
    assert np.array_equal(found.emissions, alive.any(0))


def lost(threshold, replicas=300):
    """Whether the true pair was excluded at some time in 30 episodes, in each of many worlds."""
    found = []
    for r in range(replicas):
        t, o = r % 4, r // 4 % 3
        episodes = with_gaps(WORLDS[t][o], 30, 0.3, seed=r)
        scores = np.zeros((4, 3))
        out = False
        for n in range(30):
            scores = scores + by_enumeration(episodes[[n]])
            out = out or scores[t, o] < scores.max() - threshold
        found.append(out)
    return np.array(found)


@pytest.mark.slow
def test_the_true_pair_survives_at_all_times_often_enough():
    """In at least 1 - delta of the worlds; false-alarm rate 1e-6. A threshold of 0.3 is caught."""
    assert enough(~lost(log(12 / DELTA)), 1 - DELTA)
    assert not enough(~lost(0.3), 1 - DELTA)


def test_runs_are_optimistic_and_learn():
    for reveal in (Reveal(0.3), Reveal(states="last"), Reveal(unit="episode", episodes=20)):
        run = learn(TRUE, RULE, TREE, 150, 0, reveal=reveal)
        assert run.state.memory.alive[1, 2]
        assert (run.optimistic >= run.optimum - 1e-9).all()
        assert run.state.memory.alive.sum() < 12
        versions = versions_of(run)
        assert versions.transitions.shape == (51, 4)
        assert np.array_equal(versions.emissions[-1], run.state.memory.emissions)


def test_excluded_pairs_are_not_planned_for():
    """Pairs of survivors may be excluded as pairs."""
    rule = explorers.hop_v(TRANSITIONS, EMISSIONS, DELTA)
    state = with_pairs(rule.init(MODEL, 100))
    alive = np.zeros((4, 3), dtype=bool)
    alive[0, 1] = alive[2, 0] = True
    memory = state.memory._replace(alive=alive, transitions=alive.any(1), emissions=alive.any(0))
    pairs = rule.propose(None, with_memory(state, memory))
    _, best, _ = search().best(pairs)
    values = {pair: TREE(WORLDS[pair[0]][pair[1]].pomdp).value for pair in ((0, 1), (2, 0))}
    assert best == max(values, key=values.get)


def with_memory(state, memory):
    return import_module("dataclasses").replace(state, memory=memory)


def search():
    pairs = import_module("homdp_ppl.learning.pairs")
    return pairs.PairSearch(TREE, pairs.TableBounds())


def test_sets_of_posterior_mass():
    episodes = with_gaps(TRUE, 20, 0.3)
    found = memory_after(explorers.hop_v(TRANSITIONS, EMISSIONS, mass=0.9), episodes)
    scores = by_enumeration(episodes)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    assert weights[found.alive].sum() >= 0.9
    assert weights[found.alive].min() >= weights[~found.alive].max()
    assert weights[found.alive].sum() - weights[found.alive].min() < 0.9


def test_an_unknown_start_is_refused():
    @homdp(states=2, observations=2, actions=2, horizon=2, reward=np.eye(2))
    def started():
        rho = numpyro.sample("rho", dist.Dirichlet(np.ones(2)))
        return Kernels(rho, TRANSITIONS[0], EMISSIONS[0])

    with raises(ParameterError, "reveal"):
        world = started.at(rho=np.array([0.5, 0.5]))
        learn(world, RULE, TREE, 10, reveal=Reveal(0.5))
