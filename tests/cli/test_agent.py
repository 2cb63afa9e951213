"""``homdp agent``: one call at a time, a server of JSON lines, and user files."""

import io
import json
from pathlib import Path

import pytest

from homdp_ppl import Agent, explorers, models
from homdp_ppl.cli.main import main
from homdp_ppl.planners import history_tree
from homdp_ppl.storage.whole_journal import read_journal, write_facts

MINE = """
from pathlib import Path
from homdp_ppl import models
Path("imported").touch()
world = models.load("tiger", horizon=2)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(place, capsys):
    """Run a command and return its exit code and its JSON object."""

    def run(*words, code=0):
        assert main(["agent", *words, "--json"]) == code
        found = capsys.readouterr()
        assert found.err == ""
        (line,) = found.out.splitlines()
        return json.loads(line)

    return run


def new(call, *more, model="tiger"):
    return call("new", "clinic", model, "--explorer", "posterior_sampling", "--horizon", "2", *more)


def test_an_episode_from_the_shell(call):
    """The actions are those of the same agent in Python."""
    assert new(call, "--seed", "3")["begun"] == 0
    tiger = models.load("tiger", horizon=2).homdp
    agent = Agent(tiger, explorers.posterior_sampling(), history_tree(), seed=3)
    for name in ("one", "two"):
        episode = agent.begin(name)
        assert call("begin", "clinic", "--id", name) == {"id": name}
        assert call("begin", "clinic", "--id", name) == {"id": name}
        for step, heard in ((1, "growl left"), (2, "growl right")):
            found = call("act", "clinic", name, heard, "--step", str(step))
            assert found == {"id": name, "step": step, "action": episode.act(heard)}
            assert call("act", "clinic", name, heard, "--step", str(step)) == found
        states = ["left"] * 3
        agent.reveal(name, states)
        assert call("reveal", "clinic", name, '{"1": "left"}') == {"id": name}
        assert call("status", "clinic")["pending"] == [name]
        call("reveal", "clinic", name, json.dumps(states))
    assert call("begin", "clinic") == {"id": "episode 3"}
    call("abandon", "clinic", "episode 3", "--reason", "no show")
    call("begin", "clinic", "--id", "four")
    assert call("act", "clinic", "four", "0")["step"] == 1
    call("end", "clinic", "four")
    assert call("status", "clinic")["pending"] == ["four"]
    call("forget", "clinic", "four")
    status = call("status", "clinic")
    assert (status["open"], status["pending"], status["revealed"]) == ([], [], 2)
    assert (status["begun"], status["abandoned"]) == (4, 2)


def test_output_for_people(call, place, capsys):
    new(call)
    assert main(["agent", "begin", "clinic", "--id", "one"]) == 0
    assert main(["agent", "act", "clinic", "one", "growl left"]) == 0
    assert capsys.readouterr().out.splitlines() == ["one", "listen"]
    assert main(["agent", "begin", "clinic", "--id", "\x1b[2Jtwo"]) == 0
    assert main(["agent", "status", "clinic"]) == 0
    out = capsys.readouterr().out
    assert r"open: one, \x1b[2Jtwo" in out
    assert "\x1b" not in out


def test_errors_are_objects_with_the_usual_codes(call, capsys):
    new(call)
    call("begin", "clinic", "--id", "one")
    found = call("act", "clinic", "one", "roar", code=2)
    assert (found["error"], found["problems"][0]["where"]) == ("DataError", "observation")
    assert call("act", "clinic", "two", "roar", code=2)["problems"][0]["where"] == "id"
    assert call("reveal", "clinic", "one", "[", code=2)["problems"][0]["where"] == "states"
    assert call("status", "nowhere", code=4)["error"] == "StorageError"
    assert call("new", "clinic", "tiger", code=4)["error"] == "StorageError"
    assert call("new", "other", "lion", code=2)["error"] == "HOMDPError"
    assert not Path("other").exists()
    assert call("new", "other", "tiger", "--explorer", "tight", code=2)["error"] == "ParameterError"
    assert main(["agent", "status", "nowhere"]) == 4
    assert capsys.readouterr().err.startswith("homdp: ")


def served(monkeypatch, capsys, *requests):
    lines = [each if isinstance(each, str) else json.dumps(each) for each in requests]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert main(["agent", "serve", "clinic"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_server_of_json_lines(call, monkeypatch, capsys):
    new(call)
    act = {"do": "act", "id": "one", "observation": "growl left"}
    found = served(
        monkeypatch,
        capsys,
        {"do": "begin", "id": "one"},
        {**act, "step": 1},
        "",
        {**act, "step": 1},
        act,
        {"do": "reveal", "id": "one", "states": ["left", "left", "left"]},
        {"do": "status"},
        "{",
        "[1]",
        {"do": "sing"},
        {"do": "act", "id": "one"},
        {"do": "begin", "name": "x"},
        {"do": "begin", "id": 7},
        {"do": "act", "id": None, "observation": 0},
        {"do": "act", "id": "one", "observation": 0, "step": "a"},
        {"do": "end", "id": "one", "reason": "tired"},
        {"do": "reveal", "id": "one", "states": 3},
        {"do": "begin", "id": "last"},
    )
    assert [each["ok"] for each in found] == [*[True] * 6, *[False] * 10, True]
    assert found[1] == found[2]
    assert found[5]["revealed"] == 1
    assert {each["code"] for each in found if not each["ok"]} == {2}


# User files


def test_user_files_need_consent(call, place):
    """They are imported only if they are named again or trusted, and only if they are the same."""
    Path("mine.py").write_text(MINE)
    new(call, model="mine.py:world")
    Path("imported").unlink()
    found = call("begin", "clinic", code=2)
    assert found["problems"][0]["where"] == "mine.py:world"
    assert call("begin", "clinic", "--model", "other.py", code=2)["problems"][0]["where"] == "file"
    assert not Path("imported").exists()
    assert call("begin", "clinic", "--trust") == {"id": "episode 1"}
    assert call("begin", "clinic", "--model", "mine.py") == {"id": "episode 2"}
    assert Path("imported").exists()
    Path("imported").unlink()
    Path("mine.py").write_text(MINE + "\n# changed")
    found = call("begin", "clinic", "--trust", code=2)
    assert "changed file" in found["problems"][0]["got"]
    assert not Path("imported").exists()


def test_a_foreign_directory_names_a_file_outside(call, place, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "evil.py"
    outside.write_text(MINE)
    new(call)
    facts = read_journal("clinic/command.journal").description
    text = f"{outside}:world"
    facts = {**facts, "texts": {**facts["texts"], "model": text}, "sources": {text: MINE}}
    write_facts("clinic/command.journal", facts)
    for consent in ([], ["--trust"]):
        found = call("begin", "clinic", *consent, code=2)
        assert found["problems"][0]["where"] == text
    assert not Path("imported").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"texts": {"model": 3, "explorer": "greedy", "planner": "auto"}},
        {"sources": []},
        {"seed": "0"},
        {"delay": "x"},
        {"horizon": [2]},
    ],
    ids=str,
)
def test_forged_commands(call, place, change):
    new(call)
    facts = read_journal("clinic/command.journal").description
    write_facts("clinic/command.journal", {**facts, **change})
    assert call("status", "clinic", code=4)["error"] == "StorageError"


def test_another_rule_than_recorded(call, place):
    new(call)
    facts = read_journal("clinic/command.journal").description
    write_facts(
        "clinic/command.journal", {**facts, "texts": {**facts["texts"], "explorer": "greedy"}}
    )
    assert call("status", "clinic", code=2)["problems"][0]["where"] == "explorer"


def test_agents_of_python_are_not_opened(call, place):
    tiger = models.load("tiger", horizon=2).homdp
    Agent(tiger, explorers.posterior_sampling(), history_tree(), "clinic").close()
    assert call("status", "clinic", code=4)["error"] == "StorageError"
