"""The ``homdp`` command with valid and invalid arguments."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from homdp_ppl import GraphPolicy, evaluate, explorers, learn, models, study, theory
from homdp_ppl.cli.main import main
from homdp_ppl.planners import history_tree
from homdp_ppl.study.differences import COVERS
from tests.planners.exact import optimum
from tests.worlds import world

DECLARATION = """
import numpyro, numpyro.distributions as dist
from homdp_ppl import Kernels, homdp

@homdp(states=2, observations=2, actions=1, horizon=3, reward=[[0.0], [1.0]])
def mine():
    p = numpyro.sample("p", dist.Beta(1, 1))
    return Kernels([1.0, 0.0], lambda x, a: dist.Bernoulli(p), lambda x: dist.Delta(x))

fixed = mine.at(p=0.25)
names = {"states": ("[/]", "[red]hot[/red]\\x1b[2J"), "observations": 2, "actions": 1}
marked = homdp(**names, horizon=2, reward=[[0.0], [1.0]])(mine.function).at(p=0.5)

def default():
    return fixed

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(DECLARATION)
    return path


def test_play_shows_an_episode_and_reveals_its_states(capsys):
    assert main(["play", "tiger", "--episodes", "2", "--seed", "1"]) == 0
    first = capsys.readouterr().out
    assert first.count("as seen by the policy") == first.count("in hindsight") == 2
    assert "growl" in first
    main(["play", "tiger", "--episodes", "2", "--seed", "1"])
    assert capsys.readouterr().out == first


def test_models_lists_the_zoo_and_describes_one_or_several(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in models.MODELS)
    assert "behind one of two doors" in out
    assert main(["models", "tiger"]) == 0
    out = capsys.readouterr().out
    assert "growl left; growl right" in out
    assert "accuracy=0.85" in out
    assert main(["models", "tiger", "tiger:horizon=2"]) == 0
    out = capsys.readouterr().out
    assert "H = 4" in out
    assert "H = 2" in out


