"""Studies in several processes on this machine, which die, are killed, or lose their parent."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from loky import cpu_count

from homdp_ppl import HOMDPError, study
from homdp_ppl.errors import Problem
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.lock import DirectoryLock
from homdp_ppl.study import executors
from homdp_ppl.study.pace import Pace
from homdp_ppl.study.reading import is_complete
from homdp_ppl.study.units import Stopped
from tests.raising import raises
from tests.study.crew import ASKED, check_bad_units, check_kills, workers_of
from tests.study.forge import ROOT

COORDINATOR = (
    "import json, sys; from homdp_ppl import study; study.compare(**json.loads(sys.argv[1]))"
)


def kill_one(generator):
    """Kill a worker of this process; returns whether there was one."""
    found = workers_of(os.getpid())
    if found:
        os.kill(generator.choice(found), signal.SIGKILL)
    return bool(found)


@pytest.mark.slow
def test_ctrl_c_stops_and_resuming_gives_the_same_results(tmp_path, expected):
    """Workers also get the signal, as from a terminal.

    Every round is reported once, and no processes or hidden files remain.
    """
    crew, reported, threads = [], Counter(), set()

    def interrupted(unit, rounds):
        if not crew:
            crew.extend(workers_of(os.getpid()))
            for pid in (*crew, os.getpid()):
                os.kill(pid, signal.SIGINT)

    def counted(unit, rounds):
        reported[unit] += rounds
        for pid in workers_of(os.getpid()):
            with open(f"/proc/{pid}/environ", encoding="utf-8") as environment:
                threads.update(
                    line
                    for line in environment.read().split("\0")
                    if line.startswith("PJRT_NPROC=")
                )

    out = tmp_path / "study"
    stopped = study.compare(**ASKED, out=out, workers=2, report=interrupted)
    assert stopped.stopped == "SIGINT was received"
    assert not stopped.failed
    assert len(crew) == 2
    assert workers_of(os.getpid()) == []
    left = [
        unit for unit in stopped.directory.study.units() if not is_complete(stopped.directory, unit)
    ]
    done = study.resume(out, workers=2, report=counted)
    assert done.complete
    assert study.digest(done.directory) == expected
    assert reported == dict.fromkeys(left, ASKED["episodes"])
    assert threads == {f"PJRT_NPROC={os.environ.get('PJRT_NPROC', max(1, cpu_count() // 2))}"}
    assert workers_of(os.getpid()) == []
    assert not [path for path in out.rglob(".*") if path.is_file()]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ctrl_c_twice_stops_immediately_and_saved_rounds_are_intact(tmp_path, expected, workers):
    def impatient(unit, rounds):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    out = tmp_path / "study"
    with pytest.raises(KeyboardInterrupt):
        study.compare(**ASKED, out=out, workers=workers, report=impatient)
    assert workers_of(os.getpid()) == []
    done = study.resume(out, workers=workers)
    assert done.complete
    assert study.digest(done.directory) == expected


@pytest.mark.slow
def test_sigterm_stops_workers_too(tmp_path, expected):
    out = tmp_path / "study"
    stopped = study.compare(
        **ASKED,
        out=out,
        workers=2,
        report=lambda unit, rounds: os.kill(os.getpid(), signal.SIGTERM),
    )
    assert stopped.stopped == "SIGTERM was received"
    assert workers_of(os.getpid()) == []
    assert study.digest(study.resume(out, workers=2).directory) == expected


@pytest.mark.slow
def test_bad_units_fail_alone(tmp_path):
    check_bad_units(tmp_path / "bad", workers=2)
    assert workers_of(os.getpid()) == []


@pytest.mark.slow
def test_workers_killed_between_units(tmp_path, expected, monkeypatch):
    begin, killed = executors._Worker.begin, []

    def begin_after_death(worker, unit):
        if worker._pool is not None and not killed:
            killed.extend(worker._pool._processes)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            while worker._pool._flags.broken is None:
                time.sleep(0.01)
        begin(worker, unit)

    monkeypatch.setattr(executors._Worker, "begin", begin_after_death)
    done = study.compare(**ASKED, out=tmp_path / "study", workers=2)
    assert killed
    assert done.complete
    assert not done.failed
    assert study.digest(done.directory) == expected


@pytest.mark.slow
@pytest.mark.long
def test_workers_killed_fifty_times(tmp_path, expected):
    check_kills(tmp_path / "study", expected, 50, kill_one, workers=2)


@pytest.mark.slow
def test_four_workers(tmp_path, expected):
    done = study.compare(**ASKED, out=tmp_path / "study", workers=4)
    assert done.complete
    assert study.digest(done.directory) == expected


@pytest.mark.slow
def test_workers_of_a_killed_study_end_and_the_study_is_resumed(tmp_path, expected):
    """The coordinating process cannot stop its workers when it is killed."""
    out = tmp_path / "study"
    asked = json.dumps({**ASKED, "out": str(out), "workers": 2})
    coordinator = subprocess.Popen([sys.executable, "-c", COORDINATOR, asked], cwd=ROOT)
    while not list(out.rglob("*.journal")):
        assert coordinator.poll() is None
        time.sleep(0.05)
    orphans = workers_of(coordinator.pid)
    coordinator.kill()
    coordinator.wait()
    assert len(orphans) == 2
    done = study.resume(out, workers=1)  # waits for the units that the orphans still hold
    assert done.complete
    assert study.digest(done.directory) == expected
    end = time.monotonic() + 60
    while any(_runs(pid) for pid in orphans) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(_runs(pid) for pid in orphans)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as command:
            return "popen_loky" in command.read()  # the pid may belong to another process now
    except OSError:
        return False


def test_waiting_for_a_unit_can_be_stopped_and_is_limited(tmp_path, monkeypatch):
    """The lock of the unit is held: waiting ends with a stop, or when patience runs out."""
    pace = Pace()
    pace.ask("enough")
    monkeypatch.setattr(executors, "PATIENCE", 0.0)
    asked = study.Study(**ASKED)
    worlds = {text: study.find_world(text) for text in asked.models}
    directory = study.StudyDirectory.create(tmp_path, asked, worlds)
    unit = next(directory.units())
    with DirectoryLock(directory.make_unit_path(unit)):
        with pytest.raises(Stopped, match="enough"), executors.unit_lock(directory, unit, pace):
            pass
        with (
            raises(StorageError, f"{directory.unit_path(unit)}/.lock"),
            executors.unit_lock(directory, unit, Pace()),
        ):
            pass


def test_exceptions_become_errors_with_their_line():
    with pytest.raises(HOMDPError) as caught, executors.located_errors([]):
        {}["x"]
    (problem,) = caught.value.problems
    assert re.fullmatch(r"test_executors.py line \d+", problem.where)
    assert problem.got == "KeyError: 'x'"
    here = f"{__file__}:rule"
    with pytest.raises(HOMDPError) as caught, executors.located_errors([here]):
        np.sort(0, axis="no")  # NumPy raises the error, but the user's line is here
    (problem,) = caught.value.problems
    assert re.fullmatch(r"test_executors.py line \d+", problem.where)
    assert problem.got.startswith("TypeError: ")
    refusal = HOMDPError("gate", [Problem("left", "1", "2")])
    with pytest.raises(HOMDPError) as caught, executors.located_errors([]):
        raise refusal
    assert caught.value is refusal


def test_a_model_that_changes_during_a_study_is_an_error(tmp_path):
    """It changes during the first unit, so the second unit would run in another world."""
    file = tmp_path / "mine.py"
    file.write_text("from homdp_ppl import models\nworld = models.load('tiger', horizon=2)\n")

    def change(unit, rounds):
        file.write_text(
            "from homdp_ppl import models\nworld = models.load('tiger', horizon=2, accuracy=0.7)\n"
        )

    asked = {**ASKED, "models": [f"{file}:world"], "explorers": ["uniform"], "episodes": 2}
    done = study.compare(**asked, out=tmp_path / "study", workers=1, report=change)
    ((unit, reason),) = done.failed.items()
    assert unit.seeds == (1,)
    assert "a changed file (line 2 is" in reason
