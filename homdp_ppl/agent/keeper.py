"""The keeper: folds the events of a book into a ledger, and appends to both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from homdp_ppl.agent.actor import Actor
from homdp_ppl.agent.book import JOURNAL, Book, DirectoryBook, MemoryBook
from homdp_ppl.agent.events import LONGEST, Begin, Event, Gap, from_block, is_text, to_block
from homdp_ppl.agent.identity import agent_facts, agent_problems
from homdp_ppl.agent.knowledge import Delay, Knowledge, with_gaps
from homdp_ppl.agent.ledger import Ledger, Session, episodes_of
from homdp_ppl.agent.policies import Shelf
from homdp_ppl.core.arguments import count_problems, is_count, refuse
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, ParameterError, Problem, shown, unknown
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.checks import takes_a_model
from homdp_ppl.learning.learner import Decision, Learner
from homdp_ppl.learning.planning import Planner
from homdp_ppl.posteriors import Posterior, posterior
from homdp_ppl.posteriors.data import check_episodes
from homdp_ppl.posteriors.particles import Particles, Reweighted
from homdp_ppl.posteriors.tracking import Tracked
from homdp_ppl.storage.atomic import StorageError

LISTED = 20  # ids that an error lists


class Keeper:
    """The ledger of an agent, in memory and on disk.

    Parameters
    ----------
    learner
        The rule with its planner.
    delay
        See :class:`homdp_ppl.agent.knowledge.Knowledge`.
    path
        The directory; None for memory only.
    """

    def __init__(self, learner: Learner, delay: Delay, path: Path | None) -> None:
        self.path, self.delay = path, delay
        self._use(learner)
        facts = agent_facts(learner, delay)
        self.book: Book = DirectoryBook(path, facts) if path else MemoryBook(facts)
        with self.book.turn():
            self._compare()
            self._load()

    def _use(self, learner: Learner) -> None:
        self.learner = learner
        shelf = Shelf(learner.homdp.spaces, self.path)
        self.actor = Actor(learner, shelf, self.delay, self._plan_again)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for other threads and processes, and read what they have written."""
        with self.book.turn():
            new = self.book.new_blocks()
            if new is None:
                self._compare()
                self._load()
            else:
                with self._journal_errors():
                    for block in new:
                        self.ledger.apply(from_block(block, self.learner.homdp.spaces))
            yield

    def session(self, name: str, subject: str) -> Session:
        """The episode with this id; raises an error that names the calling method."""
        if name in self.ledger:
            return self.ledger[name]
        known = list(self.ledger.ordinals)[-LISTED:]
        raise DataError(subject, [unknown("id", "episode", name, known, "this agent")])

    def new_name(self, given: str | None) -> str:
        """The id of a new episode; raises an error if it is invalid or was used before."""
        if given is None:
            number = len(self.ledger.sessions) + 1
            while f"episode {number}" in self.ledger:
                number += 1
            return f"episode {number}"
        if not is_text(given):
            problem = Problem("id", shown(given), f"a text of 1 to {LONGEST} characters")
        elif given in self.ledger:
            remedy = "Choose another id for a new episode."
            problem = Problem("id", f"{given!r}, which has ended", "a new id", remedy)
        else:
            return given
        raise DataError("begin", [problem])

    def append(self, event: Event, sync: bool = True) -> None:
        """Append an event; with ``sync`` it is on disk after this call."""
        self.book.append(event, sync)
        self.ledger.apply(event)
        if isinstance(event, Begin) and event.made is not None:
            self.actor.release(self.ledger)

    def replace(self, events: Iterable[Event], learner: Learner | None = None) -> None:
        """Replace all events, and the learner if another one is given."""
        facts = self.book.description
        if learner is not None:
            facts = facts | agent_facts(learner, self.delay)
        self.book.replace(facts, map(to_block, events))
        if learner is not None:
            self._use(learner)
        self._load()

    def events(self) -> list[Event]:
        """All events."""
        with self._journal_errors():
            spaces = self.learner.homdp.spaces
            return [from_block(block, spaces) for block in self.book.blocks()]

    def infer(self) -> Posterior:
        """The posterior given all revealed episodes; that of the rule if it has one."""
        ledger, knowledge, homdp = self.ledger, self.actor.knowledge, self.learner.homdp
        if len(knowledge.data(ledger)) == len(ledger.revealed):
            memory = knowledge.state(ledger).memory
            if isinstance(memory, Tracked | Particles | Reweighted):
                return memory.belief
            if isinstance(memory, Posterior):
                return memory
        return posterior(homdp, episodes_of(ledger.revealed, homdp.spaces))

    def close(self) -> None:
        """Close the journal."""
        if isinstance(self.book, DirectoryBook):
            self.book.close()

    def _compare(self) -> None:
        """Raise an error if the recorded agent is another one."""
        problems = agent_problems(self.book.description, self.learner, self.delay)
        refuse(ParameterError, "Agent", problems)

    def _load(self) -> None:
        """Fold all events, and validate the revealed episodes."""
        ledger = Ledger(self.learner.homdp.spaces)
        with self._journal_errors():
            for event in self.events():
                ledger.apply(event)
            visits = np.shape(self.learner.init().visits)
            if any(made.visits.shape != visits for made in ledger.decisions):
                raise ValueError("a decision of another model")
            if any(s.is_open and s.decision is None for s in ledger.sessions):
                raise ValueError("an open episode without a policy")
        if ledger.revealed:
            if ledger.with_gaps:
                with_gaps(self.learner)  # raises an error for rules that need all states
            check_data(episodes_of(ledger.revealed, ledger.spaces), self.learner.homdp)
        self.ledger = ledger
        self.actor.restart()

    @contextmanager
    def _journal_errors(self) -> Iterator[None]:
        """Convert events that do not fit together to StorageError."""
        try:
            yield
        except ValueError as error:
            if isinstance(error, StorageError | DataError | ParameterError):
                raise
            where = "agent" if self.path is None else self.path / JOURNAL
            raise StorageError(where, str(error), "events of an agent that fit together") from None

    def _plan_again(self, number: int) -> Decision:
        """Plan a decision again whose policy could not be saved, from the events before it."""
        ledger = Ledger(self.learner.homdp.spaces)
        for event in self.events():
            if isinstance(event, Begin | Gap) and event.made and event.decision == number:
                state = Knowledge(self.learner, self.delay).state(ledger)
                return self.learner.decide(len(ledger.sessions), state)
            ledger.apply(event)
        raise AssertionError("unreachable: every decision belongs to an episode")


