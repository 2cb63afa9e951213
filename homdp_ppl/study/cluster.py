"""Run a study on a Dask cluster: the workers compute, and only the coordinating process writes.

Workers need this package and the same user files at the same paths, but no access to the study
directory. If a unit is computed twice, because its worker was considered lost, it is committed
once: the second result must equal the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import sleep
from typing import Any, NamedTuple

from dask.context import thread_state
from distributed import Client, Future, as_completed, get_worker
from distributed.scheduler import KilledWorker

from homdp_ppl.errors import DataError, HOMDPError, ParameterError, Problem, in_one_line
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.run import Run
from homdp_ppl.precision import x64
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.blocks import decode, encode
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.executors import (
    SET_ASIDE,
    STRIKES,
    Outcomes,
    Report,
    located_errors,
    unit_lock,
)
from homdp_ppl.study.fingerprints import check_fingerprint, check_sources
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.sources import find_again
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.units import Stopped, journal_of, run_unit, to_arrays, to_record

POLL = 0.01  # seconds between checks for results and for a reason to stop
TIMEOUT = "20s"  # for connecting to a scheduler


class Computed(NamedTuple):
    """A run as a worker sends it: arrays and text, nothing that could be executed."""

    seed: int
    about: Mapping[str, str | int | float]
    block: bytes


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of a Dask scheduler; raises ParameterError if there is none at the address.

    Parameters
    ----------
    address
        Address of the scheduler, as in ``tcp://127.0.0.1:8786``.
    """
    try:
        client = Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        got = " ".join(str(error).split())[:200] or type(error).__name__
        remedy = "Start one with `dask scheduler`, and its workers with `dask worker tcp://...`."
        raise ParameterError(
            "cluster", [Problem("--scheduler", f"{address} ({got})", "a Dask scheduler", remedy)]
        ) from None
    try:
        yield client
    finally:
        client.close()


def run_cluster(
    directory: StudyDirectory, units: Sequence[Unit], client: Client, pace: Pace, report: Report
) -> Outcomes:
    """Run units on the workers of a scheduler; a unit on which three workers die is skipped.

    A unit is sent only when a worker thread is free, so that no unit waits on a worker that dies
    of another unit. The scheduler's ``allowed_failures`` is set to two.

    Parameters
    ----------
    directory
        The study directory.
    units
        The units to run.
    client
        The client of the scheduler.
    pace
        Checked between results. Units that are running on workers at a stop are lost and computed
        again after resuming.
    report
        Called with a unit and the number of new rounds.
    """
    failed: dict[Unit, str] = {}
    left = deque(units)
    sent: dict[Future[Any], Unit] = {}
    study, recorded = directory.study.to_json(), directory.manifest.sources
    results = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    try:
        client.run_on_scheduler(_allow(STRIKES - 1))
        while (left or sent) and not pace.stop:
            for _ in range(
                min(len(left), sum(client.nthreads().values()) - len(sent)) if left else 0
            ):
                unit = left.popleft()
                texts = unit.model, unit.rule, directory.study.planner
                future = client.submit(
                    compute,
                    study,
                    tuple(unit),
                    directory.manifest.models[unit.model],
                    {text: source for text, source in recorded.items() if text in texts},
                    pure=False,
                )
                sent[future] = unit
                results.add(future)
            if not results.has_ready():
                sleep(POLL)
            for future, result in results.next_batch(block=False):
                unit = sent.pop(future)
                try:
                    rounds = sum(
                        commit(directory, unit, Computed(*run), pace)
                        for run in _received(future, result)
                    )
                except Stopped:
                    left.append(unit)
                except KilledWorker:
                    failed[unit] = SET_ASIDE
                except (StorageError, OSError):
                    raise
                except HOMDPError as error:
                    failed[unit] = in_one_line(error)
                except Exception as error:
                    raise _cluster_error(
                        unit.name, error, "workers with the same version of this package"
                    ) from None
                else:
                    report(unit, rounds)
        return Outcomes(failed, pace.stop if left or sent else "")
    except OSError as error:  # Dask raises it for closed connections, too
        raise _cluster_error("scheduler", error, "a response") from None
    finally:
        with suppress(OSError):
            client.cancel(list(sent))


