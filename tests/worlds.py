"""Worlds and policies shared by tests, and a simple simulator of tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import jax
import numpy as np

from homdp_ppl import Episodes, GraphPolicy, Policy, Spaces, World, models, tabular
from homdp_ppl.precision import Array


@cache
def world(name: str) -> World:
    """A model of the zoo with its default options."""
    return models.load(name)


@cache
def drawn(name: str) -> World:
    """The same declaration with parameters drawn from the prior."""
    return world(name).homdp.draw(jax.random.key(5))


def random_policy(spaces: Spaces, seed: int) -> GraphPolicy:
    """A stochastic policy on a random graph with three nodes per step.

    Successors depend on actions and observations.
    """
    _, Y, A, H = spaces.sizes
    generator = np.random.default_rng(seed)
    step = np.repeat(np.arange(H), 3)
    following = np.minimum(step + 1, H - 1)[:, None, None] * 3
    return GraphPolicy(
        generator.integers(0, 3, Y),
        generator.dirichlet(np.ones(A), 3 * H),
        following + generator.integers(0, 3, (3 * H, A, Y)),
    )


class Parity:
    """A deterministic policy, not a graph, that uses the sum of all observations and actions."""

    def __init__(self, actions: int) -> None:
        self.actions = actions

    def act(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Probability 1 for one action."""
        return np.eye(self.actions)[(observations.sum() + actions.sum()) % self.actions]


class UniformAt:
    """A policy, not a graph, that acts uniformly at random at one step."""

    def __init__(self, policy: Policy, step: int) -> None:
        self.policy, self.step = policy, step

    def act(self, observations: np.ndarray, actions: np.ndarray) -> Array:
        """Uniform probabilities at that step, else those of the policy."""
        chances = self.policy.act(observations, actions)
        return (
            np.full_like(chances, 1 / len(chances)) if len(observations) == self.step else chances
        )


class Spy:
    """A policy with fixed action probabilities that records its arguments and overwrites them."""

    def __init__(self, chances: list[float]) -> None:
        self.chances = np.array(chances)
        self.handed: list[list[np.ndarray]] = []

    def act(self, *handed: np.ndarray) -> np.ndarray:
        """The fixed probabilities."""
        self.handed.append([part.copy() for part in handed])
        for part in handed:
            part[...] = 7
        return self.chances


def awkward(horizon):
    """A world with difficult numbers.

    Thirds, sevenths, impossible outcomes at both ends, and rows that sum to slightly less than one.
    """
    T = np.array([[[1, 2, 0], [0, 3, 0]], [[0, 1, 2], [3, 0, 0]], [[1, 1, 1], [0, 0, 3]]]) / 3
    O = np.array([[1, 6, 0, 0], [0, 2, 5, 0], [3, 1, 1, 2]]) / 7 * (1 - 1e-10)  # noqa: E741
    return tabular(T=T, O=O, initial=[0, 0.9, 0.1], reward=np.eye(3)[:, :2], horizon=horizon).at()


@dataclass(frozen=True)
class Replicas:
    """Episodes of several models, (models, number, ...); ``replicas[k]`` are those of model k."""

    observations: np.ndarray
    actions: np.ndarray
    states: np.ndarray

    def __len__(self) -> int:
        return len(self.actions)

    def __getitem__(self, k: int) -> Episodes:
        return Episodes(self.observations[k], self.actions[k], self.states[k])

    def __iter__(self) -> Iterator[Episodes]:
        return (self[k] for k in range(len(self)))


def simulate(
    initial, transition, emission, horizon: int, number: int, generator: np.random.Generator
) -> Replicas:
    """Simulate the uniform policy in NumPy, in tables with a leading axis of models."""
    models, shape = np.arange(len(transition))[:, None], (len(transition), number)

    def outcome(rows):
        return (rows.cumsum(-1)[..., :-1] < generator.uniform(size=(*shape, 1))).sum(-1)

    states, observations, actions = (
        [outcome(np.broadcast_to(initial[:, None], (*shape, initial.shape[-1])))],
        [],
        [],
    )
    for _ in range(horizon):
        observations.append(outcome(emission[models, states[-1]]))
        actions.append(generator.integers(0, transition.shape[2], shape))
        states.append(outcome(transition[models, states[-1], actions[-1]]))
    return Replicas(np.stack(observations, -1), np.stack(actions, -1), np.stack(states, -1))
