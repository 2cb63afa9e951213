"""Plots of prior sensitivity: large markers are means over the runs; invalid input."""

import numpy as np
import pytest

from homdp_ppl import DataError
from homdp_ppl.report.priors import draw_priors
from tests.raising import raises
from tests.runs import losing


def test_priors():
    """The mean of regrets 0.3 and 0.7 is 0.5; the mean of shares 50% and 100% is 75%."""
    declared = [losing(0.2, 0.1, optimistic=[1.2, 0.8]), losing(0.4, 0.3, optimistic=[1.2, 1.1])]
    flat = [losing(1.0, 0.8, optimistic=0.9)]
    left, right = draw_priors(
        {"tight": {"declared": declared, "flat": flat}}, colours={"tight": "#123456"}
    )
    assert {line.get_color() for line in (*left.lines, *right.lines)} == {"#123456"}
    np.testing.assert_allclose(left.lines[-1].get_ydata(), [0.5, 1.8])
    np.testing.assert_allclose(right.lines[-1].get_ydata(), [0.75, 0.0])
    np.testing.assert_allclose(left.lines[0].get_ydata(), [0.3, 0.7])


@pytest.mark.parametrize(
    ("runs", "where"),
    [({}, "runs"), ([losing(0.1)], "runs"), ({"a": {"flat": []}}, "flat")],
)
def test_missing_runs_raise_data_errors(runs, where):
    with raises(DataError, where):
        draw_priors(runs)
