"""The homdp command with .POMDP files."""

from functools import cache
from pathlib import Path

import pytest

from homdp_ppl import study
from homdp_ppl.cli.main import main
from tests.formats.files import PLAIN

found = cache(study.find_world)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file for commands; its world is declared once for all tests, because that is slow."""
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setattr(
        study, "find_world", lambda text, horizon=None, seed=0: found(Path(text).name, horizon)
    )
    monkeypatch.chdir(tmp_path)
    Path("cave.pomdp").write_text(PLAIN)
    return "cave.pomdp"


def test_models_shows_a_file(capsys, file):
    assert main(["models", file]) == 0
    out = capsys.readouterr().out
    assert "HOMDP 'cave': 2 states, 2 observations, 2 actions, horizon 10" in out
    assert "T: Dirichlet, conjugate; O: Dirichlet, conjugate; initial: known" in out


def test_play_and_plan_and_theory(capsys, file):
    assert main(["play", file]) == 0
    assert "in hindsight" in capsys.readouterr().out
    assert main(["plan", file, "--horizon", "3"]) == 0
    assert "horizon 3" in capsys.readouterr().out
    assert main(["theory", file]) == 0
    assert "cave: 2 states, 2 observations, 2 actions, horizon 10" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["models", "play", "plan", "compare", "theory"])
def test_errors_have_file_and_line(capsys, tmp_path, command):
    assert main([command, str(tmp_path / "no.POMDP")]) == 2
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "bad.POMDP").write_text(PLAIN.replace("0.9 0.1", "0.9 0.2"))
    assert main([command, str(tmp_path / "bad.POMDP")]) == 2
    error = capsys.readouterr().err
    assert "bad.POMDP" in error
    assert "line 5, T: a0 : x0: got a row that sums to 1.1" in error
    assert "Traceback" not in error
