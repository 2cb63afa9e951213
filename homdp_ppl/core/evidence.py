"""Evidence: revealed episodes with gaps, as counts and as the gaps between revealed states.

A revealed state makes the steps before it independent of the steps after it. Stretches of revealed
states therefore reduce to counts, and only gaps need a sum over hidden states. Equal gaps are
stored once, with their number.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.clue_building import clues_of, hindsight_counts
from homdp_ppl.core.clues import joined
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import SAW_STATES, Episodes
from homdp_ppl.core.form import Form
from homdp_ppl.core.gaps import Gaps, GapTree
from homdp_ppl.core.spaces import HasTables
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.precision import Array

LIKELIHOOD = (
    "The actions would be evidence of the hidden states. Pass complete states, or leave out these "
    "episodes."
)


class Evidence:
    """What episodes with gaps reveal: counts of the revealed part, and the gaps.

    Parameters
    ----------
    counts
        Counts of first states, transitions and emissions with revealed states.
    gaps
        The distinct gaps.
    episodes
        The number of episodes.
    origin
        The episode and the first step, from 0, of one of each of the equal gaps, (S, 2); None if
        the evidence was added up.
    """

    def __init__(
        self, counts: Counts, gaps: Gaps, episodes: int, origin: Array | None = None
    ) -> None:
        self.counts, self.gaps, self.episodes, self.origin = counts, gaps, episodes, origin

    @classmethod
    def of(
        cls, episodes: Episodes, model: HasTables, known_rewards: Array | None = None
    ) -> Evidence:
        """The evidence of validated episodes.

        Parameters
        ----------
        episodes
            The episodes.
        model
            A declaration or its spaces.
        known_rewards
            The rewards in the user's units, (H, X, Y|1, A). If they are given, recorded rewards are
            evidence of hidden states.

        Raises
        ------
        DataError
            If actions of episodes with gaps may depend on latent states.
        """
        if episodes.behaviour == SAW_STATES:
            got = f"missing states, and the behaviour {SAW_STATES!r}"
            problem = Problem("behaviour", got, "actions that depend on observations", LIKELIHOOD)
            raise DataError("episodes", [problem])
        present = np.arange(episodes.horizon + 1) <= episodes.length[:, None]
        known = episodes.revealed & present
        counts = _counts(episodes, known, model)
        gaps, origin = _gaps(episodes, known, present, model, known_rewards)
        return cls(counts, gaps, len(episodes), origin)

    @classmethod
    def empty(cls, model: HasTables) -> Evidence:
        """No episodes."""
        return cls.of(Episodes.of([], model), model)

    @property
    def steps(self) -> int:
        """The number of observations."""
        seen = self.gaps.seen < self.counts.form.sizes[1]
        inside = np.arange(seen.shape[1]) < self.gaps.length[:, None]
        hidden = (self.gaps.number[:, None] * (seen & inside)).sum()
        return int(np.sum(self.counts.emission) + hidden)

    @cached_property
    def tree(self) -> GapTree:
        """The gaps as a tree of their beginnings."""
        return GapTree.of(self.gaps)

    @cached_property
    def data(self) -> tuple[Counts, GapTree]:
        """Counts and padded gaps as plain arrays, for compiled functions."""
        counts = replace(self.counts, names=None)
        plain = jax.tree.map(lambda table: np.asarray(table, dtype=np.float64), counts)
        return plain, self.tree.padded()

    def __add__(self, other: Evidence | Counts) -> Evidence:
        """Evidence of disjoint episodes of the same model."""
        if isinstance(other, Counts):
            started = 0 if other.initial is None else int(np.sum(other.initial))
            return Evidence(self.counts + other, self.gaps, self.episodes + started)
        gaps = _joined(self.gaps, other.gaps)
        return Evidence(self.counts + other.counts, gaps, self.episodes + other.episodes)


def revealed_counts(episode: Episode, model: HasTables) -> Counts:
    """Counts of the revealed steps and pairs of an episode with missing states.

    They are biased unless a coin decides what is revealed.

    Parameters
    ----------
    episode
        An episode of the model.
    model
        A declaration or a world with finite spaces.
    """
    episodes = Episodes.of(episode, model)
    present = np.arange(episodes.horizon + 1) <= episodes.length[:, None]
    return _counts(episodes, episodes.revealed & present, model)


def _counts(episodes: Episodes, known: Array, model: HasTables) -> Counts:
    """Counts of the steps whose states are revealed."""
    zero = Counts.zero(model)
    moves, shows = model.form.step_places(episodes.states, episodes.observations, episodes.actions)
    taken = episodes.steps
    tables = {
        "transition": (moves, taken & known[:, :-1] & known[:, 1:]),
        "emission": (shows, taken & known[:, :-1]),
        "initial": ((episodes.states[:, 0],), known[:, 0]),
    }
    counted: dict[str, Any] = {}
    for name, (index, used) in tables.items():
        table = np.zeros(np.shape(getattr(zero, name)), dtype=np.int64)
        np.add.at(table, tuple(np.broadcast_to(part, used.shape)[used] for part in index), 1)
        counted[name] = table
    rewards = zero.rewards
    if rewards is not None and episodes.rewards is not None:
        played = episodes.states, episodes.observations, episodes.actions
        recorded = taken & known[:, :-1] & np.asarray(episodes.rewards_known)
        rewards = rewards.add(*played, episodes.rewards, recorded)
    further = hindsight_counts(episodes, known, model.form)
    counted |= {"rewards": rewards, "hindsight": further, "pattern": zero.pattern}
    return Counts(**counted, names=zero.names)


def _gaps(
    episodes: Episodes,
    known: Array,
    present: Array,
    model: HasTables,
    known_rewards: Array | None,
) -> tuple[Gaps, Array]:
    """The distinct gaps of episodes, and where one of each begins."""
    X, Y, A = model.form.sizes
    N, H = episodes.actions.shape
    hidden = present & ~known
    ends = model.spaces.ends
    clues, clue, informative = clues_of(episodes, model.form, ends, hidden, known_rewards)
    # the state after the last action has no observation: without a clue, it can be left out
    last = np.arange(N), episodes.length
    hidden[last] &= informative[last]
    edge = np.pad(hidden, ((0, 0), (1, 1))).astype(int)
    begins, stops = (np.argwhere(np.diff(edge, axis=1) == sign) for sign in (1, -1))
    episode, first = begins.T
    length = stops[:, 1] - first
    G = int(length.max(initial=1))
    steps = first[:, None] + np.arange(G)
    inside = np.arange(G) < length[:, None]
    ahead = np.pad(episodes.actions, ((0, 0), (1, 1)), constant_values=A)
    sight = np.pad(episodes.observations, ((0, 0), (0, 1)), constant_values=Y)
    sight = np.where(np.pad(episodes.steps, ((0, 0), (0, 1))), sight, Y)
    rows = episode[:, None]
    at = np.minimum(steps, H)
    next_step = first + length
    follows = (next_step <= episodes.length[episode]) & known[episode, np.minimum(next_step, H)]
    actions = np.zeros((len(episode), G + 1), dtype=int)
    actions[:, :-1] = np.where(inside, ahead[rows, at], 0)
    after_last = np.where(follows, ahead[episode, np.minimum(next_step, H)], A)
    actions[np.arange(len(episode)), length] = after_last
    return _distinct(
        Gaps(
            number=np.ones(len(episode), dtype=np.int64),
            length=length,
            step=first * _by_step(model.form),
            before=np.where(first > 0, episodes.states[episode, np.maximum(first - 1, 0)], X),
            after=np.where(follows, episodes.states[episode, np.minimum(next_step, H)], X),
            actions=actions,
            seen=np.where(inside, sight[rows, at], 0),
            clue=np.where(inside, clue[rows, at], 0),
            clues=clues,
        ),
        begins,
    )


def _by_step(form: Form) -> bool:
    return form.moves_by_step or form.shows_by_step


def _distinct(gaps: Gaps, begins: Array) -> tuple[Gaps, Array]:
    """Gaps with equal ones joined, in a fixed order, and where one of each begins."""
    number, *columns, clues = gaps
    if not len(number):
        return gaps, begins
    flat = np.concatenate([c.reshape(len(number), -1) for c in columns], axis=1)
    _, index, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    joined = np.bincount(inverse.ravel(), weights=number).astype(np.int64)
    return Gaps._make([joined, *(c[index] for c in columns), clues]), begins[index]


def _joined(one: Gaps, other: Gaps) -> Gaps:
    """The gaps of two sets of episodes of the same model."""
    G = max(one.seen.shape[1], other.seen.shape[1])
    clues, *places = joined(one.clues, other.clues)
    both = [
        _widened(gaps._replace(clue=_remapped(gaps, place)), G)
        for gaps, place in zip((one, other), places, strict=True)
    ]
    columns = [np.concatenate(pair) for pair in zip(*(gaps[:-1] for gaps in both), strict=True)]
    number = len(columns[0])
    return _distinct(Gaps._make([*columns, clues]), np.zeros((number, 2), dtype=int))[0]


def _remapped(gaps: Gaps, place: Array) -> Array:
    """The clues of hidden states among other clues; 0 after the end of a gap."""
    inside = np.arange(gaps.clue.shape[1]) < gaps.length[:, None]
    return np.where(inside, place[gaps.clue], 0)


def _widened(gaps: Gaps, hidden: int) -> Gaps:
    """Gaps with room for more hidden states each."""
    more = hidden - gaps.seen.shape[1]
    wide: dict[str, Any] = {
        name: np.pad(getattr(gaps, name), ((0, 0), (0, more)))
        for name in ("actions", "seen", "clue")
    }
    return gaps._replace(**wide)
