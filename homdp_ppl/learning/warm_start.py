"""Warm start: rules that begin with recorded episodes.

A log comes first, as if its episodes had been played before the first round. Transitions and
observations are independent draws of their rows for every choice of actions, so that the arguments
about draws at adaptive times apply. Rules whose radii take a union over the draws of K episodes
take it over those of the log, too: they receive K + N as the number of episodes, where N is the
number of episodes in the log.

If the log lacks states, Bayesian rules start from draws of its posterior, which sums over them, and
then follow the episodes of the run one by one. Rules that count refuse such a log, unless the
declaration says that a coin hides states.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode_validation import incomplete_problems
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.declare.hindsight_validation import declares_coin
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, ParameterError, Problem
from homdp_ppl.explorers._believing import update_belief
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.explorers.state import State, count
from homdp_ppl.learning.hindsight import SUMMED, UNUSED, Hindsight, hindsight_problems, how
from homdp_ppl.posteriors.data import as_counts, data_and_episodes
from homdp_ppl.posteriors.particles import Particles, Reweighted, follow
from homdp_ppl.precision import in_x64

COUNTING = (count, update_belief)  # updates that only count: many episodes are counted in one call

EPOCHS = "This rule uses one step of each episode of its own epochs. Use another rule."
BIAS = (
    "Counts of the revealed steps alone are biased if what is revealed depends on what happened. "
    "Use a Bayesian rule such as posterior_sampling(), which sums over missing states, or leave "
    "out these episodes."
)


class Log(NamedTuple):
    """Validated episodes that a rule starts with."""

    episodes: Episodes
    counts: Counts | None  # of the revealed steps; None if a space is real-valued
    evidence: Evidence | None = None  # None if all states are revealed


def as_log(explorer: Explorer, homdp: HOMDP, given: Any) -> Log | None:
    """Validate the log of a rule; None if there is none.

    Raises
    ------
    ParameterError
        If the rule cannot use episodes that others played.
    DataError
        If episodes do not fit the declaration, are impossible under it, or lack states that the
        rule needs.
    """
    if given is None or isinstance(given, Log):
        return given
    if explorer.deployment.uniform_at_each_step:
        got, expected = f"a log, with {explorer.name}", "a rule that uses whole episodes"
        raise ParameterError("learn", [Problem("log", got, expected, EPOCHS)])
    episodes = Episodes.of(given, homdp)
    if incomplete_problems(episodes):
        refuse(DataError, "log", gap_refusals(explorer, homdp, episodes))
        data, _ = data_and_episodes(homdp, episodes)
        evidence = Evidence.empty(homdp) + data
        return Log(episodes, evidence.counts, evidence)
    counts = as_counts(homdp, episodes) if homdp.spaces.finite else None
    return Log(episodes, counts)


def gap_refusals(explorer: Explorer, homdp: HOMDP, episodes: Episodes) -> list[Problem]:
    """Why a rule cannot use recorded episodes with missing states; empty if it can."""
    missing = incomplete_problems(episodes)
    hindsight: Hindsight = "coin" if declares_coin(homdp) else "partial"
    refused = hindsight_problems(explorer, homdp, hindsight) if missing else []
    if not refused:
        return []
    if how(explorer) in (SUMMED, UNUSED):  # the declaration is the reason, not the rule
        return [problem._replace(expected=refused[0].expected) for problem in missing]
    return [problem._replace(remedy=BIAS) for problem in missing]


def hindsight_after(hindsight: Hindsight, log: Log | None) -> Hindsight:
    """What decides which states are revealed, in the log or after it."""
    incomplete = log is not None and log.evidence is not None
    return "partial" if incomplete and hindsight == "complete" else hindsight


@in_x64
def started(explorer: Explorer, state: State, log: Log | None) -> State:
    """The initial state of a rule after the episodes of a log."""
    if log is None or not len(log.episodes):
        return state
    if explorer.update not in COUNTING:
        for episode in log.episodes:
            state = explorer.update(state, episode)
        return state
    played = state.played + len(log.episodes)
    key = jax.random.wrap_key_data(cast(jax.Array, state.key_data))
    if log.counts is not None:
        memory, counts = state.memory, state.counts + log.counts
        key = jax.random.fold_in(key, int(played))
        if isinstance(memory, Particles | Reweighted):  # a stream of episodes with gaps
            evidence = log.evidence or Evidence.of(log.episodes, state.homdp)
            memory = follow(state.homdp, key, evidence)
        elif memory is not None:
            memory = memory.update(counts, key)
        return replace(state, counts=counts, played=played, memory=memory)
    visits = state.state_action
    if visits is not None:
        steps, visits = log.episodes.steps, np.array(visits)
        rows = log.episodes.states[:, :-1][steps], log.episodes.actions[steps]
        np.add.at(visits, rows, 1)
    memory = state.memory
    if memory is not None:
        memory = memory.update(log.episodes, jax.random.fold_in(key, int(state.played)))
    return replace(state, state_action=visits, played=played, memory=memory)
