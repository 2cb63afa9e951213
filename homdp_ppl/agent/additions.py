"""Episodes that others played, added to an agent."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.agent.actor import Actor
from homdp_ppl.agent.events import Add, is_text
from homdp_ppl.agent.ledger import Ledger
from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.errors import DataError, ParameterError, Problem, shown
from homdp_ppl.learning.warm_start import gap_refusals
from homdp_ppl.posteriors.data import check_episodes


def add_events(ledger: Ledger, actor: Actor, given: Any) -> list[Add]:
    """The events of episodes that were played by others; raises an error with all problems."""
    learner, homdp = actor.learner, actor.learner.homdp
    if actor.epochs:
        got = f"episodes that others played, for {learner.explorer.name}"
        expected = "a rule that uses whole episodes"
        remedy = "This rule uses one step of each episode of its own epochs."
        raise ParameterError("add", [Problem("episodes", got, expected, remedy)])
    episodes = Episodes.of(given, homdp)
    refuse(DataError, "add", gap_refusals(learner.explorer, homdp, episodes))
    if homdp.spaces.finite:
        check_episodes(homdp, episodes)
    events, problems = list[Add](), list[Problem]()
    for k, episode in enumerate(episodes):
        name = episode.id
        if name is None:
            name = f"added {len(ledger.sessions) + len(events) + 1}"
        rewards = episode.rewards
        gaps = np.ma.is_masked(episode.states)  # then recorded rewards are evidence of states
        if np.ma.is_masked(rewards) and homdp.rewards.law is None and not gaps:
            rewards = None  # rewards are declared: recorded ones carry no information
        if np.ma.is_masked(rewards) and not gaps:
            expected = "a reward for every step, or none"
            problems.append(Problem("rewards", "missing rewards", expected, at=f"episode {k}"))
            continue
        event = Add(
            name,
            episode.observations.tolist(),
            episode.actions.tolist(),
            episode.states.tolist(),
            str(episode.ended),
            None if rewards is None else rewards.tolist(),
        )
        if not is_text(name):
            problems.append(
                Problem("ids", shown(name), "a text of 1 to 500 characters", at=f"episode {k}")
            )
        elif name not in ledger:
            events.append(event)
        elif not _is_same(ledger, event):
            problems.append(Problem("ids", f"{name!r}, which exists", "a new id for each episode"))
    if learner.episodes is not None and len(ledger.sessions) + len(events) > learner.episodes:
        got = f"{len(events)} episodes after {len(ledger.sessions)}"
        problems.append(Problem("episodes", got, f"at most {learner.episodes} in total"))
    if problems:
        raise DataError("add", problems)
    return events


def _is_same(ledger: Ledger, event: Add) -> bool:
    session = ledger[event.id]
    return (
        session.decision is None
        and session.observations == event.observations
        and session.actions == event.actions
        and list(session.states.values()) == event.states
        and session.ended == event.ended
        and session.rewards == event.rewards
    )
