"""``homdp agent add``, ``explain`` and ``migrate``, and all requests to a server."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pytest

from homdp_ppl import Agent, Episode, explorers, models
from homdp_ppl.agent.agent import Agent as AgentClass
from homdp_ppl.cli.agent_requests import ARGUMENTS, plain
from homdp_ppl.cli.main import main
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.planners import history_tree

MINE = """
from pathlib import Path
from homdp_ppl import models
Path("imported {model}").touch()
world = models.load("{model}", horizon=2)
"""
EPISODE = {
    "observations": ["growl left", "growl left"],
    "actions": ["listen", "open right"],
    "states": ["left", "left", "right"],
}


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


def new(call, *more, model="tiger", rule="posterior_sampling"):
    return call("new", "clinic", model, "--explorer", rule, "--horizon", "2", *more)


def served(monkeypatch, capsys, *requests, more=()):
    lines = [each if isinstance(each, str) else json.dumps(each) for each in requests]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert main(["agent", "serve", "clinic", *more]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def python_agent():
    tiger = models.load("tiger", horizon=2).homdp
    return Agent(tiger, explorers.posterior_sampling(), history_tree())


def write_lines(*episodes):
    Path("log.jsonl").write_text("\n".join(map(json.dumps, episodes)) + "\n\n")


# add


def test_add_uses_the_episodes_of_a_file(call):
    """The posterior is that of an agent in Python with the same episodes."""
    new(call)
    other = {**EPISODE, "id": "two", "states": [1, 1, 1], "actions": [0, 0]}
    write_lines({**EPISODE, "id": "one"}, other)
    assert call("add", "clinic", "log.jsonl") == {"added": 2, "revealed": 2}
    assert call("add", "clinic", "log.jsonl") == {"added": 0, "revealed": 2}  # may be repeated
    tiger = models.load("tiger", horizon=2).homdp
    agent = Agent(tiger, explorers.posterior_sampling(), history_tree(), "clinic")
    same, parts = python_agent(), ("observations", "actions", "states")
    for each, name in ((EPISODE, "one"), (other, "two")):
        same.add(Episode.of(*(each[part] for part in parts), tiger, id=name))
    np.testing.assert_array_equal(agent.posterior.closed, same.posterior.closed)
    np.testing.assert_array_equal(agent.episodes.states, [[0, 0, 1], [1, 1, 1]])


@pytest.mark.parametrize(
    ("episode", "places"),
    [
        ({"observations": ["roar", "growl left"]}, ["observations[episode 2, step 1]"]),
        ({"states": ["left"]}, ["episode[episode 2]"]),
        ({"states": "left", "actions": None}, ["states[episode 2]", "actions[episode 2]"]),
        ({"weather": "rain", "id": 7}, ["weather[episode 2]", "id[episode 2]"]),
        ({"ended": "tired"}, ["ended[episode 2]"]),
    ],
)
def test_problems_of_a_log_are_reported_together(call, episode, places):
    new(call)
    write_lines({**EPISODE, "id": "one"}, {**EPISODE, **episode})
    problems = call("add", "clinic", "log.jsonl", code=2)["problems"]
    found = {f"{p['where']}[{p['at']}]" for p in problems} | {p["where"] for p in problems}
    assert set(places) <= found
    assert call("status", "clinic")["begun"] == 0  # nothing was added


@pytest.mark.parametrize(("rule", "code"), [("greedy", 2), ("posterior_sampling", 0)])
def test_logs_that_lack_states_need_a_rule_with_a_posterior(call, rule, code):
    new(call, rule=rule)
    write_lines({**EPISODE, "states": ["left", "left", None]})
    answer = call("add", "clinic", "log.jsonl", code=code)
    assert code == 0 or "states" in {problem["where"] for problem in answer["problems"]}
    assert call("status", "clinic")["begun"] == (code == 0)


def test_add_refuses_files_that_do_not_fit_in_memory(call, monkeypatch):
    new(call)
    Path("log.jsonl").write_text("[],\n" * 1000)
    Path("endless").symlink_to("/dev/zero")
    os.mkfifo("pipe")
    monkeypatch.setenv("HOMDP_MEMORY", "0.0001")
    for name in ("log.jsonl", "endless", "pipe"):
        problems = call("add", "clinic", name, code=2)["problems"]
        assert [problem["where"] for problem in problems] == ["file"]


def test_add_reads_tables(call):
    """A table with other names of columns, and one whose last state is missing."""
    new(call)
    rows = [("growl left", "listen", "left"), ("growl left", "listen", "left"), ("", "", "left")]
    table = ["patient,visit,observation,action,state"]
    table += [f"p,{h},{','.join(row)}" for h, row in enumerate(rows, start=1)]
    Path("log.csv").write_text("\n".join(table))
    names = ("--columns", "episode=patient", "step=visit")
    assert call("add", "clinic", "log.csv", code=2)["problems"]
    wrong = call("add", "clinic", "log.csv", "--columns", "visit", code=2)
    assert wrong["problems"][0]["where"] == "--columns"
    assert call("add", "clinic", "log.csv", *names) == {"added": 1, "revealed": 1}
    assert call("add", "clinic", "log.csv", *names) == {"added": 0, "revealed": 1}
    Path("log.csv").write_text("\n".join(table[:-1]))
    assert call("add", "clinic", "log.csv", *names, code=2)["error"] == "DataError"
    assert call("add", "clinic", "log.jsonl", *names, code=2)["problems"][0]["where"] == "--columns"


def test_files_that_are_no_logs(call):
    new(call)
    Path("log.jsonl").write_text('{"id"\n[1]\n{}\n{"id" 3\n')
    assert len(call("add", "clinic", "log.jsonl", code=2)["problems"]) == 2
    Path("log.jsonl").write_text("[1]\n{}\n")
    assert len(call("add", "clinic", "log.jsonl", code=2)["problems"]) == 4
    Path("log.jsonl").write_bytes(b"\xff\xfe\x00")
    assert call("add", "clinic", "log.jsonl", code=2)["problems"][0]["where"] == "file"
    assert call("add", "clinic", "no.jsonl", code=2)["problems"][0]["where"] == "file"
    Path("log.jsonl").write_text("")
    assert call("add", "clinic", "log.jsonl", code=2)["problems"][0]["where"] == "episodes"


# explain


def test_explanations_are_those_of_python(call, capsys):
    new(call)
    agent = python_agent()
    call("begin", "clinic", "--id", "one")
    episode = agent.begin("one")
    assert call("explain", "clinic", "one", code=2)["problems"][0]["where"] == "id"
    call("act", "clinic", "one", "growl left")
    episode.act("growl left")
    found, expected = call("explain", "clinic", "one"), agent.explain("one")
    assert found["belief"] == pytest.approx(expected.belief)
    assert found["observations"] == ["growl left"]
    assert found["values"]["listen"]["value"] == pytest.approx(expected.values["listen"].value)
    assert found["text"] == str(expected)
    few = call("explain", "clinic", "one", "--draws", "3")
    assert few["values"]["listen"] == plain(agent.explain("one", 3).values["listen"])
    assert main(["agent", "explain", "clinic", "one"]) == 0
    assert capsys.readouterr().out.strip() == str(expected)


# check and certificate


def test_checks_and_certificates_are_those_of_python(call, capsys):
    """An agent with the same seed and the same episodes."""
    new(call)
    tiger = models.load("tiger", horizon=2)
    with Agent(tiger.homdp, explorers.posterior_sampling(), history_tree(), "clinic") as agent:
        agent.train(HOMDPEnv(tiger), 12, seed=1)
        check, certificate = agent.check(), agent.certificate(0.2)
    found = call("check", "clinic")
    assert found["unusual"] == list(check.unusual)
    assert [each["what"] for each in found["findings"]] == [each.what for each in check.findings]
    assert (found["text"], found["revealed"]) == (check.summary(), 12)
    found = call("certificate", "clinic", "--delta", "0.2")
    assert (found["lower"], found["upper"]) == pytest.approx((certificate.lower, certificate.upper))
    assert found["gap"] == pytest.approx(certificate.gap)
    assert call("certificate", "clinic", "--delta", "2", code=2)["problems"][0]["where"] == "delta"
    assert call("check", "clinic", "--draws", "3", code=2)["problems"][0]["where"] == "draws"


# migrate


def played(call, name, *consent):
    call("begin", "clinic", "--id", name, *consent)
    for _ in range(2):
        call("act", "clinic", name, "growl left", *consent)
    call("reveal", "clinic", name, '["left", "left", "left"]', *consent)


def test_migration_to_another_model(call):
    """The episodes are used again, and the new model is recorded."""
    new(call)
    played(call, "one")
    found = call("migrate", "clinic", "tiger_table")
    assert (found["model"], found["revealed"]) == ("tiger_table", 1)
    assert call("status", "clinic")["model"] == "tiger_table"
    played(call, "two")
    assert call("status", "clinic")["used"] == 2
    assert call("migrate", "clinic", "lock", code=2)["error"] == "ParameterError"
    assert call("migrate", "clinic", "lion", code=2)["error"] == "HOMDPError"
    assert call("status", "clinic")["model"] == "tiger_table"


@pytest.mark.slow
def test_migration_between_user_files(call):
    old, other = "old.py:world", "other.py:world"
    Path("old.py").write_text(MINE.format(model="tiger"))
    Path("other.py").write_text(MINE.format(model="tiger_table"))
    new(call, model=old)
    played(call, "one", "--trust")
    assert call("migrate", "clinic", other, code=2)["problems"][0]["where"] == old
    assert not Path("imported tiger_table").exists()
    assert call("migrate", "clinic", other, "--model", "old.py")["model"] == "tiger_table"
    assert Path("imported tiger_table").exists()
    assert call("status", "clinic", code=2)["problems"][0]["where"] == other
    assert call("status", "clinic", "--model", "other.py")["revealed"] == 1
    Path("old.py").unlink()  # not needed any more
    assert call("status", "clinic", "--trust")["revealed"] == 1


@pytest.mark.slow
def test_a_migration_that_was_interrupted_can_be_repeated(call, monkeypatch):
    """Killed after the journal was replaced, before the command was recorded."""
    new(call)
    played(call, "one")
    agent_class = AgentClass.migrate

    def killed(agent, homdp):
        agent_class(agent, homdp)
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(AgentClass, "migrate", killed)
        assert call("migrate", "clinic", "tiger_table", code=4)["error"] == "OSError"
    assert call("status", "clinic", code=2)["error"] == "ParameterError"
    assert call("migrate", "clinic", "tiger_table")["revealed"] == 1
    assert call("status", "clinic")["model"] == "tiger_table"


# serve


def test_a_server_answers_every_request(call, monkeypatch, capsys):
    """One request of each kind, and what a foreign client might send."""
    new(call)
    capsys.readouterr()
    Path("mine.py").write_text("world = 1\n")
    act = {"do": "act", "id": "one", "observation": "growl left"}
    requests = [
        {"do": "begin", "id": "one"},
        {"do": "begin", "id": "two"},
        act,
        {"do": "explain", "id": "one", "draws": 5},
        {"do": "end", "id": "one"},
        {"do": "reveal", "id": "one", "states": {"1": "left"}},
        {"do": "certificate"},
        {"do": "abandon", "id": "two"},
        {"do": "forget", "id": "one"},
        {"do": "add", "episodes": [{**EPISODE, "id": "log"}]},
        {"do": "check"},
        {"do": "migrate", "model": "tiger_table"},
        {"do": "status"},
    ]
    assert {each["do"] for each in requests} == set(ARGUMENTS)
    wrong = [
        {"do": "add", "episodes": 3},
        {"do": "add", "episodes": []},
        {"do": "explain", "id": "one", "draws": -1},
        {"do": "explain", "id": "log"},
        {"do": "migrate", "model": "mine.py:world"},
        {"do": "migrate", "model": 3},
        {"do": "migrate", "model": "tiger", "horizon": "x"},
        {"do": "migrate"},
    ]
    sent = [*requests, *wrong, {"do": "status"}]
    found = served(monkeypatch, capsys, *sent, more=["--trust"])
    assert [each["ok"] for each in found] == [True] * 13 + [False] * 8 + [True]
    assert found[3]["values"].keys() == {"listen", "open left", "open right"}
    assert found[9] == {"ok": True, "added": 1, "revealed": 1}
    assert found[-1]["model"] == "tiger_table"
    assert {each["code"] for each in found[13:-1]} == {2}
    assert found[17]["problems"][0]["where"] == "mine.py:world"  # a client names no files


def test_an_error_in_a_request_does_not_stop_the_server(call, monkeypatch, capsys):
    new(call)
    capsys.readouterr()

    def broken(agent):
        raise RuntimeError("no disk")

    monkeypatch.setattr(AgentClass, "status", property(broken))
    found = served(monkeypatch, capsys, {"do": "status"}, {"do": "begin", "id": "one"})
    assert [each["ok"] for each in found] == [False, True]
    assert (found[0]["code"], found[0]["error"]) == (1, "RuntimeError")
