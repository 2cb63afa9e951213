"""The container of episodes: rows, masks, padding and validation."""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homdp_ppl import (
    Counts,
    DataError,
    Episode,
    Episodes,
    Real,
    Spaces,
    Trajectory,
    rollout,
    uniform_policy,
)
from homdp_ppl.core.episode_validation import excluded_problems
from homdp_ppl.core.episodes import SAW_STATES
from tests.raising import raises
from tests.worlds import world

H = 3
LAMP = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=H)
LINE = Spaces(Real(1), Real(2), ("wait", "press"), horizon=H)
TIGER = world("tiger").spaces
GOOD = Episode(Trajectory(np.zeros(4, int), np.zeros(4, int)), np.zeros(5, int))


def played(n=50):
    made = world("tiger")
    return made, rollout(jax.random.split(jax.random.key(0), n), made, uniform_policy(made))


def short(length=2, states=None, ended="truncated", **more):
    """An episode of the lamp with some steps."""
    hidden = [0, 1, 1, 0][: length + 1] if states is None else states
    return Episode.of([1] * length, [0] * length, hidden, LAMP, ended=ended, **more)


def log():
    """Three episodes: complete; ended early; with a missing state, rewards and labels."""
    return Episodes.of(
        [
            short(3, ended="horizon", id="full"),
            short(2, id="short"),
            short(
                3,
                states=[0, None, 1, None],
                ended="horizon",
                rewards=[0.5, None, 2.0],
                labels=[1, 1, None, 0],
            ),
        ],
        LAMP,
    )


def wrong(error):
    return {(problem.where, problem.at) for problem in error.value.problems}


def test_rows_padding_and_masks():
    found = log()
    assert found.states.tolist() == [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0]]
    assert found.revealed.tolist() == [
        [True] * 4,
        [True, True, True, False],
        [True, False, True, False],
    ]
    assert found.observations[1].tolist() == [1, 1, 0]
    assert found.steps.tolist() == [[True] * 3, [True, True, False], [True] * 3]
    assert found.length.tolist() == [3, 2, 3]
    assert found.ended.tolist() == ["horizon", "truncated", "horizon"]
    assert found.ids.tolist() == ["full", "short", None]
    assert found.rewards_known.tolist() == [[False] * 3, [False] * 3, [True, False, True]]
    assert np.isnan(found.rewards[~found.rewards_known]).all()
    assert found.labels_known.sum() == 3
    assert not found.complete
    assert not found.full_length


def test_real_values_are_padded_with_nan():
    one = Episode.of(np.ones((2, 2)), [0, 1], [1.0, 2.0, 3.0], LINE, ended="truncated")
    found = Episodes.of([one, one], LINE)
    assert found.observations.shape == (2, H, 2)
    assert np.isnan(found.observations[:, 2]).all()
    assert np.isnan(found.states[:, 3]).all()
    assert found.actions[:, 2].tolist() == [0, 0]


def test_single_episodes_round_trip():
    for found in (log(), log()[:2]):
        again = Episodes.of(list(found), LAMP)
        assert again.same_as(found)
    one = log()[1]
    assert isinstance(one, Episode)
    assert len(one.actions) == len(one.observations) == 2
    assert (one.id, one.ended) == ("short", "truncated")
    assert log()[2].states.tolist() == [0, None, 1, None]
    assert log()[2].rewards.tolist() == [0.5, None, 2.0]
    assert not isinstance(log()[0].states, np.ma.MaskedArray)


