"""Exact values of policies against sums over all trajectories, and the simulation lemma on random
pairs of models.
"""

from itertools import product

import numpy as np
import pytest

from homdp_ppl import GraphPolicy, PlanningError, PolicyError, Spaces, evaluate, uniform_policy
from homdp_ppl.core.alphas import layers, policy_alphas
from homdp_ppl.evaluation.exact import occupancy, uniform_at
from homdp_ppl.evaluation.lemma import simulation_lemma, trajectory_distance
from tests.planners.exact import DEPENDENT, dependent_pomdp, full, random_pomdp
from tests.raising import raises
from tests.worlds import Parity, UniformAt, random_policy, world

SPACES = Spaces(("x0", "x1"), ("y0", "y1"), ("a0", "a1"), 3)


def trajectories(policy, model):
    """The probability and the return of every trajectory, as explicit products."""
    rho, (T, O, r) = model.initial, full(model)  # noqa: E741
    H, X, Y, A = r.shape
    for x, y, a in product(
        product(range(X), repeat=H), product(range(Y), repeat=H), product(range(A), repeat=H)
    ):
        chance = rho[x[0]]
        for h in range(H):
            chance *= O[h, a[h - 1] if h else A, x[h], y[h]]
            chance *= policy.act(np.array(y[: h + 1]), np.array(a[:h], dtype=int))[a[h]]
            chance *= T[h, x[h], a[h], x[h + 1]] if h + 1 < H else 1.0
        yield chance, sum(r[h, x[h], y[h], a[h]] for h in range(H)), x, a


@pytest.mark.parametrize("seed", range(5))
def test_values_and_visits_are_sums_over_trajectories(seed):
    model = random_pomdp(seed, 2, 2, 2, 3, zeros=0.2 * (seed % 2))
    for policy in (
        random_policy(SPACES, seed),
        GraphPolicy.from_policy(Parity(2), SPACES),
        uniform_policy(SPACES),
    ):
        value, visits = 0.0, np.zeros((3, 2, 2))
        for chance, total, x, a in trajectories(policy, model):
            value += chance * total
            for h in range(3):
                visits[h, x[h], a[h]] += chance
        assert evaluate(policy, model) == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(occupancy(policy, model), visits, atol=1e-12)


@pytest.mark.parametrize("kinds", DEPENDENT)
def test_dependent_tables(kinds):
    """Values, visits and the lemma if tables depend on step, previous action or observation."""
    for seed in range(2):
        model = dependent_pomdp(seed, kinds=kinds)
        other = model._replace(
            initial=model.initial,
            **{
                name: 0.7 * getattr(model, name)
                + 0.3 * getattr(dependent_pomdp(9, kinds=kinds), name)
                for name in ("transition", "emission")
            },
        )
        policy = random_policy(SPACES, seed)
        value, visits, distance = 0.0, np.zeros((3, 2, 2)), 0.0
        for (chance, total, x, a), (instead, *_) in zip(
            trajectories(policy, model), trajectories(policy, other), strict=True
        ):
            value, distance = value + chance * total, distance + abs(chance - instead)
            for h in range(3):
                visits[h, x[h], a[h]] += chance
        assert evaluate(policy, model) == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(occupancy(policy, model), visits, atol=1e-12)
        sides = simulation_lemma(policy, model, other)
        assert sides.distance == pytest.approx(distance, abs=1e-12)
        assert sides.distance <= sides.bound + 1e-12


def test_policies_that_are_not_graphs_can_be_evaluated():
    model = random_pomdp(0, 2, 2, 2, 3)
    assert evaluate(Parity(2), model) == evaluate(GraphPolicy.from_policy(Parity(2), model), model)
    other = random_pomdp(1, 2, 2, 2, 3)
    written = GraphPolicy.from_policy(Parity(2), model)
    assert np.array_equal(occupancy(Parity(2), model), occupancy(written, model))
    assert simulation_lemma(Parity(2), model, other) == simulation_lemma(written, model, other)
    with raises(PolicyError, "policy"):
        evaluate(Parity, model)


