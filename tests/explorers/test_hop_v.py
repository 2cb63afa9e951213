"""HOP-V (Algorithm 2) and its Bayesian variant: data that are kept, survivors, and regret."""

from dataclasses import replace
from importlib import import_module
from itertools import pairwise, product
from math import log

import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import ParameterError, PlanningError, explorers, learn, tabular
from homdp_ppl.confidence import likelihood_set
from homdp_ppl.explorers._classes import low_rank
from homdp_ppl.explorers._versions import Versions
from tests.chances import enough
from tests.planners.exact import optimum
from tests.raising import raises
from tests.runs import TREE
from tests.worlds import simulate

X = Y = A = 2
H, K, DELTA = 3, 100, 0.1
EPOCHS = 33  # floor(100 / 3)
RUNS = 15  # epochs of a replica
GENERATOR = np.random.default_rng(0)
TRANSITIONS = GENERATOR.dirichlet(np.full(X, 2.0), (6, X, A))
EMISSIONS = GENERATOR.dirichlet(np.full(Y, 2.0), (4, X))
INITIAL = np.array([0.6, 0.4])
MODEL = tabular(
    T=dist.Dirichlet(np.ones((X, A, X))),
    O=dist.Dirichlet(np.ones((X, Y))),
    initial=INITIAL,
    reward=np.array([[1.0, 0.3], [0.0, 0.8]]),
    horizon=H,
)
RULE = explorers.hop_v(TRANSITIONS, EMISSIONS, DELTA)


def played(t, o, number, seed):
    """Episodes of the uniform policy in a pair of the classes."""
    return simulate(
        INITIAL[None],
        TRANSITIONS[t][None],
        EMISSIONS[o][None],
        H,
        number,
        np.random.default_rng(seed),
    )[0]


def by_hand(episodes, every_step=False, at_once=False):
    """The version spaces after each episode, computed as in Algorithm 2 from all tuples."""
    alive = [set(range(len(TRANSITIONS))), set(range(len(EMISSIONS)))]
    scores = [[0.0] * len(TRANSITIONS), [0.0] * len(EMISSIONS)]
    history = []
    for number, episode in enumerate(episodes):
        for h in range(H) if every_step else [number % H]:
            x, y, a, z = (
                episode.states[h],
                episode.observations[h],
                episode.actions[h],
                episode.states[h + 1],
            )
            scores[0] = [
                score + log(T[x, a, z]) for score, T in zip(scores[0], TRANSITIONS, strict=True)
            ]
            scores[1] = [
                score + log(shown[x, y]) for score, shown in zip(scores[1], EMISSIONS, strict=True)
            ]
        if number % H == H - 1 or at_once:
            for k in (0, 1):
                beta = 2 * log(EPOCHS * len(scores[k]) / DELTA)
                best = max(scores[k][member] for member in alive[k])
                alive[k] = {member for member in alive[k] if scores[k][member] >= best - beta}
        history.append(tuple(set(space) for space in alive))
    return history


def spaces_of(rule, episodes):
    """The version spaces after each episode, computed by the rule."""
    state, history = rule.init(MODEL, K), []
    for episode in episodes:
        state = rule.update(state, episode)
        history.append(tuple(set(np.flatnonzero(mask).tolist()) for mask in state.memory[:2]))
    return history


def test_version_spaces_by_hand():
    """Nested version spaces with beta = 2 log(K' size / delta), updated once per epoch.

    Only the tuple of step h in the h-th episode counts. Planted: counting every tuple, or updating
    after every episode, is caught.
    """
    every, early = [], []
    for seed in range(6):
        episodes = played(1, 2, 99, seed)
        history = spaces_of(RULE, episodes)
        assert history == by_hand(episodes)
        assert all(now[k] <= before[k] for before, now in pairwise(history) for k in (0, 1))
        every.append(history != by_hand(episodes, every_step=True))
        early.append(history != by_hand(episodes, at_once=True))
    assert len(history[-1][0]) < len(TRANSITIONS)
    assert any(every)
    assert any(early)