def test_indexing():
    _, episodes = played()
    assert len(episodes) == 50
    assert np.array_equal(episodes[7].states, episodes.states[7])
    assert np.array_equal(episodes[-1].states, episodes.states[49])
    assert np.array_equal(episodes[np.int64(7)].states, episodes[np.array(7)].states)
    assert np.array_equal(episodes[3:5].actions, episodes.actions[3:5])
    assert [tuple(e.states) for e in episodes] == [tuple(s) for s in episodes.states]
    picked = episodes[[4, 4, 0]]
    assert isinstance(picked, Episodes)
    assert np.array_equal(picked.states, episodes.states[[4, 4, 0]])
    listening = (episodes.actions == 0).all(1)
    assert len(episodes[listening]) == listening.sum()
    assert len(episodes[[]]) == 0
    assert log()[np.array([2, 1])].ids.tolist() == [None, "short"]
    with pytest.raises(IndexError):
        episodes[50]
    for bad in (0.5, "a", np.zeros((2, 2), int)):
        with pytest.raises(DataError) as error:
            episodes[bad]
        assert wrong(error) == {("index", "")}


@given(st.permutations(range(3)), st.integers(0, 3))
def test_concatenated_parts_equal_the_indexed_container(order, cut):
    found = log()[order]
    assert (found[:cut] + found[cut:]).same_as(found)
    assert Episodes.of([found[:cut], *found[cut:]], LAMP).same_as(found)
    assert len(Episodes.of([], LAMP) + found) == 3


def test_concatenation_keeps_the_weaker_claim_about_behaviour():
    found = log()
    one, other, saw = (replace(found, behaviour=b) for b in ("nurse", "doctor", SAW_STATES))
    assert (one + one).behaviour == "nurse"
    assert (one + other).behaviour is None
    assert (one + found).behaviour is None
    assert (one + saw).behaviour == SAW_STATES
    with raises(DataError, "parts"):
        found + played()[1]
    with pytest.raises(TypeError):
        found + 3


def test_equality_compares_every_field():
    found = log()
    assert found.same_as(log())
    changes = {
        "observations": 1 - found.observations,
        "actions": 1 - found.actions,
        "states": 1 - found.states,
        "revealed": np.roll(found.revealed, 1, axis=0) & found.revealed,
        "rewards": None,
        "labels": found.labels + 1,
        "ended": ["terminal"] * 3,
        "ids": ["a", "b", "c"],
        "behaviour": "nurse",
    }
    for name, value in changes.items():
        extra = {"rewards_known": None} if name == "rewards" else {}
        assert not found.same_as(replace(found, **{name: value}, **extra)), name
    assert not found.same_as(found[:2])
    assert pickle.loads(pickle.dumps(found)).same_as(found)


def test_repr_is_short():
    assert repr(log()) == (
        "Episodes: 3 episodes of 3 steps, 1 ended early, 2 of 11 states missing, "
        "6 of 8 rewards missing, 8 of 11 labels missing"
    )
    assert repr(replace(log()[:1], behaviour=SAW_STATES)).endswith("behaviour: saw states")
    assert repr(played()[1]) == "Episodes: 50 episodes of 4 steps"


def test_padding_and_missing_values_are_never_read():
    """Changing padding and missing entries does not change counts, returns or problems."""
    made, episodes = played(20)
    length = np.arange(20) % 5
    ended = np.where(length < 4, "truncated", "horizon")
    clean = replace(episodes, length=length, ended=ended)
    rubbish = replace(clean)
    padded = ~clean.steps
    assert padded.any()
    for name, mask in (("observations", padded), ("actions", padded), ("states", ~clean.revealed)):
        values = getattr(clean, name).copy()
        values[mask] = 1
        object.__setattr__(rubbish, name, values)
    assert not rubbish.same_as(clean)
    by_hand = np.zeros((2, 3, 2), int)
    for k, L in enumerate(length):
        for h in range(L):
            x, z = episodes.states[k, h : h + 2]
            by_hand[x, episodes.actions[k, h], z] += 1
    for data in (clean, rubbish):
        counts = made.homdp.counts(data)
        assert np.array_equal(counts.transition, by_hand)
        assert counts.emission.sum() == length.sum()
        rewards = made.homdp.reward[0][episodes.states[:, :-1], episodes.actions]
        expected = [row[:L].sum() for row, L in zip(rewards, length, strict=True)]
        np.testing.assert_array_equal(made.homdp.returns(data), expected)
        assert made.homdp.returns(data[3]) == expected[3]
        assert excluded_problems(data, made.homdp.structure.support, made.form, made.spaces) == []
        assert Episodes.of(list(data), made).same_as(clean)
    object.__setattr__(rubbish, "states", np.full((20, 5), 9))
    with raises(DataError, "states"):
        made.homdp.counts(rubbish)