def check_data(episodes: Episodes, homdp: HOMDP) -> None:
    """Raise an error for episodes that :func:`homdp_ppl.posterior` would not accept."""
    if homdp.spaces.finite:
        check_episodes(homdp, episodes)
    else:
        Episodes.of(episodes, homdp).require_revealed(f"data for {homdp.name}")


def make_learner(
    homdp: HOMDP, explorer: Explorer, planner: Planner, seed: int, episodes: int | None
) -> Learner:
    """The learner of an agent; raises an error for arguments that are invalid or do not fit."""
    problems = count_problems(episodes=1 if episodes is None else episodes)
    if not takes_a_model(planner):
        remedy = "Call its factory, for example history_tree()."
        expected = "a function from a POMDP to a Plan"
        problems.append(Problem("planner", shown(planner), expected, remedy))
    if not (is_count(seed, 0) and seed < 2**63):
        problems.append(Problem("seed", shown(seed), "an integer from 0 to 2^63 - 1"))
    epoch = explorer.deployment.episodes_per_round(homdp.horizon)
    if episodes is not None and not problems and episodes < epoch:
        expected = f"at least one epoch of {epoch} episodes"
        problems.append(Problem("episodes", str(episodes), expected))
    refuse(ParameterError, "Agent", problems)
    learner = Learner(homdp, explorer, planner, episodes, int(seed))
    learner.planning  # noqa: B018  # raises an error for incompatible parts
    return learner
