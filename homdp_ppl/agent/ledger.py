"""The ledger: all episodes of an agent, as a fold of its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from homdp_ppl.agent.events import Abandon, Act, Add, Begin, End, Event, Gap, Made, Refuse, Reveal
from homdp_ppl.agent.values import Value
from homdp_ppl.core.episode import Ended, Episode, hide
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.spaces import Real, Space, Spaces, is_real, shape_of


@dataclass
class Session:
    """One episode: open, ended, revealed, abandoned or forgotten."""

    ordinal: int
    id: str | None  # None if it was forgotten
    decision: int | None  # None if others played it
    slot: int | None = None
    observations: list[Value] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    ended: Ended | None = None
    abandoned: str | None = None  # the reason
    # by step, from 1; None for states that will never be revealed
    states: dict[int, Value | None] = field(default_factory=dict)
    gaps: int = 0  # states that will never be revealed
    rewards: list[float | None] | None = None  # None for those that were not recorded
    labels: list[float] | None = None
    refused: str | None = None  # why the last reveal was refused, if it was not settled
    began: int = 0  # the clock of the ledger when it began
    delay: int | None = None  # on this clock, until all its states were revealed

    @property
    def is_open(self) -> bool:
        """Whether actions may still follow."""
        return self.ended is None and self.abandoned is None and self.id is not None

    @property
    def is_revealed(self) -> bool:
        """Whether it has ended and each of its states is revealed, or never will be."""
        return self.ended is not None and len(self.states) == len(self.actions) + 1

    @property
    def is_complete(self) -> bool:
        """Whether it has ended and all its states are revealed."""
        return self.is_revealed and not self.gaps

    @property
    def is_pending(self) -> bool:
        """Whether it has ended and waits for states."""
        return self.ended is not None and self.abandoned is None and not self.is_revealed

    def episode(self, spaces: Spaces) -> Episode:
        """The episode, which is revealed; states that will never be are masked."""
        assert self.ended is not None
        states = [self.states[h] for h in range(1, len(self.actions) + 2)]
        known = np.array([x is not None for x in states])
        hidden = values_array(filled(states, spaces), spaces.states)
        return Episode(
            Trajectory(
                values_array(self.observations, spaces.observations),
                np.array(self.actions, dtype=np.int64),
            ),
            hide(hidden, known) if self.gaps else hidden,
            rewards=None if self.rewards is None else np.array(self.rewards, dtype=np.float64),
            id=self.id,
            ended=self.ended,
        )


def values_array(values: Sequence[Value], space: Space) -> np.ndarray:
    """Plain values as an array of indices or numbers."""
    return np.array(values, dtype=_type(space)).reshape(len(values), *shape_of(space))


def filled(states: Sequence[Value | None], spaces: Spaces) -> list[Value]:
    """The states with valid ones in place of those that are not known."""
    nothing: Value = 0
    if isinstance(spaces.states, Real):
        nothing = [0.0] * spaces.states.dimension if spaces.states.shape else 0.0
    return [nothing if x is None else x for x in states]


def _type(space: Space) -> type[np.float64] | type[np.int64]:
    return np.float64 if is_real(space) else np.int64


def episodes_of(sessions: Sequence[Session], spaces: Spaces) -> Episodes:
    """Revealed sessions as padded arrays."""
    N, H = len(sessions), spaces.horizon
    seen = np.zeros((N, H, *shape_of(spaces.observations)), dtype=_type(spaces.observations))
    hidden = np.zeros((N, H + 1, *shape_of(spaces.states)), dtype=_type(spaces.states))
    done = np.zeros((N, H), dtype=np.int64)
    length = np.array([len(session.actions) for session in sessions], dtype=np.int64)
    recorded = np.full((N, H), np.nan)  # missing rewards
    known = np.arange(H + 1) <= length[:, None]
    for k, session in enumerate(sessions):
        L = length[k]
        seen[k, :L], done[k, :L] = session.observations, session.actions
        states = [session.states[h] for h in range(1, L + 2)]
        hidden[k, : L + 1] = filled(states, spaces)
        known[k, : L + 1] = [x is not None for x in states]
        if session.rewards is not None:
            recorded[k, :L] = np.array(session.rewards, dtype=np.float64)
    return Episodes(
        seen,
        done,
        hidden,
        revealed=known,
        rewards=None if np.isnan(recorded).all() else recorded,
        length=length,
        ended=np.array([session.ended for session in sessions], dtype="U9"),
        ids=[session.id for session in sessions],
    )


class Ledger:
    """All episodes in the order in which they began, and the decisions that were made.

    Parameters
    ----------
    spaces
        States, observations, actions and the horizon.
    """

    def __init__(self, spaces: Spaces) -> None:
        self.spaces = spaces
        self.sessions: list[Session] = []
        self.decisions: list[Made] = []
        self.ordinals: dict[str, int] = {}
        self.events = 0
        self.version = 0  # number of changes of the revealed episodes
        self.delays = 0  # number of episodes of the agent whose states were all revealed
        self.corrections = 0  # number of changes of episodes that were revealed already
        self.with_gaps = 0  # number of revealed episodes with states that will never be revealed

    def __getitem__(self, name: str) -> Session:
        return self.sessions[self.ordinals[name]]

    def __contains__(self, name: str) -> bool:
        return name in self.ordinals

    @property
    def clock(self) -> int:
        """The number of episodes that have begun, and of those whose states were all revealed."""
        return len(self.sessions) + self.delays

    @property
    def revealed(self) -> list[Session]:
        """All revealed episodes in the order of their ordinals."""
        return [session for session in self.sessions if session.is_revealed]

    @property
    def complete(self) -> list[Session]:
        """The revealed episodes without missing states."""
        return [session for session in self.sessions if session.is_complete]

    def apply(self, event: Event) -> None:
        """Apply one event; raises ValueError if it cannot follow the events before it."""
        match event:
            case Begin():
                self._begin(event)
            case Add(id=name):
                session = self._append(Session(len(self.sessions), name, None))
                session.observations, session.actions = list(event.observations), event.actions
                session.states = dict(enumerate(event.states, start=1))
                session.gaps = event.states.count(None)
                self.with_gaps += session.gaps > 0
                session.ended, session.rewards = event.ended, event.rewards  # type: ignore[assignment]
                self.version += 1
            case Gap(decision=decision, slot=slot, made=made):
                self._note(decision, made)
                self.sessions.append(Session(len(self.sessions), None, decision, slot))
            case Act(step=step):
                session = self._session(event.ordinal, is_open=True)
                if step != len(session.actions) + 1:
                    raise ValueError(f"an action of step {step} after {len(session.actions)} steps")
                session.observations.append(event.observation)
                session.actions.append(event.action)
                if step == self.spaces.horizon:
                    session.ended = "horizon"
            case End(ended=ended):
                session = self._session(event.ordinal, is_open=True)
                session.ended = ended  # type: ignore[assignment]
            case Abandon(reason=reason):
                session = self._session(event.ordinal)
                if session.abandoned is not None or session.is_revealed:
                    raise ValueError("an abandoned episode that is closed")
                session.abandoned = reason
            case Reveal():
                self._reveal(event)
            case Refuse(problem=problem):
                self._session(event.ordinal).refused = problem
        self.events += 1

    def _begin(self, event: Begin) -> None:
        self._note(event.decision, event.made)
        session = Session(len(self.sessions), event.id, event.decision, event.slot)
        self._append(session).began = self.clock

    def _note(self, decision: int | None, made: Made | None) -> None:
        """Record a new decision, which has the next number."""
        if made is not None:
            self.decisions.append(made)
        if decision is None:
            return
        if decision >= len(self.decisions) or (made and decision != len(self.decisions) - 1):
            raise ValueError(f"an episode with decision {decision}")

    def _append(self, session: Session) -> Session:
        if session.id is None or session.id in self.ordinals:
            raise ValueError(f"the id {session.id!r} twice")
        self.ordinals[session.id] = session.ordinal
        self.sessions.append(session)
        return session

    def _session(self, ordinal: int, is_open: bool = False) -> Session:
        if ordinal >= len(self.sessions) or self.sessions[ordinal].id is None:
            raise ValueError(f"episode {ordinal}, which does not exist")
        session = self.sessions[ordinal]
        if is_open and not session.is_open:
            raise ValueError(f"an event after the end of episode {ordinal}")
        return session

    def _reveal(self, event: Reveal) -> None:
        session = self._session(event.ordinal)
        steps = len(session.actions) + 1
        if session.ended is None or session.abandoned is not None:
            raise ValueError("revealed states of an episode that has not ended")
        if any(step > steps for step in event.states):
            raise ValueError("a revealed state after the end of its episode")
        if event.rewards is not None and len(event.rewards) != len(session.actions):
            raise ValueError(f"{len(event.rewards)} rewards of {len(session.actions)} steps")
        if event.labels is not None and len(event.labels) != steps:
            raise ValueError(f"{len(event.labels)} labels of {steps} states")
        self.corrections += session.is_revealed
        self.with_gaps -= session.is_revealed and session.gaps > 0
        session.states |= event.states
        session.gaps = sum(state is None for state in session.states.values())
        self.with_gaps += session.is_revealed and session.gaps > 0
        session.refused = None
        if session.is_revealed and session.delay is None:
            session.delay = self.clock - session.began
            self.delays += 1
        self.version += session.is_revealed
        if event.rewards is not None:
            session.rewards = [*event.rewards]
        session.labels = session.labels if event.labels is None else event.labels
