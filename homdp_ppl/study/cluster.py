"""Work on a cluster: Dask workers compute, and only the process that holds the study's directory writes.

Workers need this package and, for models in files, the same files at the same paths; they need no access to the directory. A unit
that was computed twice, because its worker was taken for lost, is committed once: what is there already must be the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from distributed import Client, Future, as_completed
from distributed.scheduler import KilledWorker

from homdp_ppl.blocks import decode, encode
from homdp_ppl.errors import DataError, HOMDPError, ParameterError, Problem
from homdp_ppl.outcome import Outcome
from homdp_ppl.precision import x64
from homdp_ppl.record import Record
from homdp_ppl.study.directory import StudyDirectory, check_fingerprint
from homdp_ppl.study.executors import STRIKES, Outcomes, Report
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.sources import find_world
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.units import journal_of, run_unit, to_arrays, to_record

POLL = 0.5  # seconds between two looks at whether to stop
TIMEOUT = "20s"  # to reach a scheduler


class Computed(NamedTuple):
    """A run as a worker sends it: bytes of arrays and words, nothing that could be executed."""

    seed: int
    about: Mapping[str, str | int | float]
    block: bytes


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of a scheduler; refuses an address at which there is none.

    Parameters
    ----------
    address
        As in ``tcp://127.0.0.1:8786``.
    """
    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        got = " ".join(str(error).split())[:200] or type(error).__name__
        remedy = "Start one: `dask scheduler`, and workers for it: `dask worker tcp://...`."
        raise ParameterError("cluster", [Problem("--scheduler", f"{address} ({got})", "a Dask scheduler", remedy)]) from None
    try:
        yield client
    finally:
        client.close()


def run_cluster(directory: StudyDirectory, units: Sequence[Unit], client: Client, pace: Pace, report: Report) -> Outcomes:
    """Let the workers of a scheduler do the work; a unit that ended three of them is set aside.

    Parameters
    ----------
    directory, units
        What to do.
    client
        Of the scheduler.
    pace
        Asked between results; work that is under way on a worker when it stops is lost and done again another time.
    report
        Told a unit and how many rounds more are written.
    """
    client.run_on_scheduler(_allow, STRIKES - 1)
    study = directory.study.to_json()
    futures: dict[Future[Any], Unit] = {
        client.submit(compute, study, tuple(unit), directory.models[unit.model], pure=False): unit for unit in units
    }
    failed: dict[Unit, str] = {}
    waiting = set(futures)
    try:
        while waiting and not pace.stop:
            try:
                done = next(iter(as_completed(list(waiting), timeout=POLL, raise_errors=False)))
            except TimeoutError:
                continue
            waiting.discard(done)
            unit = futures[done]
            error = done.exception()
            if error is None:
                report(unit, sum(commit(directory, unit, Computed(*run)) for run in done.result()))
            elif isinstance(error, KilledWorker):
                failed[unit] = f"it ended {STRIKES} workers and is set aside"
            elif isinstance(error, HOMDPError):
                failed[unit] = " ".join(str(error).split())
            else:
                raise error
            done.release()
        return Outcomes(failed, pace.stop if waiting else "")
    finally:
        client.cancel(list(waiting))


def _allow(failures: int, dask_scheduler: Any = None) -> None:
    dask_scheduler.allowed_failures = failures


class _Memory:
    """A run kept in memory."""

    def __init__(self) -> None:
        self.about: Mapping[str, str | int | float] = {}
        self.record: Record | None = None
        self.seconds = 0.0

    def written(self, run: Outcome[Any]) -> Record:
        """Nothing yet."""
        self.about, self.record = run.about, run.record
        return run.record

    def append(self, record: Record, seconds: float) -> None:
        """One more stretch."""
        self.record = record if self.record is None else self.record + record
        self.seconds += seconds


def compute(study: Mapping[str, Any], unit: Sequence[Any], model: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """All runs of a unit, on a worker; from the same arguments the same, anywhere.

    Parameters
    ----------
    study
        As :meth:`Study.to_json` gives it.
    unit
        The parts of a :class:`Unit`.
    model
        What the model was when the study began; a worker that finds another refuses.
    """
    asked, piece = Study.from_mapping(study), Unit(unit[0], unit[1], unit[2], tuple(unit[3]))
    computed = []
    with x64():
        check_fingerprint(piece.model, model, find_world(piece.model, asked.horizon), "worker")
        sinks: dict[int, _Memory] = {}

        @contextmanager
        def sink(seed: int) -> Iterator[_Memory]:
            yield sinks.setdefault(seed, _Memory())

        run_unit(asked, piece, sink, Pace(), lambda n: None)
    for seed, kept in sinks.items():
        if kept.record is not None:
            computed.append((seed, dict(kept.about), encode(to_arrays(kept.record), {"seconds": kept.seconds})))
    return computed


def commit(directory: StudyDirectory, unit: Unit, run: Computed) -> int:
    """Write a computed run to its journal, or what is not in it yet; how many rounds that were."""
    block = decode(run.block)
    record = to_record(block.arrays)
    with journal_of(directory.journal_path(unit, run.seed), run.about) as journal:
        there = [to_record(old.arrays) for old in journal.records()]
        rounds, episodes = sum(len(old.values) for old in there), sum(len(old.played) for old in there)
        if there and not sum(there[1:], there[0]).same_as(record.until(rounds, episodes)):
            got = "rounds that came out differently on a worker"
            raise DataError(unit.name, [Problem("record", got, "the same rounds", "Are the versions the same everywhere?")])
        rest = record.since(rounds, episodes)
        if len(rest.values):
            journal.append(to_arrays(rest), block.facts)
    return len(rest.values)