def test_incomplete_episodes_raise_if_complete_ones_are_required():
    made, episodes = played(6)
    gap = replace(episodes, states=np.ma.masked_array(episodes.states, np.eye(6, 5, -2) > 0))
    length = np.array([4, 4, 2, 4, 1, 4])
    ended = np.where(length < 4, "truncated", "horizon")
    early = replace(episodes, length=length, ended=ended)
    for consumer in (made.homdp.counts, made.homdp.returns):
        with pytest.raises(DataError) as error:
            consumer(gap)
        assert wrong(error) == {("states", "first in episode 2, step 1")}
        assert "4 missing in 4 of 6" in error.value.problems[0].got
    with pytest.raises(DataError) as error:
        made.homdp.hindsight(early)
    assert wrong(error) == {("length", "first in episode 2, step 2")}


def test_validation_reports_all_problems():
    late = replace(GOOD, states=np.array([0, 0, 0, 2, 0]))
    seen = replace(GOOD, trajectory=Trajectory(np.array([0, 0, -1, 0]), np.full(4, 3)))
    with pytest.raises(DataError) as error:
        Episodes.of([GOOD, late, seen], TIGER)
    assert wrong(error) == {
        ("states", "episode 1, step 4"),
        ("observations", "episode 2, step 3"),
        *(("actions", f"episode 2, step {h}") for h in range(1, 5)),
    }
    with pytest.raises(DataError) as error:
        Episodes.of([replace(GOOD, id="a"), replace(late, id="b"), replace(GOOD, id="a")], TIGER)
    assert wrong(error) == {("states", "episode 'b', step 4"), ("ids", "")}
    with pytest.raises(DataError) as error:
        Episodes.of([GOOD, replace(GOOD, states=np.zeros(4, int)), replace(GOOD, ended="x")], TIGER)
    assert wrong(error) == {("episode", "1"), ("ended", "2")}
    with raises(DataError, "states"):
        Episodes.of(replace(GOOD, states=np.zeros(5)), TIGER)
    with raises(DataError, "episodes"):
        Episodes.of(log(), TIGER)
    for bad in (GOOD.trajectory, [None], [np.zeros(4, int)], 3, "tiger"):
        with raises(DataError, "data"):
            Episodes.of(bad, TIGER)


def test_names_become_indices():
    names = replace(GOOD, states=np.array(["left", "right", "left", "left", "right"]))
    assert Episodes.of([GOOD, names], TIGER).states[1].tolist() == [0, 1, 0, 0, 1]
    named = Episodes([["growl left"] * 4], [["listen"] * 4], [["left", None, *["left"] * 3]])
    assert Episodes.of(named, TIGER).states.dtype == np.int64
    assert Episodes.of(named, TIGER).revealed.sum() == 4
    assert len(Episodes.of([named, Episodes.of(GOOD, TIGER), GOOD], TIGER)) == 3
    with raises(DataError, "parts"):
        named + Episodes.of(GOOD, TIGER)
    with raises(DataError, "states"):
        Episodes.of(replace(GOOD, states=np.array(["lef"] * 5)), TIGER)
    with pytest.raises(DataError) as error:
        Episodes.of([GOOD, replace(GOOD, states=["left", None, "up", "left", "left"])], TIGER)
    assert wrong(error) == {("states", "episode 1, step 3")}


