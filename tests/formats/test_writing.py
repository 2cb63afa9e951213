"""Writing .POMDP files: exact round trips, names, refusals, and no half-written files."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from homdp_ppl import POMDP, HOMDPError, Spaces, read_pomdp, tabular, write_pomdp
from homdp_ppl.formats.reading import parse
from homdp_ppl.formats.writing import _legal, pomdp_text
from tests.planners.exact import random_pomdp
from tests.worlds import world

TABLES = ("initial", "transition", "emission", "reward")


def assert_same(file, arrays):
    """The tables of a file, action-free in its observations, equal these to the last bit."""
    assert not file.action_matters
    ours = (file.start, file.transition, file.observation[0], file.reward)
    short = arrays.stationary()
    for name, read, written in zip(
        TABLES, ours, short._replace(reward=short.reward[0]), strict=True
    ):
        np.testing.assert_array_equal(read, written, err_msg=name)


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


@given(some.lists(some.floats(0, 1), min_size=4, max_size=4))
def test_rewards_keep_every_digit(rewards):
    model = steady(random_pomdp(0, 2, 2, 2, 2)).with_tables(
        reward=np.array([rewards] * 2).reshape(2, 2, 2)
    )
    assert_same(parse(pomdp_text(model), "file"), model)


def test_round_trips_of_worlds(tmp_path):
    """Names with spaces come back, and a file written from what was read is the same file."""
    model = world("tiger_listen")
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
def test_names_come_back_whatever_they_are(names):
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


def test_names_noted_by_others_do_no_harm():
    """Notes for names that are not there, that are no text, or that would make two names one, are
    comments.
    """
    notes = (
        '# states: c stands for "far"\n# states: a stands for "b"\n# actions: go '
        'stands for "x\n# actions: go stands for ""\n'
    )
    file = parse(
        notes + "states: a b actions: go observations: 1 T: * identity O: * uniform", "file"
    )
    assert (file.states, file.actions) == (("a", "b"), ("go",))


def test_refusals(tmp_path):
    path = tmp_path / "model.POMDP"
    model = random_pomdp(0, 2, 2, 2, 2)
    for wrong, words in [
        (
            model.with_tables(reward=np.arange(8.0).reshape(2, 2, 2) / 8),
            "the same rewards at every step",
        ),
        (steady(model)._replace(initial=np.array([0.5, 0.6])), "a sum of 1"),
        (steady(model).with_tables(reward=np.full((2, 2, 2), np.nan)), "nan"),
        (POMDP(*(table[None] for table in model)), "one by one"),
        (model._replace(emission=np.ones((1, 1, 3, 1))), r"expected shape \(3,\)"),
        (world("tiger_listen").homdp, "unknown parameters accuracy"),
        (model.transition, "a World, a POMDP or a HOMDP"),
        ("tiger", "a World, a POMDP or a HOMDP"),
    ]:
        with pytest.raises(HOMDPError, match=words):
            write_pomdp(wrong, path)
    for discount in (1.5, -1, np.nan):
        with pytest.raises(HOMDPError, match="discount"):
            write_pomdp(steady(model), path, discount)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "model.POMDP"
    model = steady(random_pomdp(0, 2, 2, 2, 2))
    write_pomdp(model, path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(HOMDPError, match="no space left"):
            write_pomdp(model._replace(initial=model.initial[::-1]), path)
    assert path.read_bytes() == before
    for place in (tmp_path / "nowhere" / "model.POMDP", tmp_path, "."):
        with pytest.raises(HOMDPError, match="can be written"):
            write_pomdp(model, place)
    assert list(tmp_path.iterdir()) == [path]
