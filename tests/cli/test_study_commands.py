"""The output of the study commands: tables of complete runs, incomplete units, errors."""

import json
from pathlib import Path

import pytest

from homdp_ppl import study
from homdp_ppl.cli.main import main

MINE = """
from homdp_ppl import explorers, models
from homdp_ppl.explorers import About, Explorer

world = models.load("tiger", horizon=2)

def broken(key, state):
    return state.no_such_thing

rule = Explorer(About("mine"), propose=broken)

def planner(pomdp):
    return pomdp.no_such_thing
"""


def asked(*models, rules="greedy", episodes=3, seeds=1):
    numbers = [
        "--episodes",
        str(episodes),
        "--seeds",
        str(seeds),
        "--priors",
        "declared",
        "--workers",
        "1",
    ]
    return ["compare", *models, "--explorers", rules, *numbers, "--out", "here"]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def heads(out):
    """The column heads of each table."""
    return [line.split()[1:] for line in out.splitlines() if line.startswith("  rule ")]


def test_tables_contain_complete_runs_only(capsys):
    """Planted: a run of 1,500 episodes whose journal ends before the last block."""
    assert main(asked("tiger:horizon=2", rules="greedy,uniform", episodes=1500)) == 0
    assert "Not complete" not in capsys.readouterr().out
    cut = next(Path("here").rglob("*greedy*/*/*.journal"))
    cut.write_bytes(cut.read_bytes()[:-10])
    (run,) = study.read_runs(study.StudyDirectory.open("here"))[
        "tiger:horizon=2", "declared", "greedy"
    ]
    assert 0 < len(run.played) < 1500
    assert main(["report", "here"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if line.rstrip().endswith(" none")] == [
        "uniform"
    ]
    assert "Not complete (1 unit of work):\n  greedy in tiger:horizon=2, seed 0: " in out
    assert f"{len(run.played):,} of 1,500" in " ".join(out.split())
    assert "To resume: homdp resume here\n" in out
    cut.unlink()
    next(Path("here").rglob("*uniform*/*/*.journal")).unlink()
    assert main(["report", "here"]) == 0
    out = capsys.readouterr().out
    assert heads(out) == []
    assert "Not complete (2 units of work):" in out
    assert "regret" not in out


def test_a_time_limit_that_is_too_short_is_reported(capsys):
    """Half of the runs are complete; the time limit is reached before the others begin."""
    assert main(asked("tiger:horizon=2", rules="greedy,uniform", episodes=30)) == 0
    next(Path("here").rglob("*uniform*/*/*.journal")).unlink()
    capsys.readouterr()
    assert main(["resume", "here", "--workers", "1", "--time-limit", "0.000001"]) == 3
    assert "No results were saved" in capsys.readouterr().out


@pytest.mark.slow
def test_all_tables_have_the_same_columns_and_the_others_are_listed(capsys, monkeypatch):
    """The long name of one rule leaves less space in one of the tables."""
    Path("mine.py").write_text(MINE)
    assert main(asked("tiger:horizon=2", "mine.py:world", rules="greedy,uniform")) == 0
    capsys.readouterr()
    for columns in (40, 60, 70, 80, 90, 100, 120, 150):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["report", "here"]) == 0
        out = capsys.readouterr().out
        first, second = heads(out)
        assert first == second
        hidden = out.partition("Hidden columns: ")[2].partition(" (use")[0].replace(" 0.1", "")
        every = {"difference", "gap", "optimistic", "excess", "within", "seconds", "guarantee"}
        assert every - set(first) == set(hidden.split(", ")) - {""}
        assert all(
            len(line) <= columns
            for line in out.splitlines()
            if line.startswith(("  rule", "  greedy", "  uniform"))
        )


def test_short_time_limits_and_directories_that_are_in_use(capsys):
    assert main([*asked("tiger:horizon=2"), "--time-limit", "0.000001"]) == 3
    assert "No results were saved" in capsys.readouterr().out
    assert main(["resume", "here", "--workers", "1"]) == 0
    assert "already" not in capsys.readouterr().out
    assert main(["resume", "here", "--workers", "1"]) == 0
    assert "All runs are already complete." in capsys.readouterr().out
    holder = {"host": "another-host", "pid": 1, "started": "", "since": "2026-01-31"}
    Path("here/.lock").write_text(json.dumps(holder))
    assert main(["resume", "here", "--workers", "1"]) == 4
    written = capsys.readouterr()
    assert written.out == ""
    assert "a lock held by process 1 on host another-host" in written.err
    Path("here/.lock").unlink()
    for line in (asked("tiger:horizon=2", episodes=4), asked("tiger:horizon=3")):
        assert main(line) == 2
        assert capsys.readouterr().out == ""  # no introduction of a study that does not run
    assert main(["resume", "nowhere"]) == 2
    assert "no such directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        ["plan", "tiger", "--planner", "mine.py:planner"],
        ["learn", "tiger", "--explorer", "mine.py:rule", "--episodes", "2"],
    ],
)
def test_an_error_in_a_user_file_is_reported_with_its_line(line, capsys):
    Path("mine.py").write_text(MINE)
    number = 1 + next(
        k
        for k, text in enumerate(MINE.splitlines())
        if ("pomdp." if "plan" in line else "state.") in text
    )
    assert main(line) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"homdp: mine.py line {number}: AttributeError: ")
    assert error.count("\n") == 1
    assert main([*line, "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_study_lists_the_units_that_failed(capsys):
    Path("mine.py").write_text(MINE)
    assert main(asked("mine.py:world", rules="mine.py:rule,greedy")) == 5
    out = capsys.readouterr().out
    assert "Failed (1 unit of work):\n  mine.py:rule in mine.py:world, seed 0:\n" in out
    assert "mine.py line 8: got AttributeError" in out
    assert "Not complete" not in out
