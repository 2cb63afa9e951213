"""history_tree against enumeration, rational arithmetic, and itself on equivalent models."""

import tracemalloc
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from homdp_ppl import POMDP, evaluate, rollout, tabular, uniform_policy, x64
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners import remaining_steps
from homdp_ppl.planners._histories import Support, count_histories, generations
from homdp_ppl.planners.history_tree import history_tree, tree_bytes
from tests.planners.exact import (
    best_by_enumeration,
    optimum,
    random_pomdp,
    rational_optimum,
    rational_pomdp,
    same_models,
)
from tests.raising import raises

PLANNER = history_tree()


@pytest.mark.parametrize("seed", range(4))
def test_best_of_all_deterministic_policies(seed):
    for model in (
        random_pomdp(seed, 2, 2, 2, 2),
        random_pomdp(seed, 3, 2, 2, 2, zeros=0.4),
        random_pomdp(seed, 2, 3, 3, 1),
    ):
        assert PLANNER(model).value == pytest.approx(best_by_enumeration(model), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_exact_rational_arithmetic(seed):
    model = rational_pomdp(seed, 3, 2, 2, 3)
    exact = rational_optimum(model, 12)
    plan = PLANNER(model)
    assert plan.value == pytest.approx(float(exact), abs=1e-14)
    assert plan.upper == pytest.approx(float(exact), abs=1e-14)


def test_value_is_that_of_the_policy_and_the_optimum_on_1000_models():
    """The value agrees to 1e-12 with evaluate(), which uses alpha-vectors instead of the tree, and
    for every tenth model with a simple recursion.
    """
    for seed in range(1000):
        X, Y, A, H = (np.random.default_rng(seed).integers(1, top) for top in (5, 4, 4, 4))
        model = random_pomdp(seed, X, Y, A, H, zeros=0.3 * (seed % 2))
        plan = PLANNER(model)
        assert plan.value == pytest.approx(evaluate(plan.policy, model), abs=1e-12)
        assert plan.value <= plan.upper <= plan.value + 1e-9 * H * H
        if seed % 10 == 0:
            assert plan.upper == pytest.approx(optimum(model), abs=1e-12)


def test_pruned_and_complete_trees_agree():
    for seed in range(20):
        model = random_pomdp(seed, 4, 3, 2, 4, zeros=0.5)
        everything = POMDP(*(np.ones_like(part) for part in model[:3]), *model[3:])
        pruned, complete = PLANNER(model), PLANNER(model, support=everything)
        assert pruned.value == pytest.approx(complete.value, abs=1e-12)
        assert (
            len(pruned.policy.probabilities)
            < len(complete.policy.probabilities)
            == 3 * (1 + 6 + 36 + 216)
        )
        assert evaluate(complete.policy, model) == pytest.approx(complete.value, abs=1e-12)


def test_compiled_tree_takes_the_same_decisions():
    for seed, zeros in ((0, 0.0), (1, 0.4)):
        model = random_pomdp(seed, 3, 3, 2, 4, zeros)
        shifted = model._replace(reward=model.reward[::-1].copy())
        with x64():
            pure = PLANNER.compile(model)
            solve = jax.jit(pure)
            for one in (model, shifted):
                compiled, plan = solve(one), PLANNER(one)
                assert float(compiled.value) == pytest.approx(plan.value, abs=1e-12)
                for got, expected in zip(
                    jax.tree.leaves(compiled.policy), jax.tree.leaves(plan.policy), strict=True
                ):
                    assert np.array_equal(got, expected)
            batch = jax.tree.map(lambda a, b: jnp.stack([a, b]), model, shifted)
            values = jax.jit(jax.vmap(pure))(batch).value
            inside = jax.jit(
                lambda ms, pure=pure: jax.lax.scan(lambda c, m: (c, pure(m).value), 0, ms)[1]
            )(batch)
        assert np.allclose(values, [PLANNER(model).value, PLANNER(shifted).value], atol=1e-12)
        assert np.allclose(inside, values, atol=1e-12)


def test_backup_and_caps():
    """The expected backup on vectors gives the same plan. A bonus in it is added, and clipping
    applies to values.
    """
    model = random_pomdp(3, 2, 2, 2, 2)

    def backup(parameters, h, alpha_next):
        expected = np.einsum("xaz,zy,ayz->xa", model.moves(0), model.shows(0), alpha_next)
        assert h == 1  # counted from one; the last step needs no backup
        return expected + parameters

    plain, optimistic = PLANNER(model), history_tree(backup=backup)
    assert optimistic(model, 0.0).value == pytest.approx(plain.value, abs=1e-12)
    assert optimistic(model, 0.25).value == pytest.approx(plain.value + 0.25, abs=1e-12)
    # rewards below 1 are never clipped
    assert history_tree(caps=remaining_steps)(model).value == pytest.approx(plain.value, abs=1e-12)
    large = model._replace(reward=model.reward + 10.0)
    assert history_tree(caps=remaining_steps)(large).value == pytest.approx(2.0, abs=1e-12)  # H
    bonus = model.with_tables(reward=np.array([[[0.9, 0.2], [0.1, 0.4]], [[5.0, 0.0], [0.3, 0.8]]]))
    by_hand = 0.0
    # Values are at most 1 at the last step and 2 at the first; weights are not normalised.
    for y in range(2):
        weights = model.initial * model.shows(0)[:, y]
        totals = weights @ bonus.reward[0, :, 0]
        for a, z in product(range(2), range(2)):
            joint = (weights @ model.moves(0)[:, a]) * model.shows(0)[:, z]
            totals[a] += min(max(joint @ bonus.reward[1, :, 0]), joint.sum())
        by_hand += min(max(totals), 2 * weights.sum())
    assert history_tree(caps=remaining_steps)(bonus).value == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_metamorphic_relations(seed):
    model = random_pomdp(seed, 3, 3, 2, 3)
    value = PLANNER(model).value
    for other in same_models(model):
        assert PLANNER(other).value == pytest.approx(value, abs=1e-12)
    assert PLANNER(model._replace(reward=2.0 * model.reward + 0.5)).value == pytest.approx(
        2 * value + 3 * 0.5, abs=1e-12
    )


def test_near_ties_go_to_the_lowest_action():
    nearly = random_pomdp(0, 2, 2, 3, 3).with_tables(
        reward=np.ones((3, 2, 3)) + np.array([0.0, 1e-10, 0.0])
    )
    assert (PLANNER(nearly).policy.probabilities[:, 0] == 1).all()


def test_impossible_observations_leave_the_predicted_belief():
    """y2 has probability zero; a tree for the full support has a node for it, with the predicted
    belief.
    """
    T = np.array([[[1.0, 0], [1, 0]], [[0, 1], [0, 1]]])
    O = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])  # noqa: E741
    model = POMDP.of(np.array([0.3, 0.7]), T, O, np.broadcast_to(np.eye(2), (2, 2, 2)))
    everything = POMDP(*(np.ones_like(part) for part in model[:3]), *model[3:])
    policy = PLANNER(model, support=everything).policy
    assert policy.act([2], []).argmax() == 1  # predicted 0.3, 0.7
    assert policy.act([0, 2], [0]).argmax() == 0  # after y0 the belief is 0.79, 0.21, then constant
    assert policy.act([2, 2], [1]).argmax() == 1
    pruned = PLANNER(model).policy
    assert all(pruned.act(list(seen), [0]).sum() == 1 for seen in np.ndindex(3, 3))


