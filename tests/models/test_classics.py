"""The maze, the hallway and RockSample follow their rules, and equal the published arrays in all
published digits.
"""

from functools import cache

import numpy as np
import pytest

from homdp_ppl import DeclarationError
from homdp_ppl.models import hallway, maze, rocksample
from tests import hand_encoded
from tests.models.by_name import begins, paid, row, shown
from tests.problems import arrays, needs_problems

maze_world = cache(maze.structured)
hallway_world = cache(hallway.structured)
rock_world = cache(rocksample.structured)


def pairs(world, name):
    """Each table of a world with its reference, by name."""
    reference, pomdp = arrays(name), world.pomdp
    ours = {
        "initial": pomdp.initial,
        "transition": pomdp.moves(0),
        "emission": pomdp.shows(0),
        "reward": pomdp.reward[0, :, 0],
    }
    return {table: (array, reference[table]) for table, array in ours.items()}


@needs_problems
def test_maze_equals_the_reference():
    for ours, published in pairs(maze_world(), "maze4x3").values():
        np.testing.assert_allclose(ours, published, rtol=0, atol=1e-9)


@needs_problems
def test_hallway_equals_the_reference():
    """The published emissions are truncated to six decimals, some of them one unit too low, and the
    last report has the remaining probability.
    """
    tables = pairs(hallway_world(), "hallway")
    ours, published = tables.pop("emission")
    cut = ours - published
    assert cut[:, :15].min() >= -1e-12
    assert cut[:, :15].max() <= 1e-6 + 1e-12
    np.testing.assert_allclose(cut[:, 15], -cut[:, :15].sum(1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours[:, 16:], published[:, 16:], rtol=0, atol=1e-9)
    for ours, published in tables.values():
        np.testing.assert_allclose(ours, published, rtol=0, atol=1e-9)


@needs_problems
def test_rocksample_equals_the_reference():
    """The published transitions have eight decimals, and their states include the last reading.

    `test_hand_encoded.py` compares that encoding with the model.
    """
    for ours, published in pairs(hand_encoded.rocksample(), "rocksample_4_2").values():
        np.testing.assert_allclose(np.round(ours, 8), published, rtol=0, atol=1e-9)


def test_maze_walls_stop_and_ground_slips():
    corner, below, beside = "row 1, column 1", "row 2, column 1", "row 1, column 2"
    assert row(maze_world(), corner, "north") == {corner: 0.9, beside: 0.1}
    assert row(maze_world(), corner, "east") == {corner: 0.1, beside: 0.8, below: 0.1}
    assert row(maze_world(), below, "east") == {corner: 0.1, below: 0.8, "row 3, column 1": 0.1}
    slippery = maze_world().homdp.at(slip=0.6)
    assert row(slippery, "row 2, column 3", "north") == {
        "row 1, column 3": 0.4,
        "row 2, column 3": 0.3,
        "bad exit": 0.3,
    }


def test_maze_keeps_the_published_slip():
    assert row(maze_world(), "row 3, column 3", "east") == {
        "row 3, column 4": 0.8,
        "row 2, column 3": 0.1,
        "row 3, column 2": 0.1,
    }
    assert row(maze_world(), "row 3, column 2", "east") == {
        "row 3, column 3": 0.8,
        "row 3, column 2": 0.2,
    }


def test_maze_starts_again_after_an_exit():
    pomdp = maze_world().pomdp
    exits = [maze_world().spaces.states.index(name) for name in ("good exit", "bad exit")]
    np.testing.assert_allclose(
        pomdp.moves(0)[exits], np.broadcast_to(pomdp.initial, (2, 4, 11)), atol=1e-15
    )
    assert np.all(pomdp.initial[exits] == 0)
    np.testing.assert_allclose(np.delete(pomdp.initial, exits), 1 / 9, atol=1e-6)
    assert [
        paid(maze_world(), name, "north") for name in ("good exit", "bad exit", "row 1, column 1")
    ] == [1.0, 0.0, 0.48]


def test_maze_walls_are_felt():
    drawn = ["west", "none", "none", "good", "both", "west", "bad", "west", "none", "none", "east"]
    order = ["west", "east", "none", "both", "good", "bad"]
    assert np.array_equal(
        maze_world().pomdp.shows(0), np.eye(6)[[order.index(word) for word in drawn]]
    )


def test_hallway_forward():
    """In the corridor before the first room, west of it, and in the last cell."""
    world, before = hallway_world(), "row 1, column 3"
    assert row(world, f"{before}, south", "forward") == {
        "row 2, column 3, south": 0.8,
        "row 1, column 4, east": 0.05,
        "row 1, column 2, west": 0.05,
        f"{before}, south": 0.1,
    }
    assert row(world, "row 1, column 2, west", "forward") == {
        "row 1, column 1, west": 0.8,
        f"{before}, east": 0.025,
        f"{before}, west": 0.025,
        "row 1, column 2, west": 0.15,
    }
    assert row(world, "row 1, column 11, east", "forward") == {
        "row 1, column 11, east": 0.95,
        "row 1, column 10, east": 0.025,
        "row 1, column 10, west": 0.025,
    }
    assert np.array_equal(world.pomdp.moves(0)[:56, 0], np.eye(60)[:56])


def test_hallway_turns():
    world = hallway_world().homdp.at(
        quarter=[0.2, 0.5, 0.25, 0.05], about=[0.3, 0.1, 0.4, 0.2], hit=0.9, false_alarm=0.05
    )
    north, east, south, west = (
        f"row 2, column 5, {heading}" for heading in ("north", "east", "south", "west")
    )
    assert row(world, north, "turn right") == {north: 0.2, east: 0.5, south: 0.25, west: 0.05}
    assert row(world, north, "turn left") == {north: 0.2, west: 0.5, south: 0.25, east: 0.05}
    assert row(world, west, "turn about") == {west: 0.3, north: 0.1, east: 0.4, south: 0.2}


def test_hallway_sensors():
    world = hallway_world().homdp.at(quarter=[0.25] * 4, about=[0.25] * 4, hit=0.8, false_alarm=0.3)
    reports = shown(world, "row 1, column 2, east")  # walls to the right and left
    assert len(reports) == 16
    assert reports["walls: right left"] == 0.8**2 * 0.7**2
    assert reports["walls: ahead right"] == 0.3 * 0.8 * 0.7 * 0.2
    assert reports["walls: none"] == 0.7**2 * 0.2**2
    assert shown(world, "row 1, column 1, north")["walls: ahead behind left"] == 0.8**3 * 0.7
    sighted = world.pomdp.shows(0)[:, :16].sum(1) == 0
    size = [
        len(name.removeprefix("walls: ").replace("none", "").split())
        for name in world.spaces.observations[:16]
    ]
    mean = world.pomdp.shows(0)[~sighted, :16] @ size
    assert {round(float(m), 9) for m in mean} == {
        3 * 0.8 + 0.3,
        2 * 0.8 + 2 * 0.3,
        round(0.8 + 3 * 0.3, 9),
    }


def test_hallway_landmarks_and_star():
    world = hallway_world()
    for k, column in enumerate((3, 5, 7, 9), start=1):
        assert shown(world, f"row 1, column {column}, south") == {f"landmark {k}": 1.0}
    assert (world.pomdp.shows(0)[:, 16:20] > 0).sum() == 4
    star = [k for k, name in enumerate(world.spaces.states) if name.startswith("row 2, column 9")]
    assert np.array_equal(np.flatnonzero(world.pomdp.shows(0)[:, 20]), star)
    assert np.all(world.pomdp.moves(0)[star] == world.pomdp.initial)
    np.testing.assert_allclose(
        world.pomdp.reward[0, :, 0], world.pomdp.moves(0)[:, :, star].sum(-1), atol=1e-15
    )
    np.testing.assert_allclose(np.delete(world.pomdp.initial, star), 1 / 56, atol=1e-5)


def test_hallway_turns_are_conjugate_and_sensors_are_not():
    structure = hallway_world().homdp.structure
    assert set(structure.conjugate.sites) == {"quarter", "about"}
    assert structure.known.transition[:, :2].all()


def test_rocksample_drives():
    world = rock_world()
    assert [len(names) for names in world.spaces[:3]] == [65, 4, 7]
    assert row(world, "0,0 good/bad", "north") == {"0,1 good/bad": 1.0}
    for bump in ("south", "west"):
        assert row(world, "0,0 good/bad", bump) == {"0,0 good/bad": 1.0}
    assert row(world, "0,3 good/bad", "north") == {"0,3 good/bad": 1.0}
    assert row(world, "3,1 good/good", "east") == {"gone": 1.0}
    assert paid(world, "3,1 good/good", "east") == 10
    assert paid(world, "2,1 good/good", "east") == 0
    assert begins(world) == {
        f"0,2 {one}/{two}": 0.25 for one in ("good", "bad") for two in ("good", "bad")
    }


def test_rocksample_ends():
    pomdp = rock_world().pomdp
    assert pomdp.terminal.tolist() == [False] * 64 + [True]
    assert np.all(pomdp.moves(0)[-1] == np.eye(65)[-1])
    assert np.all(rock_world().homdp.reward[:, -1] == 0)
    assert shown(rock_world(), "gone", after="east") == {"ended": 1.0}


def test_rocksample_rocks_are_used_up_only_by_sampling():
    world = rock_world()
    assert row(world, "1,1 good/good", "sample") == {"1,1 bad/good": 1.0}
    assert row(world, "3,2 good/good", "sample") == {"3,2 good/bad": 1.0}
    assert row(world, "3,2 good/bad", "sample") == {"3,2 good/bad": 1.0}
    assert [paid(world, f"1,1 {rocks}", "sample") for rocks in ("good/bad", "bad/good")] == [
        10,
        -10,
    ]
    assert paid(world, "0,0 good/good", "sample") == -10
    rocks = np.array([name.split()[1] for name in world.spaces.states[:-1]])
    changes = world.pomdp.moves(0)[:-1, :, :-1] * (rocks[:, None, None] != rocks)
    assert changes.sum() == 2 * 2  # rocks, qualities of the other rock
    assert changes[:, rocksample.SAMPLE].sum() == changes.sum()


def test_rocksample_sensor_by_hand():
    world = rock_world().homdp.at(half_distance=2.0)
    assert shown(world, "1,1 good/bad", after="check rock 1") == {"good": 1.0}
    assert shown(world, "3,1 bad/bad", after="check rock 1") == {"bad": 0.75, "good": 0.25}
    right = (1 + 2 ** (-np.sqrt(5) / 2)) / 2
    assert shown(world, "1,1 good/good", after="check rock 2") == {"good": right, "bad": 1 - right}
    for after in ("north", "sample", None):
        assert shown(world, "2,2 good/bad", after) == {"nothing": 1.0}
    assert row(world, "2,2 good/bad", "check rock 2") == {"2,2 good/bad": 1.0}


def test_rocksample_of_another_size():
    world = rocksample.structured(
        size=3, rocks=[[0, 2]], start=[1, 1], half_distance=1.0, horizon=2
    )
    assert [len(names) for names in world.spaces[:3]] == [9 * 2 + 1, 4, 6]
    assert shown(world, "1,2 good", after="check rock 1") == {"good": 0.75, "bad": 0.25}
    assert row(world, "2,0 good", "east") == {"gone": 1.0}


def test_rocksample_reports_impossible_places_together():
    with pytest.raises(DeclarationError) as caught:
        rocksample.structured(rocks=[(0, 4), (0, 4)], start=(-1, 0))
    assert [p.where for p in caught.value.problems] == ["rocks", "rocks", "start"]


OTHERWISE = {
    maze_world: {"slip": 0.5},
    hallway_world: {
        "quarter": [0.2, 0.5, 0.25, 0.05],
        "about": [0.3, 0.1, 0.4, 0.2],
        "hit": 0.8,
        "false_alarm": 0.3,
    },
    rock_world: {"half_distance": 2.0},
}


@pytest.mark.parametrize("make", OTHERWISE, ids=["maze", "hallway", "rocksample"])
def test_only_the_unknown_rows_differ_in_another_world(make):
    world = make()
    other = world.homdp.at(**OTHERWISE[make])
    assert np.array_equal(other.pomdp.initial, world.pomdp.initial)
    for table in ("transition", "emission"):
        mine, theirs = (getattr(w.pomdp, table) for w in (other, world))
        known = getattr(world.homdp.structure.known, table)
        change = np.abs(mine - theirs).max(-1).reshape(known.shape)
        assert change[known].max(initial=0.0) < 1e-15
        assert change[~known].min(initial=1.0) > 1e-6
