"""Executors: run the units of a study in this process, or in several processes on this machine.

The executor for Dask clusters is in cluster.py.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from loky import ProcessPoolExecutor, cpu_count
from loky.process_executor import TerminatedWorkerError

from homdp_ppl.errors import HOMDPError, Problem, in_one_line
from homdp_ppl.precision import x64
from homdp_ppl.storage._system import is_running, write_plain
from homdp_ppl.storage.atomic import StorageError, storage_errors
from homdp_ppl.storage.lock import DirectoryLock, LockedError
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.files import user_line
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.specification import Unit
from homdp_ppl.study.units import Stopped, journal_sink, run_unit

STRIKES = 3  # workers that may die on a unit before it is skipped
SET_ASIDE = f"{STRIKES} worker processes died while running this unit; resuming tries it again"
POLL = 0.2  # seconds between checks of the workers
WATCH = 1.0  # seconds between a worker's checks that its parent is running
PATIENCE = 60.0  # seconds to wait for the lock of a worker whose parent has died
THREADS = (
    "PJRT_NPROC",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)  # PJRT_NPROC is XLA's


class Outcomes(NamedTuple):
    """The outcome of running units."""

    failed: dict[Unit, str]  # units that failed, with the reasons
    stopped: str  # reason for stopping before the end; empty if all units were run


Report = Callable[[Unit, int], None]  # called with a unit and the number of new rounds


def run_here(
    directory: StudyDirectory, units: Iterable[Unit], pace: Pace, report: Report
) -> Outcomes:
    """Run units in this process, one after the other."""
    failed: dict[Unit, str] = {}
    for unit in units:
        try:
            work(directory, unit, pace, partial(report, unit))
        except Stopped as stopped:
            return Outcomes(failed, str(stopped))
        except StorageError:
            raise
        except HOMDPError as error:
            failed[unit] = in_one_line(error)
    return Outcomes(failed, "")


def work(directory: StudyDirectory, unit: Unit, pace: Pace, done: Callable[[int], None]) -> None:
    """Run one unit and write its journals.

    If models or user files have changed since the study began, ParameterError is raised before
    anything is imported.
    """
    texts = unit.model, unit.rule, directory.study.planner
    with unit_lock(directory, unit, pace), located_errors(texts), x64():
        directory.check_imports(*texts)
        world = directory.world(unit.model)
        run_unit(
            directory.study,
            unit,
            world,
            lambda seed: journal_sink(directory, unit, seed),
            pace,
            done,
        )


@contextmanager
def unit_lock(directory: StudyDirectory, unit: Unit, pace: Pace) -> Iterator[None]:
    """Hold the lock of a unit, after waiting for a worker whose parent was killed."""
    path = directory.make_unit_path(unit)
    begun = time.monotonic()
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(DirectoryLock(path))
                break
            except LockedError as error:
                if not error.here:
                    raise
                if pace.stop:
                    raise Stopped(pace.stop) from None
                if time.monotonic() - begun > PATIENCE:
                    raise
                time.sleep(POLL)
        yield


@contextmanager
def located_errors(texts: Iterable[str]) -> Iterator[None]:
    """Convert any exception to a HOMDPError that names its line and can be pickled.

    Parameters
    ----------
    texts
        Models, rules and planners. Lines in their user files take precedence.
    """
    try:
        yield
    except (Stopped, HOMDPError):
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = user_line(error, texts) or f"{Path(last.filename).name} line {last.lineno}"
        raise HOMDPError(
            "error", [Problem(where, f"{type(error).__name__}: {error}", "no error")]
        ) from error


def run_processes(
    directory: StudyDirectory, units: Sequence[Unit], workers: int, pace: Pace, report: Report
) -> Outcomes:
    """Run units in several processes on this machine, spawned and never forked (loky).

    A process that dies is replaced, and its unit is run again. A unit on which three processes die
    is skipped.

    Parameters
    ----------
    directory
        The study directory.
    units
        The units to run.
    workers
        Number of processes.
    pace
        Checked continuously. At a stop, a file requests the workers to stop; they save the rounds
        they are computing.
    report
        Called with a unit and the number of new rounds.
    """
    failed: dict[Unit, str] = {}
    deaths: Counter[Unit] = Counter()  # workers that died, by unit
    left = deque(units)
    reported: Counter[Unit] = Counter()  # rounds, by unit
    threads = max(1, cpu_count() // workers)
    crew = [_Worker(directory, report, reported, threads) for _ in range(min(workers, len(left)))]
    directory.flag.unlink(missing_ok=True)
    try:
        while (left and not pace.stop) or any(worker.unit for worker in crew):
            if pace.stop:
                with storage_errors(directory.flag, "a file that requests the workers to stop"):
                    write_plain(directory.flag, b"")
            for worker in crew:
                if worker.unit is None and left and not pace.stop:
                    worker.begin(left.popleft())
            wait([worker.future for worker in crew if worker.unit], POLL, FIRST_COMPLETED)
            for worker in crew:
                unit = worker.unit
                if unit is None or not worker.poll():
                    continue
                try:
                    reason = worker.future.result()
                except TerminatedWorkerError:
                    worker.end()
                    deaths[unit] += 1
                    if deaths[unit] == STRIKES:
                        failed[unit] = SET_ASIDE
                    else:
                        left.append(unit)
                except StorageError:
                    raise
                except HOMDPError as error:
                    failed[unit] = in_one_line(error)
                else:
                    if reason:
                        left.append(unit)
                        pace.ask(pace.stop or reason)
        return Outcomes(failed, pace.stop if left else "")
    finally:
        for worker in crew:
            worker.end()
        directory.flag.unlink(missing_ok=True)


class _Worker:
    """One process that runs one unit at a time, so that a death can be attributed to a unit."""

    def __init__(
        self, directory: StudyDirectory, report: Report, reported: Counter[Unit], threads: int
    ) -> None:
        self._directory, self._report, self._reported = directory, report, reported
        self._environment = {name: os.environ.get(name, str(threads)) for name in THREADS}
        self._pool: ProcessPoolExecutor | None = None
        self.unit: Unit | None = None  # the unit it is running
        self.future: Future[str]

    def begin(self, unit: Unit) -> None:
        """Run a unit; starts a process if there is none, or if it died between two units."""
        _rounds(self._directory, unit).unlink(missing_ok=True)
        try:
            self.future = self._submit(unit)
        except TerminatedWorkerError:
            self.end()
            self.future = self._submit(unit)
        self.unit = unit

    def _submit(self, unit: Unit) -> Future[str]:
        if self._pool is None:
            watch = {"initializer": _watch, "initargs": (os.getpid(),)}
            self._pool = ProcessPoolExecutor(1, **watch, env=self._environment)
        with _interrupts_blocked():  # inherited by the new process: its parent handles Ctrl-C
            return self._pool.submit(_work_elsewhere, self._directory, unit)

    def poll(self) -> bool:
        """Report new rounds; returns whether the unit has finished or failed."""
        unit, over = self.unit, self.future.done()
        if unit is None:
            return False
        with suppress(OSError, ValueError):  # no rounds yet, or the file is being written
            now = int(_rounds(self._directory, unit).read_text())
            if now > self._reported[unit]:
                self._report(unit, now - self._reported[unit])
                self._reported[unit] = now
        if over:
            _rounds(self._directory, unit).unlink(missing_ok=True)
            self.unit = None
        return over

    def end(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
        self._pool = None


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C while a worker is started.

    Windows has no signal masks; there :func:`_watch` makes the worker ignore Ctrl-C.
    """
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starting it later would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _rounds(directory: StudyDirectory, unit: Unit) -> Path:
    """The file in which a worker counts its rounds, for progress reports only."""
    return directory.unit_path(unit) / ".rounds"


def _watch(parent: int) -> None:
    """End this process when its parent has ended for any reason."""
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def wait_for_end() -> None:
        while os.getppid() == parent and is_running(parent):  # Windows keeps a dead parent's pid
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=wait_for_end, daemon=True).start()


def _work_elsewhere(directory: StudyDirectory, unit: Unit) -> str:
    """Run a unit in a worker process; returns the reason for stopping early, or an empty text."""
    total = 0

    def done(n: int) -> None:
        nonlocal total
        total += n
        with suppress(OSError):  # the journal reports a full disk
            write_plain(_rounds(directory, unit), str(total).encode())

    try:
        work(directory, unit, Pace(directory.flag), done)
    except Stopped as stopped:
        return str(stopped)
    return ""
