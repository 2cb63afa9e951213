"""From files to worlds: conventions, units, priors, and published problems with known arrays."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from homdp_ppl import (
    DeclarationError,
    Episode,
    HOMDPError,
    ParameterError,
    Trajectory,
    explorers,
    learn,
    posterior,
    read_pomdp,
)
from homdp_ppl.formats import read_file
from homdp_ppl.planners import history_tree
from tests import problems
from tests.formats.files import PLAIN, SLIPPERY, TIGER
from tests.problems import needs_problems
from tests.raising import raises

TEXTS = {"tiger": TIGER, "slippery": SLIPPERY, "plain": PLAIN}


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """A file by its name, and its worlds, each created once."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in TEXTS.items():
        (folder / f"{name}.POMDP").write_text(text)

    @cache
    def load(name, horizon, prior=None):
        return read_pomdp(folder / f"{name}.POMDP", horizon, prior)

    load.file = cache(lambda name: read_file(folder / f"{name}.POMDP"))
    return load


def optimum(file, belief, steps):
    """The optimal undiscounted value of a file in the format's order: act, move, observe."""
    if steps == 0:
        return 0.0
    values = []
    for a in range(len(file.actions)):
        value = belief @ file.reward[:, a]
        moved = belief @ file.transition[:, a]
        for o in range(len(file.observations)):
            joint = moved * file.observation[a, :, o]
            if joint.sum() > 0:
                value += joint.sum() * optimum(file, joint / joint.sum(), steps - 1)
        values.append(value)
    return max(values)


def test_the_value_of_the_classic_tiger(load):
    """The value of three steps is 2.72: listen twice, then open a door if both reports agree.

    Listening twice costs 2. The reports agree and are correct with probability 0.85^2, or agree and
    are wrong with 0.15^2; opening then earns 10 or costs 100. If they do not agree, listening again
    costs 1.
    """
    file, world = load.file("tiger"), load("tiger", 3, 0.5)
    value = history_tree()(world.pomdp).value
    assert file.units == (-100.0, 110.0)
    assert file.in_own_units(value, 3) == pytest.approx(
        -2 + 10 * 0.85**2 - 100 * 0.15**2 - 2 * 0.85 * 0.15, abs=1e-10
    )
    assert file.in_own_units(value, 3) == pytest.approx(optimum(file, file.start, 3), abs=1e-10)


