"""Studies that get signals, run out of disk space, or are damaged."""

import signal

import pytest

from homdp_ppl import study
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.whole_journal import read_journal
from homdp_ppl.study.reading import read_run
from tests.raising import raises
from tests.study.forge import zygote

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
    """The digest of the undisturbed study."""
    out = tmp_path_factory.mktemp("whole")
    forge.start(out / "study", out / "log", study=ASKED)
    assert forge.wait() == 0, forge.said()
    return study.digest(study.StudyDirectory.open(out / "study"))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_signals_stop_a_study(forge, whole, tmp_path, number):
    """Exit code 3, saved rounds are intact, and resuming gives the same results."""
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
def test_a_time_limit_stops_a_study(forge, whole, tmp_path):
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study=ASKED, time_limit=0.001)
    assert forge.wait() == 3, forge.said()
    assert "the time limit is reached" in forge.said()
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert study.digest(study.StudyDirectory.open(out)) == whole


def test_a_full_disk(forge, whole, tmp_path):
    """The error names the file, saved rounds are intact, and the study can be resumed."""
    out = tmp_path / "study"
    forge.start(
        out, tmp_path / "log", study=ASKED, stretch=0.01, largest_file=4000
    )  # too small for any journal
    assert forge.wait() == 4, forge.said()
    assert "seed-0.journal" in forge.said()
    directory = study.StudyDirectory.open(out)
    run = read_run(directory, *next(directory.journals())[:2])
    assert 0 < len(run.values) < ASKED["episodes"]
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert study.digest(directory) == whole


def test_a_truncated_results_file_is_written_again(forge, tmp_path):
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study={**ASKED, "explorers": ["greedy"], "episodes": 20})
    assert forge.wait() == 0, forge.said()
    good = (out / "results.nc").read_bytes()
    (out / "results.nc").write_bytes(good[: len(good) // 2])
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert (out / "results.nc").read_bytes() == good


def test_a_damaged_journal_is_renamed_and_its_intact_records_are_kept(forge, whole, tmp_path):
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study=ASKED, stretch=0.01)
    assert forge.wait() == 0, forge.said()
    directory = study.StudyDirectory.open(out)
    _, _, path = next(directory.journals())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)
    with raises(
        StorageError,
        f"{tmp_path}/study/runs/tiger_horizon_2-e40bd1/declared/greedy/seeds-0-1/seed-0.journal",
    ):
        study.read_runs(directory)
    kept = len(read_journal(path, salvage=True).blocks)
    assert kept > 0
    forge.start(out, tmp_path / "log", resume=True)
    assert forge.wait() == 0, forge.said()
    assert study.digest(directory) == whole
    assert [p.read_bytes() for p in path.parent.glob("*damaged*")] == [bytes(content)]
