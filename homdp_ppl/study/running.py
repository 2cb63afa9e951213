"""Running a study to its end, and going on with one that was stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from loky import cpu_count

from homdp_ppl.core.checked import checked
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.storage.atomic import storage_errors
from homdp_ppl.storage.lock import DirectoryLock
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.executors import Outcomes, Report, run_here, run_processes
from homdp_ppl.study.pace import Pace, listening
from homdp_ppl.study.results import Runs, is_complete, read_runs, write_results
from homdp_ppl.study.sources import find_again, find_planner, find_rule, find_world
from homdp_ppl.study.specification import Study, Unit


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


@checked
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

    Asked again with the same directory it goes on where it was stopped; a study that is complete is
    only read.

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
        Seconds after which to stop, to go on another time.
    report
        Told a unit and how many rounds more are written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     done = compare("tiger", ["greedy"], episodes=20, seeds=2, out=out, workers=1, horizon=2)
    ...     [round(run.optimum, 3) for run in done.runs["tiger", "declared", "greedy"]]
    [1.852, 1.852]
    """
    given = {"explorers": explorers, "episodes": episodes, "seeds": seeds, **more}
    if isinstance(models, Study):
        beside = [name for name, value in given.items() if value != getattr(Study, name, None)]
        if beside:
            remedy = "Change the study itself: dataclasses.replace(study, episodes=...)."
            raise ParameterError(
                "compare",
                [Problem(", ".join(beside), "a value beside a Study", "a Study alone", remedy)],
            )
        study = models
    else:
        study = Study.from_mapping(
            {"models": [models] if isinstance(models, str) else list(models), **given}, "compare"
        )
    worlds = find_worlds(study)
    with storage_errors(out, "a directory for a study"):
        Path(out).mkdir(parents=True, exist_ok=True)
    with DirectoryLock(out):
        return _run(StudyDirectory.create(out, study, worlds), workers, client, time_limit, report)


def find_worlds(study: Study) -> dict[str, World]:
    """The worlds of a study; what it names and there is not is refused here, before anything is
    written.
    """
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
) -> Finished:
    """Go on with a study that was stopped; refuses models that have changed since.

    Parameters
    ----------
    out
        Its directory.
    workers, client, time_limit, report
        As in :func:`compare`.

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
    directory = StudyDirectory.open(out)
    with DirectoryLock(out):
        directory.check(
            {text: find_world(text, directory.study.horizon) for text in directory.study.models}
        )
        return _run(directory, workers, client, time_limit, report)


def _run(
    directory: StudyDirectory,
    workers: int | None,
    client: Any,
    time_limit: float | None,
    report: Report | None,
) -> Finished:
    pace = Pace(deadline=None if time_limit is None else time.time() + time_limit)
    told: Callable[[Unit, int], None] = report or (lambda unit, n: None)
    left = [unit for unit in directory.units() if not is_complete(directory, unit)]
    outcomes = Outcomes({}, "")
    if left:
        with listening(pace):
            if client is not None:
                from homdp_ppl.study.cluster import run_cluster  # dask is an extra

                outcomes = run_cluster(directory, left, client, pace, told)
            elif (workers or cpu_count()) == 1:
                outcomes = run_here(directory, left, pace, told)
            else:
                outcomes = run_processes(directory, left, workers or cpu_count(), pace, told)
    runs = read_runs(directory)
    write_results(directory, runs)
    return Finished(directory, runs, *outcomes)
