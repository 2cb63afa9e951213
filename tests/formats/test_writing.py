"""Writing .POMDP files: exact round trips, names, errors, and no partially written files."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from homdp_ppl import POMDP, HOMDPError, Spaces, read_pomdp, tabular, write_pomdp
from homdp_ppl.formats.reading import parse
from homdp_ppl.formats.writing import _legal, pomdp_text
from tests.formats.files import TIGER
from tests.planners.exact import dependent_pomdp, random_pomdp
from tests.raising import raises
from tests.worlds import world

TABLES = ("initial", "transition", "emission", "reward")


def assert_same(file, arrays):
    """The tables of a file equal these arrays exactly."""
    by_action = arrays.emission.shape[1] > 1
    assert (file.null is not None) == by_action
    seen = arrays.emission[0, :-1, :, :-1] if by_action else arrays.emission[0]
    written = (arrays.initial, arrays.transition[0], seen, arrays.reward[0, :, 0])
    observation = file.observation if by_action else file.observation[:1]
    read = (file.start, file.transition, observation, file.reward)
    for name, ours, theirs in zip(TABLES, read, written, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


def answering(seed, X, Y, A):
    """Random tables whose observations depend on the previous action; the first is certain."""
    model = steady(dependent_pomdp(seed, X, Y, A, 2, zeros=0.4 * (seed % 2), kinds="a"))
    emission = np.pad(model.emission, ((0, 0), (0, 0), (0, 0), (0, 1)))
    emission[:, -1] = np.eye(Y + 1)[-1]
    return model._replace(emission=emission)


def steady(model):
    """The same model with the rewards of its first step at every step."""
    return model._replace(reward=np.repeat(model.reward[:1], model.horizon, axis=0))


@pytest.mark.parametrize("seed", range(100))
def test_round_trips_of_random_arrays_are_exact(seed):
    X, Y, A = (int(n) for n in np.random.default_rng(seed).integers(1, 7, 3))
    model = steady(random_pomdp(seed, X, Y, A, 2, zeros=0.4 * (seed % 2)))
    file = parse(pomdp_text(model, discount=0.9), "file")
    assert_same(file, model)
    assert file.discount == 0.9
    assert (file.states, file.observations, file.actions) == model.spaces[:3]


@pytest.mark.parametrize("seed", range(100))
def test_round_trips_with_action_dependent_emissions_are_exact(seed):
    X, Y, A = (int(n) for n in np.random.default_rng(seed).integers(2, 6, 3))
    model = answering(seed, X, Y, A)
    file = parse(pomdp_text(model), "file")
    assert_same(file, model)
    assert (file.states, (*file.observations, file.null), file.actions) == model.spaces[:3]


def test_rewards_are_written_in_the_units_of_the_user():
    model = steady(random_pomdp(1, 2, 2, 2, 2))
    scaled = model._replace(scale=np.array(10.0), shift=np.array(-3.0))
    file = parse(pomdp_text(scaled), "file")
    np.testing.assert_array_equal(file.reward, 10 * model.reward[0, :, 0] - 3)


def test_worlds_with_action_dependent_emissions_are_read_back(tmp_path):
    """Arrays and names are the same, and writing the world again gives the same file."""
    (tmp_path / "tiger.POMDP").write_text(TIGER)
    first = read_pomdp(tmp_path / "tiger.POMDP", 3)
    write_pomdp(first, tmp_path / "again.POMDP")
    again = read_pomdp(tmp_path / "again.POMDP", 3)
    assert again.spaces == first.spaces
    for ours, theirs in zip(again.pomdp, first.pomdp, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    text = (tmp_path / "again.POMDP").read_text()
    assert pomdp_text(again) == text
    assert text.count("O: ") == 3
    assert "nothing" not in text.split("discount")[1]


def test_a_first_observation_is_kept_if_the_later_ones_ignore_the_action(tmp_path):
    """Without the note in the file, the first state would emit an informative observation."""
    model = answering(0, 2, 2, 2)
    model.emission[:, 1] = model.emission[:, 0]
    write_pomdp(model, tmp_path / "model.POMDP")
    world = read_pomdp(tmp_path / "model.POMDP", 2)
    np.testing.assert_array_equal(world.pomdp.emission, model.emission)
    text = (tmp_path / "model.POMDP").read_text()
    unnoted = parse("\n".join(line for line in text.splitlines() if line[:1] != "#"), "file")
    assert unnoted.null is None
    assert unnoted.world(2).pomdp.emission.shape == (1, 1, 2, 2)


@pytest.mark.parametrize(
    "names",
    [
        ("growl", "silence"),
        ("nothing", "nothing_"),
        ("nothing!", "nothing"),
        ("nothing", "nothing!", "nothing_"),
        ("nothing", "nothing!", "nothing__"),
        ("y0", "y1"),
        ("y0", "nothing"),
        ("a b", "T"),
    ],
    ids=str,
)
def test_the_name_of_the_first_observation_is_restored(names):
    Y = len(names)
    model = answering(0, 2, Y - 1, 2)
    declared = tabular(
        T=model.transition[0],
        O=model.emission[0],
        initial=model.initial,
        reward=model.reward[0, :, 0],
        horizon=2,
        observations=names,
    )
    file = parse(pomdp_text(declared.at()), "file")
    assert (*file.observations, file.null) == names


@given(some.lists(some.floats(0, 1), min_size=4, max_size=4))
def test_rewards_keep_every_digit(rewards):
    model = steady(random_pomdp(0, 2, 2, 2, 2)).with_tables(
        reward=np.array([rewards] * 2).reshape(2, 2, 2)
    )
    assert_same(parse(pomdp_text(model), "file"), model)


def test_round_trips_of_worlds(tmp_path):
    """Names with spaces are restored, and writing a world that was read gives the same file."""
    model = world("lock")
    write_pomdp(model, tmp_path / "model.POMDP")
    back = read_pomdp(tmp_path / "model.POMDP", model.spaces.horizon)
    assert back.spaces == model.spaces
    for ours, theirs in zip(back.pomdp, model.pomdp, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert pomdp_text(back.homdp) == (tmp_path / "model.POMDP").read_text()


NAMES = some.lists(some.text(min_size=1, max_size=8), min_size=1, max_size=4, unique=True)
AWKWARD = some.lists(
    some.sampled_from(
        ["T", "a b", "a_b", "a_b_1", "a:b", "1", "x", "x0", "é", "*", "#", "uniform", "-", "\n"]
    ),
    unique=True,
)


@given(NAMES | AWKWARD.filter(bool))
def test_all_names_are_restored(names):
    n = len(names)
    spaces = Spaces(tuple(names), tuple(names), tuple(names), 1)
    model = tabular(
        T=np.full((n, n, n), 1 / n),
        O=np.full((n, n), 1 / n),
        initial=np.full(n, 1 / n),
        reward=np.zeros((n, n)),
        horizon=1,
        states=spaces.states,
        observations=spaces.observations,
        actions=spaces.actions,
    )
    file = parse(pomdp_text(model.at()), "file")
    assert (file.states, file.observations, file.actions) == spaces[:3]


def test_names_stay_readable():
    names = ("left", "growl left", "growl_left", "2nd", "T", "uniform", "a:b", "tiger-left")
    expected = (
        "left",
        "growl_left_1",
        "growl_left",
        "x_2nd",
        "T_4",
        "uniform_5",
        "a_b",
        "tiger-left",
    )
    assert _legal(names, "x") == expected


def test_invalid_notes_are_ignored():
    """A note is treated as a comment if its name does not exist, if its value is not a string, or
    if it would make two names equal.
    """
    notes = (
        '# states: c stands for "far"\n# states: a stands for "b"\n# actions: go '
        'stands for "x\n# actions: go stands for ""\n'
    )
    file = parse(
        notes + "states: a b actions: go observations: 1 T: * identity O: * uniform", "file"
    )
    assert (file.states, file.actions) == (("a", "b"), ("go",))


def test_invalid_models(tmp_path):
    path = tmp_path / "model.POMDP"
    model = random_pomdp(0, 2, 2, 2, 2)
    by_action, fine = dependent_pomdp(0, kinds="a", H=2), answering(0, 2, 2, 2)
    late = fine.emission.copy()
    late[0, 0, 0] = [0.5, 0.25, 0.25]
    for wrong, where in [
        (model.with_tables(reward=np.arange(8.0).reshape(2, 2, 2) / 8), "reward"),
        (steady(dependent_pomdp(0, kinds="t", H=2)), "transition"),
        (steady(dependent_pomdp(0, kinds="o", H=2)), "emission"),
        (steady(by_action), "emission"),  # an informative first observation
        (fine._replace(emission=late), "emission"),  # "nothing" after an action
        (steady(dependent_pomdp(0, kinds="y", H=2)), "reward"),
        (steady(model)._replace(initial=np.array([0.5, 0.6])), "initial"),
        (steady(model).with_tables(reward=np.full((2, 2, 2), np.nan)), "reward"),
        (POMDP(*(table[None] for table in model)), "initial"),  # a batch
        (model._replace(emission=np.ones((1, 1, 3, 1))), "initial"),
        (world("tiger_listen").homdp, "tiger_listen"),  # unknown parameters
        (model.transition, "model"),
        ("tiger", "model"),
    ]:
        with raises(HOMDPError, where):
            write_pomdp(wrong, path)
    for discount in (1.5, -1, np.nan):
        with raises(HOMDPError, "discount"):
            write_pomdp(steady(model), path, discount)
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_atomically(tmp_path, monkeypatch):
    path = tmp_path / "model.POMDP"
    model = steady(random_pomdp(0, 2, 2, 2, 2))
    write_pomdp(model, path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with raises(HOMDPError, f"{tmp_path}/model.POMDP"):
            write_pomdp(model._replace(initial=model.initial[::-1]), path)
    assert path.read_bytes() == before
    for place in (tmp_path / "nowhere" / "model.POMDP", tmp_path, "."):
        with raises(HOMDPError, str(place)):
            write_pomdp(model, place)
    assert list(tmp_path.iterdir()) == [path]
