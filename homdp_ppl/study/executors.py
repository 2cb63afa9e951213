"""Who does the work: this process, several on this machine, or a cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from homdp_ppl.errors import HOMDPError
from homdp_ppl.locking import DirectoryLock
from homdp_ppl.precision import x64
from homdp_ppl.storage import StorageError
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.specification import Unit
from homdp_ppl.study.units import Stopped, journal_sink, run_unit

STRIKES = 3  # workers that a unit may kill before it is set aside
POLL = 0.2  # seconds between two looks at what the workers have done
PATIENCE = 60.0  # seconds to wait for a worker that nobody waits for to notice it


class Outcomes(NamedTuple):
    """How the work ended."""

    failed: dict[Unit, str]  # units that cannot be done, and why
    stopped: str  # why the rest was left for later; empty if nothing was


Report = Callable[[Unit, int], None]  # a unit, and how many rounds more are written


def run_here(directory: StudyDirectory, units: Iterable[Unit], pace: Pace, report: Report) -> Outcomes:
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
            failed[unit] = " ".join(str(error).split())
    return Outcomes(failed, "")


def work(directory: StudyDirectory, unit: Unit, pace: Pace, done: Callable[[int], None]) -> None:
    """Do one unit, writing to its journals, for who gets its lock."""
    path = directory.unit_path(unit)
    path.mkdir(parents=True, exist_ok=True)
    with _locked(path, pace), x64():
        run_unit(directory.study, unit, lambda seed: journal_sink(directory.journal_path(unit, seed)), pace, done)


class _locked:  # noqa: N801  used as a statement
    """The lock of a unit; a worker whose parent was killed holds it until it notices."""

    def __init__(self, path: Path, pace: Pace) -> None:
        self._lock, self._pace = DirectoryLock(path), pace

    def __enter__(self) -> None:
        begun = time.monotonic()
        while True:
            try:
                self._lock.__enter__()
                return
            except StorageError:
                if self._pace.stop or time.monotonic() - begun > PATIENCE:
                    raise
                time.sleep(POLL)

    def __exit__(self, *given: Any) -> None:
        self._lock.__exit__(*given)


def run_processes(directory: StudyDirectory, units: Sequence[Unit], workers: int, pace: Pace, report: Report) -> Outcomes:
    """Do the work in several processes of this machine, which are spawned and never forked (joblib's loky).

    A unit whose workers die three times is set aside; units that were under way beside it are tried again one by one, so that
    none is blamed for another.
    """
    failed: dict[Unit, str] = {}
    strikes: dict[Unit, int] = {}
    left = list(units)
    alone = False
    directory.flag.unlink(missing_ok=True)
    try:
        while left and not pace.stop:
            batch = left[:1] if alone else left
            done, died = _pool(directory, batch, 1 if alone else workers, pace, report, failed)
            left = [unit for unit in left if unit not in done and unit not in failed]
            for unit in died:
                strikes[unit] = strikes.get(unit, 0) + alone
                if strikes[unit] >= STRIKES:
                    failed[unit] = f"it ended {STRIKES} workers and is set aside"
                    left.remove(unit)
            alone = bool(died) or (alone and any(unit in strikes for unit in left[:1]))
            left.sort(key=lambda unit: unit not in died)
        return Outcomes(failed, pace.stop if left else "")
    finally:
        directory.flag.unlink(missing_ok=True)


def _pool(
    directory: StudyDirectory, units: Sequence[Unit], workers: int, pace: Pace, report: Report, failed: dict[Unit, str]
) -> tuple[set[Unit], list[Unit]]:
    """Units that are done, and those that were under way when a worker died."""
    executor = get_reusable_executor(max_workers=min(workers, len(units)), timeout=300, kill_workers=True, reuse=False)
    futures = {executor.submit(_work_elsewhere, str(directory.path), unit, os.getpid()): unit for unit in units}
    done: set[Unit] = set()
    written = dict.fromkeys(units, 0)
    try:
        waiting = set(futures)
        while waiting:
            if pace.stop:
                directory.flag.touch()
            time.sleep(POLL)
            for unit in units:
                now = _progress(directory, unit)
                report(unit, now - written[unit])
                written[unit] = now
            for future in [future for future in waiting if future.done()]:
                waiting.remove(future)
                unit = futures[future]
                try:
                    said = future.result()
                except TerminatedWorkerError:
                    under_way = [futures[other] for other in {future, *waiting} if _begun(directory, futures[other])]
                    return done, under_way or [unit]
                except StorageError:
                    raise
                except HOMDPError as error:
                    failed[unit] = " ".join(str(error).split())
                else:
                    if not said:
                        done.add(unit)
        return done, []
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _begun(directory: StudyDirectory, unit: Unit) -> bool:
    """Whether a worker holds the unit, or died while it did."""
    return (directory.unit_path(unit) / ".lock").exists()


def _progress(directory: StudyDirectory, unit: Unit) -> int:
    try:
        return int((directory.unit_path(unit) / ".rounds").read_text() or 0)
    except (OSError, ValueError):
        return 0


def _work_elsewhere(path: str, unit: Unit, parent: int) -> str:
    """A unit in a worker process: why it stopped before its end, or nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started the workers decides
    directory = StudyDirectory.open(path)
    pace = Pace(directory.flag, parent=parent)
    total = 0

    def done(n: int) -> None:
        nonlocal total
        total += n
        (directory.unit_path(unit) / ".rounds").write_text(str(total))

    try:
        work(directory, unit, pace, done)
    except Stopped as stopped:
        return str(stopped)
    return ""
