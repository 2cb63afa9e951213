"""The transport bound against linear programs, and value ranges against models in the sets."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from homdp_ppl import ParameterError
from homdp_ppl.confidence import confidence_sets, transport_bound, value_ranges
from homdp_ppl.core.optimism import SHARES, kept_deficit
from tests.confidence.boxes import DECLARATIONS, inside, random_counts
from tests.planners.exact import full
from tests.raising import raises


def largest(up, down, g):
    """The largest (p - p-hat) . g by linear programming."""
    bounds = np.stack([-down, up], axis=1)
    found = linprog(-g, A_eq=np.ones((1, len(g))), b_eq=[0.0], bounds=bounds)
    return -found.fun


def cases(seed, n=25):
    generator = np.random.default_rng(seed)
    for _ in range(n):
        d = generator.integers(1, 6)
        zero = generator.random((2, d)) < 0.2
        up, down = np.where(zero, 0.0, generator.random((2, d)))
        low = generator.normal(size=d)
        yield up, down, low + generator.random(d), low


def test_it_is_exact_for_a_known_function():
    """And a planted bug, up and down at once, doubles it."""
    bugs = 0
    for up, down, _, g in cases(0):
        expected = largest(up, down, g)
        assert transport_bound(up, down, g, g) == pytest.approx(expected, abs=1e-9)
        kinks = (up * g + down * g) / np.maximum(up + down, 1e-300)
        both = min(
            (up * np.maximum(g - k, 0) + down * np.maximum(k - g, 0)).sum() for k in [*kinks, 0]
        )
        assert both == pytest.approx(expected, abs=1e-9)  # the same as long as high = low
    for up, down, high, low in cases(1):
        lam = (up * high + down * low) / np.maximum(up + down, 1e-300)
        both = min(
            (up * np.maximum(high - k, 0) + down * np.maximum(k - low, 0)).sum() for k in lam
        )
        bugs += both > transport_bound(up, down, high, low) + 1e-6
    assert bugs > 15


def test_it_bounds_all_functions_in_the_range():
    for up, down, high, low in cases(2):
        bound = transport_bound(up, down, high, low)
        corners = product(*zip(low, high, strict=True))
        worst = max(largest(up, down, np.array(g)) for g in corners)
        assert worst <= bound + 1e-9
        grid = np.linspace(low.min() - 1, high.max() + 1, 2001)[:, None]
        dual = np.maximum(up * (high - grid), down * (grid - low)).sum(-1)
        assert bound <= dual.min() + 1e-9  # the smallest over all lam


def test_total_variation():
    up, down = np.array([0.1, 0.05, 0.0]), np.array([0.02, 0.3, 0.2])
    bound = transport_bound(up, down, np.ones(3), np.zeros(3))
    assert bound == pytest.approx(0.15)  # the sum of up; down could move more
    swapped = transport_bound(down, up, np.ones(3), np.zeros(3))
    assert swapped == pytest.approx(0.15)


def test_rows_that_cannot_move():
    zero, g = np.zeros(3), np.array([1.0, 2.0, 5.0])
    assert transport_bound(zero, zero, g, g) == 0
    assert transport_bound(zero, np.ones(3), g, g) == 0
    assert transport_bound(np.ones(3), zero, g, g) == 0
    with raises(ParameterError, "up"):
        transport_bound(-np.ones(3), zero, g, g)


def test_kept_deficits():
    """Never above the linear program, and equal to it at the best lam."""
    generator = np.random.default_rng(3)
    close = 0
    for _ in range(40):
        d = generator.integers(1, 5)
        joint, width = generator.random(d), generator.random(d) * 3
        least = joint * generator.random(d)
        below = generator.random() * (joint * width).sum()
        exact = linprog(
            least, A_ub=-joint[None], b_ub=[-below], bounds=np.stack([0 * width, width], 1)
        ).fun
        found = kept_deficit(joint, least, width, np.array(below))
        assert found <= exact + 1e-9
        close += found >= 0.7 * exact
        dual = max(
            lam * below - (np.maximum(lam * joint - least, 0) * width).sum()
            for lam in [*(least / joint), *SHARES]
        )
        assert dual == pytest.approx(exact, abs=1e-9)
    assert close > 25
    assert kept_deficit(np.ones(2), np.ones(2), np.ones(2), np.array(-0.5)) == 0


@pytest.mark.parametrize("name", DECLARATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_ranges_contain_the_values_of_agents_that_see_the_state(name, seed):
    """In all models of the sets: the best agent is below the range's end, the worst above."""
    model = DECLARATIONS[name]
    sets = confidence_sets(model, random_counts(model, seed), delta=0.3)
    ranges = value_ranges(sets)
    for pomdp in inside(sets, seed, 20):
        T, O, r = full(pomdp)  # noqa: E741
        for sign, bound in ((1, ranges.high), (-1, -ranges.low)):
            value = np.zeros(T.shape[1])
            for h in reversed(range(len(r))):
                Q = sign * r[h] + np.einsum("xaz,z->xa", T[h], value)[:, None]  # (X, Y, A)
                possible = (O[h] > 0).any(0)
                value = np.where(possible, Q.max(-1), -np.inf).max(-1)
                assert (value <= bound[h] + 1e-9).all()


def test_ranges_are_attained():
    """With one transition the largest value is that of a model in the sets."""
    model = DECLARATIONS["echoes"]
    sets = confidence_sets(model, random_counts(model, 0), delta=0.3)
    moves, ranges = sets.moves(0), value_ranges(sets)
    expected = np.array(
        [
            [
                moves.centre[x, a] @ ranges.high[1]
                + largest(moves.up[x, a], moves.down[x, a], ranges.high[1])
                for a in range(2)
            ]
            for x in range(2)
        ]
    )
    found = ranges.high_action[0] - sets.centre.rewards(0)
    np.testing.assert_allclose(found, np.repeat(expected[:, None], 2, axis=1), atol=1e-9)
