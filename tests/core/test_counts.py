"""Counts, compared with a simple loop."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homdp_ppl import Counts, DataError, Episode, Episodes, Spaces, Trajectory
from tests.raising import raises
from tests.worlds import world

SPACES = Spaces(("x0", "x1", "x2"), ("y0", "y1"), ("a0", "a1"), 4)


def random_episodes(seed, n):
    generator = np.random.default_rng(seed)
    return Episodes(
        generator.integers(0, 2, (n, 4)),
        generator.integers(0, 2, (n, 4)),
        generator.integers(0, 3, (n, 5)),
    )


def by_hand(episodes):
    transition, emission, initial = (np.zeros(shape, int) for shape in ((3, 2, 3), (3, 2), (3,)))
    for states, observations, actions in zip(
        episodes.states, episodes.observations, episodes.actions, strict=True
    ):
        initial[states[0]] += 1
        for h in range(4):
            transition[states[h], actions[h], states[h + 1]] += 1
            emission[states[h], observations[h]] += 1
    return transition, emission, initial


@given(st.integers(0, 2**16), st.integers(1, 5), st.integers(0, 5))
def test_counting_and_merging(seed, n, more):
    episodes, others = random_episodes(seed, n), random_episodes(seed + 1, more)
    counts = Counts.of(episodes, SPACES)
    transition, emission, initial = by_hand(episodes)
    assert np.array_equal(counts.transition, transition)
    assert np.array_equal(counts.emission, emission)
    assert np.array_equal(counts.initial, initial)
    merged = counts + Counts.of(others, SPACES)
    both = Counts.of([episodes, others], SPACES)
    assert np.array_equal(merged.transition, both.transition)
    assert np.array_equal(merged.emission, both.emission)
    assert np.array_equal(merged.initial, both.initial)
    assert np.array_equal((Counts.zero(SPACES) + counts).transition, counts.transition)


@given(st.integers(0, 2**16))
def test_adding_one_episode(seed):
    episodes = random_episodes(seed, 3)
    counts = Counts.zero(SPACES).add(episodes[0]).add(episodes[1]).add(episodes[2])
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(counts), by_hand(episodes), strict=True)
    )
    assert counts.names == SPACES[:3]


def test_adding_one_episode_traced():
    episodes = random_episodes(0, 2)
    counts = jax.jit(lambda c, e: c.add(e))(Counts.of(episodes[:1], SPACES), episodes[1])
    assert all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(counts), by_hand(episodes), strict=True)
    )


def test_the_last_state_counts_as_a_transition_but_not_as_a_visit():
    """As in Algorithm 1 of the paper.

    n(x) counts steps 1..H, n(x, a) includes (x_H, a_H, x_{H+1}).
    """
    episode = Episode(
        Trajectory(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])), np.array([0, 0, 1, 1, 2])
    )
    counts = Counts.of(episode, SPACES)
    assert counts.visits.tolist() == [2, 2, 0]
    assert counts.state_action.tolist() == [[2, 0], [0, 2], [0, 0]]
    assert counts.transition[1, 1, 2] == 1
    assert np.array_equal(counts.visits, counts.state_action.sum(1))


@pytest.mark.parametrize("wrong", [-1, 3])
def test_indices_out_of_range_raise(wrong):
    episodes = random_episodes(0, 3)
    episodes.states[1, 4] = wrong
    with raises(DataError, "states"):
        Counts.of(episodes, SPACES)


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("where", ["states", "observations", "actions"])
@pytest.mark.parametrize("wrong", [-1, 3, 2**40])
def test_adding_indices_out_of_range_raises(where, place, wrong):
    """At every place: the last state is checked too."""
    episode = random_episodes(0, 1)[0]
    getattr(episode, where)[place] = wrong
    with raises(DataError, where):
        Counts.zero(SPACES).add(episode)


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values[:-1],
        lambda values: values[:1],
        lambda values: values[None],
        lambda values: values.astype(float),
        lambda values: np.ma.array(values, mask=True),
        lambda values: values.astype(str),
    ],
    ids=["shorter", "one", "two axes", "float", "masked", "text"],
)
@pytest.mark.parametrize("where", ["states", "observations", "actions"])
def test_adding_other_arrays_raises(where, change):
    episode = random_episodes(0, 1)[0]
    parts = {name: getattr(episode, name) for name in ("observations", "actions", "states")}
    parts[where] = change(parts[where])
    wrong = Episode(Trajectory(parts["observations"], parts["actions"]), parts["states"])
    with pytest.raises(DataError):
        Counts.zero(SPACES).add(wrong)


def test_counts_of_different_models_cannot_be_added():
    with raises(DataError, "shapes"):
        Counts.zero(SPACES) + Counts.zero(world("tiger"))
    with pytest.raises(TypeError):
        Counts.zero(SPACES) + 1
    with raises(DataError, "names"):
        Counts.zero(SPACES) + Counts.zero(SPACES._replace(states=("x0", "x1", "other")))


def test_counts_are_a_pytree():
    counts = Counts.zero(SPACES)
    assert [leaf.shape for leaf in jax.tree.leaves(counts)] == [(3, 2, 3), (3, 2), (3,)]
    assert all(leaf.dtype == np.int64 for leaf in jax.tree.leaves(counts))
