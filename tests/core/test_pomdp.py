"""POMDP arrays: rows, ranks, equations and validation."""

import jax
import numpy as np
import pytest

from homdp_ppl import POMDP, PlanningError, Spaces, x64
from homdp_ppl.core.pomdp_validation import numbers_of, validated
from homdp_ppl.core.probabilities import LISTED_ROWS, normalised, pomdp_problems, row_problems
from homdp_ppl.core.randomness import Noise
from homdp_ppl.core.rollout import play, play_by_asking
from tests.continuous.programs import walk
from tests.planners.exact import DEPENDENT, dependent_pomdp, full, random_pomdp
from tests.raising import raises
from tests.worlds import random_policy, world

SPACES = Spaces(("off", "on"), ("dark", "light"), ("wait",), 2)


@pytest.mark.parametrize(
    ("row", "at", "got", "remedy"),
    [
        ([0.5, 0.6], "on", "a row that sums to 1.1", "Normalise the row"),
        ([1.25, -0.25], "on, light", "-0.25", "negative"),
        ([np.nan, 1.0], "on", "a row with nan", "divisions by zero"),
        ([np.inf, 0.0], "on", "a row that sums to inf", "Normalise the row"),
        ([0.0, 0.0], "on", "a row that sums to 0", "declared names"),
        ([0.5, 0.5 + 1e-7], "on", "a row that sums to 1.0000001", "float32"),
    ],
)
def test_invalid_rows_are_named(row, at, got, remedy):
    (problem,) = row_problems("emission", np.array([[1.0, 0.0], row]), SPACES)
    assert (problem.where, problem.at, problem.got) == ("emission", at, got)
    assert remedy in problem.remedy


def test_valid_rows_have_no_problems():
    assert pomdp_problems(random_pomdp(0, 2, 2, 1, 2, zeros=0.3), SPACES) == []
    assert row_problems("initial", np.array([1.0 - 1e-10, 0.0]), SPACES) == []


def test_many_invalid_rows_are_counted():
    many = Spaces(tuple(f"x{k}" for k in range(50)), ("y0", "y1"), ("a0",), 1)
    found = row_problems("emission", np.full((50, 2), 0.4), many)
    assert len(found) == LISTED_ROWS + 1
    assert f"{50 - LISTED_ROWS} more" in found[-1].got


def test_rows_are_normalised_if_necessary():
    exact, rounded = np.array([1.0 - 1e-12, 0.0]), np.full(3, 1 / 3, dtype=np.float32).astype(float)
    assert normalised(exact) is exact
    np.testing.assert_array_equal(
        normalised(np.array([[0.2, 0.2], [1.0, 0.0], [0.0, 0.0]])), [[0.5, 0.5], [1, 0], [0, 0]]
    )
    assert abs(normalised(rounded).sum() - 1) < 1e-15 < abs(rounded.sum() - 1)


def test_errors_for_other_models_say_where_their_arrays_are():
    tiger, real = world("tiger"), walk()
    assert numbers_of(tiger.pomdp, "planner") is tiger.pomdp
    for wrong, got, remedy in (
        (tiger, "a World", "world.pomdp"),
        (tiger.homdp, "a HOMDP", "model.at(...).pomdp"),
        (real, "a HOMDP with real-valued spaces", "particle_tree"),
        (real.at(noise=0.5), "a World with real-valued spaces", "particle_tree"),
        (tiger.pomdp.moves(0), "an ndarray", ""),
    ):
        with raises(PlanningError, "model") as caught:
            numbers_of(wrong, "planner")
        (problem,) = caught.value.problems
        assert problem.got == got
        assert remedy in problem.remedy


# Ranks


def test_short_forms_have_the_same_ranks():
    rho, T, O, r = random_pomdp(0, 3, 4, 2, 5).stationary()  # noqa: E741
    ranks = ((3,), (1, 3, 2, 3), (1, 1, 3, 4), (5, 3, 1, 2), (3,), (), ())
    assert tuple(map(np.shape, POMDP.of(rho, T, O, r))) == ranks
    assert tuple(map(np.shape, POMDP.of(rho, T, O, r[0], horizon=5))) == ranks
    assert tuple(map(np.shape, POMDP.of(rho, T[None], O[None, None], r[:, :, None]))) == ranks
    steps = POMDP.of(rho, np.stack([T] * 5), np.stack([O] * 3), r[0])
    assert (steps.transition.shape, steps.emission.shape) == ((5, 3, 2, 3), (1, 3, 3, 4))
    assert (steps.horizon, steps.sizes) == (5, (3, 4, 2))
    seen = POMDP.of(rho, T, np.broadcast_to(O, (5, 3, 3, 4)), np.zeros((5, 3, 4, 2)))
    assert (seen.emission.shape, seen.reward.shape) == ((5, 3, 3, 4), (5, 3, 4, 2))
    assert POMDP.of(rho, T, O, r, terminal=[0, 0, 1]).terminal.tolist() == [False, False, True]
    with x64():
        traced = jax.jit(lambda emission: POMDP.of(rho, T, emission, r))(O)
    assert tuple(map(np.shape, traced)) == ranks