def test_one_tuple_per_episode_is_counted():
    """One transition and one emission per episode; arguments are not changed."""
    state = RULE.init(MODEL, K)
    episodes = played(0, 0, H, 0)
    for h, episode in enumerate(episodes):
        before = state
        copies = before.counts.transition.copy(), before.counts.emission.copy()
        state = RULE.update(state, episode)
        np.testing.assert_array_equal(before.counts.transition, copies[0])
        np.testing.assert_array_equal(before.counts.emission, copies[1])
        added = state.counts.transition - copies[0], state.counts.emission - copies[1]
        assert [int(part.sum()) for part in added] == [1, 1]
        assert added[0][episode.states[h], episode.actions[h], episode.states[h + 1]] == 1
        assert added[1][episode.states[h], episode.observations[h]] == 1
    assert state.played == H


def truth_is_kept(rule, replicas=150, seed=0):
    """Whether the true T and O, a random pair, are alive after each epoch, for each replica."""
    generator = np.random.default_rng(seed)
    kept = []
    for r in range(replicas):
        t, o = generator.integers(len(TRANSITIONS)), generator.integers(len(EMISSIONS))
        spaces = spaces_of(rule, played(t, o, H * RUNS, r))[H - 1 :: H]
        kept.append([(t in transitions, o in emissions) for transitions, emissions in spaces])
    return np.array(kept)  # (replicas, epochs, 2)


def test_the_true_pair_survives(monkeypatch):
    """The true pair survives all epochs with probability 1 - 2 delta.

    False-alarm rate 1e-6; a tenth of beta is caught.
    """
    assert enough(truth_is_kept(RULE).all((1, 2)), 1 - 2 * DELTA)
    module = import_module("homdp_ppl.explorers._versions")
    monkeypatch.setattr(
        module, "likelihood_set", lambda score, beta: likelihood_set(score, beta / 10)
    )
    assert not enough(truth_is_kept(RULE).all((1, 2)), 1 - 2 * DELTA)


def nested(rule):
    """Version spaces that only lose members: a bug to plant in the Bayesian variant."""

    def update(state, episode):
        after = rule.update(state, episode)
        return replace(
            after, memory=Versions(*map(np.logical_and, state.memory[:2], after.memory[:2]))
        )

    return replace(rule, update=update)


def test_highest_density_sets_contain_the_true_pair():
    """Coverage is at least the mass in every epoch if the true pair is drawn from the classes.

    False-alarm rate 3e-5, separately for T and O. Nested sets, whose errors accumulate over epochs,
    are caught.
    """
    rule = explorers.hop_v(TRANSITIONS, EMISSIONS, mass=0.9)
    inside = truth_is_kept(rule, replicas=250)
    assert all(enough(inside[:, epoch, k], 0.9) for epoch in range(RUNS) for k in (0, 1))
    worn = truth_is_kept(nested(rule), replicas=250)
    assert not all(enough(worn[:, epoch, k], 0.9) for epoch in range(RUNS) for k in (0, 1))


def test_highest_density_sets_by_hand():
    """The smallest set with at least the given mass, under a uniform prior."""
    rule = explorers.hop_v(TRANSITIONS, EMISSIONS, mass=0.7)
    state = rule.init(MODEL, K)
    for episode in played(1, 2, 30, 5):
        state = rule.update(state, episode)
    for tables, counts, mask in zip(
        (TRANSITIONS, EMISSIONS),
        (state.counts.transition, state.counts.emission),
        state.memory[:2],
        strict=True,
    ):
        weights = np.array([np.prod(table**counts) for table in tables])
        order = np.argsort(-weights)
        wanted = 1 + np.flatnonzero(np.cumsum(weights[order]) / weights.sum() >= 0.7)[0]
        assert set(np.flatnonzero(mask)) == set(order[:wanted])


# Whole runs

WORLD = MODEL.at(T=TRANSITIONS[1], O=EMISSIONS[2])


