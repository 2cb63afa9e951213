"""The collector of foresight is the best policy of the state, and it acts on the state."""

from itertools import product

import numpy as np
import pytest

from homdp_ppl.core.randomness import Noise
from homdp_ppl.learning.foresight import play_seeing, seeing_actions, seeing_value
from tests.encodings import encoded, ending_pomdp
from tests.planners.exact import dependent_pomdp, full, random_pomdp


def value(model, actions):
    """The value of actions (H, X, Y), by a forward recursion over (previous action, state)."""
    T, O, r = full(model)  # noqa: E741
    H, X, Y, A = r.shape
    weights, total = np.zeros((A + 1, X)), 0.0
    weights[A] = model.initial
    for h in range(H):
        after = np.zeros((A + 1, X))
        for b, x, y in np.ndindex(A + 1, X, Y):
            a, chance = actions[h, x, y], weights[b, x] * O[h, b, x, y]
            total += chance * r[h, x, y, a]
            after[a] += chance * T[h, x, a]
        weights = after
    return total


@pytest.mark.parametrize("kinds", ["", "t", "a", "toy"])
def test_a_seeing_collector_is_the_best_one(kinds):
    """Compare with all functions of step, state and, if it matters, observation."""
    Y = 2 if "y" in kinds else 1
    H = 2 if "y" in kinds else 3
    model = dependent_pomdp(2, H=H, kinds=kinds)
    every = [np.array(flat).reshape(H, 2, Y) for flat in product(range(2), repeat=H * 2 * Y)]
    values = [value(model, np.broadcast_to(actions, (H, 2, 2))) for actions in every]
    chosen = seeing_actions(model)
    assert chosen.shape == (H, 2, Y)
    assert values[[tuple(actions.ravel()) for actions in every].index(tuple(chosen.ravel()))] == (
        pytest.approx(max(values), abs=1e-13)
    )
    for actions, expected in zip(every, values, strict=True):
        assert seeing_value(model, actions) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("kinds", ["", "ta", "toy"])
def test_values_equal_those_of_the_encoded_model(kinds):
    """Also if episodes can end; the encoded model has one state per situation and observation."""
    for seed in range(3):
        model = ending_pomdp(seed, kinds=kinds)
        encoding = encoded(model)
        seeing = seeing_value(model, seeing_actions(model))
        assert seeing_value(encoding, seeing_actions(encoding)) == pytest.approx(seeing, abs=1e-12)


PLANTED = {
    "emissions of another action": lambda m: m._replace(emission=np.roll(m.emission, 1, axis=1)),
    "emissions one step late": lambda m: m._replace(emission=np.roll(m.emission, 1, axis=0)),
    "transitions one step late": lambda m: m._replace(transition=np.roll(m.transition, 1, axis=0)),
    "mean rewards": lambda m: m._replace(
        reward=np.broadcast_to(m.reward.mean(2, keepdims=True), m.reward.shape)
    ),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_planted_bugs_are_caught(planted):
    model = dependent_pomdp(2, kinds="toy")
    actions = seeing_actions(model)
    assert seeing_value(planted(model), actions) != pytest.approx(value(model, actions), abs=1e-4)


def test_ties_go_to_the_lowest_action():
    model = random_pomdp(2, 2, 2, 2, 3)
    tied = model.with_tables(reward=np.full((3, 2, 2), 0.5), transition=np.full((2, 2, 2), 0.5))
    np.testing.assert_array_equal(seeing_actions(tied), np.zeros((3, 2, 1)))
    hair = tied._replace(reward=tied.reward + np.array([0.0, 1e-10]))
    np.testing.assert_array_equal(seeing_actions(hair), np.zeros((3, 2, 1)))


def test_a_seeing_collector_acts_on_the_state():
    model = random_pomdp(5, 3, 2, 2, 3)
    actions = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 0]])[..., None]
    generator, first = np.random.default_rng(0), set()
    for _ in range(50):
        episode = play_seeing(
            model, actions, Noise(generator.random(4), generator.random(3), generator.random(3))
        )
        assert episode.states.shape == (4,)
        np.testing.assert_array_equal(
            episode.actions, actions[np.arange(3), episode.states[:-1], 0]
        )
        first.add(int(episode.states[0]))
    assert first == {0, 1, 2}


def test_a_seeing_collector_uses_the_observation_and_stops_at_the_end():
    """Mean returns of simulated episodes agree with the exact value within five standard errors."""
    model = ending_pomdp(4, H=4, kinds="toy")
    actions, generator = seeing_actions(model), np.random.default_rng(0)
    returns, endings = [], set()
    for _ in range(4000):
        noise = Noise(generator.random(5), generator.random(4), generator.random(4))
        episode = play_seeing(model, actions, noise)
        L = len(episode.actions)
        steps = np.arange(L), episode.states[:L], episode.observations, episode.actions
        np.testing.assert_array_equal(episode.actions, actions[steps[:3]])
        returns.append(model.reward[steps].sum())
        endings.add((episode.ended, L))
        assert (episode.ended == "terminal") == model.terminal[episode.states[L]]
    error = np.std(returns) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - seeing_value(model, actions)) < 5 * error
    assert {("horizon", 4), ("terminal", 4), ("terminal", 1)} <= endings
