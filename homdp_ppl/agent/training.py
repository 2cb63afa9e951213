"""Training of an agent in a Gymnasium environment that reveals its states after each episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.errors import DataError
from homdp_ppl.gym.episodes import (
    check_env,
    check_length,
    has_random_rewards,
    play_once,
    recorded_rewards,
    revealed_states,
)
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from homdp_ppl.agent.agent import Agent
    from homdp_ppl.agent.live import LiveEpisode


class Asking:
    """A policy that asks an open episode for its actions.

    Parameters
    ----------
    episode
        The episode.
    actions
        The names of the actions.
    """

    def __init__(self, episode: LiveEpisode, actions: tuple[str, ...]) -> None:
        self._episode, self._actions = episode, actions

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,): that of the episode has probability 1."""
        seen = np.asarray(observations)
        name = self._episode.act(seen[-1], step=len(seen))
        return np.eye(len(self._actions))[self._actions.index(name)]


def train(agent: Agent, env: Any, episodes: int, latent: Any, seed: int | None) -> None:
    """Play episodes of an agent in an environment, and reveal the states after each of them."""
    refuse(DataError, "train", count_problems(episodes=episodes))
    spaces = check_env(env, episodes, 0 if seed is None else seed, agent.homdp)
    generator = np.random.default_rng(0)  # not used: all actions have probability 1
    for k in range(episodes):
        episode = agent.begin()
        which = f"episode {episode.id!r}"
        policy = Asking(episode, spaces.actions)
        try:
            first = seed if k == 0 else None
            record = play_once(env, policy, generator, spaces, which, first)
            check_length(record, spaces, which, "as declared")
            states = revealed_states(record, latent, spaces, which)
        except BaseException:
            agent.abandon(episode.id, "the environment raised an error")
            raise
        if episode.ended is None:
            episode.end()
        rewards = recorded_rewards(record) if has_random_rewards(agent.homdp) else None
        agent.reveal(episode.id, states, rewards)
