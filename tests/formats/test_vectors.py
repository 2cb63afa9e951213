"""Alpha-vectors of plans in the formats of other solvers."""

from xml.etree import ElementTree

import numpy as np
import pytest

from homdp_ppl import HOMDPError, make_plan, models, uniform_policy
from homdp_ppl.formats import write_vectors
from homdp_ppl.planners import alpha_vectors, history_tree
from tests.planners.exact import dependent_pomdp, random_pomdp, tree_values
from tests.raising import raises


def blind_first(seed):
    """A random model whose first observation says nothing, as in files of other tools."""
    model = random_pomdp(seed, 3, 2, 2, 4)
    emission = np.repeat(model.emission, 3, axis=1)
    emission[:, -1] = [1.0, 0.0]
    return model._replace(emission=emission)


def read_alpha(text):
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    return [int(block[0]) for block in blocks], [list(map(float, b[1].split())) for b in blocks]


def read_xml(text):
    found = ElementTree.fromstring(text.encode()).find("AlphaVector")
    size = int(found.get("numVectors")), int(found.get("vectorLength"))
    vectors = [list(map(float, vector.text.split())) for vector in found]
    assert np.shape(vectors) == size
    return [int(vector.get("action")) for vector in found], vectors


@pytest.mark.parametrize("suffix", ["alpha", "policy"])
@pytest.mark.parametrize("planner", [alpha_vectors(), history_tree()])
def test_the_largest_product_is_the_optimum(tmp_path, suffix, planner):
    reader = {"alpha": read_alpha, "policy": read_xml}[suffix]
    for seed in range(3):
        model = blind_first(seed)
        plan, path = planner(model), tmp_path / f"plan.{suffix}"
        write_vectors(plan, path)
        actions, vectors = reader(path.read_text())
        assert set(actions) <= {0, 1}
        products = np.array(vectors) @ model.initial
        assert products.max() == pytest.approx(plan.value, abs=1e-9)
        assert products.max() == pytest.approx(tree_values(model, model.initial[None])[0], abs=1e-8)


def test_later_steps_are_values_of_the_rest(tmp_path):
    model = blind_first(0)
    write_vectors(alpha_vectors()(model), tmp_path / "plan.alpha", step=4)
    actions, vectors = read_alpha((tmp_path / "plan.alpha").read_text())
    for action, vector in zip(actions, vectors, strict=True):
        np.testing.assert_array_equal(vector, model.reward[3, :, 0, action])


def test_all_problems_are_reported(tmp_path):
    plan = history_tree()(models.load("tiger", horizon=2).pomdp)
    with raises(HOMDPError, "path", "step"):
        write_vectors(plan, tmp_path / "plan.txt", step=3)
    split = history_tree()(dependent_pomdp(0, kinds="y"))
    with raises(HOMDPError, "plan"):
        write_vectors(split, tmp_path / "plan.alpha")
    model = blind_first(0)
    drawn = make_plan(uniform_policy(model), 0.0, 9.0, model, "uniform")
    with raises(HOMDPError, "plan"):
        write_vectors(drawn, tmp_path / "plan.alpha")
    assert not list(tmp_path.iterdir())
