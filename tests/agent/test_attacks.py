"""Foreign directories: damaged, swapped and forged files give errors and never run code."""

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from homdp_ppl import DataError, HOMDPError, ParameterError, StorageError
from homdp_ppl.agent.policies import BLIND, CELLS, digest_of
from homdp_ppl.storage.blocks import Block
from homdp_ppl.storage.records import walk
from homdp_ppl.storage.whole_journal import read_journal, rewrite
from tests.agent.script import agent_at, play_script
from tests.raising import raises


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """An agent with an open episode."""
    path = tmp_path_factory.mktemp("intact") / "agent"
    with agent_at(path) as agent:
        play_script(agent, 2)
        agent.begin("open").act("growl left")
    return path


@pytest.fixture
def copy(intact, tmp_path):
    return Path(shutil.copytree(intact, tmp_path / "agent"))


def test_every_damaged_byte_is_found(copy):
    """The file is not changed, and no new agent is created in its place."""
    file = copy / "agent.journal"
    content = file.read_bytes()
    generator = random.Random(0)
    for place in [*range(16), *generator.sample(range(16, len(content)), 25)]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << generator.randrange(8)
        file.write_bytes(damaged)
        with raises(StorageError):
            agent_at(copy)
        assert file.read_bytes() == damaged
    file.write_bytes(content)
    assert agent_at(copy).status.open == ("open",)


def test_files_that_are_too_short(copy):
    file = copy / "agent.journal"
    content = file.read_bytes()
    description = next(walk(file))[0].offset
    for size in (0, 7, 16, description - 1):
        file.write_bytes(content[:size])
        with raises(StorageError):
            agent_at(copy)
    file.unlink()
    with raises(StorageError) as caught:  # saved policies are no proof of an agent
        Path(copy, "other").touch()
        agent_at(copy)
    assert "other files" in str(caught.value)


def test_a_journal_that_becomes_shorter_while_it_is_open(copy):
    agent = agent_at(copy)
    os.truncate(copy / "agent.journal", 5000)
    with raises(StorageError):
        agent.begin()


def test_a_swapped_journal(copy, tmp_path):
    """That of another agent, with another rule."""
    with agent_at(tmp_path / "other", "tight") as other:
        other.begin("a").act(0)
    shutil.copy(tmp_path / "other" / "agent.journal", copy)
    with raises(ParameterError, "explorer", "episodes"):
        agent_at(copy)


@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_a_journal_that_is_no_file(copy, tmp_path, kind):
    file = copy / "agent.journal"
    moved = Path(shutil.move(file, tmp_path / "moved"))
    {"link": lambda: file.symlink_to(moved), "directory": file.mkdir}.get(
        kind, lambda: os.mkfifo(file)
    )()
    with raises(StorageError):
        agent_at(copy)
    assert moved.stat().st_size > 0


# Policies


def policy_of(path, name="open"):
    """The file of the policy of an episode."""
    blocks = [block.facts for block in read_journal(path / "agent.journal").blocks]
    number = next(facts["decision"] for facts in blocks if facts.get("id") == name)
    made = [facts["made"]["policy"] for facts in blocks if "made" in facts]
    return path / "policies" / f"{made[number]}.npz"


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return os.mkdir, (self._path,)


def forged(file, tmp_path):
    """Ways to replace the file of a policy."""
    with np.load(file) as given:
        parts = dict(given)
    other = dict(parts)
    other["probabilities"] = np.roll(parts["probabilities"], 1, axis=1)
    return {
        "missing": file.unlink,
        "empty": lambda: file.write_bytes(b""),
        "cut": lambda: file.write_bytes(file.read_bytes()[:-20]),
        "other": lambda: np.savez(file, **other),
        "format": lambda: np.savez(file, **{**parts, "format": np.array("else")}),
        "kind": lambda: np.savez(file, **{**parts, "kind": np.array([7])}),
        "pickle": lambda: np.savez(
            file, **{**parts, "start": np.array([Bomb(tmp_path / "bomb")], dtype=object)}
        ),
        "link": lambda: (
            shutil.move(file, tmp_path / "moved"),
            file.symlink_to(tmp_path / "moved"),
        ),
    }


