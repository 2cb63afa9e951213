"""Run a study, or resume one that was stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loky import cpu_count

from homdp_ppl.core.arguments import count_problems, number_problems, refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.storage.atomic import StorageError, storage_errors
from homdp_ppl.storage.lock import ENDED, DirectoryLock, LockedError, stale_locks
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.executors import Outcomes, Report, run_here, run_processes
from homdp_ppl.study.pace import Pace, listening
from homdp_ppl.study.reading import Runs, is_complete, read_runs
from homdp_ppl.study.results import write_results
from homdp_ppl.study.sources import find_again, find_planner, find_rule
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.trust import Trust, user_files


class Work(NamedTuple):
    """Who does the work, and for how long: as in :func:`compare`."""

    workers: int | None
    client: Any
    time_limit: float | None
    report: Report | None

    def problems(self) -> list[Problem]:
        """What is wrong with it."""
        found = [] if self.workers is None else count_problems(workers=self.workers)
        if self.time_limit is not None:
            found += number_problems(time_limit=self.time_limit)
        if self.report is not None and not callable(self.report):
            found.append(Problem("report", repr(self.report), "a function of a unit and a number"))
        return found


class Finished(NamedTuple):
    """A study that ran, to its end or not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     done = compare(
    ...         "tiger",
    ...         ["greedy"],
    ...         episodes=5,
    ...         seeds=1,
    ...         out=out,
    ...         workers=1,
    ...         horizon=2,
    ...         time_limit=1e-9,
    ...     )
    >>> done.complete, done.stopped, list(done.runs)
    (False, 'the time limit is reached', [])
    """

    directory: StudyDirectory
    runs: Runs
    failed: dict[Unit, str]  # units that could not be done, and why
    stopped: str  # why it stopped before the end; empty if it did not

    def __repr__(self) -> str:
        left = f"; {len(self.failed)} units failed" if self.failed else ""
        state = (
            "complete"
            if self.complete
            else f"stopped, {self.stopped}"
            if self.stopped
            else "incomplete"
        )
        return (
            f"Study in {self.directory.path}: {state}, "
            f"{sum(map(len, self.runs.values()))} runs{left}"
        )

    @property
    def complete(self) -> bool:
        """Whether all runs are at their end."""
        return not self.failed and not self.stopped


@checked_but("models", "explorers", "episodes", "seeds")
def compare(
    models: Study | str | Sequence[str],
    explorers: Sequence[str] = Study.explorers,
    episodes: int = Study.episodes,
    seeds: int = Study.seeds,
    *,
    out: str | Path,
    workers: int | None = None,
    client: Any = None,
    time_limit: float | None = None,
    report: Report | None = None,
    **more: Any,
) -> Finished:
    """Let several rules learn in several models over the same seeds, and keep everything in a
    directory.

    Called again with the same directory, it resumes where it was stopped; a study that is complete
    is only read.

    Parameters
    ----------
    models
        A study, or its models: zoo names with options, ``.POMDP`` files, or
        ``path/to/file.py:name``.
    explorers, episodes, seeds, more
        As in :class:`Study`, and its other attributes by name.
    out
        The directory.
    workers
        Processes on this machine; by default as many as there are cores for this process. With 1
        all happens in this one.
    client
        A ``dask.distributed.Client`` in their place.
    time_limit
        Seconds after which to stop, to be resumed another time.
    report
        Called with a unit and how many more rounds are written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     done = compare("tiger", ["greedy"], episodes=20, seeds=2, out=out, workers=1, horizon=2)
    ...     [round(run.optimum, 3) for run in done.runs["tiger", "declared", "greedy"]]
    [1.852, 1.852]
    """
    work = Work(workers, client, time_limit, report)
    refuse(ParameterError, "compare", [*_place_problems(out), *work.problems()])
    given = {"explorers": explorers, "episodes": episodes, "seeds": seeds, **more}
    study = _asked(models, given)
    StudyDirectory.at_place(out, study)  # before its files are imported: they have not changed
    worlds = find_worlds(study)
    with storage_errors(out, "a directory for a study"):
        Path(out).mkdir(parents=True, exist_ok=True)
    _check_locks(out)
    with DirectoryLock(out):
        return _run(StudyDirectory.create(out, study, worlds), work)


def _asked(models: Any, given: dict[str, Any]) -> Study:
    """The study that is asked for, by itself or by its parts."""
    if isinstance(models, Study):
        beside = [name for name, value in given.items() if value != getattr(Study, name, None)]
        if beside:
            remedy = "Change the study itself: dataclasses.replace(study, episodes=...)."
            raise ParameterError(
                "compare",
                [Problem(", ".join(beside), "a value beside a Study", "a Study alone", remedy)],
            )
        return models
    texts = [models] if isinstance(models, str) else models
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        remedy = "Objects run without a directory: homdp_ppl.study.side_by_side(world, rules, ...)."
        expected = "a Study, or models as texts: zoo names, .POMDP files or path/to/file.py:name"
        raise ParameterError("compare", [Problem("models", _kind(models), expected, remedy)])
    return Study.from_mapping({"models": list(texts), **given}, "compare")


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {', '.join({type(one).__name__ for one in value})}"
    return f"a {type(value).__name__}"


def _place_problems(out: Any) -> list[Problem]:
    if isinstance(out, str | os.PathLike) and str(out):
        return []
    return [Problem("out", repr(out), "the path of a directory", 'As in out="mine".')]


def find_worlds(study: Study) -> dict[str, World]:
    """The worlds of a study; unknown names raise an error before anything is written."""
    worlds = {text: find_again(text, study.horizon) for text in study.models}
    for world in worlds.values():
        find_planner(study.planner, world)
        for rule in study.explorers:
            find_rule(rule, world)
    return worlds


@checked
def resume(
    out: str | Path,
    *,
    workers: int | None = None,
    client: Any = None,
    time_limit: float | None = None,
    report: Report | None = None,
    trust: Trust = False,
    take_over: bool = False,
) -> Finished:
    """Resume a study that was stopped.

    Models and user files that have changed since raise ParameterError. The directory may come from
    somebody else: user files that it names are imported only if ``trust`` covers them, and only if
    their text is the recorded one.

    Parameters
    ----------
    out
        Its directory.
    workers, client, time_limit, report
        As in :func:`compare`.
    trust
        The user files that may be imported: True for those that the study names, at or below the
        working directory; or the files, anywhere. Studies without user files need none.
    take_over
        Remove the locks of processes on other hosts, which have ended: this host cannot know.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     first = compare(
    ...         "tiger",
    ...         ["uniform"],
    ...         episodes=3,
    ...         seeds=2,
    ...         out=out,
    ...         workers=1,
    ...         horizon=2,
    ...         time_limit=0.0,
    ...     )
    ...     then = resume(out, workers=1)
    >>> first.complete, then.complete
    (False, True)
    """
    work = Work(workers, client, time_limit, report)
    refuse(ParameterError, "resume", [*_place_problems(out), *work.problems()])
    directory = StudyDirectory.open(out, trust)
    if not take_over:
        _check_locks(out)
    with DirectoryLock(out, take_over):
        for path, _ in stale_locks(out):  # of units: this process holds the directory itself
            with DirectoryLock(path.parent, take_over):
                pass
        return _run(directory, work)


def _check_locks(out: str | Path) -> None:
    """Raise LockedError with every lock that this host cannot judge."""
    found = stale_locks(out)
    if found:
        raise LockedError(found, ENDED)


def _run(directory: StudyDirectory, work: Work) -> Finished:
    deadline = None if work.time_limit is None else time.monotonic() + work.time_limit
    pace = Pace(deadline=deadline)
    report: Report = work.report or (lambda unit, n: None)
    left = [unit for unit in directory.units() if not is_complete(directory, unit)]
    outcomes = Outcomes({}, "")
    if left:
        directory.check_imports(*user_files(directory.study))
        with listening(pace):
            if work.client is not None:
                from homdp_ppl.study.cluster import run_cluster  # dask is an extra

                outcomes = run_cluster(directory, left, work.client, pace, report)
            elif (work.workers or cpu_count()) == 1:
                outcomes = run_here(directory, left, pace, report)
            else:
                workers = work.workers or cpu_count()
                outcomes = run_processes(directory, left, workers, pace, report)
    directory.confirm()
    runs = read_runs(directory)
    if not outcomes.stopped:
        _check_complete(directory, [unit for unit in left if unit not in outcomes.failed])
    write_results(directory, runs)
    return Finished(directory, runs, *outcomes)


def _check_complete(directory: StudyDirectory, units: Sequence[Unit]) -> None:
    """Raise StorageError if the journals of a unit that was done are not there."""
    for unit in units:
        if not is_complete(directory, unit):
            remedy = "Another process has changed the directory: resume the study."
            raise StorageError(
                directory.unit_path(unit), "missing runs", "the runs that were written", remedy
            )
