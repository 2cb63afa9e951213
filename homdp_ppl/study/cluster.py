"""Work on a cluster: Dask workers compute, and only the process that holds the study's directory
writes.

Workers need this package and, for models in files, the same files at the same paths; they need no
access to the directory. A unit that was computed twice, because its worker was taken for lost, is
committed once: what is there already must be the same.
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
from homdp_ppl.study.executors import SET_ASIDE, STRIKES, Outcomes, Report, unit_lock, whole_errors
from homdp_ppl.study.fingerprints import check_fingerprint, check_sources
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.sources import find_again
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.units import Stopped, journal_of, run_unit, to_arrays, to_record

POLL = 0.01  # seconds between two looks at whether there are results, or a reason to stop
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
    """Let the workers of a scheduler do the work; a unit that ended three of them is set aside.

    A unit is sent when a thread of a worker is free for it, so that none waits on a worker that
    another one ends. The scheduler's ``allowed_failures`` is set to two.

    Parameters
    ----------
    directory, units
        What to do.
    client
        Of the scheduler.
    pace
        Asked between results; work that is under way on a worker when it stops is lost and done
        again another time.
    report
        Told a unit and how many rounds more are written.
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
                own = unit.model, unit.rule, directory.study.planner
                future = client.submit(
                    compute,
                    study,
                    tuple(unit),
                    directory.manifest.models[unit.model],
                    {text: source for text, source in recorded.items() if text in own},
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
                    raise _trouble(
                        unit.name, error, "workers with this package, in the same version"
                    ) from None
                else:
                    report(unit, rounds)
        return Outcomes(failed, pace.stop if left or sent else "")
    except OSError as error:  # also what Dask raises for a connection that is closed
        raise _trouble("scheduler", error, "an answer") from None
    finally:
        with suppress(OSError):
            client.cancel(list(sent))


def _received(future: Future[Any], result: Any) -> list[tuple[Any, ...]]:
    """The runs, or the error, that came in place of a task."""
    if future.status == "finished":
        runs: list[tuple[Any, ...]] = result
        return runs
    raise (
        result[1]
        if future.status == "error"
        else OSError("the connection to the scheduler was lost")
    )


def _trouble(where: str, error: BaseException, expected: str) -> HOMDPError:
    got = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return HOMDPError(
        "cluster",
        [Problem(where, got, expected, "What is written is whole: resume when it is mended.")],
    )


def _allow(failures: int) -> Callable[[Any], None]:
    """A function inside another is sent as it is: a scheduler need not have this package."""

    def allow(dask_scheduler: Any) -> None:
        dask_scheduler.allowed_failures = failures

    return allow


class _Wanted(Pace):
    """Stops when the scheduler has taken the task back.

    Whoever asked for it has stopped, or is gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tasks, self._key = get_worker().state.tasks, thread_state.key

    @property
    def stop(self) -> str:
        """Why to stop; empty as long as somebody waits."""
        task = self._tasks.get(self._key)
        return "nobody waits for it" if task is not None and task.state == "cancelled" else ""


class _Memory:
    """A run kept in memory."""

    def __init__(self) -> None:
        self.about: Mapping[str, str | int | float] = {}
        self.record: Record | None = None
        self.seconds = 0.0

    def written(self, run: Run) -> Record:
        """Nothing yet."""
        self.about, self.record = run.about, run.record
        return run.record

    def append(self, record: Record, seconds: float) -> None:
        """One more stretch."""
        self.record = record if self.record is None else self.record + record
        self.seconds += seconds


def compute(
    study: Mapping[str, Any],
    unit: Sequence[Any],
    model: Mapping[str, Any],
    sources: Mapping[str, str],
) -> list[tuple[Any, ...]]:
    """All runs of a unit, on a worker; from the same arguments the same, anywhere.

    Parameters
    ----------
    study
        As :meth:`Study.to_json` gives it.
    unit
        The parts of a :class:`Unit`.
    model
        What the model was when the study began; a worker that finds another refuses.
    sources
        The recorded texts of user files; a worker that finds others raises an error before it
        imports them.
    """
    asked, piece = Study.from_mapping(study), Unit(unit[0], unit[1], unit[2], tuple(unit[3]))
    computed = []
    with whole_errors((piece.model, piece.rule, asked.planner)), x64():
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
    """Write a computed run to its journal, or what is not in it yet; how many rounds that were."""
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
            got = "rounds that came out differently on a worker"
            raise DataError(
                unit.name,
                [
                    Problem(
                        "record", got, "the same rounds", "Are the versions the same everywhere?"
                    )
                ],
            )
        rest = record.since(rounds, episodes)
        if len(rest.values):
            journal.append(to_arrays(rest), block.facts)
    return len(rest.values)
