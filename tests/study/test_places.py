"""Directories that are deleted, locked by other hosts, full, linked, read-only or not in UTF-8."""

import errno
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from homdp_ppl import study
from homdp_ppl.cli.main import main
from homdp_ppl.storage import lock as locking
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.lock import Holder, LockedError
from homdp_ppl.study import StudyDirectory, executors
from tests.raising import raises
from tests.study.crew import ASKED
from tests.study.forge import zygote

ELSEWHERE = Holder("node7", 4242, "", "2026-01-31T12:00:00+0000")
LIMITED = 20_000  # bytes of a small disk, enough for some journals but not for all


@pytest.fixture(scope="module")
def made(tmp_path_factory, expected):
    """A study that is not complete: half of its journals are missing."""
    out = tmp_path_factory.mktemp("made") / "here"
    done = study.compare(**ASKED, out=out, workers=1)
    assert study.digest(done.directory) == expected
    for path in out.rglob("*greedy*/*/*.journal"):
        path.unlink()
    return out


@pytest.fixture
def begun(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "here"))


@pytest.mark.parametrize("what", ["all", "runs", "replaced"])
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_directory_deleted_while_running(tmp_path, what, workers):
    """An error, not a study that looks complete; the directory is not created again."""
    out = tmp_path / "study"

    def delete(unit, rounds):
        gone = out / "runs" if what == "runs" else out
        shutil.rmtree(gone, ignore_errors=True)
        if what == "replaced":
            out.mkdir()

    with pytest.raises(StorageError):
        study.compare(**ASKED, out=out, workers=workers, report=delete)
    assert not (out / "study.json").exists() or what == "runs"
    assert not list(tmp_path.rglob("results.nc"))
    if what == "runs":
        assert study.resume(out, workers=1).complete


def test_a_directory_deleted_after_the_last_round(tmp_path, monkeypatch):
    """An error before the results are written."""
    out, rounds = tmp_path / "study", []

    def delete(unit, n):
        rounds.append(n)
        if sum(rounds) == 4 * ASKED["episodes"]:
            shutil.rmtree(out)

    with pytest.raises(StorageError):
        study.compare(**ASKED, out=out, workers=1, report=delete)
    assert not out.exists()


def test_the_command_reports_a_deleted_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    real = study.compare

    def deleting(*given, report, **more):
        return real(*given, report=lambda unit, n: shutil.rmtree("here", True), **more)

    monkeypatch.setattr("homdp_ppl.study.compare", deleting)
    words = ["--episodes", "5", "--seeds", "1", "--workers", "1", "--priors", "declared"]
    assert (
        main(["compare", "tiger:horizon=2", "--explorers", "greedy", *words, "--out", "here"]) == 4
    )
    assert len(capsys.readouterr().err.splitlines()) == 1


def lock_elsewhere(out):
    """Locks of a job that was killed on another host: those of the study and of two units."""
    places = [out, *sorted({path.parent for path in out.rglob("*.journal")})]
    for place in places:
        (place / locking.NAME).write_text(json.dumps(ELSEWHERE._asdict()))
    return [str(place / locking.NAME) for place in places]


def test_locks_of_another_host_are_listed_immediately(begun, expected, monkeypatch, capsys):
    """All locks are listed without waiting and without changes, and taken over on request."""
    locks = lock_elsewhere(begun)
    assert len(locks) == 3
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("waited for a lock"))
    for ask in (study.resume, lambda out, **who: study.compare(**ASKED, out=out, **who)):
        with pytest.raises(LockedError) as caught:
            ask(begun, workers=1)
        assert [problem.where for problem in caught.value.problems] == locks
    assert main(["resume", str(begun), "--workers", "1"]) == 4
    error = capsys.readouterr().err
    assert all(lock in error for lock in locks)
    assert "--take-over" in error
    assert len(error.splitlines()) == 1
    assert main(["resume", str(begun), "--workers", "1", "--take-over"]) == 0
    assert study.digest(StudyDirectory.open(begun)) == expected
    assert not list(begun.rglob(locking.NAME))


def test_locks_of_another_host_on_units_only(begun, expected, monkeypatch):
    """They are reported immediately instead of waiting for each one."""
    locks = lock_elsewhere(begun)
    os.unlink(locks[0])
    monkeypatch.setattr(executors, "PATIENCE", 1e9)
    with pytest.raises(LockedError) as caught:
        study.resume(begun, workers=1)
    assert len(caught.value.locks) == 2
    done = study.resume(begun, workers=1, take_over=True)
    assert study.digest(done.directory) == expected


