"""History trees of models with tables by step, previous action and observation."""

import jax
import pytest

from homdp_ppl import evaluate, x64
from homdp_ppl.planners import (
    Support,
    count_histories,
    history_tree,
)
from homdp_ppl.planners._histories import generations
from tests.planners.exact import DEPENDENT, best_by_enumeration, dependent_pomdp, optimum

TREE = history_tree()


@pytest.mark.parametrize("kinds", DEPENDENT)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_the_tree_finds_the_best_of_all_policies(kinds, zeros):
    for seed in range(3):
        model = dependent_pomdp(seed, H=2, zeros=zeros, kinds=kinds)
        plan = TREE(model)
        assert plan.value == pytest.approx(best_by_enumeration(model), abs=1e-12)
        assert plan.value == pytest.approx(evaluate(plan.policy, model), abs=1e-12)


@pytest.mark.parametrize("kinds", DEPENDENT)
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_longer_trees(kinds, zeros):
    for seed in range(3):
        model = dependent_pomdp(seed, X=3, Y=2, A=3, H=4, zeros=zeros, kinds=kinds)
        plan = TREE(model)
        assert plan.value == pytest.approx(optimum(model), abs=1e-12)
        assert evaluate(plan.policy, model) == pytest.approx(plan.value, abs=1e-12)
        assert plan.tree(steps=1).nodes[1]["step"] == 1
        whole = plan.tree()
        first = [node for node in whole.nodes if whole.nodes[node]["step"] == 1]
        total = sum(whole.nodes[n]["value"] * whole.nodes[n]["probability"] for n in first)
        assert total == pytest.approx(plan.value, abs=1e-12)


@pytest.mark.parametrize("kinds", DEPENDENT)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_compiled_trees_backups_and_scores(kinds, zeros):
    """The traced tree, vectors with the expected backup, and the sum over histories agree."""
    model = dependent_pomdp(5, X=3, Y=2, A=2, H=3, zeros=zeros, kinds=kinds)
    plan = TREE(model)
    expected = TREE.optimistic(lambda pomdp, h, later: pomdp.backup(later, h - 1), caps=None)
    assert expected(model, model).value == pytest.approx(plan.value, abs=1e-12)
    with x64():
        solved = jax.jit(TREE.compile(model))(model)
        by_vectors = jax.jit(expected.compile(model))(model, model)
    assert float(solved.value) == pytest.approx(plan.value, abs=1e-12)
    assert float(by_vectors.value) == pytest.approx(plan.value, abs=1e-12)
    score = TREE.scorer(model, model)
    assert float(score(plan.policy)) == pytest.approx(plan.value, abs=1e-12)


def test_impossible_steps_and_actions_are_pruned():
    """Histories are counted with the tables of their step and action."""
    model = dependent_pomdp(2, X=3, Y=3, A=2, H=4, zeros=0.6, kinds="to")
    support = Support.of(model)
    found = [len(generation.observation) for generation in generations(support, 4)]
    assert found == count_histories(support, 4)
    assert found[-1] < 3 * 6**3
