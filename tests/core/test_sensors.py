"""The joint space of several sensors, and observations as indices, names, tuples and dicts."""

import pickle

import numpy as np
import pytest

from homdp_ppl import Episode, Episodes, GraphPolicy, Spaces, uniform_policy
from homdp_ppl.core.sensors import Sensors, joint_table
from homdp_ppl.errors import DataError, PolicyError
from homdp_ppl.planners import history_tree
from tests.raising import raises
from tests.sensors import SENSORS, worlds

BOTH = Sensors(SENSORS)
LAMP = Spaces(("near", "far"), BOTH, ("wait", "look"), horizon=3)
FORMS = [4, "right, dim", ("right", "dim"), (1, 1), ["right", 1], {"eye": "dim", "ear": 1}]


def test_the_last_sensor_is_the_fastest():
    assert list(BOTH)[:4] == ["left, dark", "left, dim", "left, light", "right, dark"]
    assert [BOTH.joint(tuple(BOTH.split(y).values())) for y in range(6)] == list(range(6))
    assert BOTH.with_end()[-1] == "ended"
    assert BOTH.with_end().split(6) == {}
    assert BOTH.with_end().without_end() == BOTH
    assert pickle.loads(pickle.dumps(BOTH.with_end())).sensors == SENSORS


@pytest.mark.parametrize("form", FORMS)
def test_an_observation_has_many_forms(form):
    assert BOTH.joint(form) == 4
    episode = Episode.of([form] * 3, ["wait"] * 3, ["near"] * 4, LAMP)
    assert episode.observations.tolist() == [4, 4, 4]
    policy = uniform_policy(LAMP).named(LAMP)
    assert policy.act([form, form], ["wait"]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("wrong", "wheres"),
    [
        (6, ["observation"]),
        (True, ["observation"]),
        (1.0, ["observation"]),
        ("dim, right", ["observation"]),
        ((1,), ["observation"]),
        ({"ear": 2, "nose": 0}, ["observation", "observation", "observation[ear]"]),
        (("up", "dim"), ["observation[ear]"]),
    ],
)
def test_other_values_are_errors(wrong, wheres):
    with raises(DataError) as caught:
        BOTH.joint(wrong)
    assert [problem.where for problem in caught.value.problems] == wheres


def test_episodes_of_columns_and_of_a_third_axis():
    columns = {"ear": ["left", "right", 1], "eye": np.array([0, 2, 1])}
    episode = Episode.of(columns, [0, 1, 0], [0, 0, 1, 1], LAMP)
    assert episode.observations.tolist() == [0, 5, 4]
    many = Episodes(np.array([[[0, 0], [1, 2], [1, 1]]]), [[0, 1, 0]], [[0, 0, 1, 1]])
    assert Episodes.of(many, LAMP).observations.tolist() == [[0, 5, 4]]
    named = Episodes(
        [[["left", "dark"], ["right", "light"], ["right", "dim"]]], [[0, 1, 0]], [[0] * 4]
    )
    assert Episodes.of(named, LAMP).observations.tolist() == [[0, 5, 4]]
    with raises(DataError, "observations[eye]"):
        Episodes.of(Episodes(np.full((1, 3, 2), 3), [[0, 1, 0]], [[0, 0, 1, 1]]), LAMP)
    with raises(DataError, "observations[ear][step 2]", "observations[step 3]"):
        Episode.of([(0, 0), (2, 0), (0, 0, 0)], [0, 1, 0], [0, 0, 1, 1], LAMP)
    with raises(DataError, "observations"):
        Episode.of({"ear": [0, 1], "eye": [0, 1, 1]}, [0, 1, 0], [0, 0, 1, 1], LAMP)


def test_policies_keep_their_sensors(tmp_path):
    world = worlds("plain")[0]
    plan = history_tree()(world.pomdp).named(world)
    plan.policy.save(tmp_path / "policy.npz")
    loaded = GraphPolicy.load(tmp_path / "policy.npz")
    assert isinstance(loaded.names[0], Sensors)
    history = [{"ear": "left", "eye": "light"}, ("right", "dim")]
    assert np.array_equal(loaded.act(history, ["look"]), plan.policy.act([2, 4], [1]))
    with raises(PolicyError, "observations[ear][step 1]"):
        loaded.act([("up", "dim")], [])
    with raises(PolicyError, "observations"):
        loaded.act(["loud"], [])


def test_sensors_in_a_file_that_do_not_fit_are_ignored(tmp_path):
    world = worlds("plain")[0]
    uniform_policy(world).named(world).save(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz") as file:
        parts = dict(file)
    parts["outcomes"] = parts["outcomes"][:-1]
    np.savez(tmp_path / "other.npz", **parts)
    assert type(GraphPolicy.load(tmp_path / "other.npz").names[0]) is tuple


def test_the_product_of_tables_of_all_forms():
    """Every entry by its definition: the step, the previous action, the state and both outcomes."""
    generator = np.random.default_rng(0)
    H, A, X = 3, 2, 2
    lead = {"none": (X,), "action": (A + 1, X), "step": (H, 1, X), "both": (H, A + 1, X)}

    def at(table, h, a, x):
        if table.ndim == 2:
            return table[x]
        if table.ndim == 3:
            return table[a, x]
        return table[h, a if table.shape[1] > 1 else 0, x]

    for first in lead:
        for second in lead:
            ear, eye = generator.random((*lead[first], 2)), generator.random((*lead[second], 3))
            joint = joint_table([ear, eye])
            for h in range(H):
                for a in [A] if h == 0 else range(A):
                    for x in range(X):
                        expected = np.outer(at(ear, h, a, x), at(eye, h, a, x)).ravel()
                        assert np.array_equal(at(joint, h, a, x), expected)
