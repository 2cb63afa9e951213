"""Evaluation of policies: its record, tests of the declaration, incomplete logs, and refusals."""

import jax
import numpy as np
import pytest

from homdp_ppl import (
    DataError,
    Episodes,
    InferenceError,
    ParameterError,
    PolicyError,
    SpacesError,
    evaluate,
    models,
    offline,
    rollout,
    uniform_policy,
)
from homdp_ppl.confidence import interval
from homdp_ppl.offline.agreement import compare
from homdp_ppl.planners import history_tree, particle_tree
from homdp_ppl.posteriors import Sampling, posterior
from tests.confidence.boxes import ends
from tests.gaps import with_gaps
from tests.offline.simulated import following, simulate
from tests.raising import raises
from tests.random_rewards import CHANCES, native

TIGER = models.load("tiger", horizon=3)
PLAN = history_tree()(TIGER.pomdp)


def log_of(world, n, seed=0):
    """A log of the uniform policy."""
    return rollout(jax.random.split(jax.random.key(seed), n), world, uniform_policy(world))


def test_the_parts_are_those_of_the_library():
    log = log_of(TIGER, 400)
    found = offline.evaluate(TIGER.homdp, log, PLAN.policy, behaviour=uniform_policy(TIGER))
    assert found.certified == interval(TIGER.homdp, log, PLAN.policy)
    belief = posterior(TIGER.homdp, log)
    values = [
        evaluate(PLAN.policy, TIGER.homdp.at(accuracy=p).pomdp)
        for p in np.asarray(belief.parameters(jax.random.key(0), 200)["accuracy"])
    ]
    np.testing.assert_allclose(found.belief.values, values)
    assert found.logged.value == pytest.approx(TIGER.returns(log).mean())
    assert found.belief.low < PLAN.value < found.belief.high
    assert found.behaviour == "given"
    assert not found.markov.violated
    assert not found.notes


def test_how_it_is_shown():
    found = offline.evaluate(TIGER.homdp, log_of(TIGER, 400), PLAN.policy)
    names = [name for name, *_ in found.rows]
    assert names[:2] == ["certified", "posterior"]
    assert {"per decision", "self-normalised", "doubly robust"} < set(names)
    assert all(name in repr(found) and name in found._repr_html_() for name in names)
    assert found.to_table().row_count == len(names)
    assert len(found.tests) == 2
    assert "estimated" in found.behaviour


def test_wrong_declarations_are_detected():
    """The accuracy changes with the step; the declaration says that it does not."""
    accuracy = np.array([0.55, 0.55, 0.98])
    emission = np.stack([[[[p, 1 - p], [1 - p, p]]] for p in accuracy])
    wrong = TIGER.pomdp._replace(emission=emission)
    acting = following(PLAN.policy, 0.3)
    for model, expected in ((TIGER.pomdp, False), (wrong, True)):
        log = simulate(model, acting, 2000, seed=1)
        found = offline.evaluate(TIGER.homdp, log, PLAN.policy, window=3)
        assert found.agreement.enough
        assert found.agreement.violated == expected
        assert any("disagree" in words for _, words in found.tests) == expected


def test_impossible_steps_are_refused():
    """The log is of a tiger that moves while you listen."""
    log = log_of(TIGER, 20)
    states = np.array(log.states)
    states[:, 1] = np.where(log.actions[:, 0] == 0, 1 - states[:, 0], states[:, 1])
    with raises(DataError, "data"):
        moved = Episodes(log.observations, log.actions, states)
        offline.evaluate(TIGER.homdp, moved, PLAN.policy)


def test_agreement_is_about_values():
    """A posterior far from the weighted estimate is reported in words; few data are not."""
    weighted = offline.Estimate("doubly robust", 1.0, 0.1)
    assert compare(1.1, 0.1, weighted, 100.0).p_value == pytest.approx(0.4795, abs=1e-3)
    assert compare(2.0, 0.1, weighted, 100.0).violated
    assert "disagree" in compare(2.0, 0.1, weighted, 100.0).words
    assert not compare(2.0, 0.1, weighted, 10.0).violated
    assert "not compared" in compare(2.0, 0.1, weighted, 10.0).words