@pytest.mark.parametrize(
    "attack", ["missing", "empty", "cut", "other", "format", "kind", "pickle", "link"]
)
def test_forged_policies(copy, tmp_path, attack):
    forged(policy_of(copy), tmp_path)[attack]()
    agent = agent_at(copy)  # other episodes can continue
    assert agent.status.revealed == 5
    before = agent.status.events
    with pytest.raises(HOMDPError):
        agent.episode("open").act("growl left")
    assert agent.status.events == before
    assert not (tmp_path / "bomb").exists()


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("probabilities", {"kind": [BLIND], "probabilities": np.full((4, 5), 0.2)}),
        ("probabilities", {"kind": [BLIND], "probabilities": np.full(4, 0.25)}),
        ("allowed", {"allowed": np.ones((1, 3), dtype=bool)}),
        ("edges", {"kind": [CELLS], "edges": np.array([[0.5]])}),
        ("edges", {"kind": [CELLS], "edges": np.array(["a"])}),
    ],
)
def test_policies_that_are_forged_with_their_digest(copy, where, change):
    """Their arrays do not fit the agent: no action is chosen, or recorded."""
    file = policy_of(copy)
    with np.load(file) as given:
        parts = dict(given) | {name: np.array(part) for name, part in change.items()}
    digest = digest_of(parts)
    np.savez(file.with_name(f"{digest}.npz"), **parts)
    found = read_journal(copy / "agent.journal")
    for block in found.blocks:
        if block.facts.get("made", {}).get("policy") == file.stem:
            block.facts["made"]["policy"] = digest
    rewrite(copy / "agent.journal", found.description, found.blocks)
    agent = agent_at(copy)
    before = agent.status.events
    with raises(HOMDPError, where):
        agent.episode("open").act("growl left")
    assert agent.status.events == before


