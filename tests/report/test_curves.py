"""Curves, bands and brackets: plotted numbers, positions of labels, and invalid input."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from homdp_ppl import DataError
from homdp_ppl.report import COLOURS, draw_bands, draw_bracket, draw_curves, use_style
from tests.raising import raises

TWO = {"up": ([1, 2, 3], [1.0, 4.0, 9.0]), "down": ([1, 2], [5.0, 2.0])}


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_curves_have_their_numbers_names_and_colours():
    axes = draw_curves(TWO, levels={"half": 4.5})
    for line, (x, y), colour in zip(axes.lines, TWO.values(), COLOURS, strict=False):
        assert np.array_equal(line.get_xdata(), x)
        assert np.array_equal(line.get_ydata(), y)
        assert to_hex(line.get_color()) == colour.lower()
    assert words(axes) == ["up", "down", "half"]
    assert axes.texts[0].get_position() == (3, 9)
    assert axes.texts[2].get_position() == (3, 4.5)  # at the end of the longest curve
    assert axes.get_xlim()[1] == 3


def test_names_in_the_legend_or_omitted():
    axes = draw_curves({"first": TWO["up"]}, named="no")
    draw_curves({"second": TWO["down"]}, axes, named="legend")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["second"]
    assert words(axes) == []


def test_styles_and_steps():
    axes = draw_curves(TWO, styles={"down": "o--"}, steps="post")
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    assert [line.get_drawstyle() for line in axes.lines] == ["steps-post"] * 2
    assert axes.get_xlim()[1] > 3  # the last marker is not clipped


@pytest.mark.parametrize(("highest", "plain"), [(1e5, True), (1e9, False)])
def test_plain_numbers_unless_they_are_huge(highest, plain):
    _, axes = plt.subplots()
    axes.set(yscale="log", ylim=(1, highest))
    draw_curves({"up": ([1, 2], [1, highest])}, axes)
    found = axes.yaxis.get_major_formatter()(1e5)
    assert (found == "100,000") == plain


def test_dollar_signs_are_not_formulas():
    axes = draw_curves({"5$ a day$": ([0, 1], [0, 1])})
    assert words(axes) == [r"5\$ a day\$"]


def test_label_is_at_the_last_finite_point():
    axes = draw_curves(
        {"up": ([1, 2, 3], [1.0, 4.0, np.nan]), "nothing": ([1, 2], [np.nan, np.nan])}
    )
    assert [(text.get_text(), text.get_position()) for text in axes.texts] == [("up", (2, 4))]


@pytest.mark.parametrize(
    ("curves", "where"),
    [
        ({}, "curves"),
        ({"up": ([], [])}, "up"),
        ({"up": ([1, 2], [1])}, "up"),
    ],
)
def test_missing_curves_raise_data_errors(curves, where):
    with raises(DataError, where):
        draw_curves(curves)
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("truth", "dotted"), [(0.5, 1), ({"rate": 0.5}, 1), ({"other": 0.5}, 0), (None, 0)]
)
def test_bands(truth, dotted):
    axes = draw_bands([1, 10], {"rate": ([0.1, 0.4], [0.9, 0.6])}, truth=truth)
    assert np.array_equal(axes.lines[0].get_ydata(), [0.1, 0.4])
    assert np.array_equal(axes.lines[1].get_ydata(), [0.9, 0.6])
    assert sum(line.get_linestyle() == ":" for line in axes.lines) == dotted


def test_missing_bands_raise_a_data_error():
    with raises(DataError, "bands"):
        draw_bands([1, 2], {})


def test_bracket():
    axes = draw_bracket([1, 2], [0.4, 0.5], [0.9, 0.6])
    upper, value = axes.lines
    assert np.array_equal(value.get_ydata(), [0.4, 0.5])
    assert np.array_equal(upper.get_ydata(), [0.9, 0.6])
    with raises(DataError, "value"):
        draw_bracket([1, 2], [0.4, 0.7], [0.9, 0.6])


def test_style_is_set_only_by_use_style():
    with plt.rc_context():
        assert plt.rcParams["axes.spines.top"]
        use_style()
        assert not plt.rcParams["axes.spines.top"]
    assert plt.rcParams["axes.spines.top"]
