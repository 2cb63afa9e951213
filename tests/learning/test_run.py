"""Runs: policies and their mixture, the dataset, and the ``repr``."""

import pickle
from dataclasses import fields, replace

import jax
import numpy as np
import pytest
import xarray as xr

from homdp_ppl import Counts, DataError, Run, evaluate, explorers, learn, rollout, x64
from homdp_ppl.errors import ParameterError
from homdp_ppl.learning.loop import state_before
from homdp_ppl.learning.record import Record
from tests.chances import ALARM, believable
from tests.raising import raises
from tests.runs import TREE, differences, hearing, small

WORLD = small("tiger_table")


@pytest.fixture(scope="module")
def run() -> Run:
    """Greedy, planning only when a count has doubled."""
    return learn(
        WORLD, explorers.replan_on_doubling(explorers.greedy()), TREE, 40, seed=1, compiled=False
    )


@pytest.fixture(scope="module")
def empty() -> Run:
    """A run without rounds."""
    return learn(WORLD, explorers.greedy(), TREE, 40, stop_after=0)


def test_regret_is_the_sum_of_gaps(run):
    np.testing.assert_array_equal(run.gaps, run.optimum - run.values)
    np.testing.assert_allclose(run.regret, [run.gaps[: k + 1].sum() for k in range(40)])
    np.testing.assert_array_equal(run.was_optimistic, run.optimistic >= run.optimum - 3e-9)
    rewards = [
        sum(WORLD.homdp.reward[h, e.states[h], e.actions[h]] for h in range(3))
        for e in run.episodes
    ]
    np.testing.assert_allclose(run.returns, rewards)


def test_the_posterior_uses_all_episodes(run):
    counts = Counts.of(run.episodes, WORLD)
    np.testing.assert_array_equal(run.posterior.counts.transition, counts.transition)
    expected = (1 + counts.emission) / (
        2 + counts.visits[:, None]
    )  # a flat Dirichlet prior on two observations
    np.testing.assert_allclose(run.posterior.mean.shows(0), expected)


def test_the_posterior_of_hop_v_uses_all_episodes():
    """The counts of HOP-V contain only the uniform step of each episode."""
    run = learn(small("tiger"), hearing(), TREE, 9)
    assert run.state.counts.visits.sum() == 9
    assert run.posterior.counts.visits.sum() == 27


def test_the_mixture_has_the_mean_value(run):
    assert run.mixture.value == pytest.approx(
        np.mean([evaluate(run.policy_at(k), WORLD.pomdp) for k in range(40)])
    )
    assert run.optimum - run.mixture.value == pytest.approx(run.regret[-1] / 40)


def test_the_mixture_draws_rounds_uniformly(run, monkeypatch):
    """Each of 40 counts in 1,000 draws is within its exact binomial tails.

    False-alarm rate 1e-6 in total.

    Planted: never drawing the last round, or drawing among the rounds that planned, is caught.
    """
    keys = jax.random.split(jax.random.key(0), 1000)
    drawn: list[int] = []
    monkeypatch.setattr(Run, "policy_at", lambda self, index: drawn.append(index))
    for key in keys:
        run.mixture.draw(key)

    def alike(rounds):
        assert rounds.max() < 40
        return all(believable(rounds == k, 1 / 40, ALARM / 40) for k in range(40))

    assert alike(np.array(drawn))
    assert not alike(np.array(drawn) % 39)
    planned = np.flatnonzero(run.record.planned)
    assert not alike(planned[np.array(drawn) % len(planned)])


def test_a_drawn_policy_comes_from_a_round(run):
    policy = run.mixture.draw(jax.random.key(3))
    with x64():
        assert np.array_equal(
            policy.probabilities, run.mixture.draw(jax.random.key(3)).probabilities
        )
    with raises(DataError, "key"):
        run.mixture.draw(3)
    assert any(
        np.array_equal(policy.probabilities, run.policy_at(k).probabilities) for k in range(40)
    )


def test_policies_of_single_rounds(run):
    for index in (-1, 40, 100, 1.5):
        with raises(ParameterError, "round"):
            run.policy_at(index)
    assert evaluate(run.policy_at(39), WORLD.pomdp) == evaluate(run.policy, WORLD.pomdp)
    state = state_before(run, 17)
    assert state.played == 17
    np.testing.assert_array_equal(
        state.counts.transition, Counts.of(run.episodes[:17], WORLD).transition
    )


def test_policies_of_a_rule_with_custom_counts():
    """The rule ignores every other episode.

    Policies are planned again from the rule's state, not from all episodes.
    """
    greedy = explorers.greedy()

    def update(state, episode):
        after = greedy.update(state, episode)
        return after if int(after.played) % 2 else replace(after, counts=state.counts)

    forgetful = replace(greedy, about=explorers.About("forgetful"), update=update)
    run = learn(WORLD, forgetful, TREE, 12, seed=1)
    assert state_before(run, 12).counts.visits.sum() == run.state.counts.visits.sum() == 6 * 3
    for k in range(12):
        assert evaluate(run.policy_at(k), WORLD.pomdp) == pytest.approx(run.values[k], abs=1e-12)


def test_a_test_phase(run, tmp_path):
    """The last policy has names, can be saved, and acts in the world without learning."""
    assert run.policy.names == (WORLD.spaces.observations, WORLD.spaces.actions)
    run.policy.save(tmp_path / "policy.npz")
    frozen = type(run.policy).load(tmp_path / "policy.npz")
    tests = rollout(jax.random.split(jax.random.key(0), 50), WORLD, frozen)
    assert len(tests) == 50
    assert evaluate(frozen, WORLD.pomdp) == run.values[-1]
    assert len(run.values) == 40


