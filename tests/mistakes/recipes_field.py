"""Recipes of the history wrapper and its policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from homdp_ppl import gym
from homdp_ppl.precision import Array
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, recipe


def listen(vectors: Array) -> Array:
    """Always the first action."""
    return np.eye(3)[np.zeros(len(vectors), dtype=int)]


def wrapped() -> gym.HistoryObservation:
    """A wrapped environment in an episode."""
    env = gym.HistoryObservation(gym.HOMDPEnv(things.tiger(), render_mode="ansi"))
    env.reset(seed=0)
    return env


def histories() -> Iterator[Recipe]:
    """The wrapper, and a policy on its vectors."""
    env, name = wrapped(), "gym.HistoryObservation"
    yield recipe(name, gym.HistoryObservation, env=gym.HOMDPEnv(things.tiger()), horizon=9)
    yield recipe(f"{name}.reset", env.reset, seed=0, options=None)
    yield recipe(f"{name}.step", _step, action=1)
    yield recipe(f"{name}.policy", env.policy, chances=listen, free="chances")
    policy = env.policy(listen)
    seen, done = np.array([[0, 1]]), np.array([[1]])
    yield recipe("gym.HistoryPolicy.act", policy.act, observations=[0, 1], actions=[1])
    yield recipe("gym.HistoryPolicy.act_batch", policy.act_batch, observations=seen, actions=done)


def _step(action: Any) -> Any:
    return wrapped().step(action)
