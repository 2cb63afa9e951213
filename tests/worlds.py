"""Worlds and policies that several tests use, each declared once."""

from functools import cache

import jax
import numpy as np

from homdp_ppl import GraphPolicy, Spaces, World, models, tabular


@cache
def world(name: str) -> World:
    """A zoo world with its default options."""
    return models.load(name)


@cache
def drawn(name: str) -> World:
    """The same declaration with parameters from the prior, inside their support."""
    return world(name).homdp.draw(jax.random.key(5))


def random_policy(spaces: Spaces, seed: int) -> GraphPolicy:
    """A stochastic policy on a random graph with three nodes a step that uses actions and observations."""
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
    """A deterministic policy that is asked step by step: acts on the parity of all it has seen and done."""

    def __init__(self, actions: int) -> None:
        self.actions = actions

    def act(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """One action for sure."""
        return np.eye(self.actions)[(observations.sum() + actions.sum()) % self.actions]


def awkward(horizon):
    """Thirds, sevenths, impossible outcomes at either end, and rows that sum to a little less than one."""
    T = np.array([[[1, 2, 0], [0, 3, 0]], [[0, 1, 2], [3, 0, 0]], [[1, 1, 1], [0, 0, 3]]]) / 3
    O = np.array([[1, 6, 0, 0], [0, 2, 5, 0], [3, 1, 1, 2]]) / 7 * (1 - 1e-10)  # noqa: E741
    return tabular(T=T, O=O, initial=[0, 0.9, 0.1], reward=np.eye(3)[:, :2], horizon=horizon).at()