def _received(future: Future[Any], result: Any) -> list[tuple[Any, ...]]:
    """The runs of a finished task, or raise its error."""
    if future.status == "finished":
        runs: list[tuple[Any, ...]] = result
        return runs
    raise (
        result[1]
        if future.status == "error"
        else OSError("the connection to the scheduler was lost")
    )


def _cluster_error(where: str, error: BaseException, expected: str) -> HOMDPError:
    got = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    remedy = "Saved results are intact: resume the study when the cluster works again."
    return HOMDPError("cluster", [Problem(where, got, expected, remedy)])


def _allow(failures: int) -> Callable[[Any], None]:
    """A nested function, which is sent by value: the scheduler does not need this package."""

    def allow(dask_scheduler: Any) -> None:
        dask_scheduler.allowed_failures = failures

    return allow


class _Wanted(Pace):
    """Stops when the scheduler has cancelled the task, because its client stopped or died."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks, self._key = get_worker().state.tasks, thread_state.key

    @property
    def stop(self) -> str:
        """The reason to stop; empty as long as the task is not cancelled."""
        task = self._tasks.get(self._key)
        return "the task was cancelled" if task is not None and task.state == "cancelled" else ""


class _Memory:
    """A sink that keeps a run in memory."""

    def __init__(self) -> None:
        self.about: Mapping[str, str | int | float] = {}
        self.record: Record | None = None
        self.seconds = 0.0

    def written(self, run: Run) -> Record:
        """The record of a new run, which is empty."""
        self.about, self.record = run.about, run.record
        return run.record

    def append(self, record: Record, seconds: float) -> None:
        """Add rounds."""
        self.record = record if self.record is None else self.record + record
        self.seconds += seconds


def compute(
    study: Mapping[str, Any],
    unit: Sequence[Any],
    model: Mapping[str, Any],
    sources: Mapping[str, str],
) -> list[tuple[Any, ...]]:
    """Compute all runs of a unit on a worker; the result depends on the arguments only.

    Parameters
    ----------
    study
        The study, as :meth:`Study.to_json` returns it.
    unit
        The parts of a :class:`Unit`.
    model
        The recorded fingerprint of the model. Another fingerprint on the worker is an error.
    sources
        The recorded texts of user files. Other texts on the worker are an error, raised before the
        files are imported.
    """
    asked, piece = Study.from_mapping(study), Unit(unit[0], unit[1], unit[2], tuple(unit[3]))
    computed = []
    with located_errors((piece.model, piece.rule, asked.planner)), x64():
        check_sources(sources, "worker")
        world = find_again(piece.model, asked.horizon)
        check_fingerprint(piece.model, model, world, "worker")
        sinks: dict[int, _Memory] = {}

        @contextmanager
        def sink(seed: int) -> Iterator[_Memory]:
            yield sinks.setdefault(seed, _Memory())

        run_unit(asked, piece, world, sink, _Wanted(), lambda n: None)
    for seed, kept in sinks.items():
        if kept.record is not None:
            computed.append(
                (seed, dict(kept.about), encode(to_arrays(kept.record), {"seconds": kept.seconds}))
            )
    return computed


def commit(directory: StudyDirectory, unit: Unit, run: Computed, pace: Pace) -> int:
    """Append the new rounds of a computed run to its journal; returns their number."""
    block = decode(run.block)
    record = to_record(block.arrays)
    path = directory.journal_path(unit, run.seed)
    about = {**run.about, **directory.identity(unit, run.seed)}
    with unit_lock(directory, unit, pace), journal_of(path, about) as journal:
        there = [to_record(old.arrays) for old in journal.records()]
        rounds, episodes = (
            sum(len(old.values) for old in there),
            sum(len(old.played) for old in there),
        )
        if there and not sum(there[1:], there[0]).same_as(record.until(rounds, episodes)):
            got = "rounds from a worker that differ from those in the journal"
            remedy = "Install the same versions of all packages on all workers."
            raise DataError(unit.name, [Problem("record", got, "the same rounds", remedy)])
        rest = record.since(rounds, episodes)
        if len(rest.values):
            journal.append(to_arrays(rest), block.facts)
    return len(rest.values)
