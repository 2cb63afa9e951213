"""What becomes of a study that is killed, signalled, starved of space or started twice."""

import random
import re
import signal
import subprocess
import sys
import time

import pytest

from homdp_ppl import study
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.journal import read_journal
from homdp_ppl.study.reading import read_run
from tests.study.forge import ROOT, zygote

ASKED = {
    "models": ["tiger:horizon=2"],
    "explorers": ["greedy", "posterior_sampling"],
    "episodes": 60,
    "seeds": 2,
    "priors": ["declared"],
}


@pytest.fixture(scope="module")
def forge():
    with zygote() as made:
        yield made


@pytest.fixture(scope="module")
def whole(forge, tmp_path_factory):
    """The digest of the study when nothing happens to it."""
    out = tmp_path_factory.mktemp("whole")
    forge.start(out / "study", out / "log", study=ASKED)
    assert forge.wait() == 0, forge.said()
    return study.digest(study.StudyDirectory.open(out / "study"))


def rounds_said(text):
    """Rounds that a study said are written, rule by rule, in its last life.

    Those of earlier lives are said first.
    """
    total = {}
    for rule, n in re.findall(r"^(\w+) (\d+)$", text, re.M):
        total[rule] = total.get(rule, 0) + int(n)
    return total


def kills(forge, whole, tmp_path, times):
    """Kill a study at random moments until it has been killed so often, then let it end."""
    out, generator = tmp_path / "study", random.Random(7)
    seen = 0
    for _ in range(50 * times):
        begun = (out / "study.json").exists()
        forge.start(
            out, tmp_path / "log", **({"resume": True} if begun else {"study": ASKED}), stretch=0.01
        )
        forge.wait_for(" 1\n" if not begun else "\n", 60)
        time.sleep(generator.random() * 0.15)
        forge.kill()
        code = forge.wait()
        said = rounds_said(forge.said())
        if not (out / "study.json").exists():
            continue
        directory = study.StudyDirectory.open(out)
        for rule, rounds in said.items():  # what was acknowledged is there
            there = [
                read_run(directory, unit, seed)
                for unit, seed, _ in directory.journals()
                if unit.rule == rule
            ]
            assert sum(len(run.values) for run in there if run is not None) >= rounds
        seen += code == -signal.SIGKILL
        if seen == times:
            break
        if code == 0:  # it was quicker: once more from the beginning
            for _, _, path in directory.journals():
                path.unlink(missing_ok=True)
    assert seen == times
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    directory = study.StudyDirectory.open(out)
    assert study.digest(directory) == whole
    for unit, seed, _ in directory.journals():
        assert len(read_run(directory, unit, seed).values) == ASKED["episodes"]


def test_killed_at_random_moments(forge, whole, tmp_path):
    """Ten times; nothing that was acknowledged is lost, nothing is doubled, and the end is the same
    to the last bit.
    """
    kills(forge, whole, tmp_path, 10)


@pytest.mark.slow
def test_killed_two_hundred_times(forge, whole, tmp_path):
    kills(forge, whole, tmp_path, 200)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_polite_signal_stops_between_stretches(forge, whole, tmp_path, number):
    """Exit code 3, everything written is whole, and resuming comes to the same end."""
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study=ASKED, stretch=0.01)
    assert forge.wait_for("greedy 1\n")
    forge.kill(number)
    assert forge.wait() == 3, forge.said()
    assert f"{number.name} was received" in forge.said()
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert study.digest(study.StudyDirectory.open(out)) == whole


@pytest.mark.slow
def test_a_time_limit_stops_between_stretches(forge, whole, tmp_path):
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study=ASKED, time_limit=0.001)
    assert forge.wait() == 3, forge.said()
    assert "the time limit is reached" in forge.said()
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert study.digest(study.StudyDirectory.open(out)) == whole


def test_a_full_disk(forge, whole, tmp_path):
    """An error that names the file.

    What is there is whole, and the study goes on when there is space again.
    """
    out = tmp_path / "study"
    forge.start(
        out, tmp_path / "log", study=ASKED, stretch=0.01, largest_file=4000
    )  # no journal fits, in however few stretches
    assert forge.wait() == 4, forge.said()
    assert "seed-0.journal" in forge.said()
    directory = study.StudyDirectory.open(out)
    run = read_run(directory, *next(directory.journals())[:2])
    assert 0 < len(run.values) < ASKED["episodes"]
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert study.digest(directory) == whole


def test_a_half_written_result_is_made_again(forge, tmp_path):
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study={**ASKED, "explorers": ["greedy"], "episodes": 20})
    assert forge.wait() == 0, forge.said()
    good = (out / "results.nc").read_bytes()
    (out / "results.nc").write_bytes(good[: len(good) // 2])
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert (out / "results.nc").read_bytes() == good


def test_a_damaged_journal_is_set_aside_and_what_is_whole_is_kept(forge, whole, tmp_path):
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study=ASKED, stretch=0.01)
    assert forge.wait() == 0, forge.said()
    directory = study.StudyDirectory.open(out)
    _, _, path = next(directory.journals())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)
    with pytest.raises(StorageError, match=re.escape(path.name)):
        study.read_runs(directory)
    kept = len(read_journal(path, salvage=True).blocks)
    assert kept > 0
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert study.digest(directory) == whole
    assert [p.read_bytes() for p in path.parent.glob("*damaged*")] == [bytes(content)]


@pytest.mark.slow
def test_a_second_process_is_told_who_holds_the_directory(forge, tmp_path):
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study={**ASKED, "episodes": 450}, stretch=0.05)
    assert forge.wait_for("greedy 1\n")
    forge.kill(signal.SIGSTOP)  # it holds the directory, however long the second takes to ask
    code = f"from homdp_ppl.cli.main import main; raise SystemExit(main(['resume', {str(out)!r}]))"
    second = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    forge.kill()
    forge.wait()
    assert second.returncode == 4, second.stderr
    assert str(forge.pid) in second.stderr
    assert len(second.stderr.splitlines()) == 1
