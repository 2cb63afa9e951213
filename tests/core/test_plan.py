"""Plans: trees with names, exports and pictures."""

import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from homdp_ppl import PolicyError, evaluate
from homdp_ppl.core.plan import make_plan
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners import alpha_vectors, history_tree
from tests.planners.exact import dependent_pomdp
from tests.raising import raises
from tests.worlds import random_policy, world


@pytest.fixture(scope="module")
def plan():
    return history_tree()(world("tiger").pomdp).named(world("tiger"))


def test_histories_of_the_tree_have_names(plan):
    tree = plan.tree()
    assert list(tree) == list(range(31))  # the start, and 2^h histories at step h
    assert nx.is_arborescence(tree)
    assert tree.nodes[0]["value"] == plan.value
    node = next(
        n for n, d in tree.nodes(data=True) if d["history"] == "growl left, listen, growl left"
    )
    assert tree.nodes[node]["action"] == "open right"
    assert tree.nodes[node]["step"] == 2
    assert tree.nodes[node]["probability"] == pytest.approx((0.85**2 + 0.15**2) / 2)
    assert all(
        isinstance(value, int | float | str)
        for _, data in tree.nodes(data=True)
        for value in data.values()
    )


def test_values_and_probabilities_add_up(plan):
    """The value of a node is its immediate reward plus the mean value of its children.

    The value of the root is that of the policy.
    """
    for policy in (plan.policy, random_policy(world("tiger").spaces, 0)):
        value = evaluate(policy, plan.model)
        tree = make_plan(policy, value, value, plan.model, "by hand").named(world("tiger")).tree()
        weighted = {
            node: data["probability"] * data["value"] for node, data in tree.nodes(data=True)
        }
        for node, data in tree.nodes(data=True):
            now = immediate(policy, plan.model, data["history"]) if node else 0.0
            assert weighted[node] == pytest.approx(
                now + sum(weighted[child] for child in tree.successors(node)), abs=1e-12
            )
        for h in range(1, 5):
            chances = [
                data["probability"] for _, data in tree.nodes(data=True) if data["step"] == h
            ]
            assert sum(chances) == pytest.approx(1.0)


def immediate(policy, model, history):
    """The expected reward of the last step of a history times the probability of the history.

    Computed with Bayes' rule from the names in the history.
    """
    rho, T, O, r = model.stationary()  # noqa: E741
    words, spaces = history.split(", "), world("tiger").spaces
    seen = [spaces.observations.index(word) for word in words[::2]]
    done = [spaces.actions.index(word) for word in words[1::2]]
    joint = rho * O[:, seen[0]]
    for h, a in enumerate(done):
        joint = (joint @ T[:, a]) * policy.act(seen[: h + 1], done[:h])[a] * O[:, seen[h + 1]]
    return policy.act(seen, done) @ (joint @ r[len(done)])


def test_trees_that_are_too_large_raise(plan):
    with raises(PlanningError, "tree"):
        plan.tree(max_nodes=10)


def test_export_to_graphml_and_json(plan, tmp_path):
    tree = plan.tree()
    nx.write_graphml(tree, tmp_path / "tree.graphml")
    again = nx.read_graphml(tmp_path / "tree.graphml", node_type=int)
    assert again.nodes[5]["history"] == tree.nodes[5]["history"]
    text = json.dumps(nx.node_link_data(tree, edges="edges"))
    assert nx.node_link_graph(json.loads(text), edges="edges").nodes[5] == tree.nodes[5]


def test_the_picture_shows_decisions_and_observations(plan):
    axes = plan.draw()
    words = {text.get_text() for text in axes.texts}
    assert "growl left" in words
    assert any("open right" in word for word in words)
    assert f"start\n{plan.value:.2f}" in words
    fewer = plan.draw(steps=2)
    assert len(fewer.texts) < len(axes.texts)


def test_names_must_fit_the_plan(plan):
    with raises(PolicyError, "policy"):
        plan.policy.named(world("lock"))
    assert "value 3.704 (exact)" in repr(plan)
    assert plan.gap == 0