def test_the_dataset(run, tmp_path):
    """It can be saved and loaded; axes count from 1, as in the paper."""
    run.to_dataset().to_netcdf(tmp_path / "run.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "run.nc", engine="scipy") as dataset:
        dataset = dataset.load()
    for name, column in (
        ("value", run.values),
        ("optimistic", run.optimistic),
        ("gap", run.gaps),
        ("regret", run.regret),
    ):
        np.testing.assert_array_equal(dataset[name], column)
        assert dataset[name].dims == ("round",)
    np.testing.assert_array_equal(dataset["was_optimistic"], run.was_optimistic)
    np.testing.assert_array_equal(dataset["plans"], run.record.planned)
    np.testing.assert_array_equal(dataset["played"], run.values)
    np.testing.assert_array_equal(dataset["impossible"], run.impossible)
    for name, column in (
        ("observation", run.episodes.observations),
        ("action", run.episodes.actions),
    ):
        np.testing.assert_array_equal(dataset[name], column)
        assert dataset[name].dims == ("episode", "step")
    np.testing.assert_array_equal(dataset["state"], run.episodes.states)
    assert dataset.sizes == {"round": 40, "episode": 40, "step": 3, "step_or_end": 4}
    assert int(dataset["round"][0]) == int(dataset["episode"][0]) == 1
    assert dataset.attrs == {
        "model": "tiger_table",
        "learner": "tiger_table",
        "explorer": "greedy(replan=doubled)",
        "soundness": "none",
        "seed": 1,
        "episodes": 40,
        "horizon": 3,
        "episodes_per_round": 1,
        "optimum": run.optimum,
        "scale": 1.0,
        "shift": 0.0,
        "loop": "readable loop (as requested)",
        "foresight": 0,
        "estimated": 0,
        "slack": 0.0,
    }


def test_the_dataset_of_epochs():
    dataset = learn(small("tiger"), hearing(), TREE, 20).to_dataset()
    assert dataset.sizes == {"round": 6, "episode": 18, "step": 3, "step_or_end": 4}
    assert dataset.attrs["soundness"] == "optimistic, frequentist"


def test_the_repr_of_a_run(run):
    lines = repr(run).splitlines()
    assert lines[0] == "Run of greedy(replan=doubled) in 'tiger_table', seed 1: 40 episodes"
    assert lines[1].startswith(
        f"  regret {run.regret[-1]:.4g}, last gap {run.gaps[-1]:.4g}, optimistic in "
    )
    assert lines[2] == "  readable loop (as requested)"
    assert repr(run.resume(1)) == repr(run)  # already past this episode
    assert "seed 0: 1 episode\n" in repr(learn(WORLD, explorers.greedy(), TREE, 1))
    assert "seed 0: 6 epochs" in repr(learn(small("tiger"), hearing(), TREE, 20))


def test_seconds_by_activity(run):
    assert set(run.seconds) == {"inference", "planning", "evaluation", "acting"}
    assert all(spent >= 0 for spent in run.seconds.values())
    begun = learn(WORLD, explorers.greedy(), TREE, 6, stop_after=3, compiled=False)
    assert all(begun.resume().seconds[what] >= begun.seconds[what] for what in begun.seconds)


def test_a_run_without_rounds(empty):
    assert repr(empty) == "Run of greedy in 'tiger_table', seed 0: 0 episodes"
    assert len(empty.regret) == len(empty.returns) == len(empty.episodes) == 0
    assert empty.to_dataset().sizes == {"round": 0, "episode": 0, "step": 3, "step_or_end": 4}
    np.testing.assert_allclose(empty.posterior.mean.shows(0), 0.5)
    for call, where in (
        (lambda: empty.policy, "policy"),
        (lambda: empty.mixture.value, "run"),
        (lambda: empty.mixture.draw(jax.random.key(0)), "run"),
        (lambda: empty.policy_at(0), "round"),
        (lambda: empty.resume(-3), "stop_after"),
    ):
        with raises(ParameterError, where):
            call()
    assert len(empty.resume(2).values) == 2


def test_a_run_is_plain_data(run):
    """A run stores no functions: all parts but the program can be pickled."""
    names = {field.name for field in fields(run)}
    assert names == {
        *("task", "record", "state", "decision", "seconds", "loop", "policies", "certified")
    }
    assert not any(callable(getattr(run, name)) for name in names)
    parts = [run.record, run.decision, run.seconds, run.loop, run.policies, run.task.explorer]
    again = pickle.loads(pickle.dumps(parts))
    assert again[0].same_as(run.record)
    assert again[-1] == run.task.explorer
    state = replace(run.state, homdp=None)
    counts = pickle.loads(pickle.dumps(state)).counts
    np.testing.assert_array_equal(counts.transition, run.state.counts.transition)


def test_records_add_up(run):
    nothing = Record.empty(run.task.world)
    assert differences(Run(**{**vars(run), "record": nothing + run.record}), run) == []
    assert differences(Run(**{**vars(run), "record": run.record + nothing}), run) == []


def test_rounds_of_a_number_of_episodes(run):
    assert [run.task.rounds_of(stop) for stop in (None, 0, 1, 39, 40)] == [40, 0, 1, 39, 40]
    with pytest.raises(ParameterError) as caught:
        run.task.rounds_of(41)
    assert [problem.where for problem in caught.value.problems] == ["stop_after"]
    task = learn(small("tiger"), hearing(), TREE, 20, stop_after=0).task
    assert (task.rounds, task.episodes_per_round) == (6, 3)
    assert [task.rounds_of(stop) for stop in (None, 2, 3, 19, 20)] == [6, 0, 1, 6, 6]