def test_policies_are_not_written_through_links(copy, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(copy / "policies")
    (copy / "policies").symlink_to(outside)
    agent = agent_at(copy)
    with raises(StorageError):
        agent.episode("open").act("growl left")
    with raises(StorageError):
        agent.begin("new")
    assert list(outside.iterdir()) == []


# Events with valid checksums


def forge(path, *facts, arrays=None):
    """Append events to a journal, with valid checksums."""
    found = read_journal(path / "agent.journal")
    blocks = [*found.blocks, *(Block(arrays or {}, fact) for fact in facts)]
    rewrite(path / "agent.journal", found.description, blocks)


MADE = {"policy": "0" * 64, "optimistic": 1.0}
VISITS = np.zeros((2, 3), dtype=np.int64)


@pytest.mark.parametrize(
    "facts",
    [
        {"event": "sing"},
        {"event": ["act"]},
        {},
        {"event": "act", "ordinal": 6, "step": 2, "observation": 2, "action": 0},
        {"event": "act", "ordinal": 6, "step": 2, "observation": 0, "action": -1},
        {"event": "act", "ordinal": 6, "step": 2, "observation": 0, "action": True},
        {"event": "act", "ordinal": 6, "step": 2, "observation": 0.0, "action": 0},
        {"event": "act", "ordinal": 6, "step": 3, "observation": 0, "action": 0},
        {"event": "act", "ordinal": 0, "step": 3, "observation": 0, "action": 0},
        {"event": "act", "ordinal": 99, "step": 1, "observation": 0, "action": 0},
        {"event": "act", "ordinal": -1, "step": 1, "observation": 0, "action": 0},
        {"event": "act", "ordinal": 6, "step": 2, "observation": 0, "action": 0, "code": "x"},
        {"event": "act", "ordinal": 6, "step": 2},
        {"event": "end", "ordinal": 6, "ended": "never"},
        {"event": "end", "ordinal": 0, "ended": "truncated"},
        {"event": "abandon", "ordinal": 0, "reason": "revealed before"},
        {"event": "abandon", "ordinal": 6, "reason": 3},
        {"event": "reveal", "ordinal": 6, "states": [[1, 0]]},
        {"event": "reveal", "ordinal": 0, "states": [[1, 7]]},
        {"event": "reveal", "ordinal": 0, "states": [[9, 0]]},
        {"event": "reveal", "ordinal": 0, "states": {"1": 0}},
        {"event": "reveal", "ordinal": 0, "states": [], "rewards": ["a"]},
        {"event": "reveal", "ordinal": 0, "states": [], "rewards": [1.0]},
        {"event": "reveal", "ordinal": 0, "states": [], "rewards": [1.0] * 7},
        {"event": "reveal", "ordinal": 0, "states": [], "rewards": [10**400] * 3},
        {"event": "reveal", "ordinal": 0, "states": [], "rewards": [float("nan")] * 3},
        {"event": "reveal", "ordinal": 0, "states": [], "labels": [1.0] * 3},
        {"event": "begin", "id": "open", "decision": 0},
        {"event": "begin", "id": "new", "decision": 99},
        {"event": "begin", "id": "new", "decision": None},
        {"event": "begin", "id": "", "decision": 0},
        {"event": "begin", "id": "new", "decision": 0, "slot": -1},
        {"event": "begin", "id": "new", "decision": 7, "made": {**MADE, "policy": "../x"}},
        {"event": "begin", "id": "new", "decision": 7, "made": {**MADE, "policy": 3}},
        {"event": "begin", "id": "new", "decision": 7, "made": {**MADE, "optimistic": "a"}},
        {"event": "begin", "id": "new", "decision": 7, "made": MADE},
        {"event": "add", "id": "new", "observations": [0], "actions": [0], "states": [0]},
        {
            "event": "add",
            "id": "new",
            "observations": [0],
            "actions": [5],
            "states": [0, 0],
            "ended": "truncated",
        },
    ],
    ids=str,
)
def test_forged_events(copy, facts):
    forge(copy, facts)
    with raises(StorageError):
        agent_at(copy)


@pytest.mark.parametrize(
    "visits",
    [
        *(np.zeros(shape) for shape in (3, (3, 2), (2, 3, 1), ())),
        *(np.full((2, 3), number) for number in (np.nan, np.inf, -1, True)),
    ],
    ids=str,
)
def test_forged_counts(copy, visits):
    fact = {"event": "begin", "id": "new", "decision": 7, "made": MADE}
    forge(copy, fact, arrays={"visits": visits})
    with raises(StorageError):
        agent_at(copy)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_forged_optimistic_values(copy, value):
    """An agent never records these values, and comparisons with them would be silent."""
    fact = {"event": "begin", "id": "new", "decision": 7, "made": {**MADE, "optimistic": value}}
    forge(copy, fact, arrays={"visits": VISITS})
    with raises(StorageError):
        agent_at(copy)


def test_a_forged_decision_is_an_error_only_for_its_episode(copy):
    fact = {"event": "begin", "id": "new", "decision": 7, "made": MADE}
    forge(copy, fact, arrays={"visits": VISITS})
    agent = agent_at(copy)
    with raises(StorageError):
        agent.episode("new").act(0)
    agent.episode("open").act(0)


def test_impossible_data(copy):
    """Valid events whose states the declaration excludes: listening does not move the tiger."""
    facts = [
        {
            "event": "add",
            "id": "new",
            "observations": [0],
            "actions": [0],
            "states": [0, 1],
            "ended": "truncated",
        }
    ]
    forge(copy, *facts)
    with raises(DataError, "data"):
        agent_at(copy)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "homdp_ppl agent 99"},
        {"format": None},
        {"declaration": None},
        {"declaration": {"numbers": 3}},
        {"explorer": 7},
        {"seed": [4]},
        {"delay": "x"},
    ],
    ids=str,
)
def test_forged_descriptions(copy, change):
    found = read_journal(copy / "agent.journal")
    rewrite(copy / "agent.journal", {**found.description, **change}, found.blocks)
    with pytest.raises(ParameterError):
        agent_at(copy)


def test_forged_numbers_of_a_declaration(copy):
    """Every kind of number is compared; small differences are rounding errors."""
    found = read_journal(copy / "agent.journal")
    declared = found.description["declaration"]
    for name, (shape, flat) in declared["numbers"].items():
        for change, refused in ((1e-12, False), (1e-6, True)):
            changed = [flat[0] + change, *flat[1:]]
            numbers = {**declared["numbers"], name: [shape, changed]}
            facts = {**found.description, "declaration": {**declared, "numbers": numbers}}
            rewrite(copy / "agent.journal", facts, found.blocks)
            if refused:
                with raises(ParameterError, "homdp"):
                    agent_at(copy)
            else:
                agent_at(copy).close()
