"""Run a unit of work: a rule in a world for a block of seeds, saved as it progresses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from homdp_ppl.core.reveal import Reveal
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import DataError, ParameterError, Problem
from homdp_ppl.explorers import Explorer
from homdp_ppl.learning.checks import check_request
from homdp_ppl.learning.compiled import STRETCH
from homdp_ppl.learning.learn import FEW
from homdp_ppl.learning.learn import begin as begin_runs
from homdp_ppl.learning.planning import Planner
from homdp_ppl.learning.record import BY_ROUND, Record
from homdp_ppl.learning.replay import restore
from homdp_ppl.learning.run import Run
from homdp_ppl.learning.task import Request
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.records import DamageError
from homdp_ppl.storage.whole_journal import read_journal
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.files import source_of
from homdp_ppl.study.learners import learner
from homdp_ppl.study.observing import observing
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.reveals import FORESIGHT, OBSERVATION, split_reveal
from homdp_ppl.study.sources import find_planner, find_rule, find_world
from homdp_ppl.study.specification import Study, Unit

LONG = 1.0  # target of seconds between saves of the readable loop


class Stopped(Exception):  # noqa: N818  not an error
    """The unit was requested to stop."""


class Sink(Protocol):
    """A place to which a run is saved."""

    def written(self, run: Run) -> Record:
        """The rounds of this run that are already saved."""

    def append(self, record: Record, seconds: float) -> None:
        """Save more rounds."""


def run_unit(
    study: Study,
    unit: Unit,
    world: World,
    sink: Callable[[int], Any],
    pace: Pace,
    done: Callable[[int], None],
) -> None:
    """Run all seeds of a unit, or resume them.

    Parameters
    ----------
    study
        The study.
    unit
        The unit.
    world
        The world of the unit's model.
    sink
        A function from a seed to a context manager of a :class:`Sink`.
    pace
        Checked between saves.
    done
        Called with the number of saved rounds, including those of earlier attempts.
    """
    for run in begin(study, unit, world):
        with sink(run.task.seed) as written:
            record = written.written(run)
            run = restore(run, record)
            done(len(record.values))
            stretch = STRETCH if run.compiled else 1
            while len(run.values) < run.task.rounds:
                if pace.stop:
                    raise Stopped(pace.stop)
                rounds, episodes, before = len(run.values), len(run.played), _spent(run)
                until = min(rounds + stretch, run.task.rounds)
                run = run.resume(until * run.task.episodes_per_round)
                seconds = _spent(run) - before
                written.append(run.record.since(rounds, episodes), seconds)
                done(len(run.values) - rounds)
                if not run.compiled:
                    stretch = (
                        2 * stretch
                        if seconds < LONG / 2
                        else max(1, stretch // 2)
                        if seconds > LONG
                        else stretch
                    )


def _spent(run: Run) -> float:
    """Seconds that a run has taken, without compilation."""
    return sum(run.seconds.values()) - run.seconds.get("compiling", 0.0)


class _Parts(NamedTuple):
    """The parts of the runs of a unit."""

    rule: Explorer
    planner: Planner
    model: HOMDP | None  # the learner's declaration; None in a continuous world


def begin(study: Study, unit: Unit, world: World | None = None) -> list[Any]:
    """The runs of a unit before their first round.

    Parameters
    ----------
    study
        The study.
    unit
        The unit.
    world
        The world of the unit's model; by default it is loaded.
    """
    world = find_world(unit.model, study.horizon) if world is None else world
    if not world.spaces.finite and unit.prior != "declared":
        expected = "declared, the only prior of a continuous model"
        raise ParameterError(unit.name, [Problem("prior", unit.prior, expected)])
    sources = source_of(unit.rule), source_of(study.planner)
    text, reveal = split_reveal(unit.rule)
    rule, planner, model = _parts(world, unit.prior, text, study.planner, sources)
    many = study.episodes * study.seeds >= FEW  # the same for all blocks of seeds
    common = study.episodes, list(unit.seeds), model
    foresight, shown = reveal == FORESIGHT, reveal if isinstance(reveal, Reveal) else None
    request = Request(world, rule, planner, *common, reveal=shown, foresight=foresight)
    runs = begin_runs(check_request(request), many)
    return _observing(request, runs, many) if reveal == OBSERVATION else runs


def _observing(request: Request, runs: list[Run], many: bool) -> list[Run]:
    """The runs with one more observation of each state; their optimum is that of the world."""
    parts = observing(request.world, request.explorer, request.planner, request.declaration, 1)
    world, planner, model = parts
    further = request._replace(world=world, planner=planner, model=model, reveal=Reveal(0.0))
    return [
        replace(run, task=replace(run.task, optimum=same.task.optimum, slack=same.task.slack))
        for run, same in zip(begin_runs(check_request(further), many), runs, strict=True)
    ]


@lru_cache(maxsize=64)
def _parts(world: World, prior: str, rule: str, planner: str, sources: tuple[str, str]) -> _Parts:
    """The parts of a unit, cached as long as user files do not change.

    Further blocks of seeds reuse the compiled functions.
    """
    model = learner(world, prior) if world.spaces.finite else None
    return _Parts(find_rule(rule, world), find_planner(planner, world, model), model)


@contextmanager
def journal_of(path: Path, about: Mapping[str, Any]) -> Iterator[Journal]:
    """Open the journal of a run to append rounds.

    It is created if it does not exist. A damaged journal is renamed and created again from the
    records before the damage. The journal of another run raises StorageError.

    Parameters
    ----------
    path
        The file.
    about
        The description of the run, as in the first record of its journal.
    """
    try:
        journal = Journal.open(path) if Journal.begun(path) else Journal.create(path, about)
    except DamageError as damage:
        kept = read_journal(damage.aside, salvage=True) if damage.aside else None
        journal = Journal.create(
            path, about if kept is None or kept.description is None else kept.description
        )
        for block in kept.blocks if kept else ():
            journal.append(*block)
    with journal:
        check_identity(path, journal.description, json.loads(json.dumps(about)))
        if set(journal.description) != set(about):
            got, expected = "a description with other entries", "a description of this version"
            raise StorageError(path, got, expected)
        yield journal


def check_identity(path: Path, described: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Raise StorageError if a journal belongs to another run.

    Parameters
    ----------
    path
        The journal.
    described
        The description in the journal.
    about
        The expected entries.
    """
    other = [name for name, value in about.items() if not _same(described.get(name), value)]
    if other:
        was = ", ".join(f"{name} {str(described.get(name))[:80]!r}" for name in other)
        now = ", ".join(f"{name} {str(about[name])[:80]!r}" for name in other)
        remedy = "Move the journals back to their places, or remove this one and resume."
        raise StorageError(path, f"the journal of a run with {was}", f"a run with {now}", remedy)


