"""Guidelines that are plain functions of names, against the same policies as tables."""

import jax
import numpy as np
import pytest

from homdp_ppl import (
    FunctionPolicy,
    GraphPolicy,
    PolicyError,
    Spaces,
    evaluate,
    models,
    rollout,
    uniform_policy,
)
from homdp_ppl.core.sensors import Sensors
from tests.raising import raises
from tests.runs import TREE

TIGER = models.load("tiger", horizon=3)
LISTEN, LEFT, RIGHT = TIGER.spaces.actions


def majority(observations, actions):
    """Listen, then open the door opposite to the growls if they agree."""
    if len(observations) < 2 or len(set(observations)) > 1:
        return LISTEN
    return RIGHT if observations[0] == "growl left" else LEFT


def test_a_guideline_receives_names():
    asked = []
    policy = FunctionPolicy(lambda seen, done: asked.append((seen, done)) or LISTEN, TIGER)
    by_index = policy.act([1, 0], [2])
    assert (by_index == policy.act(["growl right", "growl left"], [RIGHT])).all()
    assert asked == [(("growl right", "growl left"), (RIGHT,))] * 2


@pytest.mark.parametrize(
    "answer",
    [RIGHT, 2, np.int64(2), {RIGHT: 1.0}, [0, 0, 1], np.array([0, 0, 1], dtype=np.float32)],
    ids=repr,
)
def test_forms_of_an_answer(answer):
    assert FunctionPolicy(lambda seen, done: answer, TIGER).act([0], []).tolist() == [0, 0, 1]


def test_random_guidelines():
    mixed = FunctionPolicy(lambda seen, done: {LEFT: 0.25, RIGHT: 0.75}, TIGER)
    assert mixed.act([0], []).tolist() == [0, 0.25, 0.75]
    same = FunctionPolicy(lambda seen, done: dict.fromkeys((LISTEN, LEFT, RIGHT), 1 / 3), TIGER)
    expected = evaluate(uniform_policy(TIGER), TIGER.pomdp)
    assert evaluate(same, TIGER.pomdp) == pytest.approx(expected, abs=1e-12)


def test_the_optimal_policy_as_a_guideline():
    plan = TREE(TIGER.pomdp)
    best = plan.policy.named(TIGER)

    def copied(observations, actions):
        return int(best.act(list(observations), list(actions)).argmax())

    assert evaluate(FunctionPolicy(copied, TIGER), TIGER.pomdp) == pytest.approx(plan.value)


def test_simulations_and_graphs_agree_with_the_function():
    policy = FunctionPolicy(majority, TIGER)
    graph = GraphPolicy.from_policy(policy, TIGER)
    keys = jax.random.split(jax.random.key(0), 20)
    asked, compiled = rollout(keys, TIGER, policy), rollout(keys, TIGER, graph)
    assert (asked.actions == compiled.actions).all()
    assert {LISTEN, LEFT, RIGHT} == {TIGER.spaces.actions[a] for a in np.unique(asked.actions)}


def test_several_sensors_are_dicts_and_real_values_are_numbers():
    both = Sensors({"ear": ("left", "right"), "eye": ("dark", "light")})
    spaces = Spaces(("a", "b"), both, ("wait", "go"), horizon=2)
    policy = FunctionPolicy(lambda seen, done: "go" if seen[-1]["eye"] == "light" else 0, spaces)
    assert policy.act([{"ear": "left", "eye": "light"}], []).tolist() == [0, 1]
    assert policy.act([1, 2], [1]).tolist() == [1, 0]
    real = models.load("gaussian_tiger")
    right = FunctionPolicy(lambda seen, done: 2 if seen[-1] > 0.5 else 0, real)
    assert [right.act([y], []).argmax() for y in (0.7, -0.7)] == [2, 0]
    with raises(PolicyError, "observations"):
        right.act([np.nan], [])


@pytest.mark.parametrize(
    "answer",
    [
        "listn",
        3,
        -1,
        True,
        None,
        {LISTEN: 0.5},
        {"wait": 1.0},
        [0.5, 0.5],
        [2, -1, 0],
        {LEFT: "1a"},
    ],
    ids=repr,
)
def test_wrong_answers(answer):
    with raises(PolicyError, "function[step 1]"):
        FunctionPolicy(lambda seen, done: answer, TIGER).act([0], [])


def test_wrong_histories():
    policy = FunctionPolicy(majority, TIGER)
    for history in (([0] * 4, [0] * 3), ([], []), ([0, 1], [])):
        with raises(PolicyError, "history"):
            policy.act(*history)
    with raises(PolicyError, "observations"):
        policy.act([2], [])
    with raises(PolicyError, "actions[step 1]"):
        policy.act([0, 0], ["liste"])