@pytest.mark.parametrize("mass", [None, 0.9])
def test_regret_falls(mass):
    """Optimistic while the true pair is alive, with no gap in the end.

    Every epoch needs fewer plans than there are pairs.
    """
    run = learn(
        WORLD, explorers.hop_v(TRANSITIONS, EMISSIONS, mass=mass), TREE, episodes=300, seed=1
    )
    assert len(run.values) == 100
    assert run.gaps[:10].mean() > 10 * run.gaps[-10:].mean()
    assert run.record.plans.max() <= len(TRANSITIONS) * len(EMISSIONS)
    assert run.record.plans.sum() < len(run.values)  # most epochs find the same best pair as before
    if mass is None:
        assert run.was_optimistic.all()
        assert (np.diff(run.optimistic) <= 1e-12).all()  # nested spaces: no pair returns


def test_the_best_pair_is_proposed_first():
    run = learn(WORLD, RULE, TREE, episodes=H, seed=0)
    pairs = [
        WORLD.pomdp.with_tables(transition=T, emission=shown)
        for T, shown in product(TRANSITIONS, EMISSIONS)
    ]
    assert run.optimistic[0] == pytest.approx(max(map(optimum, pairs)), abs=1e-10)


def test_a_class_of_one_is_the_oracle():
    run = learn(WORLD, explorers.hop_v(TRANSITIONS[1:2], EMISSIONS[2:3]), TREE, episodes=12, seed=0)
    np.testing.assert_allclose(run.gaps, 0.0, atol=1e-12)
    assert run.optimistic[0] == pytest.approx(optimum(WORLD.pomdp), abs=1e-12)
    assert run.record.plans.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("episodes", [3, 10, 11])
def test_incomplete_epochs_are_not_played(episodes):
    run = learn(WORLD, RULE, TREE, episodes=episodes, seed=0)
    assert len(run.values) == episodes // H
    assert len(run.played) == len(run.episodes) == H * (episodes // H)
    with raises(ParameterError, "episodes"):
        learn(WORLD, RULE, TREE, episodes=H - 1, seed=0)


def test_classes_of_worlds():
    """Worlds give the same class as their tables."""
    worlds = [MODEL.at(T=T, O=EMISSIONS[k % 4]) for k, T in enumerate(TRANSITIONS)]
    by_worlds = learn(WORLD, explorers.hop_v(worlds, worlds[:4], DELTA), TREE, episodes=60, seed=3)
    by_arrays = learn(WORLD, RULE, TREE, episodes=60, seed=3)
    np.testing.assert_array_equal(by_worlds.values, by_arrays.values)
    np.testing.assert_array_equal(by_worlds.episodes.states, by_arrays.episodes.states)


def test_a_low_rank_class():
    """Two features: T of rank 2, learned from a class of measures."""
    phi = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.2, 0.8]]])
    psi = [[[p, 1 - p], [1 - q, q]] for p, q in ((0.9, 0.8), (0.5, 0.5), (0.2, 0.7))]
    T = low_rank(phi, psi)
    world = MODEL.at(T=T[1], O=EMISSIONS[0])
    run = learn(world, explorers.hop_v(T, EMISSIONS[:2]), TREE, episodes=150, seed=0)
    assert run.state.memory.transitions[1]
    assert run.was_optimistic.all()


@pytest.mark.parametrize("mass", [None, 0.9])
def test_data_that_no_member_explains(mass):
    """Data with probability zero under all members raise an error.

    The version space is not silently reset to all members.
    """
    stuck = np.array([[[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2]])
    run_with = explorers.hop_v(stuck, EMISSIONS, mass=mass)
    with raises(PlanningError, "version spaces"):
        learn(WORLD, run_with, TREE, episodes=60, seed=0)


def test_classes_of_the_wrong_size():
    with pytest.raises(ParameterError) as raised:
        learn(
            WORLD,
            explorers.hop_v(np.full((2, 3, A, 3), 1 / 3), np.full((2, 3, Y), 0.5)),
            TREE,
            episodes=6,
        )
    assert [problem.where for problem in raised.value.problems] == ["transitions", "emissions"]
    with raises(ParameterError, "emissions"):
        learn(WORLD, explorers.hop_b_class(np.full((2, 3, Y), 0.5)), TREE, episodes=6)
