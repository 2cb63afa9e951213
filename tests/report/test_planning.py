"""Plots of planning: beliefs by Bayes' rule, envelopes and losses by hand."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from homdp_ppl import DataError, models
from homdp_ppl.planners import history_tree
from homdp_ppl.report import draw_beliefs, draw_cells, draw_envelope, draw_losses
from tests.raising import raises


def test_beliefs_of_the_tiger():
    """The belief is 0.85 after one growl, 0.85^2 / (0.85^2 + 0.15^2) after two on the same side,
    and 1/2 after one on each side.
    """
    world = models.load("tiger", horizon=2)
    axes = draw_beliefs(history_tree()(world.pomdp).named(world))
    spots = {tuple(np.round(part.get_offsets()[0], 3)) for part in axes.collections}
    sure = 0.85**2 / (0.85**2 + 0.15**2)
    expected = {(0, 0.5), (1, 0.85), (1, 0.15), (2, 0.5), (2, sure), (2, 1 - sure)}
    assert spots == {tuple(np.round(place, 3)) for place in expected}
    shares = sorted(float(text.get_text()) for text in axes.texts)
    # one growl on each side has probability 2 * 0.85 * 0.15
    assert np.allclose(shares, [0.26, 0.37, 0.37, 0.5, 0.5], atol=0.006)


def test_beliefs_have_the_colours_of_the_tree():
    world = models.load("tiger", horizon=2)
    plan = history_tree()(world.pomdp).named(world)
    first = next(part for part in draw_beliefs(plan).collections if part.get_offsets()[0][0] == 1)
    boxes = {
        text.get_text().split("\n")[0]: to_hex(text.get_bbox_patch().get_facecolor())
        for text in plan.draw().texts
        if "\n" in text.get_text()
    }
    assert to_hex(first.get_facecolor()[0]) == boxes["listen"]


def test_envelope_is_the_maximum_of_the_lines():
    axes = draw_envelope([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]], [0, 1, 0], ["left", "right"])
    top = axes.lines[-1]
    # the third vector is dominated
    assert np.allclose(top.get_ydata(), np.maximum(top.get_xdata(), 1 - top.get_xdata()))


def test_envelope_on_new_axes_has_a_legend_and_labels():
    axes = draw_envelope([[1.0, 0.0], [0.0, 1.0]], [0, 1], ["$5$", "right"])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [r"\$5\$", "right"]
    assert axes.get_xlabel() == "probability of the first state"


@pytest.mark.parametrize(
    ("draw", "where"),
    [
        (lambda: draw_envelope(np.ones((2, 3)), [0, 1], ["left", "right"]), "vectors"),
        (lambda: draw_envelope(np.ones((2, 2)), [0], ["left", "right"]), "vectors"),
        (lambda: draw_losses([0.1], [[0.0]]), "losses"),
        (lambda: draw_losses([0.1, 0.2], [[0.0, 0.0]]), "losses"),
        (
            lambda: draw_beliefs(history_tree()(models.load("tiger", horizon=1).pomdp), state=2),
            "state",
        ),
    ],
)
def test_invalid_arguments_raise_data_errors(draw, where):
    with raises(DataError, where):
        draw()


def test_squares_enclose_values_with_the_same_policy():
    axes = draw_losses([0.1, 0.2, 0.3], [[0, 0, 0.5], [0, 0, 0.5], [1, 1, 0]], most=0.5)
    corners = [line.get_xdata()[:2] for line in axes.lines]
    assert np.allclose(corners, [[0.05, 0.25], [0.25, 0.35]])


def test_cells():
    axes = draw_cells([-1, 0, 1], [0, 0, 1], ["wait", "go"], [0.5], {"calm": [0.2, 0.4, 0.2]})
    assert np.array_equal(axes.lines[0].get_ydata(), [0.2, 0.4, 0.2])
    assert np.isclose(axes.get_ylim()[1], 0.48)
    assert [text.get_text() for text in axes.texts] == ["calm"]


def test_all_densities_are_drawn():
    axes = draw_cells(
        [-1, 0, 1], [0, 0, 1], ["wait", "go"], [0.5], {name: [0.2, 0.4, 0.2] for name in "abcd"}
    )
    assert len(axes.lines) == 4