@pytest.mark.parametrize("jump", [1e9, -1e9])
def test_clock_jumps_do_not_move_the_time_limit(tmp_path, monkeypatch, jump, expected):
    """The system clock changes while a study runs."""
    real = time.time
    moved = []
    monkeypatch.setattr(time, "time", lambda: real() + sum(moved[:1]))
    done = study.compare(
        **ASKED,
        out=tmp_path / "study",
        workers=1,
        time_limit=3600.0,
        report=lambda unit, n: moved.append(jump),
    )
    assert moved
    assert done.complete
    assert study.digest(done.directory) == expected
    stopped = study.compare(**ASKED, out=tmp_path / "other", workers=1, time_limit=0.0)
    assert stopped.stopped == "the time limit is reached"


@pytest.fixture
def disk(tmp_path):
    """A small file system in memory; skips the test if mounting is not allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        mount(place, LIMITED)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a file system is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def mount(place, size, *more):
    options = ",".join([f"size={size}", *more])
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    subprocess.run(command, check=True, capture_output=True)


def test_a_study_is_resumed_after_a_full_disk(disk, expected):
    with pytest.raises(StorageError) as caught:
        study.compare(**ASKED, out=disk / "study", workers=1)
    assert caught.value.problems[0].got == os.strerror(errno.ENOSPC).lower()
    mount(disk, LIMITED + 8192, "remount")
    with pytest.raises(StorageError) as caught:
        study.resume(disk / "study", workers=1)
    assert caught.value.problems[0].got == os.strerror(errno.ENOSPC).lower()
    mount(disk, 100 * LIMITED, "remount")
    done = study.resume(disk / "study", workers=1)
    assert study.digest(done.directory) == expected


def test_a_linked_output_directory(tmp_path, expected, capsys):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    study.compare(**ASKED, out=link, workers=1)
    assert main(["report", str(link)]) == 0
    assert study.digest(StudyDirectory.open(tmp_path / "real")) == expected
    assert link.is_symlink()
    capsys.readouterr()


def test_an_output_directory_whose_name_is_not_utf_8(tmp_path, expected, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9 \xff")
    monkeypatch.setattr("sys.argv", ["homdp", "compare", name])
    done = study.compare(**ASKED, out=name, workers=1)
    assert study.digest(done.directory) == expected
    for command in ("report", "resume"):
        assert main([command, name]) == 0
    assert main(["resume", f"{name}x"]) == 2
    (page,) = tmp_path.rglob("report.html")
    assert rb"caf\udce9" in page.read_bytes()
    capsys.readouterr().out.encode()


@pytest.mark.skipif(
    not hasattr(os, "seteuid") or os.geteuid() != 0, reason="needs root to drop privileges"
)
def test_a_read_only_output_directory(made):
    """It can be read, but not written; nothing in it changes."""
    place = Path("/tmp") / f"homdp-read-only-{os.getpid()}"
    shutil.copytree(made, place)
    try:
        for path in (place, *place.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        os.seteuid(65534)
        try:
            before = sorted(place.rglob("*"))
            assert len(study.read_runs(StudyDirectory.open(place))) == 1
            for act in (
                lambda: study.resume(place, workers=1),
                lambda: study.compare(**ASKED, out=place, workers=1),
                lambda: study.compare(**ASKED, out=place / "below", workers=1),
            ):
                with pytest.raises(StorageError) as caught:
                    act()
                assert caught.value.problems[0].got == os.strerror(errno.EACCES).lower()
            assert main(["report", str(place)]) == 4
            assert main(["resume", str(place)]) == 4
            assert sorted(place.rglob("*")) == before
        finally:
            os.seteuid(0)
    finally:
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def forge():
    with zygote() as started:
        yield started


@pytest.mark.parametrize("options", [[], ["--take-over"]])
def test_a_stopped_holder_keeps_its_study(forge, tmp_path, options, capsys):
    """A process stopped by SIGSTOP is alive, so a second one fails, even with --take-over."""
    out = tmp_path / "study"
    forge.start(out, tmp_path / "log", study={**ASKED, "episodes": 450, "seeds": 1}, stretch=0.05)
    assert forge.wait_for("greedy 1\n")
    forge.kill(19)  # SIGSTOP
    assert main(["resume", str(out), "--workers", "1", *options]) == 4
    error = capsys.readouterr().err
    assert f"process {forge.pid} on host" in error
    assert len(error.splitlines()) == 1
    assert json.loads((out / locking.NAME).read_text())["pid"] == forge.pid
    forge.kill(18)  # SIGCONT
    forge.kill()
    forge.wait()


@pytest.mark.parametrize("how", ["removed", "without study.json", "another study"])
def test_the_directory_is_confirmed_before_every_unit(begun, how):
    directory = StudyDirectory.open(begun)
    directory.confirm()
    unit = next(directory.units())
    if how == "removed":
        shutil.rmtree(begun)
    elif how == "without study.json":
        (begun / "study.json").unlink()
    else:
        other = directory.manifest._replace(about={})
        (begun / "study.json").write_bytes(other.encode())
    before = sorted(begun.rglob("*"))
    with raises(StorageError, str(begun)):
        directory.make_unit_path(unit)
    assert sorted(begun.rglob("*")) == before
