"""From files to worlds: conventions, units, priors, and published problems with known arrays."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from homdp_ppl import (
    POMDP,
    DeclarationError,
    Episode,
    HOMDPError,
    ParameterError,
    Trajectory,
    evaluate,
    explorers,
    learn,
    posterior,
    read_pomdp,
    uniform_policy,
)
from homdp_ppl.evaluation.relaxations import fast_informed_bound, qmdp, root_value
from homdp_ppl.formats import read_file
from homdp_ppl.planners import history_tree
from tests import problems
from tests.formats.files import PLAIN, SLIPPERY, TIGER
from tests.problems import needs_problems
from tests.raising import raises
from tests.worlds import random_policy

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
    assert world.homdp.reward_range == (-100.0, 10.0)
    assert value == pytest.approx(-2 + 10 * 0.85**2 - 100 * 0.15**2 - 2 * 0.85 * 0.15, abs=1e-10)
    assert value == pytest.approx(optimum(file, file.start, 3), abs=1e-10)


def test_observations_that_depend_on_the_action(load):
    """The classic tiger keeps its two states; the first observation is "nothing"."""
    world = load("tiger", 3, 0.5)
    arrays, spaces = world.pomdp, world.spaces
    assert spaces.states == ("tiger-left", "tiger-right")
    assert spaces.observations == ("hear-left", "hear-right", "nothing")
    np.testing.assert_array_equal(arrays.initial, [0.5, 0.5])
    assert arrays.emission.shape == (1, 4, 2, 3)
    np.testing.assert_array_equal(arrays.shows(0), [[0, 0, 1], [0, 0, 1]])
    np.testing.assert_array_equal(arrays.shows(1, 0), [[0.85, 0.15, 0], [0.15, 0.85, 0]])
    np.testing.assert_array_equal(arrays.shows_after(2)[1:], [[[0.5, 0.5, 0]] * 2] * 2)
    np.testing.assert_array_equal(arrays.moves(0)[:, 0], np.eye(2))
    np.testing.assert_array_equal(arrays.moves(0)[:, 1:], np.full((2, 2, 2), 0.5))
    expected = np.broadcast_to([[0.9, 0, 1], [0.9, 1, 0]], (3, 2, 3))
    np.testing.assert_allclose(arrays.reward[:, :, 0], expected, rtol=1e-15)


def carried(file, horizon):
    """The same world with the last action in the state, so that emissions depend on the state only.

    The state s after action k has the index (k + 1) X + s; those of the first step come first.
    """
    X, A, _ = file.transition.shape
    Y = len(file.observations)
    T, O = np.zeros((A + 1, X, A, A + 1, X)), np.zeros((A + 1, X, Y + 1))  # noqa: E741
    for k in range(A):
        T[:, :, k, k + 1] = file.transition[:, k]
        O[k + 1, :, :Y] = file.observation[k]
    O[0, :, Y] = 1.0
    n = (A + 1) * X
    return POMDP.of(
        np.append(file.start, np.zeros(n - X)),
        T.reshape(n, A, n),
        O.reshape(n, Y + 1),
        np.tile(-file.reward if file.costs else file.reward, (A + 1, 1)),
        horizon=horizon,
    )


def differences(file, native, horizon):
    """Differences from the world with carried actions: policies, bounds and the optimum."""
    encoding = carried(file, horizon)
    policies = (uniform_policy(native), random_policy(native.spaces, 0))
    pairs = [(evaluate(policy, native), evaluate(policy, encoding)) for policy in policies]
    for bound in (qmdp, fast_informed_bound):
        roots = [root_value(model, bound(model)[0].T) for model in (native, encoding)]
        pairs.append((roots[0], roots[1]))
    if horizon <= 4:
        pairs.append((history_tree()(native).value, history_tree()(encoding).value))
    return np.ptp(pairs, axis=1)


PLANTED = {
    "emissions of another action": lambda m: m._replace(emission=np.roll(m.emission, 1, axis=1)),
    "the first emission as the last action's": lambda m: m._replace(
        emission=m.emission[:, [0, 1, 2, 0]]
    ),
    "transitions of another action": lambda m: m._replace(
        transition=np.roll(m.transition, 1, axis=2)
    ),
}


def test_values_equal_those_with_carried_actions(load):
    """The old encoding has four times as many states; planted bugs are caught."""
    file = load.file("tiger")
    for horizon in (1, 3, 8):
        native = load("tiger", horizon).pomdp
        assert carried(file, horizon).sizes == (8, 3, 3)
        assert differences(file, native, horizon).max() < 1e-9
    for planted in PLANTED.values():
        assert differences(file, planted(load("tiger", 3).pomdp), 3).max() > 1e-3


@pytest.mark.parametrize(
    "name", ["cheng.D3-1", "cheng.D4-1", "ejs1", "hanks.95", "paint.95", "stand-tiger.95"]
)
@needs_problems
def test_published_values_equal_those_with_carried_actions(name):
    file = read_file(problems.file(f"corpus/{name}.POMDP"))
    for horizon in (3, 10):
        native = file.world(horizon).pomdp
        assert native.sizes[0] == len(file.states)
        assert differences(file, native, horizon).max() < 1e-9


def test_costs_are_converted_to_rewards_and_back(load):
    """Costs from -0.25 to 3.5 become rewards 1 to 0."""
    file, world = load.file("slippery"), load("slippery", 2, 1.0)
    assert world.homdp.reward_range == (-3.5, 0.25)
    np.testing.assert_array_equal(world.homdp.reward[0], -file.reward)
    np.testing.assert_allclose(world.pomdp.reward[0, :, 0], (3.5 - file.reward) / 3.75, rtol=1e-15)
    assert (world.pomdp.reward.min(), world.pomdp.reward.max()) == (0, 1)
    assert world.pomdp.to_user(world.pomdp.reward[0, 2, 0, 0], 1) == -3.5


def test_rewards_in_the_unit_interval_are_unchanged(load):
    """Also if they do not reach its ends. A constant reward outside the interval becomes 0."""
    world = load("plain", 2)
    np.testing.assert_array_equal(world.pomdp.reward[:, :, 0], [[[0, 1], [0.5, 0]]] * 2)
    assert world.homdp.reward_range == (0.0, 1.0)
    np.testing.assert_array_equal(
        world.pomdp.shows(0), [[0.7, 0.3], [0.4, 0.6]]
    )  # the first state is observed too
    np.testing.assert_array_equal(world.pomdp.initial, [0, 1])
    assert load.file("plain").discount is None


def test_a_constant_reward_outside_the_unit_interval(tmp_path):
    path = tmp_path / "seven.POMDP"
    path.write_text(PLAIN + "R: * : * : * : * 7")
    world = read_file(path).world(3)
    assert (world.pomdp.reward == 0).all()
    assert world.pomdp.to_user(0.0) == 21


@pytest.mark.parametrize("name", ["tiger", "maze4x3", "hallway"])
@needs_problems
def test_problems_equal_their_arrays(name):
    """Equal up to one unit in the last place: the arrays were divided by their sums, which are 1 up
    to rounding.
    """
    file, reference = read_file(problems.file(f"{name}.POMDP")), problems.arrays(name)
    assert (file.discount, file.action_matters) == (1.0, False)
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


def test_the_posterior_counts_observations_by_the_previous_action(load):
    world = load("tiger", 3, 0.5)
    generator = np.random.default_rng(1)
    moved, heard, episodes = np.zeros((2, 3, 2)), np.zeros((3, 2, 2)), []
    for _ in range(50):
        states, seen, done = [0], [2], [int(generator.integers(3))]  # "nothing" is seen first
        for h in range(3):
            states.append(int(generator.integers(2)) if done[h] else states[h])
            moved[states[h], done[h], states[h + 1]] += 1
            if h < 2:
                seen.append(int(generator.integers(2)))
                heard[done[h], states[h + 1], seen[-1]] += 1
                done.append(int(generator.integers(3)))
        episodes.append(Episode(Trajectory(np.array(seen), np.array(done)), np.array(states)))
    mean = posterior(world.homdp, episodes).mean
    for table, counts in ((mean.moves(0)[:, 1:], moved[:, 1:]), (mean.shows_after(1), heard)):
        expected = (counts + 0.5) / (counts + 0.5).sum(-1, keepdims=True)
        np.testing.assert_allclose(table[..., :2], expected, rtol=1e-12)
    np.testing.assert_array_equal(mean.shows(0)[:, 2], [1, 1])


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
    monkeypatch.setenv("HOMDP_MEMORY", "0.00001")  # enough for about 10 numbers
    with raises(HOMDPError, "states"):
        file.world(2)
