"""``Status``: what an agent has done and what it waits for."""

from __future__ import annotations

from typing import NamedTuple

from homdp_ppl.agent.actor import Actor
from homdp_ppl.agent.ledger import Ledger
from homdp_ppl.core import html

LISTED = 5  # pending episodes that are shown


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


def status_html(found: Status) -> str:
    """A status as a table for notebooks."""
    waiting = ", ".join(found.pending[:LISTED]) + ", ..." * (len(found.pending) > LISTED)
    rows: list[tuple[str, object]] = [
        ("rule", found.explorer),
        ("episodes begun", found.begun),
        ("open", len(found.open)),
        ("pending", f"{len(found.pending):,}: {waiting}" if waiting else 0),
        ("revealed", found.revealed),
        ("used by the rule", found.used),
        ("abandoned", found.abandoned),
        ("decisions", found.decisions),
    ]
    if found.episodes is not None:
        rows.insert(1, ("planned episodes", found.episodes))
    return html.facts(f"Agent for {found.model}", rows)


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
