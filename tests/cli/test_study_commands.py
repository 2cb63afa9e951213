"""What the commands of studies print.

Whole runs only, the same columns in all tables, what is missing, whose mistake it is.
"""

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
    """The words above the columns of each table."""
    return [line.split()[1:] for line in out.splitlines() if line.startswith("  rule ")]


def test_only_runs_at_their_end_are_in_tables(capsys):
    """Planted: a run of 1,500 episodes whose journal ends before the last block."""
    assert main(asked("tiger:horizon=2", rules="greedy,uniform", episodes=1500)) == 0
    assert "not done" not in capsys.readouterr().out
    cut = next(Path("here").rglob("*greedy*/*/*.journal"))
    cut.write_bytes(cut.read_bytes()[:-10])
    (run,) = study.read_runs(study.StudyDirectory.open("here"))[
        "tiger:horizon=2", "declared", "greedy"
    ]
    assert 0 < len(run.played) < 1500
    assert main(["report", "here"]) == 0
    out = capsys.readouterr().out
    assert [
        line.split()[0] for line in out.splitlines() if line.startswith("  ") and "none" in line
    ] == ["uniform"]
    assert (
        f"not done: greedy in tiger:horizon=2, seed 0: 0 of 1 runs are at their end, seed 0 "
        f"has played {len(run.played):,}"
    ) in out
    assert "homdp resume here" in out
    cut.unlink()
    next(Path("here").rglob("*uniform*/*/*.journal")).unlink()
    assert main(["report", "here"]) == 0
    out = capsys.readouterr().out
    assert heads(out) == []
    assert out.count("not done: ") == 2
    assert "regret:" not in out


def test_resuming_for_too_short_a_time_is_told_also_when_much_is_there(capsys):
    """Half of the runs are there; the next second is over before the rest begins."""
    assert main(asked("tiger:horizon=2", rules="greedy,uniform", episodes=30)) == 0
    next(Path("here").rglob("*uniform*/*/*.journal")).unlink()
    capsys.readouterr()
    assert main(["resume", "here", "--workers", "1", "--time-limit", "0.000001"]) == 3
    assert "Nothing was written" in capsys.readouterr().out


def test_all_tables_have_the_same_columns_and_the_rest_is_named(capsys, monkeypatch):
    """The long name of one rule leaves less room in one of the tables."""
    Path("mine.py").write_text(MINE)
    assert main(asked("tiger:horizon=2", "mine.py:world", rules="greedy,uniform")) == 0
    capsys.readouterr()
    for columns in (40, 60, 70, 80, 90, 100, 120, 150):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["report", "here"]) == 0
        out = capsys.readouterr().out
        first, second = heads(out)
        assert first == second
        omitted = (
            out.partition("No room here for ")[2].partition(": a wider")[0].replace(" 0.1", "")
        )
        every = {"difference", "gap", "optimistic", "excess", "within", "seconds", "guarantee"}
        assert every - set(first) == set(omitted.split(", ")) - {""}
        assert all(
            len(line) <= columns
            for line in out.splitlines()
            if line.startswith(("  rule", "  greedy", "  uniform"))
        )


def test_little_time_and_places_that_are_taken(capsys):
    assert main([*asked("tiger:horizon=2"), "--time-limit", "0.000001"]) == 3
    assert "Nothing was written" in capsys.readouterr().out
    assert main(["resume", "here", "--workers", "1"]) == 0
    assert "already" not in capsys.readouterr().out
    assert main(["resume", "here", "--workers", "1"]) == 0
    assert "All runs are already complete." in capsys.readouterr().out
    for line in (asked("tiger:horizon=2", episodes=4), asked("tiger:horizon=3")):
        assert main(line) == 2
        assert capsys.readouterr().out == ""  # nothing is announced that does not begin
    assert main(["resume", "nowhere"]) == 2
    assert "no such directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        ["plan", "tiger", "--planner", "mine.py:planner"],
        ["learn", "tiger", "--explorer", "mine.py:rule", "--episodes", "2"],
    ],
)
def test_a_mistake_in_somebodys_own_file_is_told_as_theirs(line, capsys):
    Path("mine.py").write_text(MINE)
    number = 1 + next(
        k
        for k, text in enumerate(MINE.splitlines())
        if ("pomdp." if "plan" in line else "state.") in text
    )
    assert main(line) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"homdp: mine.py line {number}: got AttributeError: ")
    assert error.count("\n") == 1
    assert main([*line, "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_mistake_in_somebodys_own_file_is_told_by_a_study(capsys):
    Path("mine.py").write_text(MINE)
    assert main(asked("mine.py:world", rules="mine.py:rule,greedy")) == 5
    assert "mine.py line 8: got AttributeError" in capsys.readouterr().out
