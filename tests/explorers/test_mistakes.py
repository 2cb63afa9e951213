"""Common mistakes in custom rules: each raises an error that names the problem."""

# mypy: disable-error-code="arg-type,type-var"
# Wrong types are what is tested.

import jax
import numpy as np
import pytest

from homdp_ppl import POMDP, ParameterError, PlanningError, evaluate, learn, uniform_policy
from homdp_ppl.explorers import (
    About,
    Deployment,
    Explorer,
    Objective,
    Proposal,
    bind,
    greedy,
    replan_on_doubling,
    with_random_actions,
)
from homdp_ppl.planners import alpha_vectors, history_tree
from homdp_ppl.study.sources import parse_call
from tests.worlds import world


def proposing(model):
    def propose(key, state):
        return Proposal(jax.tree.map(lambda part: part[None], model))

    return Explorer(About("mine"), propose=propose)


def problem(error):
    return error.value.problems[0]


def test_probability_outside_the_support_is_not_dropped():
    """The tree contains only histories within the support, so values would be too small."""
    lock = world("lock")
    X, _, A, _ = lock.spaces.sizes
    everywhere = lock.pomdp.with_tables(transition=np.full((X, A, X), 1 / X))
    for compiled in (False, True):
        with pytest.raises(ParameterError) as error:
            learn(lock, proposing(everywhere), history_tree(), episodes=2, compiled=compiled)
        assert "Objective(support=...)" in problem(error).remedy
    learn(lock, proposing(everywhere), alpha_vectors(), episodes=1)  # plans for all of it


def test_models_of_other_sizes():
    with pytest.raises(ParameterError) as error:
        learn(world("lock"), proposing(world("tiger").pomdp), history_tree(), episodes=1)
    assert problem(error).where == "propose"
    assert "sizes" in problem(error).got


@pytest.mark.parametrize(
    ("where", "functions"),
    [
        ("init", {"init": lambda homdp, episodes: 3}),
        ("update", {"update": lambda state, episode: None}),
    ],
)
def test_invalid_states(where, functions):
    rule = Explorer(About("mine"), propose=greedy().propose, **functions)
    with pytest.raises(ParameterError) as error:
        learn(world("tiger"), rule, history_tree(), episodes=1, compiled=False)
    assert (problem(error).where, problem(error).expected) == (where, "a State")


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: About(3), "name"),
        (lambda: About("mine", ["weight"]), "options"),
        (lambda: About("mine", guarantee="sure"), "guarantee"),
        (lambda: Objective(candidates=2.5), "candidates"),
        (lambda: Objective(candidates=2, pick="best"), "pick"),
        (lambda: Objective(candidates=2, pick=3), "pick"),
        (lambda: Objective(backup=3), "backup"),
        (lambda: Objective(root=None), "root"),
        (lambda: Deployment(random_actions="x"), "random_actions"),
        (lambda: Deployment(random_actions=2), "random_actions"),
        (lambda: Deployment(replan="often"), "replan"),
        (lambda: with_random_actions(greedy, 0.1), "rule"),
        (lambda: replan_on_doubling("greedy"), "rule"),
        (lambda: bind(3, weight=1), "function"),
        (lambda: bind(sorted_by, wieght=1), "wieght"),
        (lambda: parse_call("mine.py:rule:least=2:bonus=0.5", "explorer"), "mine.py:rule"),
    ],
)
def test_wrong_arguments(make, where):
    with pytest.raises(ParameterError) as error:
        make()
    assert problem(error).where == where


def sorted_by(values, weight=1):
    return sorted(values, key=lambda value: weight * value)


def test_arrays_in_short_form_and_bonuses_of_other_shapes():
    tiger = world("tiger").pomdp
    short = POMDP(*tiger.stationary(), tiger.terminal, tiger.scale, tiger.shift)
    for wrong in (lambda: short.horizon, lambda: short.spaces, lambda: uniform_policy(short)):
        with pytest.raises(PlanningError) as error:
            wrong()
        assert "POMDP.of" in problem(error).remedy
    with pytest.raises(PlanningError):
        evaluate(uniform_policy(tiger), short)
    for bonus in (1.0, np.ones(3), np.ones((3, 2)), np.ones((5, 2, 3))):
        with pytest.raises(PlanningError) as error:
            tiger.with_bonus(bonus)
        assert problem(error).where == "bonus"
    for bonus in ([[1.0] * 3] * 2, [[1.0]], np.ones((2, 1))):
        assert np.array_equal(tiger.with_bonus(bonus).reward, tiger.reward + 1)