@pytest.mark.parametrize(
    ("change", "places"),
    [
        ({"reward": np.zeros((3, 2))}, {"horizon"}),
        ({"reward": np.zeros((3, 2)), "horizon": 0}, {"horizon"}),
        ({"horizon": 4}, {"reward"}),
        ({"emission": np.ones((2, 3, 4))}, {"emission"}),  # rank 3 is (A + 1, X, Y)
        ({"transition": np.ones((3, 3)), "initial": np.ones((2, 2))}, {"transition", "initial"}),
        ({"initial": np.ones(2), "reward": np.zeros((5, 3, 3))}, {"initial", "reward"}),
        ({"terminal": [True]}, {"terminal"}),
        ({"reward": np.zeros((0, 3, 2))}, {"reward"}),
        ({"transition": np.ones((4, 3, 2, 3))}, {"transition"}),
    ],
)
def test_all_wrong_shapes_are_reported(change, places):
    rho, T, O, r = random_pomdp(0, 3, 4, 2, 5).stationary()  # noqa: E741
    given = {"initial": rho, "transition": T, "emission": O, "reward": r} | change
    with pytest.raises(PlanningError) as caught:
        POMDP.of(**given)
    assert {problem.where for problem in caught.value.problems} == places


@pytest.mark.parametrize("kinds", ["", *DEPENDENT])
def test_equations_entry_by_entry(kinds):
    model = dependent_pomdp(3, X=3, Y=2, A=2, H=3, kinds=kinds)
    T, O, r = full(model)  # noqa: E741
    generator = np.random.default_rng(0)
    b, v, later = generator.random(3), generator.random(3), generator.random((2, 2, 3))
    assert model.is_stationary == (kinds == "")
    for h in range(2):
        for a in range(2):
            predicted = [sum(b[x] * T[h, x, a, z] for x in range(3)) for z in range(3)]
            np.testing.assert_allclose(model.predict(b, a, h), predicted)
            np.testing.assert_allclose(model.predict(b, None, h)[a], predicted)
            np.testing.assert_allclose(model.predict(b[None], slice(a, a + 1), h)[0, 0], predicted)
            for y in range(2):
                np.testing.assert_array_equal(model.likelihood(y, a, h), O[h, a, :, y])
                np.testing.assert_array_equal(model.likelihood(y, None, h), O[h, 2, :, y])
            for x in range(3):
                assert model.backup(v, h)[x, a] == pytest.approx(T[h, x, a] @ v)
                total = sum(
                    T[h, x, a, z] * O[h + 1, a, z, y] * later[a, y, z]
                    for z in range(3)
                    for y in range(2)
                )
                assert model.backup(later, h)[x, a] == pytest.approx(total)
        np.testing.assert_array_equal(np.broadcast_to(model.rewards(h), (3, 2, 2)), r[h])


def test_batches_have_the_same_horizon_and_spaces():
    model = dependent_pomdp(1)
    batch = POMDP(*(np.stack([part] * 4) for part in model))
    assert (batch.horizon, batch.sizes, batch.spaces) == (model.horizon, model.sizes, model.spaces)
    np.testing.assert_array_equal(batch.shows(1, 0)[2], model.shows(1, 0))
    short = POMDP(*(np.stack([part] * 4) for part in random_pomdp(1, 2, 2, 2, 3)))
    back = short.stationary().pomdp
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(back, short, strict=True))


def test_bonuses_and_other_tables():
    model = dependent_pomdp(1, X=2, Y=3, A=2, H=3)
    bonus = np.random.default_rng(0).random((3, 2, 2))
    raised = model.with_bonus(bonus).reward - model.reward
    np.testing.assert_allclose(raised, np.broadcast_to(bonus[:, :, None], (3, 2, 3, 2)))
    np.testing.assert_allclose(
        (model.with_bonus(bonus[0]).reward - model.reward)[2, :, 1], bonus[0]
    )
    short = model.with_tables(transition=np.full((2, 2, 2), 0.5), emission=np.full((2, 3), 1 / 3))
    assert (short.transition.shape, short.emission.shape) == ((1, 2, 2, 2), (1, 1, 2, 3))
    assert short.reward is model.reward


def test_invalid_entries_of_dependent_tables_are_named():
    model = dependent_pomdp(0, X=2, Y=2, A=2, H=3)
    wrong = model._replace(transition=np.array(model.transition), emission=np.array(model.emission))
    wrong.transition[1, 0, 1] = 0.7
    wrong.emission[2, 2, 1] = [1.5, -0.5]
    wrong.reward[0, 1, 1, 0] = np.inf
    with pytest.raises(PlanningError) as caught:
        validated(wrong, "planner")
    assert [(p.where, p.at) for p in caught.value.problems] == [
        ("transition", "step 2, x0, a1"),
        ("emission", "step 3, before any action, x1, y1"),
        ("reward", "step 1, x1, y1, a0"),
    ]


def test_episodes_follow_the_tables_of_their_step_and_action():
    """Deterministic tables that differ at every step and after every action."""
    generator = np.random.default_rng(0)
    X, Y, A, H = 3, 4, 2, 5
    T = np.eye(X)[generator.integers(X, size=(H, X, A))]
    O = np.eye(Y)[generator.integers(Y, size=(H, A + 1, X))]  # noqa: E741
    model = POMDP.of(np.eye(X)[1], T, O, np.zeros((H, X, A)))
    policy = random_policy(model.spaces, 0)
    with x64():
        noise = Noise(*(generator.random(n) for n in (H + 1, H, H)))
        played = play(model, jax.tree.map(jax.numpy.asarray, policy), noise)
    asked = play_by_asking(model, policy, noise, model.spaces)
    x, before = 1, A
    for h in range(H):
        y, a = int(O[h, before, x].argmax()), int(asked.actions[h])
        for episode in (played, asked):
            assert (int(episode.states[h]), int(episode.observations[h])) == (x, y)
            assert int(episode.actions[h]) == a
        x, before = int(T[h, x, a].argmax()), a
    assert int(played.states[H]) == int(asked.states[H]) == x
