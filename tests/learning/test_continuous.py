"""Learning in real-valued spaces: HOP-V and HOP-B with classes of densities, posterior sampling."""

from dataclasses import replace
from functools import cache
from math import log, sqrt
from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import norm

from homdp_ppl import (
    ParameterError,
    PlanningError,
    explorers,
    learn,
    models,
    rollout,
    uniform_policy,
)
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.learning.learner import Learner
from homdp_ppl.planners import history_tree, particle_tree, quantised
from tests.continuous.programs import plane, walk
from tests.raising import raises

PLANNER = quantised(gap=0.03)
PLAN: Any = PLANNER  # also accepts wrong types, for tests of errors
NOISES = (0.4, 0.7, 1.0, 1.6, 2.5)


@cache
def tiger():
    """The true world, and a class of emissions whose third member is the true one."""
    truth = models.load("gaussian_tiger", horizon=3)
    others = [
        truth.homdp.at(mean=np.array([-1.0, 1.0]), precision=np.full(2, noise**-2))
        for noise in NOISES
    ]
    return truth, others


@cache
def learned(rule, episodes=60, seed=0):
    truth, ears = tiger()
    made = {
        "hop_b_class": lambda: explorers.hop_b_class(ears),
        "hop_v": lambda: explorers.hop_v([truth], ears),
        "posterior_sampling": explorers.posterior_sampling,
        "uniform": explorers.uniform,
        "oracle": lambda: explorers.oracle(truth),
    }
    return learn(truth, made[rule](), PLANNER, episodes, seed)


