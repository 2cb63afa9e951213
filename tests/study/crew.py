"""Helpers of the tests with several workers.

A small study, models that make workers fail or die, and random kills.
"""

import os
import random
import subprocess
from threading import Timer

from homdp_ppl import study
from homdp_ppl.study.executors import SET_ASIDE
from homdp_ppl.study.reading import read_run

ASKED = {
    "models": ["tiger:horizon=2"],
    "explorers": ["greedy", "posterior_sampling"],
    "episodes": 20,
    "seeds": 2,
    "block": 1,
    "priors": ["declared"],
}
BAD = """
import os, signal
from pathlib import Path
from homdp_ppl import HOMDPError, Problem, models

def elsewhere():
    return os.getpid() != int(Path(__file__).with_name("coordinator").read_text())

def deadly():
    if elsewhere():
        with Path(__file__).with_name("deaths").open("a") as deaths:
            deaths.write("one more\\n")
        os.kill(os.getpid(), signal.SIGKILL)
    return models.load("tiger", horizon=2)

def mistaken():
    return models.load("tiger", horizon=1 // 0 if elsewhere() else 2)

def refused():
    if elsewhere():
        raise HOMDPError("gate", [Problem("left", "1", "2"), Problem("right", "3", "4")])
    return models.load("tiger", horizon=2)
"""


def whole(path):
    """The digest of the study when it runs in this process."""
    done = study.compare(**ASKED, out=path, workers=1)
    assert done.complete
    return study.digest(done.directory)


def check_bad_units(path, **who):
    """Units that kill workers, raise errors or are invalid fail, and the others are completed."""
    path.mkdir()
    (path / "bad.py").write_text(BAD)
    (path / "coordinator").write_text(str(os.getpid()))
    names = [f"{path / 'bad.py'}:{name}" for name in ("deadly", "mistaken", "refused")]
    asked = {**ASKED, "models": [*names, "tiger:horizon=2"], "explorers": ["greedy"], "seeds": 1}
    done = study.compare(**asked, out=path / "study", **who)
    failed = {unit.model: reason for unit, reason in done.failed.items()}
    assert sorted(failed) == sorted(names)
    assert failed[names[0]] == SET_ASIDE
    assert len((path / "deaths").read_text().splitlines()) == 3
    assert "bad.py line 17: got ZeroDivisionError" in failed[names[1]]
    assert failed[names[2]] == "gate: left: got 1; expected 2 | right: got 3; expected 4"
    assert not done.stopped
    assert not done.complete
    assert [len(run.values) for run in done.runs["tiger:horizon=2", "declared", "greedy"]] == [20]


def check_kills(path, expected, times, kill, **who):
    """Kill workers at random moments, then complete the study: nothing is lost or duplicated.

    Parameters
    ----------
    path
        The directory of the study.
    expected
        The digest of the complete study.
    times
        The number of kills.
    kill
        Kills a worker chosen by the given generator; returns whether there was one.
    who
        Workers or client.
    """
    generator, hits, timers = random.Random(3), [], []

    def report(unit, rounds):
        """Kill a worker soon after progress, so that slow machines also complete the study."""
        if rounds and len(hits) < times and generator.random() < 0.7:
            timers.append(
                Timer(
                    generator.random() / 2, lambda: hits.append(None) if kill(generator) else None
                )
            )
            timers[-1].start()

    done = study.compare(**ASKED, out=path, report=report, **who)
    while True:
        while not done.complete:  # a unit was killed three times
            done = study.resume(path, report=report, **who)
        for timer in timers:
            timer.join()
        assert study.digest(done.directory) == expected
        for unit, seed, _ in done.directory.journals():
            assert len(read_run(done.directory, unit, seed).values) == ASKED["episodes"]
        if len(hits) >= times:
            return
        for _, _, journal in done.directory.journals():  # not enough kills: run it again
            journal.unlink()
        done = study.resume(path, report=report, **who)


def workers_of(pid):
    """The workers that a process has started, without loky's process for cleaning up."""
    listing = subprocess.run(
        ["ps", "-o", "pid=", "-o", "stat=", "-o", "args=", "-ww", "--ppid", str(pid)],
        capture_output=True,
        text=True,
    ).stdout
    lines = [line.split(maxsplit=2) for line in listing.splitlines()]
    return [
        int(number)
        for number, state, command in lines
        if "popen_loky" in command and state[0] != "Z"
    ]