def test_alpha_vectors_are_bounded_and_end_with_the_reward():
    """|alpha_h| <= H - h + 1 for rewards in [0, 1] (appendix B)."""
    model = random_pomdp(1, 3, 2, 2, 4)
    policy = random_policy(Spaces(("",) * 3, ("", "1"), ("", "1"), 4), 2)
    alphas = policy_alphas(policy, model)
    nodes = layers(policy, 4)
    assert [len(a) for a in alphas] == [len(n) for n in nodes]
    for h, alpha in enumerate(alphas):
        assert alpha.min() >= 0
        assert alpha.max() <= 4 - h
    np.testing.assert_allclose(
        alphas[-1], policy.probabilities[nodes[-1]] @ model.reward[-1, :, 0].T
    )


def test_uniform_at_one_step():
    """Pi o_h Unif(A), computed from trajectories; the policy continues after the random action."""
    model = random_pomdp(2, 2, 2, 2, 3)
    policy = random_policy(SPACES, 4)

    for step in (1, 2, 3):
        expected = sum(
            chance * total for chance, total, _, _ in trajectories(UniformAt(policy, step), model)
        )
        assert evaluate(uniform_at(policy, step, 3), model) == pytest.approx(expected, abs=1e-12)
    with raises(PolicyError, "step"):
        uniform_at(policy, 4, 3)
    looping = GraphPolicy([0, 0], [[0.5, 0.5]], [[[0, 0]]])
    with raises(PolicyError, "policy"):
        uniform_at(looping, 1, 3)


@pytest.mark.parametrize("seed", range(20))
def test_simulation_lemma(seed):
    model, other = random_pomdp(seed, 2, 2, 2, 3), random_pomdp(seed + 100, 2, 2, 2, 3)
    near = model._replace(
        transition=0.9 * model.transition + 0.1 * other.transition,
        emission=0.8 * model.emission + 0.2 * other.emission,
    )
    policy = random_policy(SPACES, seed)
    sides = simulation_lemma(policy, model, near)
    assert sides.difference <= 3 * sides.distance + 1e-12
    assert sides.distance <= sides.bound + 1e-12
    assert sides.difference == pytest.approx(abs(evaluate(policy, model) - evaluate(policy, near)))
    by_hand = sum(
        abs(p - q)
        for (p, *_), (q, *_) in zip(
            trajectories(policy, model), trajectories(policy, near), strict=True
        )
    )
    assert sides.distance == pytest.approx(by_hand, abs=1e-12)
    assert trajectory_distance(policy, model, model) == 0


def test_the_lemmas_bound_by_hand_at_horizon_one():
    """H = 1: the bound is E ||O - O-hat||_1 under rho without a transition term, and is tight."""
    model, other = random_pomdp(0, 2, 2, 2, 1), random_pomdp(1, 2, 2, 2, 1)
    other = other._replace(initial=model.initial, reward=model.reward)
    sides = simulation_lemma(
        uniform_policy(Spaces(("x", "z"), ("y", "w"), ("a", "b"), 1)), model, other
    )
    by_hand = model.initial @ np.abs(model.shows(0) - other.shows(0)).sum(1)
    assert sides.bound == pytest.approx(by_hand)
    assert sides.distance == pytest.approx(by_hand)


def test_a_policy_of_another_model_raises():
    for function in (evaluate, occupancy, policy_alphas):
        with raises(PolicyError, "policy"):
            function(uniform_policy(world("tiger")), world("lock").pomdp)


def test_a_world_is_not_a_pomdp():
    for function in (evaluate, occupancy):
        with raises(PlanningError, "model"):
            function(uniform_policy(world("tiger")), world("tiger"))


@pytest.mark.parametrize("kinds", DEPENDENT)
def test_sparse_tables_give_the_same_values(kinds, monkeypatch):
    model = dependent_pomdp(3, kinds=kinds)
    policy = random_policy(model.spaces, 0)
    value = evaluate(policy, model)
    monkeypatch.setattr("homdp_ppl.core.sparsity.LARGE", 0)
    monkeypatch.setattr("homdp_ppl.core.sparsity.SPARSE", 2.0)
    assert evaluate(policy, model) == pytest.approx(value, abs=1e-13)
