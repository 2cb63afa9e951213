"""The warehouse follows its rules, and is learned and planned with 10,000 states."""

import numpy as np
import pytest

from homdp_ppl import ParameterError, Sparse, explorers, learn, models
from homdp_ppl.models.delivery import structured
from homdp_ppl.planners import bounded_search
from tests.raising import raises

EAST, WEST = 1, 3


def test_moves_by_hand():
    world = structured(rows=1, columns=3)  # the dock is in the middle, the shelf east of it
    T, states = world.pomdp.moves(0), world.homdp.states
    grip = world.parameters["grip"]
    dock, loaded, shelf = 2, 3, 4
    assert states[dock] == "row 1, column 2, empty"
    assert T[dock, EAST, shelf] == pytest.approx(grip[1, EAST])
    assert T[dock, EAST, dock] == pytest.approx(1 - grip[1, EAST])
    assert T[shelf, WEST, loaded] == pytest.approx(grip[2, WEST])  # it took a parcel
    assert T[shelf, EAST, shelf + 1] == 1  # the wall
    assert T[loaded, WEST, 0] == pytest.approx(grip[1, WEST])  # it handed the parcel over
    assert np.flatnonzero(world.pomdp.rewards(0)[:, 0].any(-1)).tolist() == [loaded]


def test_ten_thousand_states_are_planned_and_learned():
    world = structured(rows=50, columns=100, distance=1, horizon=6)
    assert isinstance(world.pomdp.transition, Sparse)
    assert len(world.pomdp.transition.values) < 80_000
    small = structured(rows=7, columns=7, distance=1, horizon=6)  # the border is out of reach
    planner = bounded_search(gap=1e-6)
    grip = np.full((50, 100, 4), 0.9)
    same = [
        made.homdp.at(grip=grip.reshape(-1, 4)[:n], reader=0.9)
        for made, n in ((world, 5000), (small, 49))
    ]
    plans = [planner(made.pomdp) for made in same]
    assert plans[0].value == pytest.approx(plans[1].value, abs=1e-6)
    run = learn(world, explorers.posterior_sampling(), bounded_search(gap=0.01), episodes=2)
    assert (run.gaps >= -0.01).all()
    belief = run.posterior
    unseen = belief.mean.transition.values[-2:]
    np.testing.assert_allclose(np.sort(unseen), [0.2, 0.8])  # the prior of the last row


def test_a_shelf_outside_of_the_map_is_refused():
    with raises(ParameterError, "distance"):
        models.load("delivery", columns=4, distance=2)