def test_version_spaces_by_hand():
    """Sum log densities of the uniform steps epoch by epoch; nested, beta = 2 log(K' N / delta)."""
    truth, ears = tiger()
    rule = explorers.hop_v([truth], ears, delta=0.2)
    K, H = 30, 3
    state = rule.init(truth.homdp, K)
    episodes = rollout(jax.random.split(jax.random.key(3), K), truth, uniform_policy(truth))
    total, alive = np.zeros(len(ears)), np.ones(len(ears), dtype=bool)
    for k, episode in enumerate(episodes):
        state = rule.update(state, episode)
        x, y = episode.states[k % H], episode.observations[k % H]
        total += [norm.logpdf(y, 2 * x - 1, noise) for noise in NOISES]
        if k % H == H - 1:
            best = total[alive].max()
            alive &= total >= best - 2 * log((K // H) * len(ears) / 0.2)
            np.testing.assert_array_equal(state.memory.emissions, alive)
    np.testing.assert_allclose(state.memory.evidence.emissions, total, rtol=1e-12)
    assert alive[2]
    assert not alive.all()


def test_hop_v_learns_the_gaussian_tiger():
    """Every epoch is optimistic, only the true member survives, and the gap vanishes."""
    run = learned("hop_v", 180)
    alive = run.state.memory.emissions
    assert alive[2]
    assert alive.sum() < len(NOISES)
    assert run.was_optimistic.all()
    assert run.gaps[-10:].mean() < run.gaps[:10].mean() / 3
    assert (
        np.diff(run.optimistic) <= 1e-9
    ).all()  # nested spaces: optimistic values never increase
    assert run.record.plans.max() <= len(NOISES)
    assert not run.estimated
    assert len(run.played) == 180


@pytest.mark.slow
def test_hop_b_class_learns_the_gaussian_tiger():
    """Y is infinite. The most likely member becomes the true one.

    The remaining gap is at most the brackets of the plan and the optimum.
    """
    run = learned("hop_b_class", 120)
    assert int(run.state.memory.emissions.argmax()) == 2
    assert run.was_optimistic.all()
    assert run.gaps[-20:].max() <= 2 * PLANNER.gap < run.gaps[0]
    assert run.gaps.min() >= -1e-9
    seen = run.episodes
    expected = [
        norm.logpdf(seen.observations, 2 * seen.states[:, :-1] - 1, noise).sum() for noise in NOISES
    ]
    np.testing.assert_allclose(run.state.memory.emissions, expected, rtol=1e-10)


def test_the_bonus_of_hop_b_class_by_hand():
    """Appendix C.6. T is known here, so eps(x, a) = 0 and r-hat = r + H min(2, sqrt(8 log(N X K /
    delta) / n(x))).
    """
    truth, ears = tiger()
    rule, K = explorers.hop_b_class(ears, delta=0.1), 500
    state = rule.init(truth.homdp, K)
    for episode in rollout(jax.random.split(jax.random.key(0), 100), truth, uniform_policy(truth)):
        state = rule.update(state, episode)
    proposal = rule.propose(jax.random.key(0), state).models
    n = state.memory.visits
    assert n.sum() == 300
    bonus = 3 * np.minimum(2, np.sqrt(8 * log(len(ears) * 2 * K / 0.1) / n))
    reward = latent_tables(truth)[2]
    np.testing.assert_allclose(proposal.reward, reward + bonus[None, :, None], rtol=1e-12)
    np.testing.assert_array_equal(proposal.transition, latent_tables(truth)[1])
    paper = explorers.hop_b_class(ears, delta=0.1, known=False)
    unknown = paper.propose(jax.random.key(0), state).models
    counts = state.memory.transition
    eps = np.minimum(2, np.sqrt(8 * 2 * log(4 * 3 * K * 3) / counts.sum(-1)))
    np.testing.assert_allclose(
        unknown.reward, reward + bonus[None, :, None] + 3 * 3 * eps[None], rtol=1e-12
    )
    np.testing.assert_allclose(
        unknown.transition, counts / counts.sum(-1, keepdims=True), rtol=1e-12
    )


def test_posterior_sampling_plans_again_when_a_count_has_doubled():
    """With finite states: plan when some n(x, a) >= max(1, 2 n(x, a) then), by counting.

    With real-valued states: plan when the number of episodes has doubled.
    """
    truth, _ = tiger()
    run = learn(truth, explorers.replan_on_doubling(explorers.posterior_sampling()), PLANNER, 12, 1)
    now, then = np.zeros((2, 3), dtype=int), None
    for planned, episode in zip(run.record.planned, run.episodes, strict=True):
        assert planned == (then is None or (now >= np.maximum(1, 2 * then)).any())
        then = now.copy() if planned else then
        np.add.at(now, (episode.states[:-1], episode.actions), 1)
    assert 2 < run.record.planned.sum() < 12
    state = replace(explorers.uniform().init(walk(), 9), played=np.asarray(4))
    assert state.visits == [4]


@pytest.mark.slow
def test_posterior_sampling_learns_and_the_oracle_has_no_regret():
    run, best, blind = learned("posterior_sampling"), learned("oracle"), learned("uniform")
    assert best.gaps.max() <= PLANNER.gap
    assert best.record.plans.sum() == 1
    assert run.gaps[-20:].mean() <= 0.1 < blind.gaps.mean()
    assert run.posterior.method == "conjugate"
    assert np.isnan(blind.optimistic).all()
    assert run.mixture.value == pytest.approx(run.values.mean())


def test_exact_values_agree_with_simulation():
    """The last policy: five standard errors of 4,000 returns, false-alarm rate 6e-7.

    The value of uniform actions is far away.
    """
    run = learned("hop_v", 180)
    keys = jax.random.split(jax.random.key(9), 4000)
    returns = run.task.world.homdp.returns(rollout(keys, run.task.world, run.policy))
    error = returns.std() / sqrt(len(returns))
    assert abs(returns.mean() - run.values[-1]) < 5 * error
    assert abs(learned("uniform").values[0] - returns.mean()) > 5 * error


def test_rules_share_the_random_numbers_of_the_world():
    """First states and observations are shared; the same seed gives the same run."""
    one, other = learned("posterior_sampling").episodes, learned("uniform").episodes
    np.testing.assert_array_equal(one.states[:, 0], other.states[:, 0])
    np.testing.assert_array_equal(one.observations[:, 0], other.observations[:, 0])
    again = learn(tiger()[0], explorers.uniform(), PLANNER, 60, 0)
    np.testing.assert_array_equal(again.episodes.states, other.states)


def test_a_resumed_run_equals_an_uninterrupted_run():
    truth, ears = tiger()
    rule = explorers.hop_v([truth], ears)
    stopped = learn(truth, rule, PLANNER, 30, 4, stop_after=13)
    assert len(stopped.played) == 12
    assert stopped.resume().record.same_as(learn(truth, rule, PLANNER, 30, 4).record)


@pytest.mark.slow
def test_values_of_online_planners_are_estimated():
    """HOP-V with particles in a continuous state space.

    The run, its ``repr`` and its dataset are marked as estimated.
    """
    truth = walk().at(noise=0.3)
    others = [truth, walk().at(noise=2.5)]
    planner = particle_tree(simulations=30, particles=50, tree_particles=16)
    run = learn(truth, explorers.hop_v([truth], others), planner, 9, 0, simulations=8)
    assert run.estimated
    assert "estimated by 8 simulated episodes" in repr(run)
    data = run.to_dataset()
    assert data.attrs["estimated"] == 1
    assert data["state"].dims == ("episode", "step_or_end")
    np.testing.assert_array_equal(run.gaps, run.task.optimum - run.values)
    with raises(PlanningError, "planner"):
        learn(tiger()[0], explorers.hop_b_class(tiger()[1]), particle_tree(30), 3, 0, simulations=2)


def counting_places():
    return explorers.hop_b_class([plane().draw(jax.random.key(0))])


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: learn(tiger()[0], explorers.tight(), PLANNER, 5), "explorer"),
        (lambda: learn(tiger()[0], explorers.uniform(), history_tree(), 5), "planner"),
        (lambda: learn(tiger()[0], explorers.uniform(), PLAN, 5, foresight=True), "foresight"),
        (
            lambda: learn(tiger()[0], explorers.uniform(), PLAN, 5, foresight=True, compiled=True),
            "foresight",
        ),
        (lambda: learn(tiger()[0], explorers.uniform(), PLANNER, 5, simulations=1), "simulations"),
        (
            lambda: learn(
                tiger()[0], explorers.uniform(), PLAN, 5, model=models.load("tiger").homdp
            ),
            "model",
        ),
        (
            lambda: learn(
                models.load("tiger"), explorers.hop_v(*[tiger()[1]] * 2), history_tree(), 8
            ),
            "transitions",
        ),
        (lambda: explorers.hop_v([tiger()[0]], []), "emissions"),
        (
            lambda: explorers.hop_v([tiger()[0], plane().draw(jax.random.key(0))], tiger()[1]),
            "transitions",
        ),
        (
            lambda: learn(
                tiger()[0], explorers.hop_v([tiger()[0].with_horizon(2)], tiger()[1]), PLANNER, 8
            ),
            "transitions",
        ),
        (
            lambda: learn(models.load("tiger"), explorers.oracle(tiger()[0]), history_tree(), 8),
            "world",
        ),
        (
            lambda: learn(tiger()[0], explorers.oracle(tiger()[0].with_horizon(2)), PLANNER, 8),
            "world",
        ),
        (
            lambda: learn(tiger()[0], explorers.oracle(models.load("tiger")), PLANNER, 8),
            "world",
        ),
        (lambda: counting_places().init(plane(), 5), "states"),
    ],
)
def test_unsupported_combinations_raise(call, where):
    with raises((ParameterError, PlanningError), where):
        call()


def test_data_that_no_member_explains():
    """All members have density zero: planning the next round raises an error."""
    truth, ears = tiger()
    rule = explorers.hop_v([truth], ears)
    state = rule.init(truth.homdp, 6)
    seen = rollout(jax.random.key(0), truth, uniform_policy(truth)).observations
    kept = Episode(
        Trajectory(seen, np.zeros(3, dtype=int)), np.array([0, 1, 0, 1])
    )  # the tiger stays while you listen
    for _ in range(3):
        state = rule.update(state, kept)
    assert not state.memory.transitions.any()
    with raises(PlanningError, "version spaces"):
        Learner(truth.homdp, rule, PLANNER, episodes=6).decide(0, state)
