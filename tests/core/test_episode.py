"""Single episodes: names, indices, missing values and JAX transformations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from homdp_ppl import DataError, Episode, Real, Spaces, Trajectory
from tests.raising import raises

LAMP = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
PLANE = Spaces(Real(2), Real(1), ("wait", "press"), horizon=2)


def test_names_and_indices_make_the_same_episode():
    named = Episode.of(["dark", "light"], ["press", "wait"], ["off", "on", "on"], LAMP, id="a")
    numbered = Episode.of([0, 1], [1, 0], [0, 1, 1], LAMP, id="a")
    for part in ("observations", "actions", "states"):
        assert np.array_equal(getattr(named, part), getattr(numbered, part))
        assert not isinstance(getattr(named, part), np.ma.MaskedArray)
    assert (named.id, named.ended) == ("a", "horizon")


@pytest.mark.parametrize(
    "states",
    [
        ["off", None, "on"],
        [0, None, 1],
        [0.0, np.nan, 1.0],
        np.ma.masked_array([0, 7, 1], mask=[False, True, False]),
        np.ma.masked_array([0, -1, 1], mask=[False, True, False]),
        np.ma.masked_array(["off", "nowhere", "on"], mask=[False, True, False]),
    ],
)
def test_missing_states_are_masked(states):
    found = Episode.of([0, 1], [1, 0], states, LAMP).states
    assert found.mask.tolist() == [False, True, False]
    assert found.filled(0).tolist() == [0, 0, 1]
    assert found.dtype == np.int64


def test_no_state_revealed():
    found = Episode.of([0, 1], [1, 0], [None, None, None], LAMP)
    assert found.states.mask.all()
    assert Episode.of([0.0, 1], [1, 0], [[np.nan] * 2] * 3, PLANE).states.mask.all()


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"states": [0, -1, 1]}, {("states", "-1", "step 2")}),
        ({"states": [0.0, 1.0, 1.0]}, {("states", "values of type float64", "")}),
        ({"states": [0.0, None, 0.5]}, {("states", "values of type float64", "")}),
        ({"states": ["off", "onn", "on"]}, {("states", "unknown name 'onn'", "step 2")}),
        ({"observations": [0, None]}, {("observations", "no value", "step 2")}),
        ({"actions": np.ma.masked_equal([1, 0], 0)}, {("actions", "no value", "step 2")}),
        (
            {"observations": [3, 0], "actions": ["hold", "wait"]},
            {("observations", "3", "step 1"), ("actions", "unknown name 'hold'", "step 1")},
        ),
        ({"states": [0, 1]}, {("episode", "observations (2,), actions (2,), states (2,)", "")}),
        ({"ended": "truncated"}, {("length", "2 steps, ended 'truncated'", "")}),
        ({"ended": "sunset"}, {("ended", "'sunset'", "")}),
        (
            {"observations": [0], "actions": [0], "states": [0, 0]},
            {("length", "1 step, ended 'horizon'", "")},
        ),
    ],
)
def test_problems_are_reported_together(changes, wrong):
    given = {"observations": [0, 1], "actions": [1, 0], "states": [0, 1, 1]} | changes
    with pytest.raises(DataError) as error:
        Episode.of(model=LAMP, **given)
    assert {(p.where, p.got, p.at) for p in error.value.problems} == wrong


def test_a_misspelt_name_has_a_suggestion():
    with raises(DataError, "actions"):
        Episode.of([0, 1], ["pres", "wait"], [0, 1, 1], LAMP)


def test_a_vector_is_missing_only_if_all_its_entries_are():
    found = Episode.of([0.0, 1], [1, 0], [[0.0, 1], [np.nan, np.nan], [2, 3]], PLANE).states
    assert found.mask.tolist() == [[False] * 2, [True] * 2, [False] * 2]
    with pytest.raises(DataError) as error:
        Episode.of([0.0, 1], [1, 0], [[0.0, 1], [np.nan, 1], [2, 3]], PLANE)
    assert error.value.problems[0].at == "step 2"


def test_rewards_and_labels_may_be_missing():
    found = Episode.of([0, 1], [1, 0], [0, 1, 1], LAMP, rewards=[1.5, None], labels=[2, None, 0])
    assert found.rewards.mask.tolist() == [False, True]
    assert found.labels.mask.tolist() == [False, True, False]


def test_episodes_that_end_early_have_a_reason():
    found = Episode.of([0], [0], [0, 1], LAMP, ended="terminal")
    assert (len(found.actions), found.ended) == (1, "terminal")
    assert Episode.of([0, 1], [1, 0], [0, 1, 1], LAMP, ended="terminal").ended == "terminal"


def test_an_early_end_needs_the_state_after_the_last_action():
    """The error asks for one state more, not for the steps up to the horizon."""
    for ended in ("terminal", "truncated"):
        with raises(DataError, "episode") as caught:
            Episode.of([0], [0], [0], LAMP, ended=ended)
        (problem,) = caught.value.problems
        assert "shapes (1,), (1,), (2,)" in problem.expected
        assert "state after the last action" in problem.remedy
    with raises(DataError, "episode") as caught:
        Episode.of([0], [0], [0], LAMP)
    assert "shapes (2,), (2,), (3,)" in caught.value.problems[0].expected


def test_episodes_pass_through_compiled_functions():
    """Other ids do not trigger compilation; the reason for the end is kept."""
    compiled = 0

    @jax.jit
    def later(episode):
        nonlocal compiled
        compiled += 1
        return jax.tree.map(lambda part: part + 1, episode)

    seen = Trajectory(np.array([0]), np.array([0]))
    for name in ("a", "b"):
        found = later(Episode(seen, np.array([0, 1]), id=name, ended="terminal"))
        assert found.states.tolist() == [1, 2]
        assert found.ended == "terminal"
    assert compiled == 1
    both = jax.vmap(lambda x: Episode(Trajectory(x, x), jnp.append(x, 0)))(jnp.zeros((3, 2), int))
    assert both.states.shape == (3, 3)
