"""Restored runs continue as if they had never stopped."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from homdp_ppl import DataError, ParameterError, explorers, learn
from homdp_ppl.explorers._densities import candidates
from homdp_ppl.learning.replay import restore
from homdp_ppl.planners import quantised
from tests.continuous.programs import hearing
from tests.declare.test_terminal import native
from tests.raising import raises
from tests.runs import TREE
from tests.worlds import drawn, world

K = 12


def classes():
    """Some tables, including the true one."""
    members = [world("tiger_table").pomdp, drawn("tiger_table").pomdp]
    return np.stack([m.moves(0) for m in members]), np.stack([m.shows(0) for m in members])


RULES = {
    "greedy": lambda: explorers.replan_on_doubling(explorers.greedy()),
    "tight": explorers.tight,
    "posterior_sampling": explorers.posterior_sampling,
    "epsilon_greedy": lambda: explorers.epsilon_greedy(0.3),
    "hop_v": lambda: explorers.hop_v(*classes()),
}


def begun(rule, compiled=False):
    return learn(world("tiger_table"), rule, TREE, K, seed=3, stop_after=0, compiled=compiled)


@pytest.mark.parametrize("name", RULES)
def test_a_restored_run_ends_like_an_uninterrupted_one(name):
    rule = RULES[name]()
    whole = begun(rule).resume()
    per = whole.task.episodes_per_round
    for rounds in (0, 1, 2, len(whole.values) - 1, len(whole.values)):
        again = restore(begun(rule), whole.record.until(rounds, rounds * per))
        assert len(again.values) == rounds
        assert again.resume().record.same_as(whole.record)


def test_a_compiled_run_is_run_again():
    rule = explorers.greedy()
    whole = begun(rule, compiled=True).resume()
    again = restore(begun(rule, compiled=True), whole.record.until(5, 5))
    assert again.resume().record.same_as(whole.record)


def test_a_run_with_terminal_states_is_restored():
    """In the record, episodes have all their steps."""
    world = native().draw(jax.random.key(3))
    options = TREE, 6, 0
    whole = learn(world, explorers.greedy(), *options, compiled=False)
    assert whole.episodes.length.min() < world.spaces.horizon
    start = learn(world, explorers.greedy(), *options, stop_after=0, compiled=False)
    again = restore(start, whole.record.until(5, 5))
    assert again.resume().record.same_as(whole.record)


@pytest.mark.slow
def test_a_continuous_run_is_restored():
    made = hearing("means").draw(jax.random.key(2))
    rule = explorers.hop_v([made], [made, *candidates(made.homdp, 2, jax.random.key(5))])
    planner = quantised(gap=0.05)
    start = learn(made, rule, planner, 6, seed=0, stop_after=0)
    whole = start.resume()
    again = restore(start, whole.record.until(1, 2))
    assert again.resume().record.same_as(whole.record)
    assert whole.record.planned[1]
    with raises(ParameterError, "round"):
        restore(start, whole.record.until(2, 4)).policy_at(0)


@pytest.mark.parametrize("compiled", [False, True])
def test_records_of_another_run_raise(compiled):
    """A value that differs in its last bit, and a different observation."""
    rule = explorers.greedy()
    whole = begun(rule, compiled).resume()
    values = whole.record.values.copy()
    values[-1] = np.nextafter(values[-1], 9.0)
    with raises(DataError, "record"):
        restore(begun(rule, compiled), replace(whole.record, values=values))
    if compiled:
        seen = whole.record.observations.copy()
        seen[2, 1] = 1 - seen[2, 1]
        with raises(DataError, "record"):
            restore(begun(rule, compiled), replace(whole.record, observations=seen))
