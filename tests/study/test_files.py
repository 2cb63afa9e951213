"""Custom rules and planners in user files: names, options, and studies that use them."""

import re

import pytest

from homdp_ppl import HOMDPError, ParameterError, models, study
from homdp_ppl.cli.main import main
from homdp_ppl.planners import history_tree
from homdp_ppl.study import Study, find_planner, find_rule, find_world
from homdp_ppl.study.defaults import CLASSES
from homdp_ppl.study.files import file_of, source_of
from homdp_ppl.study.sources import unwritable
from homdp_ppl.study.units import begin
from tests.raising import raises

OWN = """
from dataclasses import replace

from homdp_ppl import models
from homdp_ppl.explorers import About, Explorer, greedy, posterior_sampling, with_random_actions
from homdp_ppl.planners import history_tree


def shaky(share=0.5):
    return _renamed(with_random_actions(greedy(), share), "shaky", share)


def believer(share=0.5):
    return _renamed(with_random_actions(posterior_sampling(), share), "believer", share)


def _renamed(rule, name, share):
    return replace(rule, about=replace(rule.about, name=name, options={"share": share}))


half = shaky()


def tree(pomdp):
    return history_tree()(pomdp)


def made(nodes=100_000):
    return history_tree(nodes)


def small(horizon=2):
    return models.load("tiger", horizon=horizon)


def number():
    return 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The user file, in the working directory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return file


def test_names_of_files():
    named = ["a.py:b", "a.py:b:c=0.5", "./x/a.py", "x.POMDP", "hop_b:scale=0.1", "tiger"]
    assert [str(file_of(text)) for text in named] == [
        "a.py",
        "a.py",
        "x/a.py",
        "x.POMDP",
        "None",
        "None",
    ]
    assert source_of("no.py:rule") == source_of("greedy") == ""


def test_objects_of_a_file(own):
    world = find_world("own.py:small:horizon=3")
    assert world.spaces.horizon == 3
    assert find_rule("own.py:shaky:share=0.25", world).deployment.random_actions == 0.25
    assert find_rule("own.py:half", world).name == "shaky(share=0.5)"
    best = history_tree()(world.pomdp).value
    assert find_planner("own.py:tree", world)(world.pomdp).value == best
    assert find_planner("own.py:made:nodes=500", world)(world.pomdp).value == best
    with raises(HOMDPError, "horizon 3"):
        find_planner("own.py:made:nodes=5", world)(world.pomdp)


@pytest.mark.parametrize(
    ("find", "text", "where", "names"),
    [
        (find_rule, "own.py:shakey", "name", ["shaky"]),
        (find_rule, "own.py:other", "name", ["half", "shaky"]),
        (find_rule, "own.py", "name", ["half", "shaky"]),
        (find_rule, "own.py:number", "explorer", ["Explorer"]),
        (find_rule, "own.py:shaky:size=2", "option", ["share"]),
        (find_rule, "gone.py:shaky", "file", []),
        (find_planner, "own.py:nothing", "name", ["tree", "made"]),
        (find_planner, "own.py:number", "planner", ["Plan"]),
        (lambda text, world: find_world(text), "own.py:number", "name", ["World"]),
        (lambda text, world: find_world(text), "own.py:small:size=2", "option", ["horizon"]),
    ],
)
def test_unknown_and_invalid_names_in_a_file(own, find, text, where, names):
    """The problem lists the names that exist."""
    with raises(HOMDPError, where) as caught:
        find(text, models.load("tiger", horizon=2))
    (problem,) = caught.value.problems
    listed = set(re.findall(r"\w+", f"{problem.expected} {problem.remedy}"))
    assert set(names) <= listed


def test_a_study_with_custom_rules(own, capsys):
    """It is resumed only if the file has not changed, and compiled functions are reused as long."""
    asked = Study(
        ("tiger:horizon=2",),
        ("greedy", "own.py:shaky:share=0.25", "own.py:believer"),
        6,
        2,
        "own.py:tree",
        priors=("declared", "flat"),
    )
    first = study.compare(asked, out="study", workers=1, time_limit=0.0)
    assert not first.complete
    own.write_text(OWN.replace("(greedy(), share)", "(greedy(), share / 2)"))
    with raises(ParameterError, "own.py:shaky:share=0.25"):
        study.resume("study", workers=1, trust=True)
    own.write_text(OWN)
    done = study.resume("study", workers=1, trust=True)
    assert done.complete
    assert [(prior, rule) for _, prior, rule in done.runs] == [
        ("declared", "greedy"),
        ("declared", "own.py:shaky:share=0.25"),
        ("declared", "own.py:believer"),
        ("flat", "own.py:believer"),  # the rule says that it uses the prior
    ]
    mine = next(unit for unit in asked.units() if unit.rule != "greedy")
    world = find_world("tiger:horizon=2")
    before, same = (begin(asked, mine, world)[0].task.explorer for _ in range(2))
    own.write_text(OWN + "\n")
    assert same is before
    assert begin(asked, mine, world)[0].task.explorer is not before
    own.write_text(OWN)
    assert main(["report", "study"]) == 0
    assert "own.py:shaky:share=0.25" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "tiger", "--explorers", "gredy"],
        ["compare", "tiger", "--planner", "tre"],
        ["compare", "tiger", "tigr"],
        ["compare", "tiger", "--explorers", "own.py:nothing"],
        ["plan", "tiger", "--planner", "tre"],
    ],
)
def test_unknown_names_are_reported_before_anything_runs(own, capsys, words):
    assert main(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert list(own.parent.iterdir()) == [own]


def test_rules_that_text_cannot_express():
    """The help of the command line knows them without importing anything."""
    assert tuple(unwritable()) == CLASSES
    for name in CLASSES:
        with raises(ParameterError, "name"):
            find_rule(name, models.load("tiger", horizon=2))


@pytest.mark.parametrize("when", ["doubled", "once"])
def test_replanning_is_an_option_of_every_rule(own, when):
    world = models.load("tiger", horizon=2)
    for text in ("greedy", "own.py:shaky", "own.py:shaky:share=0.2"):
        rule = find_rule(f"{text}{',' if '=' in text else ':'}replan={when}", world)
        assert rule.deployment.replan == when
    with raises(ParameterError, "replan"):
        find_rule("greedy:replan=now", world)