def test_states_that_include_the_last_action(load):
    """The classic tiger has 2 (3 + 1) states; the first observation is "nothing"."""
    world = load("tiger", 3, 0.5)
    arrays, spaces = world.pomdp, world.spaces
    assert spaces.states[:4] == (
        "tiger-left",
        "tiger-right",
        "tiger-left after listen",
        "tiger-right after listen",
    )
    assert spaces.observations == ("hear-left", "hear-right", "nothing")
    np.testing.assert_array_equal(arrays.initial, [0.5, 0.5, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(
        arrays.shows(0)[:4], [[0, 0, 1], [0, 0, 1], [0.85, 0.15, 0], [0.15, 0.85, 0]]
    )
    np.testing.assert_array_equal(arrays.shows(0)[4:], [[0.5, 0.5, 0]] * 4)
    for before in range(0, 8, 2):
        np.testing.assert_array_equal(
            arrays.moves(0)[before, 0], np.eye(8)[2]
        )  # left: left after listen
        np.testing.assert_array_equal(arrays.moves(0)[before, 2], [0, 0, 0, 0, 0, 0, 0.5, 0.5])
    np.testing.assert_allclose(
        arrays.reward[:, :, 0],
        np.broadcast_to([[0.9, 0, 1], [0.9, 1, 0]] * 4, (3, 8, 3)),
        rtol=1e-15,
    )


def test_costs_are_converted_to_rewards_and_back(load):
    """Costs from -0.25 to 3.5 become rewards 1 to 0."""
    file, world = load.file("slippery"), load("slippery", 2, 1.0)
    assert file.units == (3.5, -3.75)
    np.testing.assert_allclose(world.pomdp.reward[0, :, 0], (3.5 - file.reward) / 3.75, rtol=1e-15)
    assert (world.pomdp.reward.min(), world.pomdp.reward.max()) == (0, 1)
    assert file.in_own_units(world.pomdp.reward[0, 2, 0, 0], 1) == 3.5


def test_rewards_in_the_unit_interval_are_unchanged(load):
    """Also if they do not reach its ends. A constant reward outside the interval becomes 0."""
    world = load("plain", 2)
    np.testing.assert_array_equal(world.pomdp.reward[:, :, 0], [[[0, 1], [0.5, 0]]] * 2)
    assert load.file("plain").units == (0.0, 1.0)
    np.testing.assert_array_equal(
        world.pomdp.shows(0), [[0.7, 0.3], [0.4, 0.6]]
    )  # the first state is observed too
    np.testing.assert_array_equal(world.pomdp.initial, [0, 1])
    assert load.file("plain").discount is None


def test_a_constant_reward_outside_the_unit_interval(tmp_path):
    path = tmp_path / "seven.POMDP"
    path.write_text(PLAIN + "R: * : * : * : * 7")
    file = read_file(path)
    assert file.units == (7.0, 1.0)
    assert file.in_own_units(0.0, 3) == 21


@pytest.mark.parametrize("name", ["tiger", "maze4x3", "hallway"])
@needs_problems
def test_problems_equal_their_arrays(name):
    """Equal up to one unit in the last place: the arrays were divided by their sums, which are 1 up
    to rounding.
    """
    file, reference = read_file(problems.file(f"{name}.POMDP")), problems.arrays(name)
    assert (file.discount, file.units, file.action_matters) == (1.0, (0.0, 1.0), False)
    ours = {
        "initial": file.start,
        "transition": file.transition,
        "emission": file.observation[0],
        "reward": file.reward,
    }
    for table, numbers in ours.items():
        np.testing.assert_allclose(numbers, reference[table], rtol=1e-15, atol=0, err_msg=table)
    if name == "maze4x3":
        for table, numbers in zip(file.world(1).pomdp[:4], ours.values(), strict=True):
            np.testing.assert_array_equal(np.reshape(table, numbers.shape), numbers)


def test_priors_on_the_support(load):
    """The classic tiger: opening has two outcomes in 4 rows, observations have two in 6 rows.

    Transitions after listening, and the observation "nothing", are known.
    """
    world = load("tiger", 3, 0.5)
    assert {site.name: site.shape for site in world.homdp.sites} == {"T2": (4, 2), "O2": (6, 2)}
    np.testing.assert_array_equal(world.parameters["O2"][:2], [[0.85, 0.15], [0.15, 0.85]])
    np.testing.assert_array_equal(
        world.homdp.structure.support.transition, world.pomdp.moves(0) > 0
    )
    assert set(world.homdp.structure.conjugate.sites) == {"T2", "O2"}
    assert (world.homdp.structure.conjugate.concentration == 0.5).all()


def test_the_posterior_adds_counts_over_all_last_actions(load):
    """T(s' | s, open) does not depend on earlier actions, so 8 states share two rows of counts."""
    world = load("tiger", 3, 0.5)
    generator = np.random.default_rng(1)
    moved, heard, episodes = np.zeros((2, 3, 2)), np.zeros((3, 2, 2)), []
    for _ in range(50):
        state, states, seen, done = (
            0,
            [0],
            [2],
            [int(generator.integers(3))],
        )  # the first observation is "nothing"
        for h in range(3):
            following = int(generator.integers(2)) if done[h] else state
            moved[state, done[h], following] += 1
            states.append(2 * (done[h] + 1) + following)
            state = following
            if h < 2:
                seen.append(int(generator.integers(2)))
                heard[done[h], state, seen[-1]] += 1
                done.append(int(generator.integers(3)))
        episodes.append(Episode(Trajectory(np.array(seen), np.array(done)), np.array(states)))
    mean = posterior(world.homdp, episodes).mean
    after_right = slice(6, 8)
    for state in range(8):
        counts = moved[state % 2, 2] + 0.5
        np.testing.assert_allclose(
            mean.moves(0)[state, 2, after_right], counts / counts.sum(), rtol=1e-12
        )
    counts = heard[0] + 0.5
    np.testing.assert_allclose(
        mean.shows(0)[2:4, :2], counts / counts.sum(1, keepdims=True), rtol=1e-12
    )
    np.testing.assert_array_equal(mean.shows(0)[:2, 2], [1, 1])


def test_sparse_rows_of_different_lengths(load):
    """The rows of `go` have two outcomes, those of `stay` one; the world can be used by learn."""
    world = load("slippery", 2, 1.0)
    assert {site.name: site.shape for site in world.homdp.sites} == {"T2": (3, 2), "O2": (3, 2)}
    assert "T: 3 of 6 rows known, 3 rows Dirichlet, conjugate; O: Dirichlet, conjugate" in repr(
        world.homdp
    )
    run = learn(world, explorers.posterior_sampling(), planner=history_tree(), episodes=3, seed=0)
    assert run.gaps.shape == (3,)
    assert (run.gaps > -1e-12).all()
    assert run.optimum == pytest.approx(history_tree()(world.pomdp).value)


def test_rounding_errors_are_zeros(load):
    """Probabilities of the size of rounding errors count as zero, with and without a prior.

    So no row of T is unknown here.
    """
    file = replace(
        load.file("plain"), transition=np.array([[[1, 1e-320]] * 2, [[1e-16, 1 - 1e-16]] * 2])
    )
    world = file.world(1, 1.0)
    assert {site.name for site in world.homdp.sites} == {"O2"}
    np.testing.assert_allclose(
        world.pomdp.moves(0), [[[1, 0]] * 2, [[0, 1]] * 2], rtol=1e-15, atol=0
    )


def test_invalid_arguments(load, monkeypatch):
    file = load.file("tiger")
    for prior in (0, -1.0, np.nan, np.inf, "uniform", [1.0]):
        with raises(ParameterError, "prior"):
            file.world(2, prior)
    with raises(DeclarationError, "horizon"):
        file.world(0)
    monkeypatch.setenv("HOMDP_MEMORY", "0.0001")  # enough for about 100 numbers
    with raises(HOMDPError, "states"):
        file.world(2)
