"""POMDP arrays: their rows, their names, and what is no such arrays."""

import re

import numpy as np
import pytest

from homdp_ppl import PlanningError, Spaces
from homdp_ppl.core.pomdp_validation import numbers_of
from homdp_ppl.core.probabilities import LISTED_ROWS, normalised, pomdp_problems, row_problems
from tests.continuous.programs import walk
from tests.planners.exact import random_pomdp
from tests.worlds import world

SPACES = Spaces(("off", "on"), ("dark", "light"), ("wait",), 2)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            [0.5, 0.6],
            r"emission\[on\]: got a row that sums to 1.1; expected a sum of 1. Normalise the row",
        ),
        ([1.25, -0.25], r"emission\[on, light\]: got -0.25; expected a probability in \[0, 1\]"),
        ([np.nan, 1.0], r"emission\[on\]: got a row with nan"),
        ([np.inf, 0.0], r"emission\[on\]: got a row that sums to inf"),
        ([0.0, 0.0], r"emission\[on\]: got a row that sums to 0; .*outside the declared names"),
        ([0.5, 0.5 + 1e-7], r"emission\[on\]: got a row that sums to 1.0000001; .*float32"),
    ],
)
def test_a_bad_row_is_named(row, told):
    (problem,) = row_problems("emission", np.array([[1.0, 0.0], row]), SPACES)
    assert re.search(told, str(problem))


def test_good_rows_have_no_problems():
    assert pomdp_problems(random_pomdp(0, 2, 2, 1, 2, zeros=0.3), SPACES) == []
    assert row_problems("initial", np.array([1.0 - 1e-10, 0.0]), SPACES) == []


def test_very_many_bad_rows_are_counted():
    many = Spaces(tuple(f"x{k}" for k in range(50)), ("y0", "y1"), ("a0",), 1)
    found = row_problems("emission", np.full((50, 2), 0.4), many)
    assert len(found) == LISTED_ROWS + 1
    assert f"{50 - LISTED_ROWS} more" in found[-1].got


def test_rows_are_divided_by_their_sums_where_they_must_be():
    exact, rounded = np.array([1.0 - 1e-12, 0.0]), np.full(3, 1 / 3, dtype=np.float32).astype(float)
    assert normalised(exact) is exact
    np.testing.assert_array_equal(
        normalised(np.array([[0.2, 0.2], [1.0, 0.0], [0.0, 0.0]])), [[0.5, 0.5], [1, 0], [0, 0]]
    )
    assert abs(normalised(rounded).sum() - 1) < 1e-15 < abs(rounded.sum() - 1)


def test_other_models_are_told_where_their_numbers_are():
    tiger, real = world("tiger"), walk()
    assert numbers_of(tiger.pomdp, "planner") is tiger.pomdp
    for wrong, told in (
        (tiger, r"got a World; .*world\.pomdp"),
        (tiger.homdp, r"got a HOMDP; .*model\.at\(\.\.\.\)\.pomdp"),
        (real, r"got a HOMDP with real-valued spaces; .*particle_tree"),
        (real.at(noise=0.5), r"got a World with real-valued spaces; .*particle_tree"),
        (tiger.pomdp.moves(0), "got a ndarray"),
    ):
        with pytest.raises(PlanningError, match=told):
            numbers_of(wrong, "planner")
