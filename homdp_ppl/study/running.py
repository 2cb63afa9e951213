"""Run a study, or resume one that was stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loky import cpu_count

from homdp_ppl.core import html
from homdp_ppl.core.arguments import count_problems, number_problems, refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem, with_article
from homdp_ppl.storage.atomic import StorageError, storage_errors
from homdp_ppl.storage.lock import ENDED, DirectoryLock, LockedError, stale_locks
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.executors import Outcomes, Report, run_here, run_processes
from homdp_ppl.study.pace import Pace, listening
from homdp_ppl.study.reading import Runs, is_complete, read_runs
from homdp_ppl.study.results import write_results
from homdp_ppl.study.reveals import check_rule
from homdp_ppl.study.sources import find_again, find_planner
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.trust import Trust, user_files


class Work(NamedTuple):
    """How to run a study: these arguments of :func:`compare`."""

    workers: int | None
    client: Any
    time_limit: float | None
    report: Report | None

    def problems(self) -> list[Problem]:
        """Invalid arguments."""
        found = [] if self.workers is None else count_problems(workers=self.workers)
        if self.time_limit is not None:
            found += number_problems(time_limit=self.time_limit)
        if self.report is not None and not callable(self.report):
            expected = "a function of a unit and a number of rounds"
            found.append(Problem("report", repr(self.report), expected))
        return found


class Finished(NamedTuple):
    """The outcome of running a study, complete or not.

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
    failed: dict[Unit, str]  # units that failed, with the reasons
    stopped: str  # reason for stopping before the end; empty if all units were run

    def __repr__(self) -> str:
        left = f"; {len(self.failed)} units failed" if self.failed else ""
        state = (
            "complete"
            if self.complete
            else f"stopped because {self.stopped}"
            if self.stopped
            else "incomplete"
        )
        return (
            f"Study in {self.directory.path}: {state}, "
            f"{sum(map(len, self.runs.values()))} runs{left}"
        )

    def _repr_html_(self) -> str:
        rows = [(*key, len(runs)) for key, runs in self.runs.items()]
        return html.block(
            html.paragraph(repr(self), strong=True),
            html.table("Runs", ("model", "prior", "rule", "runs"), rows),
            *(html.paragraph(f"{unit.name}: {why}") for unit, why in self.failed.items()),
        )

    @property
    def complete(self) -> bool:
        """Whether all runs are complete."""
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
    """Run several rules in several models with the same seeds, and save the runs in a directory.

    If the directory already contains this study, it is resumed. A complete study is only read.

    Parameters
    ----------
    models
        A study, or its models: names of the model zoo with options, ``.POMDP`` files, or
        ``path/to/file.py:name``.
    explorers
        As in :class:`Study`.
    episodes
        As in :class:`Study`.
    seeds
        As in :class:`Study`.
    out
        The directory.
    workers
        Number of processes on this machine; by default the number of cores that this process may
        use. With 1, the study runs in this process.
    client
        A ``dask.distributed.Client``, whose workers are used instead.
    time_limit
        Seconds after which to stop. The study can then be resumed.
    report
        Called with a unit and the number of new rounds.
    more
        The other attributes of :class:`Study`.

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
    StudyDirectory.at_place(out, study)  # raises for changed user files, before they are imported
    worlds = find_worlds(study)
    with storage_errors(out, "a directory for a study"):
        Path(out).mkdir(parents=True, exist_ok=True)
    _check_locks(out)
    with DirectoryLock(out):
        return _run(StudyDirectory.create(out, study, worlds), work)


def _asked(models: Any, given: dict[str, Any]) -> Study:
    """The study, given as such or by its attributes."""
    if isinstance(models, Study):
        extra = [name for name, value in given.items() if value != getattr(Study, name, None)]
        if extra:
            got, expected = "an argument in addition to a Study", "only a Study"
            remedy = "Change the study: dataclasses.replace(study, episodes=...)."
            raise ParameterError("compare", [Problem(", ".join(extra), got, expected, remedy)])
        return models
    texts = [models] if isinstance(models, str) else models
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        remedy = "To compare rules in a World object, use study.side_by_side(world, rules, ...)."
        expected = (
            "a Study, or models as strings: names of the model zoo, .POMDP files or "
            "path/to/file.py:name"
        )
        raise ParameterError("compare", [Problem("models", _kind(models), expected, remedy)])
    return Study.from_mapping({"models": list(texts), **given}, "compare")


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of {', '.join({type(one).__name__ for one in value})}"
    return with_article(type(value).__name__)


def _place_problems(out: Any) -> list[Problem]:
    if isinstance(out, str | os.PathLike) and str(out):
        return []
    return [Problem("out", repr(out), "the path of a directory", 'For example, out="mine".')]


def find_worlds(study: Study) -> dict[str, World]:
    """The worlds of a study; unknown names raise errors before anything is written."""
    worlds = {text: find_again(text, study.horizon) for text in study.models}
    for world in worlds.values():
        find_planner(study.planner, world)
        for rule in study.explorers:
            check_rule(rule, world)
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

    If models or user files have changed, ParameterError is raised. The directory may come from
    another user: its user files are imported only if ``trust`` covers them and their text equals
    the recorded text.

    Parameters
    ----------
    out
        The directory of the study.
    workers
        As in :func:`compare`.
    client
        As in :func:`compare`.
    time_limit
        As in :func:`compare`.
    report
        As in :func:`compare`.
    trust
        The user files that may be imported: True for all files that the study names in or below the
        working directory, or a list of files at any place. Not needed without user files.
    take_over
        Remove the locks of processes on other hosts. You must know that they have ended, because
        this host cannot find out.

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
        for path, _ in stale_locks(out):  # locks of units; this process holds that of the study
            with DirectoryLock(path.parent, take_over):
                pass
        return _run(directory, work)


def _check_locks(out: str | Path) -> None:
    """Raise LockedError with all locks whose holders this host cannot check."""
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
                from homdp_ppl.study.cluster import run_cluster  # dask is optional

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
    """Raise StorageError if journals of completed units are missing."""
    for unit in units:
        if not is_complete(directory, unit):
            remedy = "Another process has changed the directory. Resume the study."
            raise StorageError(
                directory.unit_path(unit), "missing runs", "all runs that were saved", remedy
            )