def best_values(model, seen, done, allowed):
    """The best expected return from a history on, for each allowed action; by recursion."""
    joint = model.initial * model.likelihood(seen[0], None, 0)
    for h, (a, y) in enumerate(zip(done, seen[1:], strict=True)):
        joint = model.predict(joint, a, h) * model.likelihood(y, a, h + 1)
    h, rewards = len(done), model.rewards(len(done))
    found = {}
    for a in np.flatnonzero(allowed(seen, done)):
        found[int(a)] = float(joint @ rewards[:, seen[-1] % rewards.shape[1], a]) / joint.sum()
        if h + 1 < model.horizon:
            for y in range(model.sizes[1]):
                after = model.predict(joint, a, h) * model.likelihood(y, a, h + 1)
                if after.sum() > 0:
                    later = best_values(model, (*seen, y), (*done, int(a)), allowed)
                    found[int(a)] += after.sum() / joint.sum() * max(later.values())
    return found


def anything(observations, actions):
    return np.ones(2, dtype=bool)


def no_repeats(observations, actions):
    mask = np.ones(2, dtype=bool)
    mask[actions[-1:] if len(actions) else []] = False
    return mask


@pytest.mark.parametrize("allowed", [anything, no_repeats])
@pytest.mark.parametrize("kinds", ["", "toy"])
def test_trees_have_beliefs_and_the_values_of_all_actions(kinds, allowed):
    """Values are in the user's units: scale * value + shift for each remaining step."""
    for seed in range(3):
        model = dependent_pomdp(seed, X=3, H=3, zeros=0.2, kinds=kinds)
        rule = None if allowed is anything else (lambda y, a: allowed(y, tuple(a)))
        plan = history_tree()(model._replace(scale=np.array(50.0), shift=np.array(-3.0)))
        if rule is not None:
            plan = history_tree()(plan.model, allowed=rule)
        tree = plan.tree()
        for node, data in tree.nodes(data=True):
            if node == 0:
                continue
            words = data["history"].split(", ")
            seen, done = (tuple(int(w[1:]) for w in words[k::2]) for k in (0, 1))
            exact = best_values(model, seen, done, lambda y, a: allowed(y, tuple(a)))
            left = 3 - len(done)
            given = {k: v for k, v in data.items() if k.startswith("value of")}
            assert given == {
                f"value of a{a}": pytest.approx(50 * value - 3 * left, abs=1e-9)
                for a, value in exact.items()
            }
            assert data["value"] == pytest.approx(max(given.values()), abs=1e-6)
            assert given[f"value of {data['action']}"] == pytest.approx(data["value"], abs=1e-9)
            belief = [data.get(f"belief in x{x}", 0.0) for x in range(3)]
            joint = model.initial * model.likelihood(seen[0], None, 0)
            for h, (a, y) in enumerate(zip(done, seen[1:], strict=True)):
                joint = model.predict(joint, a, h) * model.likelihood(y, a, h + 1)
            assert belief == pytest.approx(list(joint / joint.sum()), abs=1e-12)


def test_values_of_other_actions_are_lower_bounds_for_graphs_without_them():
    """alpha_vectors has no nodes after actions that its policy does not take."""
    model = dependent_pomdp(0, X=2, H=4, kinds="")
    exact = {d["history"]: d for _, d in history_tree()(model).tree().nodes(data=True)}
    for _, data in alpha_vectors()(model).tree().nodes(data=True):
        if data["step"]:
            for a in range(2):
                best = exact[data["history"]][f"value of a{a}"]
                assert data[f"value of a{a}"] <= best + 1e-8
            assert data[f"value of {data['action']}"] == pytest.approx(data["value"])


def test_masks_of_plans_are_validated(plan):
    fits = np.ones(plan.policy.probabilities.shape, dtype=bool)
    assert replace(plan, allowed=fits).allowed is fits
    for wrong in (fits[:1], fits.astype(float), ~fits):
        with raises(PlanningError, "allowed"):
            replace(plan, allowed=wrong)