def test_long_horizons_without_underflow():
    """500 steps with one action. A chain of certain observations has one history per step."""
    model = POMDP.of(
        np.array([1.0, 0]),
        np.array([[[0.0, 1]], [[1, 0.0]]]),
        np.eye(2),
        np.tile([[1.0], [0.0]], (500, 1, 1)),
    )
    assert PLANNER(model).value == 250.0
    faint = tabular(
        T=np.full((2, 1, 2), 0.5),
        O=np.full((2, 1), 1.0),
        initial=[0.5, 0.5],
        reward=[[1.0], [0.0]],
        horizon=500,
    ).at()
    assert PLANNER(faint.pomdp).value == pytest.approx(250.0)


def test_exact_value_against_simulation():
    """Hoeffding: the mean of n returns in [0, H] is within H sqrt(log(2 / 1e-9) / 2n) of the value
    with probability 1 - 1e-9.

    Planted bug: the value of random actions is detected.
    """
    model = random_pomdp(5, 3, 3, 2, 4)
    world = tabular(
        T=model.moves(0),
        O=model.shows(0),
        initial=model.initial,
        reward=model.reward[:, :, 0],
        horizon=4,
    ).at()
    plan = PLANNER(world.pomdp)
    n = 20_000
    returns = world.homdp.returns(
        rollout(jax.random.split(jax.random.key(0), n), world, plan.policy)
    )
    within = 4 * np.sqrt(np.log(2 / 1e-9) / (2 * n))
    assert abs(returns.mean() - plan.value) < within
    assert abs(returns.mean() - evaluate(uniform_policy(world), world.pomdp)) > within


@pytest.mark.parametrize("zeros", [0.0, 0.3, 0.6])
def test_counts_of_histories_are_exact(zeros):
    for seed in range(5):
        support = Support.of(random_pomdp(seed, 4, 3, 2, 1, zeros))
        shape = generations(support, 5)
        complete = [3 * 6**h for h in range(5)]
        made = complete if support.complete else [len(g.observation) for g in shape]
        assert count_histories(support, 5) == made


def test_memory_estimate_is_correct_within_a_factor_of_two():
    model = random_pomdp(0, 4, 3, 3, 6)
    nodes = sum(3 * 9**h for h in range(6))
    tracemalloc.start()
    history_tree()(model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 < peak / tree_bytes(nodes, Support.of(model)) < 2


def test_huge_trees_raise_errors_before_anything_is_allocated():
    model = random_pomdp(0, 3, 4, 3, 2)
    long = model.with_tables(reward=np.ones((400, 3, 3)))
    tracemalloc.start()
    with pytest.raises(PlanningError) as caught:
        PLANNER(long)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()
    (problem,) = caught.value.problems
    # 4 (1 + 12 + ... + 12^5) is 1.1 million; with 4 12^6 it is more than five million
    assert "largest horizon that fits is 6" in problem.remedy
    assert "bounded_search" in problem.remedy
    with raises(PlanningError, "horizon 4"):
        history_tree(max_nodes=100)(model.with_tables(reward=np.ones((4, 3, 3))))
