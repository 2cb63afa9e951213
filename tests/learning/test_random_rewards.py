"""Runs with random rewards: both loops, resuming, studies, environments, tables and files."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    DataError,
    Kernels,
    ParameterError,
    explorers,
    homdp,
    learn,
    models,
    posterior,
    read_pomdp,
    write_pomdp,
)
from homdp_ppl.gym import HOMDPEnv, episodes_from
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.replay import restore
from homdp_ppl.models.flat import flat_table
from homdp_ppl.planners import history_tree
from homdp_ppl.report.tables import revealed_table
from homdp_ppl.study.units import to_arrays, to_record
from tests.random_rewards import CHANCES, native

WORLD = native(horizon=2).at(p=CHANCES, accuracy=0.8)


@pytest.mark.parametrize("rule", [explorers.tight(), explorers.posterior_sampling()], ids=str)
def test_both_loops_agree(rule):
    runs = [learn(WORLD, rule, history_tree(), episodes=15, compiled=c) for c in (False, True)]
    for name, column in runs[0].record.columns.items():
        np.testing.assert_allclose(column, runs[1].record.columns[name], atol=1e-12)
    np.testing.assert_array_equal(runs[0].episodes.rewards, runs[1].episodes.rewards)
    np.testing.assert_allclose(runs[0].returns, runs[0].record.rewards.sum(1))
    beliefs = [run.posterior for run in runs]
    np.testing.assert_array_equal(*(belief.closed for belief in beliefs))
    np.testing.assert_array_equal(
        beliefs[0].closed, posterior(WORLD.homdp, runs[0].episodes).closed
    )


def test_both_loops_agree_with_early_ends():
    @homdp(states=3, observations=2, actions=2, horizon=3, reward_range=(0, 1), terminal=("x2",))
    def model():
        p = numpyro.sample("p", dist.Beta(np.ones(2), np.ones(2)).to_event(1))
        moves = np.array([[[0.5, 0.2, 0.3], [0.2, 0.5, 0.3]]] * 2 + [[[0, 0, 1.0]] * 2])
        shows = [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]
        return Kernels([0.5, 0.5, 0.0], moves, shows, reward=lambda x, a: dist.Bernoulli(p[a]))

    world = model.at(p=[0.2, 0.7])
    runs = [
        learn(world, explorers.tight(), history_tree(), episodes=15, compiled=c)
        for c in (False, True)
    ]
    assert runs[0].record.same_as(runs[1].record)
    assert (runs[0].episodes.length < 3).any()
    numbers = [run.state.counts.rewards for run in runs]
    np.testing.assert_array_equal(numbers[0].outcomes, numbers[1].outcomes)
    assert numbers[0].number.sum() == runs[0].episodes.length.sum()


def test_random_rewards_change_no_state_of_a_run():
    """The uniform rule: rewards have random numbers of their own."""
    other = native("beta", horizon=2).at(p=CHANCES, accuracy=0.8)
    runs = [
        learn(world, explorers.uniform(), history_tree(), episodes=8, compiled=False)
        for world in (WORLD, other)
    ]
    for name in ("states", "observations", "actions"):
        np.testing.assert_array_equal(*(getattr(run.record, name) for run in runs))
    assert (runs[0].record.rewards != runs[1].record.rewards).any()


def test_records_are_saved_and_runs_are_restored():
    whole = learn(WORLD, explorers.tight(), history_tree(), episodes=12, compiled=False)
    part = learn(
        WORLD, explorers.tight(), history_tree(), episodes=12, stop_after=5, compiled=False
    )
    assert part.resume().record.same_as(whole.record)
    saved = to_record(to_arrays(part.record))
    assert saved.same_as(part.record)
    empty = learn(
        WORLD, explorers.tight(), history_tree(), episodes=12, stop_after=0, compiled=False
    )
    assert restore(empty, saved).resume().record.same_as(whole.record)
    assert whole.to_dataset()["reward"].shape == (12, 2)


def test_a_live_episode_needs_its_rewards():
    learner = Learner(WORLD.homdp, explorers.tight(), history_tree(), episodes=10)
    state = learner.init()
    episode = learn(WORLD, explorers.uniform(), history_tree(), episodes=1).episodes[0]
    assert learner.update(state, episode).counts.rewards.number.sum() == 2
    without = type(episode)(episode.trajectory, episode.states)
    with pytest.raises(DataError) as error:
        learner.update(state, without)
    assert error.value.problems[0].where == "rewards"


def test_hop_v_compares_reward_laws():
    """Worlds that differ in their rewards only."""
    wrong = WORLD.homdp.at(p=1 - CHANCES, accuracy=0.8)
    rule = explorers.hop_v([wrong, WORLD], [WORLD])
    run = learn(WORLD, rule, history_tree(), episodes=60)
    assert run.state.memory.transitions.tolist() == [False, True]
    assert run.was_optimistic.all()
    tables = explorers.hop_v([WORLD.pomdp.moves(0)], [WORLD])
    with pytest.raises(ParameterError) as error:
        learn(WORLD, tables, history_tree(), episodes=4)
    assert error.value.problems[0].where == "transitions"


def test_environments_draw_rewards():
    env, shown = HOMDPEnv(WORLD, per_step=True), HOMDPEnv(WORLD)
    played = episodes_from(env, "uniform", 400, seed=3, model=WORLD)
    again = episodes_from(shown, "uniform", 400, seed=3, model=WORLD.homdp)
    assert played.same_as(again)  # the return at the end is the sum of the same rewards
    for x, a in np.ndindex(2, 2):
        some = played.rewards[(played.states[:, :-1] == x) & (played.actions == a)]
        error = np.sqrt(CHANCES[x, a] * (1 - CHANCES[x, a]) / len(some))
        assert abs(some.mean() - CHANCES[x, a]) < 5 * error  # false alarms below 1e-5
    assert posterior(WORLD.homdp, played).method == "conjugate"
    env.reset(seed=0)
    _, _, _, _, info = env.step(0)
    assert info == {}  # rewards are revealed at the end
    _, _, _, _, info = env.step(0)
    assert info["rewards"].shape == (2,)


def test_environments_with_densities_keep_states():
    dense = native("beta", horizon=2).at(p=CHANCES, accuracy=0.8)
    ours, theirs = (episodes_from(HOMDPEnv(w), "uniform", 5, model=w) for w in (WORLD, dense))
    np.testing.assert_array_equal(ours.states, theirs.states)
    assert ((theirs.rewards > 0) & (theirs.rewards < 1)).all()


def test_files_have_mean_rewards(tmp_path):
    write_pomdp(WORLD, tmp_path / "shop.POMDP")
    assert "means of random rewards" in (tmp_path / "shop.POMDP").read_text()
    read = read_pomdp(tmp_path / "shop.POMDP", horizon=2)
    values = [history_tree()(world.pomdp).value for world in (WORLD, read)]
    assert abs(values[0] - values[1]) < 1e-9


def test_tables_show_recorded_rewards():
    episode = learn(WORLD, explorers.uniform(), history_tree(), episodes=1).episodes[0]
    cells = list(revealed_table(WORLD.homdp, episode).columns[-1].cells)
    assert cells == [f"{r:.2f}" for r in (*episode.rewards, episode.rewards.sum())]
    tossed = native(horizon=2, rewards_recorded="coin")
    gap = type(episode)(episode.trajectory, episode.states, np.ma.masked_array([1.0, 0.0], [1, 0]))
    assert list(revealed_table(tossed, gap).columns[-1].cells) == [
        "not recorded",
        "0.00",
        "unknown",
    ]


def test_flat_priors_need_known_rewards():
    with pytest.raises(ParameterError):
        flat_table(WORLD)
    assert flat_table(models.load("tiger", horizon=2)).homdp.rewards.law is None


def test_learners_may_have_another_prior_but_no_other_outcomes():
    other = native("beta", horizon=2)
    with pytest.raises(ParameterError):
        learn(WORLD, explorers.greedy(), history_tree(), episodes=2, model=other)
    assert jax.tree.leaves(Learner(other, explorers.greedy(), history_tree()).init().counts)
