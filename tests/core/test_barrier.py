"""The information barrier: policies that search their calling frames do not find the state."""

import gc
import sys
from threading import active_count
from typing import ClassVar

import jax
import numpy as np
import pytest

from homdp_ppl import BlindPolicy, GraphPolicy, PolicyError, models, rollout
from homdp_ppl.core import barrier
from homdp_ppl.declare.world import World
from homdp_ppl.gym import HOMDPEnv, environment, episodes_from

HIDDEN = {
    "state",
    "states",
    "x",
    "drawn",
    "noise",
    "key",
    "keys",
    "streams",
    "pomdp",
    "world",
    "env",
}


class Spy:
    """A policy that searches its calling frames for hidden names."""

    def __init__(self, actions: int = 3):
        self.found: set[str] = set()
        self.asked = 0
        self.actions = actions

    def act(self, observations, actions):
        """Search the frames, then return uniform probabilities."""
        frame = sys._getframe(1)
        while frame is not None:
            self.found |= HIDDEN & set(frame.f_locals)
            self.found |= {"a World" for value in frame.f_locals.values() if type(value) is World}
            frame = frame.f_back
        self.asked += 1
        return np.full(self.actions, 1 / self.actions)


def in_rollouts(spy):
    rollout(jax.random.split(jax.random.key(0), 3), models.load("tiger"), spy)


def in_real_spaces(spy):
    rollout(jax.random.split(jax.random.key(0), 3), models.load("camera"), spy)


def in_environments(spy):
    world = models.load("tiger")
    episodes_from(HOMDPEnv(world), spy, 2, model=world)


ATTACKS = [in_rollouts, in_real_spaces, in_environments]


@pytest.mark.parametrize("attack", ATTACKS)
def test_calling_frames_contain_no_hidden_values(attack):
    spy = Spy(len(models.load("camera").spaces.actions) if attack is in_real_spaces else 3)
    attack(spy)
    assert spy.asked
    assert not spy.found


class BlindSpy(BlindPolicy):
    """A spy that passes for a blind policy."""

    found: ClassVar[set[str]] = set()

    def act(self, observations, actions):
        """Search the frames, then return uniform probabilities."""
        spy = Spy(self.table.shape[1])
        chances = spy.act(observations, actions)
        self.found.update(spy.found)
        return chances


class GraphSpy(GraphPolicy):
    """A spy that passes for a graph."""

    found: ClassVar[set[str]] = set()

    def act(self, observations, actions):
        """Search the frames, then return uniform probabilities."""
        return BlindSpy.act(self, observations, actions)

    @property
    def table(self):
        """The action probabilities, as in blind policies."""
        return self.probabilities


def blind_spy(actions):
    return BlindSpy(np.full((50, actions), 1 / actions))


def graph_spy(actions):
    return GraphSpy([0, 0], np.full((1, actions), 1 / actions), np.zeros((1, 1, 2), int))


@pytest.mark.parametrize(
    ("attack", "spy"),
    [
        (in_rollouts, blind_spy(3)),
        (in_rollouts, graph_spy(3)),
        (in_environments, blind_spy(3)),
        (in_environments, graph_spy(3)),
        (in_real_spaces, blind_spy(len(models.load("camera").spaces.actions))),
    ],
)
def test_subclasses_of_graphs_and_blind_policies_are_custom_policies(attack, spy, monkeypatch):
    asked = []
    act = type(spy).act
    monkeypatch.setattr(type(spy), "act", lambda *given: asked.append(1) or act(*given))
    spy.found.clear()
    attack(spy)
    assert asked
    assert not spy.found


def test_the_spy_finds_states_without_the_barrier(monkeypatch):
    monkeypatch.setattr(barrier, "GraphPolicy", Spy)  # called directly, like graphs
    spy = Spy()
    in_rollouts(spy)
    assert {"state", "states", "pomdp", "a World"} <= spy.found


def test_errors_of_policies_are_raised_to_the_caller_with_their_traceback():
    class Broken:
        def act(self, observations, actions):
            raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea") as caught:
        in_rollouts(Broken())
    assert "act" in {entry.name for entry in caught.traceback}
    with pytest.raises(PolicyError) as caught_error:
        in_rollouts(Spy(actions=2))
    assert caught_error.value.problems[0].where == "act"


def test_policies_compute_in_float64_and_may_simulate_themselves():
    class Nested:
        """A policy that simulates other policies."""

        def act(self, observations, actions):
            in_rollouts(Spy())
            assert jax.numpy.ones(1).dtype == np.float64
            return np.array([1.0, 0, 0])

    in_rollouts(Nested())


def test_threads_end_with_their_rollouts():
    before = active_count()
    for _ in range(5):
        in_rollouts(Spy())
        with pytest.raises(PolicyError):
            in_rollouts(Spy(actions=2))
    for _ in range(1000):
        if active_count() <= before:
            break
        gc.collect()
    assert active_count() <= before


def test_attributes_of_environments_do_not_contain_states():
    env = HOMDPEnv(models.load("tiger"))
    env.reset(seed=0)
    assert not {name for name in vars(env) if "state" in name}
    hidden = environment._STATES[env]
    assert len(hidden) == 1
    assert not any(value is hidden for value in vars(env).values())
