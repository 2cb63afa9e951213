"""Books: where the events of an agent are kept, in memory or in a directory.

A directory has the journal ``agent.journal``, the policies in ``policies/``, the lock file
``.turn`` and, if the agent was created on the command line, ``command.journal`` with its model,
rule and planner as text. Several processes may use it, one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

from homdp_ppl.agent.events import Event, to_block
from homdp_ppl.storage.atomic import LEFTOVER, StorageError, remove_leftovers, storage_errors
from homdp_ppl.storage.blocks import Block
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.records import DamageError
from homdp_ppl.storage.turn import Turn
from homdp_ppl.storage.whole_journal import rewrite

JOURNAL, COMMAND, TURN, POLICIES = "agent.journal", "command.journal", ".turn", "policies"


class Book(Protocol):
    """The events of an agent in order, and the description with which it began."""

    description: dict[str, Any]

    def turn(self) -> Any:
        """A context in which no other process or thread writes; yields whether to read again."""

    def new_blocks(self) -> list[Block] | None:
        """Blocks that others have appended; None if all must be read again."""

    def blocks(self) -> list[Block]:
        """All blocks."""

    def append(self, event: Event, sync: bool = True) -> None:
        """Append an event; with ``sync`` it is on disk after this call."""

    def replace(self, description: Mapping[str, Any], blocks: Iterable[Block]) -> None:
        """Replace everything."""


class MemoryBook:
    """Events in memory.

    Parameters
    ----------
    description
        The description of the agent.
    """

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.description = dict(description)
        self._blocks: list[Block] = []
        self._lock = RLock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A context in which no other thread writes."""
        with self._lock:
            yield

    def new_blocks(self) -> list[Block] | None:
        """Nothing: there are no other processes."""
        return []

    def blocks(self) -> list[Block]:
        """All blocks."""
        return list(self._blocks)

    def append(self, event: Event, sync: bool = True) -> None:
        """Append an event."""
        self._blocks.append(to_block(event))

    def replace(self, description: Mapping[str, Any], blocks: Iterable[Block]) -> None:
        """Replace everything."""
        self.description, self._blocks = dict(description), list(blocks)


class DirectoryBook:
    """Events in the journal of a directory.

    Parameters
    ----------
    path
        The directory. It is created if it does not exist.
    description
        The description of a new agent; None to open an existing one only.
    """

    def __init__(self, path: Path, description: Mapping[str, Any] | None) -> None:
        self.path = path
        self._lock, self._depth = RLock(), 0
        self._journal: Journal | None = None
        self._read: list[Block] | None = None
        file = path / JOURNAL
        if description is None and not os.path.lexists(file):
            remedy = "Create an agent there, or give the directory of one."
            raise StorageError(path, "no agent", "the directory of an agent", remedy)
        with storage_errors(path, "a directory that can be created"):
            path.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(file) and description is not None:
            self._create(file, description)
        with self.turn():
            remove_leftovers(path)
            self._join()
        assert self._journal is not None
        self.description: dict[str, Any] = self._journal.description

    def _create(self, file: Path, description: Mapping[str, Any]) -> None:
        others = {name for name in os.listdir(self.path) if not LEFTOVER.fullmatch(name)}
        others -= {COMMAND, TURN, POLICIES}
        if others:
            remedy = "Use an empty directory, or restore the journal of the agent."
            got = f"a directory with other files: {', '.join(sorted(others)[:3])}"
            raise StorageError(self.path, got, "an empty directory, or an agent", remedy)
        with self.turn():
            if not os.path.lexists(file):
                Journal.create(file, description).close()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A context in which no other thread or process writes; may be nested."""
        with self._lock:
            self._depth += 1
            try:
                if self._depth > 1:
                    yield
                else:
                    with Turn(self.path / TURN):
                        yield
            finally:
                self._depth -= 1

    def new_blocks(self) -> list[Block] | None:
        """Blocks that other processes have appended; None if the journal was replaced."""
        assert self._journal is not None
        try:
            found = self._journal.catch_up()
        except DamageError as damage:
            raise _damaged(damage) from None
        if found is None:
            self._join()
            self.description = self._journal.description
        return found

    def blocks(self) -> list[Block]:
        """All blocks."""
        if self._read is None:
            self._join()
        found, self._read = self._read, None  # not kept twice in memory
        assert found is not None
        return found

    def append(self, event: Event, sync: bool = True) -> None:
        """Append an event; with ``sync`` it is on disk after this call."""
        assert self._journal is not None
        self._journal.append(*to_block(event), sync=sync)

    def replace(self, description: Mapping[str, Any], blocks: Iterable[Block]) -> None:
        """Replace the journal atomically."""
        rewrite(self.path / JOURNAL, description, blocks)
        self._join()
        assert self._journal is not None
        self.description = self._journal.description

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()

    def _join(self) -> None:
        self.close()
        try:
            self._journal, self._read = Journal.join(self.path / JOURNAL)
        except DamageError as damage:
            raise _damaged(damage) from None


def _damaged(damage: DamageError) -> StorageError:
    """The error for a damaged journal, which is not changed."""
    remedy = f"Restore the journal from a backup. Intact events before the damage: {damage.intact}."
    return StorageError(
        damage.path, damage.problems[0].got, "an intact journal", remedy, damage.offset
    )
