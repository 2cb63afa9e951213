"""Untrusted study directories: nothing in them is executed, nothing outside them is read."""

import json
import os
import py_compile
import shutil
import sys
from pathlib import Path

import pytest

from homdp_ppl import HOMDPError, ParameterError, study
from homdp_ppl.cli.main import main
from homdp_ppl.report.page import write_page
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.study import StudyDirectory
from homdp_ppl.study.manifest import Manifest, _check, _text
from tests.raising import raises

CANARY = """
from pathlib import Path
from homdp_ppl import models
from homdp_ppl.explorers import greedy
from homdp_ppl.planners import history_tree

Path("sung").touch()
world = models.load("tiger", horizon=2)
rule = greedy()

def planner(pomdp):
    return history_tree()(pomdp)
"""
ASKED = {"episodes": 4, "seeds": 2, "priors": ["declared"], "workers": 1}
OPENED: list[str] = []
LISTENING: list[bool] = []


def listen(event, arguments):
    if LISTENING and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        OPENED.append(os.path.abspath(os.fsdecode(arguments[0])))


sys.addaudithook(listen)


@pytest.fixture
def opened():
    """The files that are opened from now on."""
    OPENED.clear()
    LISTENING.append(True)
    yield OPENED
    LISTENING.clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study with a user file that creates a file when it is imported."""
    place = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        Path("mine.py").write_text(CANARY)
        ask("here")
        assert Path("sung").exists()
        main(["report", "here"])
    return place


def ask(out):
    return study.compare(
        "mine.py:world",
        ["greedy", "mine.py:rule"],
        planner="mine.py:planner",
        out=out,
        **ASKED,
    )


@pytest.fixture
def foreign(made, tmp_path, monkeypatch):
    """A copy of that study, as if it came from another user."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made / "here", "here")
    shutil.copy(made / "mine.py", "mine.py")
    return Path("here")


def unfinished(directory):
    """Remove one journal, so that the study is incomplete."""
    next(directory.rglob("*greedy*/*/seed-1.journal")).unlink()


def rewrite(directory, change):
    """Forge study.json with a valid checksum."""
    file = directory / "study.json"
    content = json.loads(file.read_bytes())
    del content["check"]
    change(content)
    file.write_bytes(_text({**content, "check": _check(content)}))


def test_reading_and_reporting_import_nothing(foreign, tmp_path, capsys, opened):
    """Also if the file has changed or is missing, or journals are incomplete."""
    for what in ("as it was", "incomplete", "changed", "gone"):
        if what == "incomplete":
            unfinished(foreign)
        if what == "changed":
            Path("mine.py").write_text("raise SystemExit('evil')")
        if what == "gone":
            Path("mine.py").unlink()
        opened.clear()
        directory = StudyDirectory.open(foreign)
        runs = study.read_runs(directory)
        study.summarise({key[2]: several for key, several in runs.items()})
        study.digest(directory)
        write_page(directory, runs)
        assert main(["report", str(foreign)]) == 0
        assert not (tmp_path / "sung").exists()
        assert not [path for path in opened if path.endswith("mine.py")]
    capsys.readouterr()


def test_the_page_of_a_study_with_user_files_is_complete(foreign, capsys):
    """The parts that need the user file were saved by the process that ran the study."""
    directory = StudyDirectory.open(foreign, trust=True)
    write_page(directory, study.read_runs(directory))
    whole = (foreign / "report.html").read_bytes()
    assert b"Not available" not in whole
    Path("mine.py").unlink()
    assert main(["report", str(foreign)]) == 0
    assert (foreign / "report.html").read_bytes() == whole
    (data,) = foreign.rglob("page.data")
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 4
    data.write_bytes(content)
    assert main(["report", str(foreign)]) == 0
    assert (foreign / "report.html").read_bytes().count(b"Not available") == 6
    capsys.readouterr()


def test_resuming_needs_consent_to_import(foreign, tmp_path, capsys, opened):
    unfinished(foreign)
    with pytest.raises(ParameterError) as caught:
        study.resume(foreign, workers=1)
    assert [problem.where for problem in caught.value.problems] == [
        "mine.py:world",
        "mine.py:rule",
        "mine.py:planner",
    ]
    assert main(["resume", str(foreign), "--workers", "1"]) == 2
    assert main(["resume", str(foreign), "other.py", "--workers", "1"]) == 2
    assert not (tmp_path / "sung").exists()
    assert not [path for path in opened if path.endswith("mine.py")]
    assert "--trust" in capsys.readouterr().err
    expected = study.digest(ask("again").directory)
    for words in (["--trust"], ["mine.py"], ["./mine.py"], [str(tmp_path / "mine.py")]):
        shutil.rmtree(foreign / "runs")
        assert main(["resume", str(foreign), *words, "--workers", "1"]) == 0
        assert study.digest(StudyDirectory.open(foreign)) == expected


def test_a_complete_study_needs_no_trust(foreign, tmp_path, capsys):
    assert main(["resume", str(foreign), "--workers", "1"]) == 0
    assert not (tmp_path / "sung").exists()
    capsys.readouterr()


