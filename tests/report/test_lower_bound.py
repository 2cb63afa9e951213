"""Plots of the lower bound: signs of the instance, and slopes of power laws by hand."""

import numpy as np

from homdp_ppl import DataError, models
from homdp_ppl.models import lower_bound
from homdp_ppl.report import draw_instance, draw_scaling
from tests.raising import raises


def test_signs_are_those_of_the_instance():
    world = lower_bound.tree(depth=2, observations=6, epsilon=0.2, u=np.array([[1, -1]]))
    tree, signs = draw_instance(world)
    marks = np.array([text.get_text() for text in signs.texts]).reshape(2, 4)
    assert marks.tolist() == [
        ["$+$", "$-$", "$-$", "$+$"],
        ["$-$", "$+$", "$+$", "$-$"],
    ]  # mirrored, and opposite
    assert [text.get_text() for text in tree.texts if "pays" in text.get_text()] == [
        "a1 pays",
        "a2 pays",
    ]
    with raises(DataError, "world"):
        draw_instance(models.load("tiger"))


def test_slope_of_a_power_law():
    sizes = np.array([2.0, 4.0, 8.0])
    draws = np.stack([3 * sizes**1.9, 3 * sizes**2.1], axis=1)
    axes = draw_scaling(sizes, 3 * sizes**2, draws, sizes**2)
    assert axes.get_title() == "slope 2.00, 90% interval 1.91 to 2.09"
    assert [text.get_text() for text in axes.texts] == ["needed", "minimum for any learner"]
