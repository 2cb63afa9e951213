"""Masks of allowed actions: validation, tabulation and the uniform policy."""

import jax.numpy as jnp
import numpy as np
import pytest

from homdp_ppl import PlanningError, PolicyError, Spaces, evaluation, uniform_policy
from homdp_ppl.core.allowed import allowed_after, allowed_table, refuse_allowed
from homdp_ppl.errors import DeclarationError, HOMDPError
from tests.raising import raises
from tests.worlds import world

SPACES = Spaces(("well", "ill"), ("-", "+"), ("blood", "urine", "treat"), horizon=3)
SEEN, DONE = np.array([[0, 1], [1, 1], [0, 0]]), np.array([[0], [2], [1]])


def once(observations, actions):
    return ~np.isin(np.arange(3), actions)


def test_masks_of_many_histories():
    table = allowed_table(once, SEEN, DONE, SPACES, "test")
    assert table.tolist() == [[False, True, True], [True, True, False], [True, False, True]]
    assert not table.flags.writeable  # it is cached
    for n in range(3):
        one = allowed_after(once, SEEN[n], DONE[n], SPACES, "test")
        assert np.array_equal(one, table[n])


def test_tables_are_cached_by_function_and_histories():
    calls = []

    def counted(observations, actions):
        calls.append(1)
        return np.ones(3, dtype=bool)

    def fewer(observations, actions):
        return np.array([True, False, False])

    allowed_table(counted, SEEN, DONE, SPACES, "test")
    first = len(calls)
    assert first == 6  # each history is asked twice
    allowed_table(counted, SEEN.copy(), DONE.copy(), SPACES, "test")
    assert len(calls) == first
    allowed_table(counted, SEEN[:, ::-1], DONE, SPACES, "test")
    assert len(calls) == 2 * first
    assert allowed_table(fewer, SEEN, DONE, SPACES, "test").sum() == 3


@pytest.mark.parametrize("mask", [[True, False, True], (True, True, False), jnp.ones(3, bool)])
def test_lists_and_jax_arrays_are_masks(mask):
    found = allowed_after(lambda seen, done: mask, [0], [], SPACES, "test")
    assert isinstance(found, np.ndarray)
    assert found.tolist() == list(mask)


def test_errors_name_the_history_and_have_the_class_of_the_caller():
    with raises(DeclarationError, "allowed[step 2, after -, urine, +]"):
        allowed_after(lambda y, a: [], [0, 1], [1], SPACES, "test", DeclarationError)
    with raises(PlanningError, *(f"allowed[step 2, after {h}]" for h in ("-, blood, +",))):
        allowed_table(lambda y, a: np.zeros(3, bool), SEEN, DONE, SPACES, "test")


def test_at_most_eight_histories_are_listed():
    seen = np.zeros((100, 1), dtype=int)
    with pytest.raises(PlanningError) as caught:
        allowed_table(lambda y, a: None, seen, np.zeros((100, 0), int), SPACES, "test")
    assert len(caught.value.problems) == 8


def test_errors_in_the_function_are_not_hidden():
    with pytest.raises(ZeroDivisionError):
        allowed_table(lambda y, a: 1 / 0, SEEN, DONE, SPACES, "test")


def test_planners_without_support():
    refuse_allowed("planner", None)
    with raises(PlanningError, "allowed"):
        refuse_allowed("planner", once)


def test_uniform_policy_of_allowed_actions():
    policy = uniform_policy(SPACES, once)
    assert policy == uniform_policy(SPACES, once)
    assert policy.act([0, 1], [0]).tolist() == [0.0, 0.5, 0.5]
    assert policy.act(np.array([0]), np.array([])).tolist() == [1 / 3] * 3
    for history in (([0, 1], []), ([2], []), ([0, 1], [3]), ([0] * 4, [0] * 3), ([], [])):
        with pytest.raises(PolicyError):
            policy.act(*history)
    with raises(PolicyError, "allowed[step 1, after -]"):
        uniform_policy(SPACES, lambda y, a: np.zeros(3, bool)).act([0], [])
    with pytest.raises(HOMDPError):
        uniform_policy(world("gaussian_tiger"), once)


def test_uniform_at_a_step_with_masks():
    policy = evaluation.uniform_at(
        uniform_policy(SPACES), 2, 3, np.array([[True] * 3, [True, False, True], [True] * 3])
    )
    assert policy.probabilities[1].tolist() == [0.5, 0.0, 0.5]
    assert policy.probabilities[2].tolist() == [1 / 3] * 3
    for wrong in (np.ones((2, 3), bool), np.ones((3, 3)), np.zeros((3, 3), bool)):
        with raises(PolicyError, "allowed"):
            evaluation.uniform_at(uniform_policy(SPACES), 2, 3, wrong)
