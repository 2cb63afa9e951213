"""Plans as people see them: trees in names, pictures, files."""

import json

import networkx as nx
import numpy as np
import pytest

from homdp_ppl import GraphPolicy, PolicyError, evaluate, uniform_policy
from homdp_ppl.errors import PlanningError
from homdp_ppl.picture import draw_tree
from homdp_ppl.plan import make_plan
from homdp_ppl.planners.history_tree import history_tree
from tests.worlds import random_policy, world


@pytest.fixture(scope="module")
def plan():
    return history_tree()(world("tiger").pomdp).named(world("tiger"))


def test_the_tree_tells_histories_in_names(plan):
    tree = plan.tree()
    assert list(tree) == list(range(31))  # the start, and 2^h histories at step h
    assert nx.is_arborescence(tree)
    assert tree.nodes[0]["value"] == plan.value
    node = next(n for n, d in tree.nodes(data=True) if d["history"] == "growl left, listen, growl left")
    assert tree.nodes[node]["action"] == "open right"
    assert tree.nodes[node]["step"] == 2
    assert tree.nodes[node]["probability"] == pytest.approx((0.85**2 + 0.15**2) / 2)
    assert all(isinstance(value, int | float | str) for _, data in tree.nodes(data=True) for value in data.values())


def test_values_and_probabilities_add_up(plan):
    """A node's value is its immediate reward plus the mean of its children's, node by node; the root's is the policy's."""
    for policy in (plan.policy, random_policy(world("tiger").spaces, 0)):
        value = evaluate(policy, plan.model)
        tree = make_plan(policy, value, value, plan.model, "by hand").named(world("tiger")).tree()
        worth = {node: data["probability"] * data["value"] for node, data in tree.nodes(data=True)}
        for node, data in tree.nodes(data=True):
            now = immediate(policy, plan.model, data["history"]) if node else 0.0
            assert worth[node] == pytest.approx(now + sum(worth[child] for child in tree.successors(node)), abs=1e-12)
        for h in range(1, 5):
            chances = [data["probability"] for _, data in tree.nodes(data=True) if data["step"] == h]
            assert sum(chances) == pytest.approx(1.0)


def immediate(policy, model, history):
    """What the last step of a history pays times the history's probability, by Bayes' rule along its words."""
    rho, T, O, r = model  # noqa: E741
    words, spaces = history.split(", "), world("tiger").spaces
    seen = [spaces.observations.index(word) for word in words[::2]]
    done = [spaces.actions.index(word) for word in words[1::2]]
    joint = rho * O[:, seen[0]]
    for h, a in enumerate(done):
        joint = (joint @ T[:, a]) * policy.act(seen[: h + 1], done[:h])[a] * O[:, seen[h + 1]]
    return policy.act(seen, done) @ (joint @ r[len(done)])


def test_too_large_a_tree_is_refused(plan):
    with pytest.raises(PlanningError, match="fewer steps"):
        plan.tree(max_nodes=10)


def test_export_to_graphml_and_json(plan, tmp_path):
    tree = plan.tree()
    nx.write_graphml(tree, tmp_path / "tree.graphml")
    again = nx.read_graphml(tmp_path / "tree.graphml", node_type=int)
    assert again.nodes[5]["history"] == tree.nodes[5]["history"]
    text = json.dumps(nx.node_link_data(tree, edges="edges"))
    assert nx.node_link_graph(json.loads(text), edges="edges").nodes[5] == tree.nodes[5]


def test_the_picture_names_decisions_and_observations(plan):
    axes = plan.draw()
    words = {text.get_text() for text in axes.texts}
    assert "growl left" in words
    assert any("open right" in word for word in words)
    assert f"start\n{plan.value:.2f}" in words
    fewer = plan.draw(steps=2)
    assert len(fewer.texts) < len(axes.texts)


def test_dollars_are_no_mathematics(plan):
    tree = plan.tree(1)
    for node, data in tree.nodes(data=True):
        data["action"] = "from $5 to $9" if node else ""
    axes = draw_tree(tree, "prices")
    axes.figure.canvas.draw()
    written = [text for text in [*axes.texts, *axes.get_legend().get_texts()] if "$" in text.get_text()]
    assert len(written) == 3
    assert not any(text.get_parse_math() for text in written)


def test_the_policy_as_a_graph(plan, tmp_path):
    graph = plan.policy.graph()
    assert len(graph) == 1 + 2 + 4 + 8 + 16  # what the policy can meet of the 518 histories
    assert nx.is_directed_acyclic_graph(graph)
    path = [-1, *(int(plan.policy.start[0]),)]
    assert graph.nodes[path[1]]["action"] == "listen"
    assert graph.edges[-1, path[1]]["observation"] == "growl left"
    nx.write_graphml(graph, tmp_path / "policy.graphml")
    small = uniform_policy(world("tiger")).graph()
    assert sorted(small) == [-1, 0, 1, 2, 3]
    assert small.nodes[0]["action"] == "a0 / a1 / a2"
    assert set(small.edges[0, 1]["observation"].split(" / ")) == {"y0", "y1"}


def test_a_policy_survives_its_file(plan, tmp_path):
    path = tmp_path / "policy.npz"
    plan.policy.save(path)
    again = GraphPolicy.load(path)
    assert again.names == (("growl left", "growl right"), ("listen", "open left", "open right"))
    for name in ("start", "probabilities", "successor"):
        assert np.array_equal(getattr(again, name), getattr(plan.policy, name))
    uniform_policy(world("lock")).save(path)
    assert GraphPolicy.load(path).names is None


def test_a_file_that_is_no_policy_is_refused(tmp_path):
    path = tmp_path / "policy.npz"
    path.write_bytes(b"not a policy")
    with pytest.raises(PolicyError, match="another kind of file"):
        GraphPolicy.load(path)
    np.savez(path, format=np.array("homdp_ppl policy 99"), start=np.zeros(1))
    with pytest.raises(PolicyError, match="policy 99"):
        GraphPolicy.load(path)
    np.savez(path, start=np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(PolicyError, match="another kind"):
        GraphPolicy.load(path)
    with pytest.raises(FileNotFoundError):
        GraphPolicy.load(tmp_path / "nothing.npz")


def test_a_tampered_file_is_refused(plan, tmp_path):
    path = tmp_path / "policy.npz"
    plan.policy.save(path)
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    parts["successor"] = parts["successor"] + 10_000
    np.savez(path, **parts)
    with pytest.raises(PolicyError, match="nodes 0"):
        GraphPolicy.load(path)


def test_names_belong_to_a_model(plan):
    with pytest.raises(PolicyError, match="observations"):
        plan.policy.named(world("lock"))
    assert "value 3.704 (exact)" in repr(plan)
    assert plan.gap == 0
