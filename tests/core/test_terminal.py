"""Episodes that end in terminal states, in models of full ranks: simulation and policies."""

import jax
import numpy as np
import pytest

from homdp_ppl import Episodes, GraphPolicy, evaluate, rollout
from homdp_ppl.core import rollout as simulation
from homdp_ppl.core.rollout import steps_taken
from homdp_ppl.evaluation.exact import occupancy
from tests.encodings import encoded, ending_pomdp, world_of
from tests.planners.exact import full
from tests.worlds import Parity, random_policy

KEYS = jax.random.split(jax.random.key(0), 3000)
KINDS = ("toy", "ta", "y", "")


class Ongoing:
    """A policy that raises an error if it is called after the end of an episode."""

    def __init__(self, pomdp) -> None:
        self.policy, self.ended = Parity(pomdp.sizes[2]), pomdp.sizes[1] - 1

    def act(self, observations, actions):
        """The answer of a deterministic policy."""
        assert self.ended not in observations
        return self.policy.act(observations, actions)


def expected_frequencies(pomdp, policy) -> dict[tuple[int, ...], float]:
    """The probability of each episode x_1, y_1, a_1, ..., x_{L+1}, by enumeration."""
    T, O, _ = full(pomdp)  # noqa: E741
    found: dict[tuple[int, ...], float] = {}

    def extend(path, chance, x, seen, done):
        h = len(done)
        if chance == 0:
            return
        if h == pomdp.horizon or pomdp.terminal[x]:
            found[path] = found.get(path, 0.0) + chance
            return
        for y in range(O.shape[-1]):
            show = O[h, done[-1] if done else -1, x, y]
            if show > 0:
                a = int(policy.act(np.array([*seen, y]), np.array(done, dtype=int)).argmax())
                for z in range(len(T[h])):
                    extend(
                        (*path, y, a, z), chance * show * T[h, x, a, z], z, [*seen, y], [*done, a]
                    )

    for x in range(len(pomdp.initial)):
        extend((x,), pomdp.initial[x], x, [], [])
    return found


def distance(episodes: Episodes, expected: dict[tuple[int, ...], float]) -> float:
    """The total variation between frequencies of whole episodes and their probabilities."""
    counts: dict[tuple[int, ...], float] = {}
    for episode in episodes:
        steps = zip(episode.observations, episode.actions, episode.states[1:], strict=True)
        path = (int(episode.states[0]), *(int(v) for step in steps for v in step))
        counts[path] = counts.get(path, 0) + 1 / len(episodes)
    every = set(counts) | set(expected)
    return sum(abs(counts.get(p, 0) - expected.get(p, 0)) for p in every) / 2


@pytest.mark.parametrize("kinds", KINDS)
def test_episodes_end_at_terminal_states(kinds):
    pomdp = ending_pomdp(3, kinds=kinds)
    world, policy = world_of(pomdp), Ongoing(pomdp)
    graph = GraphPolicy.from_policy(policy, pomdp)
    compiled = rollout(KEYS, world, graph)
    assert rollout(KEYS[:200], world, policy).same_as(compiled[:200])
    assert not compiled.full_length
    for episode in compiled:
        L = len(episode.actions)
        assert not pomdp.terminal[episode.states[:L]].any()
        assert (episode.ended == "terminal") == pomdp.terminal[episode.states[L]]
        assert episode.ended == "terminal" or pomdp.horizon == L
        assert pomdp.sizes[1] - 1 not in episode.observations
    assert (compiled.ended[compiled.length == pomdp.horizon] == "terminal").any()  # at H + 1
    assert Episodes.of(list(compiled), world).same_as(compiled)
    assert Episodes.of([compiled[:7], *compiled[7:9]], world).same_as(compiled[:9])


