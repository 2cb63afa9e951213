"""Bounds without search, against the complete belief tree."""

import numpy as np
import pytest

from homdp_ppl import POMDP
from homdp_ppl.planners._bounds import blind_policies, root_bounds
from tests.planners.exact import optimum, signed_pomdp


def blind_values(pomdp: POMDP, action: int, state: int, h: int = 0) -> float:
    """The value of repeating one action, by summing over paths."""
    value = float(pomdp.reward[h, state, 0, action])
    if h + 1 < pomdp.horizon:
        chances = pomdp.moves(0)[state, action]
        value += sum(
            float(chances[k]) * blind_values(pomdp, action, int(k), h + 1)
            for k in np.flatnonzero(chances)
        )
    return value


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_bounds_are_ordered(seed: int, zeros: bool) -> None:
    pomdp = signed_pomdp(
        seed, zeros, X=2 + seed % 3, Y=1 + seed % 4, A=1 + seed % 3, H=1 + seed % 5
    )
    bounds = root_bounds(pomdp)
    ordered = [bounds.blind, optimum(pomdp), bounds.fast_informed, bounds.qmdp, bounds.mdp]
    assert np.all(np.diff(ordered) >= -1e-12)


@pytest.mark.parametrize("sizes", [{"X": 1}, {"Y": 1}, {"A": 1}])
def test_models_are_not_modified(sizes: dict[str, int]) -> None:
    pomdp = signed_pomdp(0, zeros=False, **sizes)
    root_bounds(pomdp)
    for part, original in zip(pomdp, signed_pomdp(0, zeros=False, **sizes), strict=True):
        np.testing.assert_array_equal(part, original)


def test_blind_policies_by_hand() -> None:
    pomdp = signed_pomdp(0, zeros=True)
    blind = blind_policies(pomdp)
    expected = [[blind_values(pomdp, a, x) for x in range(3)] for a in range(2)]
    np.testing.assert_allclose(blind[0], expected, atol=1e-14)


def test_upper_bounds_are_the_optimum_if_states_are_observed() -> None:
    pomdp = signed_pomdp(2, zeros=False, Y=3).with_tables(emission=np.eye(3))
    bounds = root_bounds(pomdp)
    np.testing.assert_allclose(
        [bounds.fast_informed, bounds.qmdp, bounds.mdp], optimum(pomdp), atol=1e-12
    )
