"""Sequential diagnosis with 30 tests: a short declaration with two states, planned exactly."""

import inspect
from functools import cache

import jax
import numpy as np
import pytest

from homdp_ppl import evaluate, models, rollout, uniform_policy
from homdp_ppl.models import diagnosis
from homdp_ppl.planners import auto, bounded_search, history_tree
from tests.models.by_name import begins, row, shown


@cache
def made(tests=30, horizon=4):
    return models.load("diagnosis", tests=tests, horizon=horizon)


def optimum(world):
    """The least expected cost, by dynamic programming over sets of tests, without the library."""
    cost, H = -world.homdp.reward[0], world.spaces.horizon
    tests = len(world.spaces.actions) - 3
    alarm, ill = world.parameters["alarm"], world.parameters["ill"]

    def decide(well, sick):
        return min(well * cost[0, -2] + sick * cost[1, -2], well * cost[0, -1] + sick * cost[1, -1])

    def best(well, sick, left, untried):
        """The expected cost, weighted by the probability of the results so far."""
        found = decide(well, sick)
        for test in untried if left else ():
            rest = [other for other in untried if other != test]
            found = min(
                found,
                (well + sick) * cost[0, test]
                + best(well * alarm[0, test], sick * alarm[1, test], left - 1, rest)
                + best(well * (1 - alarm[0, test]), sick * (1 - alarm[1, test]), left - 1, rest),
            )
        return found

    return best(1 - ill, ill, H - 1, list(range(tests)))


def planned(world, planner):
    return planner(world.pomdp, allowed=world.homdp.allowed)


def test_the_declaration_is_short():
    """At most 25 lines, with the rule, and two states for 30 tests."""
    lines = inspect.getsource(diagnosis.structured).splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("    def once"))
    last = next(n for n, line in enumerate(lines) if "diagnosis.at(" in line)
    declaration = [line for line in lines[first:last] if line.strip()]
    assert any("@homdp(" in line for line in declaration)
    assert any("return Kernels(" in line for line in declaration)
    assert len(declaration) <= 25
    assert made().spaces.sizes == (2, 3, 33, 4)


def test_diagnosis_by_hand():
    world = made()
    assert begins(world) == {"well": 0.7, "ill": 0.3}
    assert row(world, "ill", "test 4") == {"ill": 1.0}
    assert shown(world, "well", after="test 1") == {"negative": 0.6, "positive": 0.4}
    assert shown(world, "ill", after="test 30") == {"negative": 0.15, "positive": 0.85}
    for after in ("no more tests", "treat", None):
        assert shown(world, "ill", after) == {"nothing": 1.0}
    cost = -world.homdp.reward[0]
    assert cost[:, -3:].tolist() == [[0, 20, 0], [0, 0, 100]]
    assert (cost[0, :30] == cost[1, :30]).all()
    assert cost[0, [0, 29]].tolist() == [0.2, 1.2]


def test_allowed_actions():
    """A test at most once, no test after the last one, and a decision at the end only."""
    names, allowed = made(3).spaces.actions, made(3).homdp.allowed

    def after(*actions):
        done = [names.index(action) for action in actions]
        return [
            name
            for name, fine in zip(names, allowed([0] * (len(done) + 1), done), strict=True)
            if fine
        ]

    assert after() == ["test 1", "test 2", "test 3", "no more tests"]
    assert after("test 2") == ["test 1", "test 3", "no more tests"]
    assert after("test 2", "no more tests") == ["no more tests"]
    assert after("test 2", "test 1", "test 3") == ["treat", "dismiss"]


@pytest.mark.parametrize(
    ("tests", "horizon"),
    [(1, 2), (4, 4), (30, 2), (30, 3), pytest.param(30, 4, marks=pytest.mark.slow)],
)
def test_plans_are_exact_for_up_to_three_tests(tests, horizon):
    world = made(tests, horizon)
    plan = planned(world, history_tree())
    assert plan.gap == 0
    assert plan.value == pytest.approx(-optimum(world), abs=1e-9)
    assert evaluate(plan.policy, world.pomdp) == pytest.approx(plan.value, abs=1e-9)


def test_the_rule_matters():
    """Planted: without the rule, the best test is repeated, or the decision is left out."""
    world = made(4, 4)
    assert history_tree()(world.pomdp).value > planned(world, history_tree()).value + 0.1


def test_more_tests_have_a_certified_gap():
    """One more test cannot hurt, so optima of shorter horizons are lower bounds of ``upper``."""
    world = made(30, 6)
    plan = planned(world, bounded_search(time_limit=1.0))
    assert plan.certified
    assert plan.value <= plan.upper
    assert plan.upper >= -optimum(made(30, 3))
    small = made(4, 5)
    searched = planned(small, bounded_search(gap=1e-6))
    assert searched.gap <= 1e-6
    assert searched.value <= -optimum(small) + 1e-9 <= searched.upper + 2e-9


@pytest.mark.slow
def test_three_of_thirty_tests_are_planned_exactly_by_default():
    world = made(30, 4)
    plan = planned(world, auto())
    assert plan.planner.startswith("history_tree")
    assert plan.value == pytest.approx(-optimum(world), abs=1e-9)


def test_policies_repeat_no_test():
    world = made(6, 5)
    plan = planned(world, auto())
    played = rollout(jax.random.split(jax.random.key(0), 40), world, plan.policy)
    for actions in played.actions:
        tests = actions[actions < 6]
        assert len(set(tests)) == len(tests)
        assert actions[-1] >= 7
    random = uniform_policy(world, world.homdp.allowed)
    chances = random.act(np.array([0, 1]), np.array([2]))
    assert chances[2] == 0
