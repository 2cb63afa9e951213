"""Studies on a Dask cluster, with a scheduler and workers that are killed and restarted."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

from homdp_ppl import DataError, HOMDPError, ParameterError, study
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.blocks import decode, encode
from homdp_ppl.study import cluster
from homdp_ppl.study.pace import Pace
from tests.raising import raises
from tests.study.crew import ASKED, check_bad_units, check_kills
from tests.study.forge import ROOT

LOCAL = ("--host", "127.0.0.1", "--no-dashboard")


class Cluster:
    """A scheduler, and workers without a nanny; workers that die are replaced."""

    def __init__(self, path, workers):
        self._path, self._file = path, path / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", *LOCAL, "--port", "0", "--idle-timeout", "20 minutes"
        )
        while not (facts := self._facts()):
            assert self.scheduler.poll() is None, self._log()
            time.sleep(0.05)
        self.address = facts["address"]
        self.workers = [self._worker() for _ in range(workers)]
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._keep)
        self._keeper.start()

    def _facts(self):
        """The content of the scheduler's file; empty until it is complete."""
        try:
            return json.loads(self._file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def _start(self, role, *options):
        command = [
            sys.executable,
            "-m",
            "dask",
            role,
            "--scheduler-file",
            str(self._file),
            *options,
        ]
        with open(self._path / "log", "a") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, "PJRT_NPROC": "1"}, stdout=log, stderr=log
            )

    def _worker(self):
        place = ("--local-directory", str(self._path))
        return self._start(
            "worker", *LOCAL, "--nthreads", "1", "--no-nanny", "--death-timeout", "60", *place
        )

    def _keep(self):
        while not self._closing.wait(0.1):
            self.workers = [
                worker if worker.poll() is None else self._worker() for worker in self.workers
            ]

    def _log(self):
        return (self._path / "log").read_text()

    def kill_one(self, generator):
        """Kill a worker; returns True, because there always is one."""
        generator.choice(self.workers).kill()
        return True

    def close(self):
        """End all processes."""
        self._closing.set()
        self._keeper.join()
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A cluster with two workers."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), 2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def client(two):
    with cluster.connect(two.address) as connected:
        yield connected


@pytest.mark.slow
def test_ctrl_c_stops_and_resuming_gives_the_same_results(tmp_path, client, expected):
    """Saved rounds are kept, and every round is reported once."""
    reported = Counter()

    def interrupted(unit, rounds):
        reported[unit] += rounds
        if len(reported) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    def counted(unit, rounds):
        reported[unit] += rounds

    stopped = study.compare(**ASKED, out=tmp_path / "study", client=client, report=interrupted)
    assert stopped.stopped == "SIGINT was received"
    assert not stopped.failed
    done = study.resume(tmp_path / "study", client=client, report=counted)
    assert done.complete
    assert study.digest(done.directory) == expected
    assert reported == dict.fromkeys(done.directory.study.units(), ASKED["episodes"])


@pytest.mark.slow
def test_saved_rounds_are_not_written_again(tmp_path, client, expected):
    """A study begins in this process; a worker's result is committed once, a different one raises
    DataError.
    """
    out = tmp_path / "study"
    rounds = []

    def enough(unit, n):
        rounds.append(n)
        if sum(rounds) > 2:
            os.kill(os.getpid(), signal.SIGINT)

    assert study.compare(**ASKED, out=out, workers=1, report=enough).stopped
    directory = study.StudyDirectory.open(out)
    unit = next(directory.study.units())
    arguments = (
        directory.study.to_json(),
        tuple(unit),
        directory.manifest.models[unit.model],
        directory.manifest.sources,
    )
    (sent,) = client.submit(cluster.compute, *arguments, pure=False).result()
    run = cluster.Computed(*sent)
    there = sum(rounds)
    assert 2 < there < ASKED["episodes"]
    assert cluster.commit(directory, unit, run, Pace()) == ASKED["episodes"] - there
    assert cluster.commit(directory, unit, run, Pace()) == 0
    arrays, facts = decode(run.block)
    other = encode({**arrays, "values": np.asarray(arrays["values"]) + 1e-9}, facts)
    with raises(DataError, "record"):
        cluster.commit(directory, unit, run._replace(block=other), Pace())
    assert study.digest(study.resume(out, client=client).directory) == expected


@pytest.mark.slow
def test_bad_units_fail_alone(tmp_path, client):
    check_bad_units(tmp_path / "bad", client=client)


@pytest.mark.slow
def test_workers_killed_at_random_moments(tmp_path, two, client, expected):
    """Five kills."""
    check_kills(tmp_path / "study", expected, 5, two.kill_one, client=client)


def test_a_directory_deleted_while_running(tmp_path, client):
    """The first result raises an error, and the directory is not created again."""
    out = tmp_path / "study"

    def delete(unit, rounds):
        shutil.rmtree(out)

    with pytest.raises(StorageError):
        study.compare(**ASKED, out=out, client=client, report=delete)
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.long
def test_workers_killed_fifty_times(tmp_path, two, client, expected):
    check_kills(tmp_path / "study", expected, 50, two.kill_one, client=client)


@pytest.mark.slow
def test_workers_abandon_cancelled_units(tmp_path, client, expected):
    """A study of days is stopped; if its units kept running, the next study would have to wait."""
    long = {
        **ASKED,
        "explorers": ["hop_b", "tight"],
        "planner": "history_tree",
        "seeds": 1,
        "episodes": 10**7,
    }
    assert (
        study.compare(**long, out=tmp_path / "long", client=client, time_limit=3.0).stopped
        == "the time limit is reached"
    )
    done = study.compare(**ASKED, out=tmp_path / "study", client=client)
    assert study.digest(done.directory) == expected


def test_an_address_without_a_scheduler(monkeypatch):
    monkeypatch.setattr(cluster, "TIMEOUT", "1s")
    with (
        raises(ParameterError, "--scheduler"),
        cluster.connect("tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.slow
def test_four_workers(tmp_path, expected):
    made = Cluster(tmp_path, 4)
    try:
        with cluster.connect(made.address) as connected:
            done = study.compare(**ASKED, out=tmp_path / "study", client=connected)
    finally:
        made.close()
    assert done.complete
    assert study.digest(done.directory) == expected


@pytest.mark.slow
def test_a_study_is_resumed_after_its_scheduler_dies(tmp_path, expected):
    """The death is an error, and saved rounds are kept."""
    (tmp_path / "other").mkdir()
    made, other = Cluster(tmp_path, 1), Cluster(tmp_path / "other", 1)
    try:
        with (
            raises(HOMDPError, "scheduler"),
            cluster.connect(made.address) as connected,
        ):
            study.compare(
                **ASKED,
                out=tmp_path / "study",
                client=connected,
                report=lambda unit, n: made.scheduler.kill(),
            )
        with cluster.connect(other.address) as connected:
            done = study.resume(tmp_path / "study", client=connected)
    finally:
        made.close()
        other.close()
    assert done.complete
    assert study.digest(done.directory) == expected