@pytest.mark.parametrize("kinds", ["toy", "ta"])
def test_frequencies_of_whole_episodes(kinds):
    """Fixed seed, false alarms with probability 1e-6.

    The expected distance is at most the sum of sqrt(p / n) / 2, and one episode changes it by at
    most 1 / n, so that McDiarmid's inequality bounds the deviation. Planted bugs: emissions that
    ignore the previous action, that use another action, and transitions of another step.
    """
    pomdp = ending_pomdp(5, kinds=kinds)
    policy = Ongoing(pomdp)
    expected = expected_frequencies(pomdp, policy)
    assert sum(expected.values()) == pytest.approx(1, abs=1e-12)
    n = len(KEYS)
    limit = sum(np.sqrt(p / n) / 2 for p in expected.values()) + np.sqrt(np.log(1e6) / (2 * n))
    graph = GraphPolicy.from_policy(policy, pomdp)

    def of(model):
        return distance(rollout(KEYS, world_of(model), graph), expected)

    assert of(pomdp) < limit
    first, *_ = np.moveaxis(pomdp.emission, -3, 0)
    wrong = [
        pomdp._replace(emission=np.broadcast_to(first[:, None], pomdp.emission.shape)),
        pomdp._replace(emission=np.roll(pomdp.emission, 1, axis=-3)),
        pomdp._replace(transition=np.roll(pomdp.transition, 1, axis=0)),
    ]
    for model in wrong:
        assert of(model) > 1.2 * limit


@pytest.mark.parametrize("kinds", KINDS)
def test_values_equal_those_of_the_encoded_model(kinds):
    for seed in range(3):
        pomdp = ending_pomdp(seed, kinds=kinds)
        stationary = encoded(pomdp)
        ongoing = GraphPolicy.from_policy(Ongoing(pomdp), pomdp)
        for policy in (ongoing, random_policy(pomdp.spaces, seed)):
            value = evaluate(policy, pomdp)
            assert value == pytest.approx(evaluate(policy, stationary), abs=1e-12)
            visits = occupancy(policy, pomdp)
            by_state = occupancy(policy, stationary).reshape(3, 3, 3, *pomdp.emission.shape[-2:], 2)
            np.testing.assert_allclose(by_state.sum((1, 2, 4)), visits, atol=1e-12)


def test_policies_are_not_called_after_the_end():
    """The histories after the end share one node; without terminal states nothing changes."""
    pomdp = ending_pomdp(0)
    graph = GraphPolicy.from_policy(Ongoing(pomdp), pomdp)
    assert len(graph.probabilities) == 2 + 4 + 8 + 1
    with pytest.raises(AssertionError):
        GraphPolicy.from_policy(Ongoing(pomdp), pomdp._replace(terminal=np.zeros(3, dtype=bool)))
    plain = GraphPolicy.from_policy(Parity(2), pomdp.spaces)
    np.testing.assert_array_equal(plain.start, [0, 1, 2])
    assert evaluate(plain, pomdp) == pytest.approx(evaluate(graph, pomdp), abs=1e-14)
    assert evaluate(Ongoing(pomdp), pomdp) == evaluate(graph, pomdp)
    np.testing.assert_array_equal(occupancy(Ongoing(pomdp), pomdp), occupancy(graph, pomdp))


def test_steps_taken():
    terminal = np.array([False, False, True])
    states = np.array([[0, 1, 1, 0], [0, 1, 0, 2], [0, 2, 2, 2], [2, 2, 2, 2]])
    assert steps_taken(states, terminal).tolist() == [3, 3, 1, 0]
    assert jax.jit(steps_taken)(states, terminal).tolist() == [3, 3, 1, 0]


def test_one_step_too_many_is_caught(monkeypatch):
    """Planted bug: the compiled simulation keeps one step after the end."""
    pomdp = ending_pomdp(3)
    world, policy = world_of(pomdp), Ongoing(pomdp)
    graph = GraphPolicy.from_policy(policy, pomdp)
    monkeypatch.setattr(
        simulation, "steps_taken", lambda x, t: np.minimum(steps_taken(x, t) + 1, 3)
    )
    assert not rollout(KEYS[:200], world, policy).same_as(rollout(KEYS[:200], world, graph))
