"""SIGKILL at random moments: to a study, to its workers, and to both at once."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from homdp_ppl import study
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.records import walk
from homdp_ppl.study.reading import run_is_complete
from tests.study.crew import workers_of
from tests.study.forge import ROOT, zygote

ASKED = {
    "models": ["tiger:horizon=2"],
    "explorers": ["greedy", "posterior_sampling"],
    "episodes": 60,
    "seeds": 2,
    "block": 1,
    "priors": ["declared"],
}
PATIENCE = 120  # seconds to wait for progress


@pytest.fixture(scope="module")
def marks(tmp_path_factory):
    return tmp_path_factory.mktemp("marks")


@pytest.fixture(scope="module")
def forge(marks):
    path = os.pathsep.join([str(Path(__file__).with_name("marks")), str(ROOT)])
    with zygote({"PYTHONPATH": path, "HOMDP_MARKS": str(marks)}) as started:
        yield started


@pytest.fixture(scope="module")
def whole(forge, tmp_path_factory):
    """The undisturbed study."""
    out = tmp_path_factory.mktemp("whole")
    forge.start(out / "study", out / "log", study=ASKED)
    assert forge.wait() == 0, forge.said()
    return study.StudyDirectory.open(out / "study")


class Attack:
    """Kills a study repeatedly; each time, saved rounds must equal those of the undisturbed study.

    Parameters
    ----------
    forge
        Starts studies.
    whole
        The undisturbed study.
    place
        The directory to work in.
    marks
        The directory in which processes mark that they are writing.
    """

    def __init__(self, forge, whole, place, marks):
        self.forge, self.out, self.log, self.marks = forge, place / "study", place / "log", marks
        self.digest, self.truth = study.digest(whole), study.read_runs(whole)
        self.generator = random.Random(7)
        self.found: Counter[str] = Counter()
        self.torn: set[tuple[Path, int, int]] = set()  # truncated records and files

    def run(self, who, times):
        """Kill the study several times, then complete it."""
        while self.found["kills"] < times:
            workers = 1 if who == "main" else 2
            self.start(workers)
            if who == "workers":
                self.kill_workers(times)
                self.forge.wait()
            else:
                self.wait_for_progress()
                self.strike(who)
            self.check()
        self.start(1)
        assert self.forge.wait() == 0, self.forge.said()
        self.check(complete=True)
        print(f"\n{who}: {dict(self.found)}, {len(self.torn)} torn")

    def start(self, workers):
        """Begin the study, or resume it."""
        begun = (self.out / "study.json").exists()
        task = {"resume": True} if begun else {"study": ASKED}
        self.forge.start(self.out, self.log, **task, stretch=0.01, workers=workers)

    def wait_for_progress(self):
        """Wait for a random number of saves, and a random time longer."""
        lines, end = self.generator.randint(0, 20), time.monotonic() + PATIENCE
        while self.forge.lives() and self.forge.said().count("\n") < lines:
            assert time.monotonic() < end
            time.sleep(0.001)
        time.sleep(self.generator.random() ** 4)  # usually short

    def strike(self, who):
        """Kill the study and, for "both", its workers."""
        victims = [self.forge.pid]
        if who == "both":
            victims += workers_of(self.forge.pid)
        for pid in victims:
            kill(pid)
        if self.forge.wait() == -signal.SIGKILL:
            self.count(victims)
        end = time.monotonic() + PATIENCE
        while any(map(exists, victims[1:])) and time.monotonic() < end:
            time.sleep(0.01)

    def kill_workers(self, times):
        """Kill one worker after the other while the study is running."""
        self.forge.wait_for("\n", PATIENCE)
        while self.forge.lives() and self.found["kills"] < times:
            time.sleep(self.generator.random() * 0.5)
            crew = workers_of(self.forge.pid)
            if crew:
                victim = self.generator.choice(crew)
                kill(victim)
                self.count([victim])
                said = len(self.forge.said())
                end = time.monotonic() + PATIENCE
                while self.forge.lives() and len(self.forge.said()) == said:
                    assert time.monotonic() < end
                    time.sleep(0.01)

    def count(self, victims):
        """Count a kill, and whether it hit a process that was writing."""
        self.found["kills"] += 1
        marked = [self.marks / str(pid) for pid in victims]
        self.found["in a write"] += any(
            path.exists() and path.read_bytes() == b"\1" for path in marked
        )

    def check(self, complete=False):
        """Compare saved rounds with those of the undisturbed study; restart a complete study."""
        if not (self.out / "study.json").exists():
            return
        directory = study.StudyDirectory.open(self.out)
        for _, _, path in directory.journals():
            if Journal.begun(path):
                ends = [place.offset for place, _ in walk(path)]
                size = path.stat().st_size
                if ends[-1] < size:
                    self.torn.add((path, ends[-1], size))
                assert all(a < b for a, b in pairwise(ends))
        self.torn.update((path, 0, 0) for path in self.out.rglob(".*.partial*"))
        runs = study.read_runs(directory)
        for key, several in runs.items():
            seeds = {int(run.about["seed"]): run for run in self.truth[key]}
            for run in several:
                rounds = len(run.values)
                expected = seeds[int(run.about["seed"])].record.until(rounds, rounds)
                assert run.record.same_as(expected)
        ended = sum(run_is_complete(run) for several in runs.values() for run in several)
        if ended == 4:
            self.found["resumed to the end"] += 1
            assert study.digest(directory) == self.digest
            if not complete:
                shutil.rmtree(self.out / "runs")
        assert ended == 4 or not complete


def kill(pid):
    if exists(pid):
        os.kill(pid, signal.SIGKILL)


def exists(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as state:
            return state.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("who", "times"),
    [
        ("main", 5),
        pytest.param("main", 14, marks=pytest.mark.slow),
        pytest.param("workers", 4, marks=pytest.mark.slow),
        pytest.param("both", 2, marks=pytest.mark.slow),
        pytest.param("main", 140, marks=[pytest.mark.slow, pytest.mark.long]),
        pytest.param("workers", 40, marks=[pytest.mark.slow, pytest.mark.long]),
        pytest.param("both", 20, marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def test_killed_at_random_moments(forge, whole, tmp_path, marks, who, times):
    """Nothing is lost or duplicated, and resuming gives the same digest."""
    attack = Attack(forge, whole, tmp_path, marks)
    attack.run(who, times)
    assert attack.found["kills"] == times
