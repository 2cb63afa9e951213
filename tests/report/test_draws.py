"""Plots of draws: normalised densities, quantiles by hand, exact intervals of shares, and invalid
input.
"""

import numpy as np
import pytest

from homdp_ppl import DataError
from homdp_ppl.report import draw_densities, draw_intervals, draw_shares
from tests.raising import raises


def test_densities_on_common_bins():
    axes = draw_densities(
        {"wide": np.linspace(0, 1, 101), "narrow": [0.4, 0.5, 0.6]}, truth=0.5, bins=[0, 0.5, 1]
    )
    areas = []
    for patch in axes.patches:
        x, y = patch.get_xy().T
        areas.append(abs(np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2)))  # of the outline
    assert np.allclose(areas, 1)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "wide",
        "narrow",
        "truth",
    ]


@pytest.mark.parametrize(
    ("draws", "where"), [({}, "draws"), ({"one": []}, "one"), ({"one": [0.5, np.nan]}, "one")]
)
def test_missing_and_infinite_draws_raise_data_errors(draws, where):
    with raises(DataError, where):
        draw_densities(draws)


def test_intervals_are_the_central_90_percent():
    draws = np.column_stack([np.linspace(0, 1, 101), np.linspace(2, 4, 101)])
    axes = draw_intervals({"nurse": draws, "doctor": draws + 1}, ["a", "b"], truth=[0.5, 3])
    nurse, doctor, truth = axes.collections
    ends = np.array([segment[:, 0] for segment in nurse.get_segments()])
    assert np.allclose(ends, [[0.05, 0.95], [2.1, 3.9]])
    assert np.allclose([segment[:, 0] for segment in doctor.get_segments()], ends + 1)
    assert np.allclose([segment[0, 0] for segment in truth.get_segments()], [0.5, 3])
    rows = np.array([segment[0, 1] for segment in nurse.get_segments()])
    # the first learner above the second, the first quantity at the top
    assert np.allclose(rows, [0.11, -0.89])


@pytest.mark.parametrize(
    ("draws", "where"),
    [({}, "draws"), ({"nurse": np.zeros((5, 3))}, "nurse"), ({"nurse": np.zeros(5)}, "nurse")],
)
def test_draws_of_wrong_shapes_raise_data_errors(draws, where):
    with raises(DataError, where):
        draw_intervals(draws, ["a", "b"])


def test_shares_with_exact_intervals():
    """For 20 hits of 20, the lower end of the exact 90% interval is 0.05 to the power 1/20."""
    axes = draw_shares({"rule": np.ones((1, 20), bool)}, ["first"], guaranteed={"rule": 0.9})
    assert np.array_equal(axes.lines[1].get_ydata(), [1.0])
    (segment,) = axes.collections[0].get_segments()
    assert np.allclose(segment[:, 1], [0.05 ** (1 / 20), 1])
    assert np.array_equal(axes.lines[0].get_ydata(), [0.9, 0.9])
    with raises(DataError, "rule"):
        draw_shares({"rule": [True, False]}, ["first"])