def test_minus_one_is_an_invalid_index_not_a_missing_value():
    with pytest.raises(DataError) as error:
        Episodes.of(replace(GOOD, states=np.array([0, -1, 0, 0, 0])), TIGER)
    assert wrong(error) == {("states", "episode 0, step 2")}
    masked = np.ma.masked_equal([0, -1, 0, 0, 0], -1)
    assert Episodes.of(replace(GOOD, states=masked), TIGER).revealed.sum() == 4


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"actions": np.zeros(3, int)}, "actions"),
        ({"states": np.zeros((2, 3), int)}, "states"),
        ({"observations": np.zeros((3, 3), int)}, "observations"),
        ({"rewards": np.zeros((2, 4))}, "rewards"),
        ({"labels": np.zeros((2, 3))}, "labels"),
        ({"revealed": np.ones((2, 3), bool)}, "known states"),
        ({"length": [3]}, "length"),
        ({"length": [3, 4]}, "length"),
        ({"length": [3.0, 2.0]}, "length"),
        ({"ended": ["horizon"]}, "ended"),
        ({"ids": ["a"]}, "ids"),
        ({"states": [[0, 1, 1, 0], [0]]}, "states"),
        ({"observations": [[0, None, 1], [0, 0, 0]]}, "observations"),
        ({"actions": np.ma.masked_array(np.zeros((2, 3), int), np.eye(2, 3) > 0)}, "actions"),
    ],
)
def test_arrays_that_do_not_fit_together(changes, where):
    given = {
        "observations": np.zeros((2, 3), int),
        "actions": np.zeros((2, 3), int),
        "states": np.zeros((2, 4), int),
    }
    assert len(Episodes(**given)) == 2
    with pytest.raises(DataError) as error:
        Episodes(**given | changes)
    assert {problem.where for problem in error.value.problems} == {where}


def test_lengths_and_reasons_must_agree():
    arrays = (np.zeros((3, H), int), np.zeros((3, H), int), np.zeros((3, H + 1), int))
    mixed = Episodes(*arrays, length=[3, 2, 1], ended=["truncated", "horizon", "terminal"])
    with pytest.raises(DataError) as error:
        Episodes.of(mixed, LAMP)
    assert wrong(error) == {("length", "episode 0"), ("length", "episode 1")}


def test_no_episodes():
    empty = Episodes.of([], LAMP)
    assert empty.states.shape == (0, H + 1)
    assert empty.complete
    assert list(empty) == []
    assert Counts.of(empty, LAMP).visits.tolist() == [0, 0]
    assert Episodes.of([], LINE).observations.shape == (0, H, 2)
    assert Episodes.of(empty + empty, LAMP).same_as(empty)


def test_excluded_steps_use_only_revealed_states():
    """The tiger stays while you listen: a move is reported unless one of its states is missing."""
    made = world("tiger")
    moves = replace(GOOD, states=np.array([0, 0, 1, 1, 1]))
    support = made.homdp.structure.support
    found = excluded_problems(Episodes.of([GOOD, moves], made), support, made.form, made.spaces)
    assert [problem.at for problem in found] == ["episode 1, step 2"]
    for gap in (1, 2):
        states = np.ma.masked_array(moves.states, mask=np.arange(5) == gap)
        data = Episodes.of(replace(moves, states=states), made)
        assert excluded_problems(data, support, made.form, made.spaces) == []


def test_excluded_steps_beyond_the_first_twenty_are_counted():
    spaces = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
    allowed = SimpleNamespace(
        initial=np.array([True, True]),
        transition=np.zeros((2, 2, 2), dtype=bool),
        emission=np.ones((2, 2), dtype=bool),
    )
    zeros = np.zeros((30, 2), dtype=int)
    episodes = Episodes(zeros, zeros, np.zeros((30, 3), dtype=int))
    problems = excluded_problems(episodes, allowed, spaces.form, spaces)
    assert len(problems) == 21
    assert problems[-1].got == "40 more"
