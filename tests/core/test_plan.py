"""Plans: trees with names, exports and pictures."""

import json

import networkx as nx
import pytest

from homdp_ppl import PolicyError, evaluate
from homdp_ppl.core.plan import make_plan
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners.history_tree import history_tree
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