def test_missing_states_take_the_bayesian_route():
    log = with_gaps(TIGER, 200, 0.3)
    found = offline.evaluate(TIGER.homdp, log, PLAN.policy)
    assert found.certified is None
    assert found.markov is None
    assert not found.weighted
    assert found.belief.low < PLAN.value < found.belief.high
    assert len(found.notes) == 3
    assert "biased" in found.notes[0]
    short = Sampling(chains=2, draws=4)  # too short for the gate of the posterior
    for function, given in ((offline.evaluate, [PLAN.policy]), (offline.choose, [])):
        with pytest.raises(InferenceError):
            function(TIGER.homdp, log, *given, sampling=short)


def test_missing_states_with_recorded_rewards_have_weighted_estimates():
    full = log_of(TIGER, 400)
    table = np.asarray(TIGER.pomdp.reward)[0, :, 0]
    states = np.ma.array(full.states, mask=np.random.default_rng(0).random(full.states.shape) < 0.3)
    log = Episodes(
        full.observations, full.actions, states, rewards=table[full.states[:, :-1], full.actions]
    )
    found = offline.evaluate(TIGER.homdp, log, PLAN.policy)
    assert [e.name for e in found.weighted] == [
        "importance weighted",
        "per decision",
        "self-normalised",
    ]
    complete = offline.evaluate(TIGER.homdp, full, PLAN.policy)
    assert found.weighted == complete.weighted[:3]


def test_recorded_rewards_that_are_not_declared_are_reported():
    """With the first of them; rounded ones are not reported."""
    world = models.load("tiger", horizon=3)
    log = log_of(world, 30)
    table = np.asarray(world.pomdp.reward)[0, :, 0]
    right = table[log.states[:, :-1], log.actions]
    wrong = right.copy()
    wrong[4, 1] += 0.5
    for rewards, expected in ((right.round(2), 0), (wrong, 1)):
        own = Episodes(log.observations, log.actions, log.states, rewards=rewards)
        for function, given in ((offline.evaluate, [PLAN.policy]), (offline.choose, [])):
            notes = function(world.homdp, own, *given).notes
            assert sum("differ from the declared" in note for note in notes) == expected
            assert not expected or "1 of 90 " in notes[0]
            assert not expected or "episode 4, step 2" in notes[0]


def test_random_rewards_and_terminal_states():
    shop = native().at(p=CHANCES, accuracy=0.8)
    for world in (shop, ends.draw(jax.random.key(1))):
        policy = history_tree()(world.pomdp).policy
        found = offline.evaluate(world.homdp, log_of(world, 400), policy)
        truth = evaluate(policy, world.pomdp)
        assert found.certified.low <= truth <= found.certified.high
        robust = found.weighted[-1]
        assert abs(robust.value - truth) < 5 * robust.error


def test_truncated_episodes_have_no_returns():
    log = Episodes(
        [[0, 1, 0], [0, 1, 1]],
        [[0, 0, 0], [0, 0, 0]],
        [[0, 0, 0, 0], [1, 1, 1, 1]],
        length=[3, 2],
        ended=["horizon", "truncated"],
    )
    found = offline.evaluate(TIGER.homdp, log, PLAN.policy)
    assert found.certified is not None
    assert not found.weighted
    assert "truncated" in found.notes[0]


def test_actions_that_were_never_tried_are_reported():
    listening = np.zeros((50, 3), dtype=int)
    log = Episodes(np.zeros((50, 3), dtype=int), listening, np.zeros((50, 4), dtype=int))
    opens = offline.evaluate(TIGER.homdp, log, PLAN.policy)
    assert any("never" in note for note in opens.notes)


def test_what_is_refused():
    log = log_of(TIGER, 10)
    with raises(DataError, "log"):
        offline.evaluate(TIGER.homdp, Episodes.of([], TIGER), PLAN.policy)
    with raises(ParameterError, "delta"):
        offline.evaluate(TIGER.homdp, log, PLAN.policy, delta=0.0)
    with raises(ParameterError, "mixture"):
        offline.evaluate(TIGER.homdp, log, PLAN.policy, mixture="flat")
    with raises(ParameterError, "window", "draws"):
        offline.evaluate(TIGER.homdp, log, PLAN.policy, window=0, draws=1)
    with raises(PolicyError, "policy"):
        online = particle_tree(simulations=10)(TIGER).policy
        offline.evaluate(TIGER.homdp, log, online)
    gaussian = models.load("gaussian_tiger", horizon=2)
    with raises(SpacesError, "offline.evaluate"):
        offline.evaluate(gaussian.homdp, log, PLAN.policy)
    with pytest.raises((DataError, InferenceError)):
        offline.evaluate(TIGER.homdp, log_of(models.load("lock"), 5), PLAN.policy)
