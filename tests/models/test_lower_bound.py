"""The lower-bound tree has the properties that the paper proves."""

import numpy as np
import pytest

from homdp_ppl import DeclarationError, models
from tests.problems import arrays, needs_problems


def leaves(world):
    X = len(world.spaces.states)
    return world.pomdp.shows(0)[X // 2 :, 2:]


def test_observations_are_uniform_given_the_parent():
    emission = leaves(
        models.load("lower_bound_tree", depth=4, observations=10, epsilon=0.3, seed=3)
    )
    np.testing.assert_allclose((emission[0::2] + emission[1::2]) / 2, 1 / 8, atol=1e-15)


def test_optimal_value_is_half_plus_half_epsilon():
    """If the parent is known, the best guess of the leaf is correct with probability (1 + epsilon)
    / 2.
    """
    world = models.load("lower_bound_tree", depth=3, observations=6, epsilon=0.4)
    emission, weight = leaves(world), 1 / 4
    right = sum(np.maximum(emission[k], emission[k + 1]).sum() for k in (0, 2)) * weight
    assert right == pytest.approx((1 + 0.4) / 2)


def test_gap_of_one_wrong_decision_is_two_epsilon_over_x_y():
    """Separation: a wrong decision for one parent and observation costs 2 epsilon / (X' Y')."""
    epsilon, X_leaf, Y_leaf = 0.4, 4, 4
    emission = leaves(models.load("lower_bound_tree", depth=3, observations=6, epsilon=epsilon))
    loss = abs(emission[0, 0] - emission[1, 0]) / X_leaf
    assert loss == pytest.approx(2 * epsilon / (X_leaf * Y_leaf))


def test_signs_determine_the_emissions():
    u = np.array([[1, -1]])
    world = models.load("lower_bound_three", observations=6, epsilon=0.2, u=u)
    np.testing.assert_allclose(leaves(world), [[0.3, 0.2, 0.2, 0.3], [0.2, 0.3, 0.3, 0.2]])
    assert world.spaces.horizon == 2
    assert len(world.spaces.states) == 3


def test_invalid_options_are_reported_together():
    with pytest.raises(DeclarationError) as caught:
        models.load("lower_bound_tree", depth=1, observations=5, epsilon=2.0)
    assert {p.where for p in caught.value.problems} >= {"depth", "observations", "epsilon"}


@needs_problems
def test_equals_the_reference_arrays():
    reference = arrays("lbtree_d6")
    signs = np.sign(reference["emission"][31::2, 2:6] - 1 / 8)
    world = models.load("lower_bound_tree", depth=6, observations=10, epsilon=0.3, u=signs)
    np.testing.assert_allclose(world.pomdp.initial, reference["initial"])
    np.testing.assert_allclose(world.pomdp.shows(0), reference["emission"], atol=1e-12)
    np.testing.assert_allclose(world.pomdp.moves(0), reference["transition"])
    np.testing.assert_allclose(world.pomdp.reward[0, :, 0], reference["reward"])