def test_a_model_from_a_file(capsys, file):
    assert main(["models", f"{file}:fixed"]) == 0
    assert "p=0.25" in capsys.readouterr().out
    assert main(["models", f"{file}:default"]) == 0  # a function that returns a world
    assert "p=0.25" in capsys.readouterr().out
    assert main(["play", f"{file}:marked", "--episodes", "9"]) == 0  # names are not markup
    assert main(["models", f"{file}:marked"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out  # and do not control the terminal
    assert out.count("[red]hot[/red]") > 1
    assert out.count("[/]") > 1
    assert main(["play", f"{file}:mine"]) == 0  # parameters drawn from the prior
    assert "World 'mine' at p=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("lion", "unknown model 'lion'"),
        ("tigr", "Did you mean 'tiger'?"),
        ("no.py:x", "no file"),
        ("{}:number", "a HOMDP, a World"),
        ("{}:other", "mine, fixed"),
        ("{}", "mine, fixed"),
        ("broken.py:x", "line 2: got ZeroDivisionError"),
        ("wrong.py:x", "line 1: got SyntaxError"),
        ("notes.txt:x", "ending in .py"),
        ("tiger:horizn=3", "unknown option 'horizn'; tiger has: horizon, accuracy"),
    ],
)
def test_invalid_models_are_reported_without_a_traceback(capsys, file, model, words, monkeypatch):
    monkeypatch.chdir(file.parent)
    Path("broken.py").write_text("x = 1\ny = 1 / 0\n")
    Path("wrong.py").write_text("x = (\n")
    Path("notes.txt").write_text("x\n")
    assert main(["play", model.format(file)]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err


def test_usage_errors(capsys):
    for arguments in (
        [],
        ["plan"],
        ["play", "tiger", "--episodes", "0"],
        ["play", "tiger", "--seed", "9" * 20],
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "not a positive integer" in capsys.readouterr().err


def test_plan(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    picture, policy = tmp_path / "tree.png", tmp_path / "policy.npz"
    assert (
        main(
            [
                "plan",
                "tiger",
                "--planner",
                "history_tree",
                "--horizon",
                "3",
                "--draw",
                str(picture),
                "--save",
                str(policy),
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert f"value     {optimum(world('tiger').with_horizon(3).pomdp):.9g}  (certified" in out
    assert "growl left, listen, growl left" in out
    assert picture.stat().st_size > 5000
    assert GraphPolicy.load(policy).names == (
        ("growl left", "growl right"),
        ("listen", "open left", "open right"),
    )
    assert main(["plan", "tiger", "--planner", "history_tree", "--horizon", "40"]) == 2
    assert "bounded_search" in capsys.readouterr().err


def test_theory(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert (
        main(
            [
                "theory",
                "tiger",
                "--episodes",
                "1000",
                "--delta",
                "0.05",
                "--horizon",
                "3",
                "--accuracy",
                "0.5",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "horizon 3; 1,000 episodes, delta 0.05" in out
    lines = {line.split("│")[1].strip(): line for line in out.splitlines() if line.startswith("│")}
    first = lines["regret of HOP-B"]
    assert f"{theory.hop_b_bound(2, 2, 3, 3, 1000, 0.05).total:.3g}" in first
    assert "3,000" in first
    assert f"from K = {theory.hop_b_samples(2, 2, 3, 3, 3.0, 0.05).episodes:.3g}" in first
    assert "episodes for a gap of 0.5, HOP-V" in lines
    assert "yes" in lines["sum of 1 / sqrt n(x)"]
    assert main(["theory", "tiger", "--delta", "3", "--accuracy", "nan"]) == 2
    error = capsys.readouterr().err
    assert "delta" in error
    assert "accuracy" in error


def test_learn(capsys, tmp_path):
    """The command gives the run, policy and file of the Python function."""
    line = ["learn", "tiger:horizon=2", "--episodes", "6", "--explorer", "greedy", "--seed", "3"]
    assert main([*line, "--save", str(tmp_path / "p.npz"), "--out", str(tmp_path / "r.nc")]) == 0
    out = capsys.readouterr().out
    made = study.find_world("tiger:horizon=2")
    run = learn(made, explorers.greedy(), history_tree(), 6, 3)
    assert repr(run) in out
    assert evaluate(GraphPolicy.load(tmp_path / "p.npz"), made.pomdp) == run.values[-1]
    with xr.open_dataset(tmp_path / "r.nc", engine="scipy") as data:
        np.testing.assert_array_equal(data["value"], run.values)


def test_compare_resume_and_report(capsys, tmp_path, monkeypatch):
    """A table, results and a page; repeating the command and reporting change nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    asked = [
        "--explorers",
        "greedy,posterior_sampling",
        "--episodes",
        "8",
        "--seeds",
        "2",
        "--priors",
        "declared",
    ]
    line = ["compare", "tiger:horizon=2", *asked, "--workers", "1", "--out", "here"]
    assert main([*line, "--time-limit", "0.000001"]) == 3
    assert "homdp resume here" in capsys.readouterr().out
    assert main(["resume", "here", "--workers", "1"]) == 0
    first = capsys.readouterr().out
    digest = study.digest(study.StudyDirectory.open("here"))
    rows = study.summarise(
        {
            rule: runs
            for (_, _, rule), runs in study.read_runs(study.StudyDirectory.open("here")).items()
        }
    )
    for row in rows:
        assert f"{row.regret:.3g} ± {row.error:.2g}" in first
    assert "difference" in first
    assert COVERS.split()[-5:] == first[: first.index("Results:")].split()[-5:]
    assert Path("here/report.html").stat().st_size > 10_000
    for again in (line, ["report", "here"]):
        assert main(again) == 0
        assert capsys.readouterr().out.count("posterior_sampling") >= 1
    assert study.digest(study.StudyDirectory.open("here")) == digest
    Path("study.toml").write_text(
        'models = ["tiger:horizon=2"]\nexplorers = ["greedy"]\nepisodes = 3\nseeds = 1\n'
    )
    assert main(["compare", "study.toml", "--workers", "1"]) == 0
    assert len(list(Path("studies").glob("tiger_horizon_2*/results.nc"))) == 1
    assert main(["compare", "study.toml", "tiger"]) == 2


def test_names_are_printed_verbatim(capsys, tmp_path, monkeypatch):
    """No markup, no emoji, correct plurals, and a command for resuming that can be pasted.

    Progress counts only the units that are left.
    """
    monkeypatch.chdir(tmp_path)
    Path("[bold]x.py").write_text(
        "from homdp_ppl import models\nfrom homdp_ppl.explorers import hop_b as fire\n"
        "def world(horizon=2): return models.load('tiger', horizon=horizon)\n"
    )
    rule = "[bold]x.py:fire:scale=0.5"
    line = [
        "compare",
        "[bold]x.py:world",
        "--explorers",
        "greedy",
        rule,
        "--episodes",
        "1",
        "--seeds",
        "1",
        "--workers",
        "1",
    ]
    assert main([*line, "--out", "my study", "--time-limit", "0.000001"]) == 3
    assert "homdp resume 'my study' '[bold]x.py'" in capsys.readouterr().out
    assert main(["resume", "my study", "[bold]x.py", "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == f"2 of 2 done: {rule} in [bold]x.py:world, seed 0"
    assert "[bold]x.py:world: 1 episode, 1 seed, optimal" in printed.out
    assert rule in printed.out
    next(Path("my study").rglob("*fire*/*/*.journal")).unlink()
    assert main([*line, "--out", "my study"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"1 of 1 done: {rule} in [bold]x.py:world, seed 0"]
    assert "once for 1 episode." in printed.out


@pytest.mark.slow
def test_continuous_models(capsys):
    assert main(["models", "gaussian_tiger"]) == 0
    assert "observations: real-valued, R" in capsys.readouterr().out
    assert main(["play", "gaussian_tiger", "--horizon", "2"]) == 0
    assert "in hindsight" in capsys.readouterr().out
    assert main(["plan", "gaussian_tiger", "--horizon", "2", "--planner", "quantised:gap=0.1"]) == 0
    assert "certified: the optimum is at most" in capsys.readouterr().out
    assert main(["theory", "gaussian_tiger"]) == 2
    assert "a finite model" in capsys.readouterr().err


def test_internal_errors_take_one_line(capsys, monkeypatch):
    monkeypatch.setattr("homdp_ppl.theory.report", lambda *given: 1 / 0)
    assert main(["theory", "tiger:horizon=2"]) == 1
    assert capsys.readouterr().err == (
        "homdp: internal error: ZeroDivisionError: division by zero "
        "(use --debug to see the traceback)\n"
    )
    assert main(["--debug", "theory", "tiger:horizon=2"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("homdp_ppl ")


def test_an_interrupt_says_how_to_resume(capsys, monkeypatch):
    def impatient(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("homdp_ppl.study.compare", impatient)
    assert main(["compare", "tiger", "--out", "mine"]) == 130
    assert capsys.readouterr().err == (
        "homdp: Interrupted. Saved results are intact. To resume: homdp resume mine\n"
    )


def test_models_shows_stories_in_full(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["models"]) == 0
    shown = capsys.readouterr().out
    for name in models.MODELS:
        assert models.story(name).endswith("."), name
        assert models.story(name) in shown


def test_plans_and_plays_follow_restrictions(capsys):
    """Each test at most once: the value is that of the restricted problem."""
    model = "diagnosis:tests=3,horizon=3"
    world = models.load("diagnosis", tests=3, horizon=3)
    plan = history_tree()(world.pomdp, allowed=world.homdp.allowed)
    assert history_tree()(world.pomdp).value > plan.value + 0.1
    assert main(["plan", model]) == 0
    assert f"value     {plan.value:.9g}" in capsys.readouterr().out
    assert main(["play", model, "--episodes", "5"]) == 0
    played = capsys.readouterr().out
    assert "treat" in played or "dismiss" in played