@pytest.mark.parametrize("trust", [True, ["mine.py"], "mine.py"])
def test_the_text_is_compared_before_anything_is_imported(foreign, tmp_path, trust):
    unfinished(foreign)
    text = Path("mine.py").read_text()
    Path("mine.py").write_text(text + "\n# another text\n")
    with raises(ParameterError, "mine.py:world"):
        study.resume(foreign, workers=1, trust=trust)
    Path("mine.py").write_bytes(text.replace("\n", "\r\n").encode())
    with raises(ParameterError, "mine.py:world"):
        study.resume(foreign, workers=1, trust=trust)
    with raises(ParameterError, "mine.py:world"):
        ask(foreign)
    assert not (tmp_path / "sung").exists()


def test_cached_bytecode_is_not_executed(foreign, tmp_path):
    """The text equals the recorded one, but a planted .pyc differs."""
    unfinished(foreign)
    evil = tmp_path / "evil.py"
    evil.write_text("raise SystemExit('evil')")
    cached = Path(py_compile.compile("mine.py"))
    py_compile.compile(
        str(evil), cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    assert study.resume(foreign, workers=1, trust=True).complete


@pytest.mark.parametrize("place", ["/etc/passwd.py", "../mine.py", "link.py", "/etc/passwd"])
def test_paths_outside_the_working_directory(foreign, tmp_path, place, opened):
    """--trust covers files below the working directory; others are not opened."""
    unfinished(foreign)
    inside = tmp_path / "inside"
    inside.mkdir()
    shutil.move(foreign, inside / "here")
    os.chdir(inside)
    Path("link.py").symlink_to(tmp_path / "mine.py")

    def change(content):
        text = json.dumps(content).replace("mine.py:", f"{place}:")
        content.update(json.loads(text))

    rewrite(Path("here"), change)
    for trust in (False, True):
        with pytest.raises(HOMDPError):
            study.resume("here", workers=1, trust=trust)
    assert not (tmp_path / "sung").exists()
    found = [
        path for path in opened if path.endswith(("mine.py", "link.py", "passwd.py", "passwd"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["sources"].update({"/etc/passwd": ""}),
        lambda content: content["sources"].clear(),
        lambda content: content["models"].update({"/etc/passwd": {}}),
        lambda content: content["models"].update({"mine.py:world": {"kind": "finite"}}),
        lambda content: content["models"].update({"mine.py:world": []}),
        lambda content: content["rules"].clear(),
        lambda content: content["rules"]["greedy"].update(coverage=7.0),
        lambda content: content.update(rules=["greedy"]),
        lambda content: content.update(about={"command": 7}),
        lambda content: content.update(more=1),
        lambda content: content["study"].update(models=["/etc/passwd:x"]),
        lambda content: content["study"].update(seeds=10**6),
        lambda content: content["study"].update(seeds=10**400),
    ],
)
def test_forged_parts_of_study_json(foreign, change, opened):
    rewrite(foreign, change)
    with pytest.raises(HOMDPError):
        StudyDirectory.open(foreign)
    assert main(["report", str(foreign)]) in (2, 4)
    assert not [path for path in opened if path.startswith("/etc/passwd")]


@pytest.mark.parametrize("what", ["journal", "unit", "runs", "study.json", "page.data"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_links_and_pipes_inside_are_errors(foreign, tmp_path, what, kind, capsys, opened):
    """A link out of the directory is not followed, and a pipe does not block."""
    main(["report", str(foreign)])
    (journal, *_) = sorted(foreign.rglob("seed-0.journal"))
    path = {
        "journal": journal,
        "unit": journal.parent,
        "runs": foreign / "runs",
        "study.json": foreign / "study.json",
        "page.data": next(iter(foreign.rglob("page.data")), foreign / "runs" / "page.data"),
    }[what]
    outside = tmp_path / "outside"
    if path.exists():
        shutil.move(path, outside)
    opened.clear()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(outside)
    code = main(["report", str(foreign)])
    nothing = what == "page.data" or (kind == "pipe" and what in ("unit", "runs"))
    assert code == (0 if nothing else 4)
    assert not [name for name in opened if name.startswith(str(outside))]
    capsys.readouterr()


def test_marker_files_that_are_links_write_nothing_elsewhere(foreign, tmp_path):
    """The files with which workers report progress and are requested to stop."""
    unfinished(foreign)
    precious = tmp_path / "precious"
    precious.write_text("1")
    (unit,) = foreign.rglob("*greedy*/seeds-0-1")
    (unit / ".rounds").symlink_to(precious)
    (foreign / ".stop").symlink_to(tmp_path / "nothing")
    assert study.resume(foreign, workers=2, trust=True).complete
    assert precious.read_text() == "1"
    assert not (tmp_path / "nothing").exists()


def test_every_byte_of_study_json_is_checked(foreign):
    """Also white space, the order of keys, and duplicate keys."""
    file = foreign / "study.json"
    good = file.read_bytes()
    Manifest.read(file)
    for changed in (
        good + b"\n",
        good.replace(b"\n", b" ", 1),
        good.replace(b'{\n "format": 2', b'{\n "format": 2,\n "format": 2'),
    ):
        assert changed != good
        file.write_bytes(changed)
        with pytest.raises(StorageError):
            Manifest.read(file)
