"""Logs: recorded episodes of a declaration, what they reveal, and their rewards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.core.arguments import is_count
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episode_validation import incomplete_problems
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Policy, ask
from homdp_ppl.core.spaces import Spaces, entry_place, require_finite
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.returns import missing_problems, rewards_of
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.posteriors.data import data_and_episodes
from homdp_ppl.precision import Array

Played: TypeAlias = Episode | Episodes | Iterable[Episode | Episodes]

BIASED = (
    "Counts of the revealed steps alone are biased if what is revealed depends on what happened."
)


ROUNDED = 0.01  # of the range: recorded rewards this close to the declared ones are rounded


class Log(NamedTuple):
    """Validated episodes."""

    episodes: Episodes
    data: Counts | Evidence  # counts; with the gaps if states are missing

    @property
    def counts(self) -> Counts | None:
        """The counts for certificates; None if they would be biased."""
        return self.data if isinstance(self.data, Counts) else None


def seed_problems(seed: int) -> list[Problem]:
    """Report a seed that JAX cannot use."""
    if is_count(seed, 0) and seed < 2**63:
        return []
    return [Problem("seed", shown(seed), "an integer of at least 0 and below 2^63")]


def read_log(homdp: HOMDP, log: Played, subject: str) -> Log:
    """Validate a log; raises an error for an empty one, and for steps that are impossible."""
    require_finite(homdp.spaces, homdp.name, subject)
    data, episodes = data_and_episodes(homdp, Episodes.of(log, homdp))
    if episodes is None or not len(episodes):
        raise DataError(subject, [Problem("log", "no episodes", "at least one episode")])
    return Log(episodes, data)


def missing_states(episodes: Episodes) -> str:
    """Why there is no certificate; empty if all states are revealed."""
    return "".join(f"states: {problem.got}. {BIASED}" for problem in incomplete_problems(episodes))


def rewards_in(homdp: HOMDP, episodes: Episodes) -> tuple[Array | None, str]:
    """The reward of each step in the user's units, (N, H), 0 after the end; or why there is none.

    Known rewards are computed from the states. If states are missing, or if rewards are random, the
    recorded ones are used.
    """
    if len(episodes) < 2:
        return None, "there is only one episode, which has no standard error"
    cut = int((episodes.ended == "truncated").sum())
    if cut:
        return (
            None,
            f"{cut:,} of {len(episodes):,} episodes are truncated: their returns are unknown "
            "(declare terminal states if these episodes had ended)",
        )
    if homdp.rewards.law is None and not incomplete_problems(episodes):
        return rewards_of(homdp, episodes), ""
    problems = missing_problems(episodes)
    if problems:
        why = "states are missing, and " * (homdp.rewards.law is None)
        return None, f"{why}rewards are not recorded at every step ({problems[0].got})"
    assert episodes.rewards is not None
    return np.where(episodes.steps, episodes.rewards.astype(np.float64), 0.0), ""


def reward_notes(homdp: HOMDP, episodes: Episodes) -> list[str]:
    """A note if recorded rewards of revealed states are not those of the declaration."""
    table = homdp.rewards.table
    if table is None or episodes.rewards is None or episodes.rewards_known is None:
        return []
    seen = episodes.observations if homdp.rewards.by_observation else 0
    steps = np.arange(homdp.horizon)
    inside = table[steps, episodes.states[:, :-1], seen, episodes.actions]
    declared = np.asarray(homdp.rewards.to_user(inside, 1))
    compared = episodes.steps & episodes.revealed[:, :-1] & episodes.rewards_known
    apart = np.abs(episodes.rewards - declared)
    wrong = compared & (apart > ROUNDED * homdp.rewards.scale)
    if not wrong.any():
        return []
    first = np.argwhere(wrong)[0]
    got, expected = episodes.rewards[tuple(first)], declared[tuple(first)]
    return [
        f"{wrong.sum():,} of {compared.sum():,} recorded rewards differ from the declared ones, "
        f"which are used (first in {entry_place(first, episodes.ids)}: recorded {got:g}, declared "
        f"{expected:g})" + "; the reward of a cost is negative" * homdp.rewards.costs
    ]


def walk(graph: GraphPolicy, episodes: Episodes) -> Array:
    """The node of a graph at each step of recorded episodes, (N, H)."""
    N, H = episodes.actions.shape
    nodes = np.zeros((N, H), dtype=np.int64)
    seen, done = episodes.observations, episodes.actions
    node = graph.start[seen[:, 0]]
    for h in range(H):
        nodes[:, h] = node
        if h + 1 < H:
            column = 0 if graph.successor.shape[1] == 1 else done[:, h]
            node = graph.successor[node, column, seen[:, h + 1]]
    return nodes


def action_chances(policy: Policy, episodes: Episodes, spaces: Spaces) -> Array:
    """The probability of each recorded action under a policy, (N, H); 1 after the end."""
    if isinstance(policy, GraphPolicy):
        nodes = walk(policy, episodes)
        chances = np.asarray(policy.probabilities)[nodes, episodes.actions]
        return np.where(episodes.steps, chances, 1.0)
    chances = np.ones(episodes.actions.shape)
    for h in range(episodes.horizon):
        rows = np.flatnonzero(episodes.length > h)
        if not len(rows):
            break
        seen, done = episodes.observations[rows, : h + 1], episodes.actions[rows, :h]
        different, which = np.unique(
            np.concatenate([seen, done], axis=1), axis=0, return_inverse=True
        )
        asked = np.stack([ask(policy, row[: h + 1], row[h + 1 :], spaces) for row in different])
        chances[rows, h] = asked[which.ravel(), episodes.actions[rows, h]]
    return chances


def refuse_impossible(chances: Array, episodes: Episodes) -> None:
    """Raise an error for recorded actions that the given behaviour never takes."""
    wrong = np.argwhere(chances <= 0)
    if len(wrong):
        place = entry_place(wrong[0], episodes.ids)
        got = f"probability 0 for {len(wrong):,} recorded action{'s' * (len(wrong) != 1)}"
        expected = "a policy that takes every recorded action with positive probability"
        remedy = "Pass the policy that acted, or None to estimate it from the log."
        raise DataError("behaviour", [Problem("behaviour", got, expected, remedy, place)])
