"""Protocols of partial hindsight: which states of an episode are revealed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from homdp_ppl.core.arguments import (
    choice_problems,
    count_problems,
    refuse,
    share_problems,
    size_problems,
)
from homdp_ppl.core.checked import check_fields, checked
from homdp_ppl.core.episode import Episode, hide
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.errors import ParameterError
from homdp_ppl.precision import Array

PURPOSE = 0x5EE  # distinguishes these random numbers from others with the same seed


@dataclass(frozen=True)
class Reveal:
    """Which states are revealed after each episode of :func:`homdp_ppl.learn`.

    A coin decides for each state, or for each episode as a whole. The random numbers depend only on
    the seed and the number of the episode. Runs with the same seed can therefore be compared in
    pairs, and a smaller share reveals some of the states that a larger share reveals.

    Attributes
    ----------
    share
        The probability that a unit is revealed.
    unit
        "step": each state has its own coin. "episode": all states of an episode, or none.
    states
        "all", or "last": only the state after the last action can be revealed.
    episodes
        Reveal nothing after this many episodes. Default: no limit.

    Examples
    --------
    >>> fifth = Reveal(0.2)
    >>> fifth.mask(seed=0, episode=7, steps=4)  # x_1 .. x_5
    array([False,  True, False, False,  True])
    >>> Reveal(0.5).mask(seed=0, episode=7, steps=4)
    array([False,  True, False,  True,  True])
    >>> Reveal(states="last").mask(seed=0, episode=7, steps=4)
    array([False, False, False, False,  True])
    >>> print(fifth, Reveal(unit="episode", share=0.1), Reveal(episodes=50), sep="; ")
    20% of the states; 10% of the episodes; all states of the first 50 episodes
    """

    share: float = 1.0
    unit: Literal["step", "episode"] = "step"
    states: Literal["all", "last"] = "all"
    episodes: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, "Reveal")
        problems = share_problems(share=self.share)
        problems += choice_problems(("step", "episode"), unit=self.unit)
        problems += choice_problems(("all", "last"), states=self.states)
        if self.episodes is not None:
            problems += count_problems(0, episodes=self.episodes)
        refuse(ParameterError, "Reveal", problems)

    @property
    def complete(self) -> bool:
        """Whether every state of every episode is revealed."""
        return self.share == 1 and self.states == "all" and self.episodes is None

    @property
    def coin(self) -> bool:
        """Whether one coin decides about all states alike, in all episodes.

        The revealed steps are then a fair sample of all steps, and counts of them are unbiased.
        """
        return self.states == "all" and self.episodes is None

    @checked
    def with_share(self, share: float) -> Reveal:
        """The same protocol with another share."""
        return replace(self, share=share)

    @checked
    def mask(self, seed: int, episode: int, steps: int) -> Array:
        """Which of the states x_1 .. x_{L+1} of an episode are revealed, (L + 1,).

        Parameters
        ----------
        seed
            The seed of the run.
        episode
            The number of the episode, from 0.
        steps
            L, the number of steps of the episode.
        """
        problems = count_problems(0, seed=seed, episode=episode) + size_problems(0, steps=steps)
        refuse(ParameterError, "Reveal", problems)
        if self.episodes is not None and episode >= self.episodes:
            return np.zeros(steps + 1, dtype=bool)
        uniform = np.random.default_rng((PURPOSE, seed, episode)).random(steps + 2)
        coins = uniform[1:] if self.unit == "step" else np.repeat(uniform[0], steps + 1)
        if self.states == "last":
            return (np.arange(steps + 1) == steps) & (coins < self.share)
        return coins < self.share

    def __str__(self) -> str:
        share, all_of_them = f"{self.share:.6g}", self.share == 1
        part = "all" if all_of_them else f"{100 * self.share:.6g}% of the"
        kind = {"step": "states", "episode": "episodes"}[self.unit]
        if self.states == "last":
            text = "the last state" if all_of_them else f"the last state with probability {share}"
            text += " of each episode"
        else:
            text = f"{part} {kind}"
        if self.episodes is not None:
            return f"{text} of the first {self.episodes:,} episodes".replace(
                " of each episode of", " of each of"
            )
        return text


def revealed(reveal: Reveal, episode: Episode, seed: int, number: int) -> Episode:
    """An episode as it is revealed; without a mask if all its states are revealed.

    Parameters
    ----------
    reveal
        The protocol.
    episode
        The episode, with all its states.
    seed
        The seed of the run.
    number
        The number of the episode, from 0.
    """
    mask = np.asarray(reveal.mask(int(seed), int(number), len(episode.actions)))
    if mask.all():
        return episode
    hidden: Any = hide(np.asarray(episode.states), mask)
    return replace(episode, states=hidden)


def with_masks(reveal: Reveal, episodes: Episodes, seed: int) -> Episodes:
    """All episodes of a run as they were revealed; arguments as in :func:`revealed`."""
    known = episodes.revealed.copy()
    for k, steps in enumerate(episodes.length):
        known[k, : steps + 1] = reveal.mask(int(seed), k, int(steps))
    return replace(episodes, revealed=known)
