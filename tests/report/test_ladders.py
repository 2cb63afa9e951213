"""Ladders, bounds and savings: positions by hand, and invalid input."""

import numpy as np
import pytest

from homdp_ppl import DataError
from homdp_ppl.report import draw_bounds, draw_ladder, draw_savings
from tests.raising import raises


def test_ladder():
    axes = draw_ladder({"blind": 3.0, "history": 3.4, "state": 4.2}, highlight="history")
    marks = axes.collections[1]
    assert np.allclose(marks.get_offsets(), [[3.0, 0], [3.4, 1], [4.2, 2]])
    assert len(np.unique(marks.get_facecolors(), axis=0)) == 2
    with raises(DataError, "values"):
        draw_ladder({})


def test_bounds_are_scaled_from_the_lowest_to_the_highest():
    axes = draw_bounds({"tiger": {"blind": 3.6, "optimum": 3.7, "MDP": 4.0}})
    _, optimum, blind, mdp = axes.lines
    assert np.allclose(optimum.get_xdata(), 0.25)
    assert np.allclose([blind.get_xdata()[0], mdp.get_xdata()[0]], [0, 1])
    assert [text.get_text() for text in axes.texts] == ["3.700"]
    assert draw_bounds({"sure": {"blind": 1.0, "optimum": 1.0}}).lines[1].get_xdata()[0] == 0
    with raises(DataError, "tiger"):
        draw_bounds({"tiger": {"blind": 3.6}})


def test_savings_are_sorted_by_their_factors():
    axes = draw_savings({"lock": (17476, 908), "tiger": (518, 518), "checkup": (2077206, 2030)})
    assert [text.get_text() for text in axes.get_yticklabels()] == ["tiger", "lock", "checkup"]
    assert [text.get_text() for text in axes.texts] == ["none pruned", "19 times", "1,023 times"]


@pytest.mark.parametrize(
    ("sizes", "where"),
    [({}, "sizes"), ({"lock": (5, 0)}, "lock")],
)
def test_invalid_sizes_raise_data_errors(sizes, where):
    with raises(DataError, where):
        draw_savings(sizes)
