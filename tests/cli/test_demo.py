"""``homdp demo``: the whole tour, and an agent that gives no answer."""

import re

import pytest

from homdp_ppl.cli.demo_commands import RULES, Server
from homdp_ppl.cli.main import main
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.whole_journal import read_journal


@pytest.mark.slow
def test_the_tour_compares_certifies_and_survives_a_kill(tmp_path, monkeypatch, capfd):
    """Repeated, it uses the finished study again and a new agent."""
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--out", "tour"]) == 0
    text = capfd.readouterr().out
    page = (tmp_path / "tour/study/report.html").read_text(encoding="utf-8")
    regrets = {}
    for rule in RULES.split(","):
        regrets[rule] = float(re.findall(rf"^  {rule}[ *]+(\S+) ± ", text, re.M)[0])
        assert rule in page
    assert regrets["anytime"] < 0.15 * regrets["tight"]
    low, high = map(float, re.findall(r"at least (\S+), optimum at most (\S+), with", text)[0])
    assert 0 < low < high <= low + 0.25
    (first,) = re.findall(r"the agent says '(.*)'", text)
    assert f"the same question has the same answer, '{first}'" in text
    assert main(["demo", "--out", "tour"]) == 0
    assert "1 of 3 done" not in capfd.readouterr().out
    for clinic in ("clinic", "clinic-2"):
        assert read_journal(tmp_path / "tour" / clinic / "agent.journal").blocks


def test_an_agent_that_does_not_answer_is_an_error(tmp_path):
    """No agent exists in this directory, so that its process ends."""
    server = Server(tmp_path / "missing")
    with pytest.raises(StorageError) as error:
        server.ask("status")
    server.kill()
    assert error.value.problems[0].got == "no answer"