def _same(one: Any, other: Any) -> bool:
    """Whether two entries are equal and of the same type; nan equals nan."""
    return type(one) is type(other) and (one == other or (one != one and other != other))


class JournalSink:
    """A sink that saves a run to a journal.

    Parameters
    ----------
    path
        The journal.
    identity
        The entries that identify the run: ``StudyDirectory.identity(unit, seed)``.
    opened
        Closes the journal.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], opened: ExitStack) -> None:
        self._path, self._identity, self._opened = path, identity, opened

    def written(self, run: Run) -> Record:
        """The rounds of the run that are in the journal."""
        self._journal = self._opened.enter_context(
            journal_of(self._path, {**run.about, **self._identity})
        )
        return sum((to_record(block.arrays) for block in self._journal.records()), run.record)

    def append(self, record: Record, seconds: float) -> None:
        """Append rounds to the journal and flush them to disk."""
        self._journal.append(to_arrays(record), {"seconds": seconds})


@contextmanager
def journal_sink(directory: StudyDirectory, unit: Unit, seed: int) -> Iterator[JournalSink]:
    """The sink for one run of a study, closed at the end."""
    path, identity = directory.journal_path(unit, seed), directory.identity(unit, seed)
    with ExitStack() as opened:
        yield JournalSink(path, identity, opened)


def to_arrays(record: Record) -> dict[str, Any]:
    """A record as arrays, with integers in the smallest sufficient type."""
    return {
        name: column if column.dtype.kind in "bf" else _short(column)
        for name, column in record.columns.items()
    }


def to_record(arrays: Mapping[str, Any]) -> Record:
    """A record from arrays; missing or inconsistent columns raise DataError."""
    columns = {}
    for name in Record.__dataclass_fields__:
        if name not in arrays and name == "rewards":  # known rewards are not recorded
            continue
        if name not in arrays:
            raise DataError("journal", [Problem("record", f"no {name}", "all columns of a record")])
        column = arrays[name]
        columns[name] = column.astype(np.int64) if column.dtype.kind in "iu" else column
    lengths = [
        {len(column) for name, column in columns.items() if (name in BY_ROUND) == by_round}
        for by_round in (True, False)
    ]
    if max(map(len, lengths)) > 1:
        raise DataError(
            "journal",
            [Problem("record", f"columns of lengths {lengths}", "columns of equal length")],
        )
    return Record(**columns)


def _short(column: Any) -> Any:
    largest = int(np.abs(column).max(initial=0))
    return column.astype(np.int16 if largest < 2**15 else np.int64)
