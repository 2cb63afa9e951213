"""Who does the work: this process, several on this machine, or (cluster.py) many on others."""

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
from homdp_ppl.study.files import own_line
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.specification import Unit
from homdp_ppl.study.units import Stopped, journal_sink, run_unit

STRIKES = 3  # workers that a unit may end before it is set aside
SET_ASIDE = f"it ended {STRIKES} workers and is set aside; resuming tries it again"
POLL = 0.2  # seconds between two looks at what the workers have done
WATCH = 1.0  # seconds between two looks of a worker at whether it has a parent
PATIENCE = 60.0  # seconds to wait for a worker that nobody waits for to notice it
THREADS = (
    "PJRT_NPROC",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)  # PJRT_NPROC is XLA's


class Outcomes(NamedTuple):
    """How the work ended."""

    failed: dict[Unit, str]  # units that cannot be done, and why
    stopped: str  # why the rest was left for later; empty if nothing was


Report = Callable[[Unit, int], None]  # a unit, and how many rounds more are written


def run_here(
    directory: StudyDirectory, units: Iterable[Unit], pace: Pace, report: Report
) -> Outcomes:
    """Do the work in this process, one unit after the other."""
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
    """Do one unit, writing to its journals.

    Models and user files that have changed since the study began raise ParameterError, before
    anything is imported.
    """
    own = unit.model, unit.rule, directory.study.planner
    with unit_lock(directory, unit, pace), whole_errors(own), x64():
        directory.check_imports(*own)
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
    """Hold the directory of a unit; a worker whose parent was killed has it until it notices."""
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
def whole_errors(own: Iterable[str]) -> Iterator[None]:
    """Turn whatever a model or a rule raises into an error that says where, in own files first, and
    that can be sent.
    """
    try:
        yield
    except (Stopped, HOMDPError):
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = own_line(error, own) or f"{Path(last.filename).name} line {last.lineno}"
        raise HOMDPError(
            "error", [Problem(where, f"{type(error).__name__}: {error}", "no error")]
        ) from error


def run_processes(
    directory: StudyDirectory, units: Sequence[Unit], workers: int, pace: Pace, report: Report
) -> Outcomes:
    """Do the work in several processes of this machine, which are spawned and never forked (loky).

    A process that dies is replaced and its unit done again; a unit that ended three of them is set
    aside.

    Parameters
    ----------
    directory, units
        What to do.
    workers
        How many processes.
    pace
        Asked all the time; the workers are told by a file, and finish the stretch that they are at.
    report
        Told a unit and how many rounds more are written.
    """
    failed: dict[Unit, str] = {}
    ended: Counter[Unit] = Counter()  # workers, by unit
    left = deque(units)
    told: Counter[Unit] = Counter()  # rounds
    threads = max(1, cpu_count() // workers)
    crew = [_Worker(directory, report, told, threads) for _ in range(min(workers, len(left)))]
    directory.flag.unlink(missing_ok=True)
    try:
        while (left and not pace.stop) or any(worker.unit for worker in crew):
            if pace.stop:
                with storage_errors(directory.flag, "a file that asks the workers to stop"):
                    write_plain(directory.flag, b"")
            for worker in crew:
                if worker.unit is None and left and not pace.stop:
                    worker.begin(left.popleft())
            wait([worker.future for worker in crew if worker.unit], POLL, FIRST_COMPLETED)
            for worker in crew:
                unit = worker.unit
                if unit is None or not worker.look():
                    continue
                try:
                    said = worker.future.result()
                except TerminatedWorkerError:
                    worker.end()
                    ended[unit] += 1
                    if ended[unit] == STRIKES:
                        failed[unit] = SET_ASIDE
                    else:
                        left.append(unit)
                except StorageError:
                    raise
                except HOMDPError as error:
                    failed[unit] = in_one_line(error)
                else:
                    if said:
                        left.append(unit)
                        pace.ask(pace.stop or said)
        return Outcomes(failed, pace.stop if left else "")
    finally:
        for worker in crew:
            worker.end()
        directory.flag.unlink(missing_ok=True)


class _Worker:
    """One process that does one unit at a time, so that it is known which unit it died of."""

    def __init__(
        self, directory: StudyDirectory, report: Report, told: Counter[Unit], threads: int
    ) -> None:
        self._directory, self._report, self._told = directory, report, told
        self._environment = {name: os.environ.get(name, str(threads)) for name in THREADS}
        self._pool: ProcessPoolExecutor | None = None
        self.unit: Unit | None = None  # what it is at
        self.future: Future[str]

    def begin(self, unit: Unit) -> None:
        """Give it a unit, and a process if it has none."""
        if self._pool is None:
            watch = {"initializer": _watch, "initargs": (os.getpid(),)}
            self._pool = ProcessPoolExecutor(1, **watch, env=self._environment)
        _rounds(self._directory, unit).unlink(missing_ok=True)
        with _interrupts_blocked():  # a new process inherits this: Ctrl-C is for its parent
            self.future = self._pool.submit(_work_elsewhere, self._directory, unit)
        self.unit = unit

    def look(self) -> bool:
        """Report what was written since the last look.

        Whether the unit is over, for good or bad.
        """
        unit, over = self.unit, self.future.done()
        if unit is None:
            return False
        with suppress(OSError, ValueError):  # nothing yet, or just being written
            now = int(_rounds(self._directory, unit).read_text())
            if now > self._told[unit]:
                self._report(unit, now - self._told[unit])
                self._told[unit] = now
        if over:
            _rounds(self._directory, unit).unlink(missing_ok=True)
            self.unit = None
        return over

    def end(self) -> None:
        """End its process."""
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

    resource_tracker.ensure_running()  # its start would end the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _rounds(directory: StudyDirectory, unit: Unit) -> Path:
    """Where a worker writes how far it is; only for those who watch."""
    return directory.unit_path(unit) / ".rounds"


def _watch(parent: int) -> None:
    """End this process when its parent has ended, however that happened."""
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def look() -> None:
        while os.getppid() == parent and is_running(parent):  # Windows keeps a dead parent's number
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def _work_elsewhere(directory: StudyDirectory, unit: Unit) -> str:
    """A unit in a worker process: why it stopped before its end, or nothing."""
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
