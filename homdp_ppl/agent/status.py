"""``Status``: what an agent has done and what it waits for."""

from __future__ import annotations

from typing import NamedTuple

from homdp_ppl.agent.actor import Actor
from homdp_ppl.agent.ledger import Ledger


class Status(NamedTuple):
    """Numbers of episodes of an agent.

    Examples
    --------
    >>> from homdp_ppl import Agent, explorers, models
    >>> from homdp_ppl.planners import history_tree
    >>> agent = Agent(models.load("tiger", horizon=2).homdp, explorers.greedy(), history_tree())
    >>> episode = agent.begin("first")
    >>> agent.status.begun, agent.status.open
    (1, ('first',))
    """

    model: str
    explorer: str
    seed: int
    episodes: int | None  # K
    begun: int  # episodes that began or were added
    open: tuple[str, ...]  # ids of episodes that have not ended
    pending: tuple[str, ...]  # ids of episodes that wait for states
    revealed: int
    abandoned: int  # forgotten episodes included
    used: int  # revealed episodes that the rule uses
    decisions: int  # how often the rule has planned
    events: int


def status_of(ledger: Ledger, actor: Actor) -> Status:
    """The status of an agent."""
    sessions, learner = ledger.sessions, actor.learner
    return Status(
        learner.homdp.name,
        learner.explorer.name,
        learner.seed,
        learner.episodes,
        len(sessions),
        tuple(s.id for s in sessions if s.is_open and s.id is not None),
        tuple(s.id for s in sessions if s.is_pending and s.id is not None),
        sum(s.is_revealed for s in sessions),
        sum(s.abandoned is not None or s.id is None for s in sessions),
        len(actor.knowledge.data(ledger)),
        len(ledger.decisions),
        ledger.events,
    )
