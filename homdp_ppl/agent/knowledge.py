"""Knowledge: the state of the rule after the episodes that it may use.

Frequentist sets use the longest prefix of episodes, in the order in which they began, whose states
are all revealed. This is sound for every mechanism of delay. Other rules, and all rules if delays
are declared independent of what happened, use every revealed episode. Episodes are always used in
the order of their ordinals, whatever the order of the reveals. Once a state is declared never to be
revealed, a Bayesian rule sums over missing states, as in ``learn`` with a protocol of reveals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Literal, TypeAlias

from homdp_ppl.agent.ledger import Ledger, Session, episodes_of
from homdp_ppl.agent.slots import slot_data
from homdp_ppl.core.counts import Counts
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers.state import State
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.warm_start import COUNTING
from homdp_ppl.precision import in_x64

Delay: TypeAlias = Literal["any", "independent"]

MANY = 16  # with more new episodes, count them in one call


class Knowledge:
    """The state of the rule, updated when episodes are revealed.

    Parameters
    ----------
    learner
        The rule with its planner.
    delay
        "any", or "independent" if the delay of a reveal depends neither on the states nor on the
        observations of the episode.
    """

    def __init__(self, learner: Learner, delay: Delay) -> None:
        self._learner, self._delay = learner, delay
        self._epochs = learner.explorer.deployment.uniform_at_each_step
        frequentist = learner.explorer.about.guarantee == "frequentist"
        self.needs_prefix = frequentist and delay == "any"
        self._corrections = 0
        self._restart(gaps=False)

    def _restart(self, gaps: bool) -> None:
        self._gaps = gaps  # whether states are missing
        learner = with_gaps(self._learner) if gaps else self._learner
        self._base = self._state = learner.init()
        self._closed = 0  # sessions that the base has used or skipped
        self._used: list[int] = []  # ordinals that the state uses, after those of the base
        self._looked = 0  # sessions that were looked at, if they only count
        self._waiting: list[Session] = []  # those of them that the state does not use yet
        self._commutes = (
            not self._epochs
            and self._learner.explorer.update in COUNTING
            and self._base.counts is not None
            and self._base.memory is None
            and not gaps
        )

    def data(self, ledger: Ledger) -> list[Session]:
        """The sessions that the rule uses, in order."""
        if self._epochs:
            return slot_data(ledger, skip_gaps=self._delay == "independent")
        return sound_data(ledger, "any") if self.needs_prefix else ledger.revealed

    @in_x64
    def state(self, ledger: Ledger) -> State:
        """The state of the rule after all episodes that it uses."""
        gaps = ledger.with_gaps > 0
        if ledger.corrections != self._corrections or gaps != self._gaps:
            self._restart(gaps)
            self._corrections = ledger.corrections
        if self._commutes:
            self._state = self._with(self._state, self._new(ledger), ledger)
            return self._state
        return self._in_order(self.data(ledger), ledger)

    def _new(self, ledger: Ledger) -> list[Session]:
        """The data that the state does not use yet, without looking at all sessions again."""
        self._waiting += ledger.sessions[self._looked :]
        self._looked = len(ledger.sessions)
        if self.needs_prefix:
            new = list(takewhile(lambda session: session.is_revealed, self._waiting))
            del self._waiting[: len(new)]
            return new
        new = [session for session in self._waiting if session.is_revealed]
        self._waiting = [s for s in self._waiting if s.is_open or s.is_pending]
        return new

    def _in_order(self, data: Sequence[Session], ledger: Ledger) -> State:
        """Extend the state; a late reveal replays the episodes after the first unrevealed one."""
        ordinals = [session.ordinal for session in data]
        settled = self._settled(ordinals, ledger)
        if settled > self._closed:
            done = self._closed
            if ordinals[done:settled] == self._used[: settled - done]:
                rest = self._used[settled - done :]
            else:
                rest = None
            self._base = self._with(self._base, data[done:settled], ledger)
            self._closed = settled
            if rest is None or not rest:
                self._state, self._used = self._base, []
            else:
                self._used = rest
        tail = ordinals[self._closed :]
        if tail[: len(self._used)] != self._used:
            self._state, self._used = self._base, []
        self._state = self._with(self._state, data[self._closed + len(self._used) :], ledger)
        self._used = tail
        return self._state

    def _settled(self, ordinals: Sequence[int], ledger: Ledger) -> int:
        """The number of first data before which no episode can be inserted later."""
        if self._epochs or self.needs_prefix:
            return len(ordinals)
        waiting = next(
            (s.ordinal for s in ledger.sessions if s.is_open or s.is_pending), len(ledger.sessions)
        )
        return sum(1 for ordinal in ordinals if ordinal < waiting)

    def _with(self, state: State, sessions: Sequence[Session], ledger: Ledger) -> State:
        if self._commutes and len(sessions) > MANY:
            counts = Counts.of(episodes_of(sessions, ledger.spaces), state.homdp)
            return replace(state, counts=state.counts + counts, played=state.played + len(sessions))
        for session in sessions:  # they were validated when they were revealed or read
            episode = session.episode(ledger.spaces)
            state = self._learner.update(state, episode, simulated=True)
        return state


def sound_data(ledger: Ledger, delay: Delay) -> list[Session]:
    """The revealed sessions that confidence sets may use, in order.

    If delays may depend on what happened, these are the sessions before the first one, in the order
    in which they began, that is not revealed. They always end before a session with missing states:
    why a state is missing may depend on it.
    """
    if delay == "any":
        return list(takewhile(lambda session: session.is_complete, ledger.sessions))
    before = takewhile(lambda session: not (session.is_revealed and session.gaps), ledger.sessions)
    return [session for session in before if session.is_complete]


def with_gaps(learner: Learner) -> Learner:
    """The same learner for episodes with missing states; raises an error if it needs them all.

    Guarantees of frequentist rules need to know why a state is missing, which an agent does not.
    """
    if learner.explorer.about.guarantee == "frequentist":
        got = "an episode with a state that is never revealed"
        expected = f"all states, for {learner.explorer.name}"
        raise ParameterError("Agent", [Problem("states", got, expected)])
    parts = learner.homdp, learner.explorer, learner.planner, learner.episodes, learner.seed
    return Learner(*parts, hindsight="partial")
