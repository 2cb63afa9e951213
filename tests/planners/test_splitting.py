"""Which cells are split, and where: values by hand, contributions that add up to the bracket, and
cuts where the policy changes.
"""

import numpy as np
import pytest

from homdp_ppl.continuous.quadrature import cut, panels
from homdp_ppl.planners import plan_on_cells
from homdp_ppl.planners._cells import spread
from homdp_ppl.planners._splitting import Step, contributions, look_ahead, split
from homdp_ppl.planners.quantised import BySize, _line, _solve
from tests.planners.numbers import heard, screen_optimum, screens

# guessing one of two equally likely states: the policy changes at 0
GUESS = Step(np.array([[[0.5, 0.0], [0.0, 0.5]]]))


def test_values_by_hand():
    """Two beliefs, three vectors: sum_b max_alpha sum_x b(x) alpha(x) l(x)."""
    beliefs, alphas = (
        np.array([[0.2, 0.3], [0.1, 0.4]]),
        np.array([[1.0, 0.0], [0.0, 1.0], [0.4, 0.4]]),
    )
    step = Step(beliefs[:, None] * alphas)
    likelihoods = np.array([[1.0, 1.0], [0.9, 0.1], [0.5, 0.0]])
    expected = [
        sum(max((b * seen) @ alpha for alpha in alphas) for b in beliefs) for seen in likelihoods
    ]
    np.testing.assert_allclose(step.value_of(likelihoods), expected, rtol=1e-15)
    needed = step.needed(likelihoods)
    assert needed.weighted.shape == (2, 2, 2)  # the third vector is never best
    np.testing.assert_allclose(needed.value_of(likelihoods), expected, rtol=1e-15)


def bracketed(edges):
    """One observation of three states: the plan on cells, its pieces, and the contributions."""
    world, _ = screens()
    found = _solve(_line(world), np.array(edges), BySize(1e-4))
    pieces = found.pieces
    steps = look_ahead(found.less, found.more, pieces.kind)
    score, kept = contributions(
        steps, found.less.model.shows(0)[pieces.first], spread(world, pieces, np.array(edges))
    )
    return found, pieces, score, kept


def test_contributions_add_up_to_the_bracket():
    """With one observation, contributions are not negative, and their sum is at least the distance
    from the value to the optimum.
    """
    edges = [-2.0, -0.5, 0.5, 2.0]
    found, _, score, _ = bracketed(edges)
    assert score.min() >= -1e-12
    assert score.sum() == pytest.approx(found.more.value - found.less.value, abs=1e-7)
    assert score.sum() >= screen_optimum() - found.less.value - 1e-7


def test_cuts_are_where_the_policy_changes():
    """The best guess of the side of the tiger changes at 0. Cells on one side of 0 are cut at their
    median. The accuracy is that of twelve positions, and of twelve more between the neighbours of
    the best.
    """
    pieces = panels(heard())
    (place,) = split(pieces, np.array([]), [GUESS], np.array([1.0]), most=5)
    assert place == pytest.approx(0.0, abs=0.05)
    pieces = cut(heard(), pieces, np.array([1.0]))
    low, high = sorted(
        set(split(pieces, np.array([1.0]), [GUESS], np.array([0.5, 0.5]), most=5)) - {1.0}
    )
    assert low == pytest.approx(0.0, abs=0.05)
    assert 1.0 < high < 2.5


def test_the_cells_that_contribute_most_are_cut():
    """As many cells as contribute 80% of the total, and at most ``most``."""
    edges, score = np.array([-1.0, 0.0, 1.0]), np.array([0.1, 0.55, 0.3, 0.05])
    pieces = cut(heard(), panels(heard()), edges)
    finer = split(pieces, edges, [GUESS], score, most=5)
    assert np.searchsorted(edges, sorted(set(finer) - set(edges))).tolist() == [1, 2]
    finer = split(pieces, edges, [GUESS], score, most=1)
    assert np.searchsorted(edges, sorted(set(finer) - set(edges))).tolist() == [1]


def test_splitting_the_cells_that_contribute_most_helps_most():
    """The bracket is smaller than after splitting as many other cells."""
    edges = [-2.0, -0.5, 0.5, 2.0]
    found, pieces, score, kept = bracketed(edges)
    finer = split(pieces, np.array(edges), kept, score, most=2)
    least = split(pieces, np.array(edges), kept, score.max() - score, most=2)
    assert len(finer) == len(least)
    assert (
        plan_on_cells(screens()[0], finer).gap
        < plan_on_cells(screens()[0], least).gap
        < found.upper - found.less.value + 1e-9
    )
