"""The collector of foresight is the best policy of the state, and it acts on the state."""

from itertools import product

import numpy as np
import pytest

from homdp_ppl.core.randomness import Noise
from homdp_ppl.learning.foresight import play_seeing, seeing_actions, seeing_value
from tests.planners.exact import random_pomdp


def test_a_seeing_collector_is_the_best_one():
    """Compare with all functions of state and step; ties go to the lowest action."""
    model = random_pomdp(2, 2, 2, 2, 3)
    rho, T, _, r = model.stationary()

    def value(actions):
        weights, total = rho, 0.0
        for h in range(3):
            total += sum(weights[x] * r[h, x, actions[h][x]] for x in range(2))
            weights = sum(weights[x] * T[x, actions[h][x]] for x in range(2))
        return total

    every = [np.array(flat).reshape(3, 2) for flat in product(range(2), repeat=6)]
    values = [value(actions) for actions in every]
    chosen = seeing_actions(model)
    np.testing.assert_array_equal(chosen, every[int(np.argmax(values))])
    for actions, expected in zip(every, values, strict=True):
        assert seeing_value(model, actions) == pytest.approx(expected, abs=1e-13)
    tied = model.with_tables(reward=np.full((3, 2, 2), 0.5), transition=np.full((2, 2, 2), 0.5))
    np.testing.assert_array_equal(seeing_actions(tied), np.zeros((3, 2)))
    hair = tied._replace(reward=tied.reward + np.array([0.0, 1e-10]))
    np.testing.assert_array_equal(seeing_actions(hair), np.zeros((3, 2)))


def test_a_seeing_collector_acts_on_the_state():
    model = random_pomdp(5, 3, 2, 2, 3)
    actions = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 0]])
    generator, first = np.random.default_rng(0), set()
    for _ in range(50):
        episode = play_seeing(
            model, actions, Noise(generator.random(4), generator.random(3), generator.random(3))
        )
        assert episode.states.shape == (4,)
        np.testing.assert_array_equal(episode.actions, actions[np.arange(3), episode.states[:-1]])
        first.add(int(episode.states[0]))
    assert first == {0, 1, 2}
