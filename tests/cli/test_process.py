"""A process that drives an agent: in Python, and the same one from a shell script."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from homdp_ppl import Agent, explorers, models
from homdp_ppl.cli.agent_source import reopen
from homdp_ppl.cli.main import main
from homdp_ppl.study.sources import find_planner

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "live_system.md").read_text(encoding="utf-8")
EPISODES = 3
PROGRAM = """
import json, sys
import numpy as np

arrays, names = np.load(sys.argv[1]), sys.argv[3:]
generator = np.random.default_rng(0)

def draw(row):
    return int(generator.choice(len(row), p=row))

for _ in range(int(sys.argv[2])):
    states, action = [draw(arrays["initial"])], len(names)
    for h in range(len(arrays["moves"])):
        print("observe", draw(arrays["shows"][h, action, states[-1]]), flush=True)
        action = names.index(input())
        states.append(draw(arrays["moves"][h, states[-1], action]))
    print("reveal", json.dumps(states), flush=True)
"""


def process():
    """The function ``live`` of the page, which uses public names only."""
    (code,) = (
        block
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.S | re.M)
        if "def live" in block
    )
    code = code.partition("\nfor name in")[0]
    names = {}
    exec(code, names)
    body = code[code.index("def live") :].strip().splitlines()
    assert len([line for line in body if line.strip()]) <= 15
    assert not re.search(r"\._|import \w+\.[_a-z]*\._", code)
    return names["live"]


def program(world, place):
    """A command that simulates the world without the package."""
    pomdp, A = world.pomdp, len(world.spaces.actions)
    steps = range(world.spaces.horizon)
    np.savez(
        place / "world.npz",
        initial=pomdp.initial,
        moves=np.stack([pomdp.moves(h) for h in steps]),
        shows=np.stack([np.stack([pomdp.shows(h, a) for a in (*range(A), None)]) for h in steps]),
    )
    (place / "program.py").write_text(PROGRAM)
    return [sys.executable, "program.py", "world.npz", str(EPISODES), *world.spaces.actions]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    "name", ["tiger", "lock", pytest.param("screening", marks=pytest.mark.long)]
)
def test_a_shell_script_plays_the_same_episodes(name, tmp_path, monkeypatch, capsys):
    """Same world, same random numbers: every observation, action and state is the same."""
    monkeypatch.chdir(tmp_path)
    world = models.load(name)
    rule = explorers.posterior_sampling()
    agent = Agent(world.homdp, rule, find_planner("auto", world))
    process()(agent, world, EPISODES)
    (script,) = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.S | re.M)
    Path("process.sh").write_text(script)
    command = Path("bin", "homdp")
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m homdp_ppl.cli.main "$@"\n')
    command.chmod(0o755)
    assert main(["agent", "new", "ward", name, "--explorer", "posterior_sampling"]) == 0
    path = os.pathsep.join([str(command.parent.absolute()), os.environ["PATH"]])
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        ["bash", "process.sh", "ward", str(EPISODES), *program(world, tmp_path)],
        env={**os.environ, "PATH": path, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert (done.returncode, done.stderr) == (0, "")
    played = reopen(Path("ward"), False).episodes
    for column in ("observations", "actions", "states"):
        np.testing.assert_array_equal(getattr(played, column), getattr(agent.episodes, column))
