"""Policy graphs: acting, validation and files."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homdp_ppl import GraphPolicy, Policy, PolicyError, Spaces, StorageError, uniform_policy
from homdp_ppl.planners import history_tree
from tests.raising import raises
from tests.worlds import Parity, random_policy, world

SPACES = Spaces(("x0",), ("y0", "y1"), ("a0", "a1", "a2"), 3)


def histories(spaces, generator):
    for _ in range(20):
        h = generator.integers(1, spaces.horizon + 1)
        yield generator.integers(0, 2, h), generator.integers(0, 3, h - 1)


def test_graph_policies_are_policies():
    assert isinstance(uniform_policy(SPACES), Policy)
    assert isinstance(Parity(3), Policy)
    assert not isinstance(object(), Policy)


def test_uniform_policy_is_uniform_after_every_history():
    policy = uniform_policy(SPACES)
    for observations, actions in histories(SPACES, np.random.default_rng(0)):
        assert np.array_equal(policy.act(observations, actions), np.full(3, 1 / 3))


@given(st.integers(0, 2**16))
def test_converted_policies_act_like_the_originals(seed):
    """A random graph and a deterministic rule, each on histories that it can reach."""
    generator = np.random.default_rng(seed)
    graph = random_policy(SPACES, seed)
    tree = GraphPolicy.from_policy(graph, SPACES)
    assert tree.probabilities.shape == (2 + 12 + 72, 3)  # Y (A Y)^(h - 1) histories at step h
    for observations, actions in histories(SPACES, generator):
        assert np.array_equal(graph.act(observations, actions), tree.act(observations, actions))
    rule, converted = Parity(3), GraphPolicy.from_policy(Parity(3), SPACES)
    nodes = 2 + 4 + 8  # the tree contains only actions that the policy takes
    assert converted.probabilities.shape == (nodes, 3)
    observations, actions = generator.integers(0, 2, 3), []
    for h in range(3):
        chances = rule.act(observations[: h + 1], np.array(actions, int))
        assert np.array_equal(converted.act(observations[: h + 1], actions), chances)
        actions.append(int(chances.argmax()))


@pytest.mark.parametrize("answer", [[0.5, 0.6, 0.0], [1.0], 1, None, [np.nan, 0.5, 0.5], "left"])
def test_invalid_answers_of_policies_raise(answer):
    class Wrong:
        def act(self, observations, actions):
            return np.array([1.0, 0.0, 0.0]) if len(observations) == 1 else answer

    with raises(PolicyError, "act"):
        GraphPolicy.from_policy(Wrong(), SPACES)


def test_answers_in_float32_are_accepted():
    class Third:
        def act(self, observations, actions):
            return np.full(3, 1 / 3, dtype=np.float32)

    assert np.allclose(
        GraphPolicy.from_policy(Third(), SPACES).probabilities.sum(1), 1.0, atol=1e-15
    )
    graph = GraphPolicy([0, 0], jnp.full((1, 3), 1 / 3), [[[0, 0]]])  # sums to 1.00000003
    assert np.allclose(graph.probabilities.sum(1), 1.0, atol=1e-15)


def test_trees_that_are_too_large_raise():
    with raises(PolicyError, "policy"):
        GraphPolicy.from_policy(uniform_policy(SPACES), SPACES, max_nodes=50)


@pytest.mark.parametrize(
    ("arrays", "place"),
    [
        (([0, 0], [[0.5, 0.6]], [[[0, 0]]]), "probabilities[node 0]"),
        (([0, 0], [[np.nan, 1.0]], [[[0, 0]]]), "probabilities[node 0]"),
        (([0, 2], [[0.5, 0.5]], [[[0, 0]]]), "start"),
        (([0, 0], [[0.5, 0.5]], [[[0, -1]]]), "successor"),
        (([0.0, 0.0], [[0.5, 0.5]], [[[0, 0]]]), "start"),
        (([0, 0], [[0.5, 0.5]], [[[0, 0]] * 3]), "successor"),
        (([0, 0], [0.5, 0.5], [[[0, 0]]]), "shapes"),
        (([0, 0], [["much", "little"]], [[[0, 0]]]), "probabilities"),
        (([0, 0], [[0.5, 0.50001]], [[[0, 0]]]), "probabilities[node 0]"),
    ],
)
def test_malformed_graphs_raise(arrays, place):
    with raises(PolicyError, place):
        GraphPolicy(*arrays)


@pytest.mark.parametrize(
    ("observations", "actions", "place"),
    [
        ([0, 2], [0], "observations"),
        ([0, 1], [3], "actions"),
        ([0, -1], [0], "observations"),
        ([0], [0], "history"),
        ([0.5], [], "observations"),
    ],
)
def test_histories_out_of_range_raise(observations, actions, place):
    with raises(PolicyError, place):
        uniform_policy(SPACES).act(observations, actions)


@pytest.mark.parametrize("observations", ["", "growl left", [["growl left"]]])
def test_names_that_are_not_a_sequence_raise(observations):
    """Found by fuzzing: an IndexError for policies with names."""
    tiger = world("tiger")
    policy = uniform_policy(tiger).named(tiger)
    assert policy.act(["growl left"], []).sum() == 1
    with raises(PolicyError, "history"):
        policy.act(observations, [])


@pytest.mark.parametrize("part", [0, 1])
def test_repeated_names_raise(part):
    """A name must determine its index."""
    names = [("dark", "light"), ("wait", "press")]
    names[part] = ("same", "same")
    with raises(PolicyError, "names"):
        GraphPolicy([0, 0], [[1.0, 0.0]], [[[0, 0]]], names=tuple(names))


def test_policies_pass_through_jax():
    policy = random_policy(SPACES, 0)
    leaves, tree = jax.tree.flatten(policy)
    assert [leaf.shape for leaf in leaves] == [(2,), (9, 3), (9, 3, 2)]
    again = jax.tree.unflatten(tree, leaves)
    assert np.array_equal(
        jax.jit(lambda p, y: p.probabilities[p.first(y)])(again, 1),
        policy.act([1], []).astype(np.float32),
    )
    assert repr(policy) == "GraphPolicy(9 nodes, 2 observations, 3 actions)"


@pytest.fixture(scope="module")
def planned():
    """The optimal policy of the tiger problem, with names."""
    return history_tree()(world("tiger").pomdp).named(world("tiger")).policy


def test_the_policy_as_a_graph(planned, tmp_path):
    graph = planned.graph()
    assert len(graph) == 1 + 2 + 4 + 8 + 16  # of 518 histories, those that the policy can reach
    assert nx.is_directed_acyclic_graph(graph)
    path = [-1, *(int(planned.start[0]),)]
    assert graph.nodes[path[1]]["action"] == "listen"
    assert graph.edges[-1, path[1]]["observation"] == "growl left"
    nx.write_graphml(graph, tmp_path / "policy.graphml")
    small = uniform_policy(world("tiger")).graph()
    assert sorted(small) == [-1, 0, 1, 2, 3]
    assert small.nodes[0]["action"] == "a0 / a1 / a2"
    assert set(small.edges[0, 1]["observation"].split(" / ")) == {"y0", "y1"}


def test_policies_are_saved_and_loaded(planned, tmp_path):
    path = tmp_path / "policy.npz"
    planned.save(path)
    again = GraphPolicy.load(path)
    assert again.names == (("growl left", "growl right"), ("listen", "open left", "open right"))
    for name in ("start", "probabilities", "successor"):
        assert np.array_equal(getattr(again, name), getattr(planned, name))
    uniform_policy(world("lock")).save(path)
    assert GraphPolicy.load(path).names is None


def test_files_that_are_not_policies_raise(tmp_path):
    path = tmp_path / "policy.npz"
    path.write_bytes(b"not a policy")
    with raises(PolicyError, "file"):
        GraphPolicy.load(path)
    np.savez(path, format=np.array("homdp_ppl policy 99"), start=np.zeros(1))
    with raises(PolicyError, "file"):
        GraphPolicy.load(path)
    np.savez(path, format=np.array("homdp_ppl policy 1"), start=np.zeros(1, int))
    with raises(PolicyError, "file"):
        GraphPolicy.load(path)
    np.savez(path, start=np.array([print], dtype=object), allow_pickle=True)
    with raises(PolicyError, "file"):
        GraphPolicy.load(path)
    with raises(StorageError, f"{tmp_path}/nothing.npz"):
        GraphPolicy.load(tmp_path / "nothing.npz")


def test_tampered_files_raise(planned, tmp_path):
    path = tmp_path / "policy.npz"
    planned.save(path)
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    parts["successor"] = parts["successor"] + 10_000
    np.savez(path, **parts)
    with raises(PolicyError, "successor"):
        GraphPolicy.load(path)
