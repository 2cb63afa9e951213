"""The web service of docs/howto/web_service.md: a real server on the loopback address."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from homdp_ppl import Agent, explorers, models
from homdp_ppl.planners import history_tree

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "howto" / "web_service.md"
TOKENS = {"ward": "4Kx0", "lab": "Qm7z"}
EPISODES = 8


def example(name, place):
    """Write a block of the page to a file."""
    blocks = re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```$", PAGE.read_text(), re.S | re.M)
    (place / name).write_text({file: code for code, file in blocks}[name])


@contextmanager
def served(place):
    """A running server, as started by the command of the page; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tokens = " ".join(f"{client}={token}" for client, token in TOKENS.items())
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "uvicorn", "service:app", "--host", "127.0.0.1"]
    with (place / "server.log").open("a") as log:
        server = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=place,
            env={**os.environ, "AGENT_TOKENS": tokens, "PYTHONPATH": paths},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait(server, port, place / "server.log")
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.kill()
        server.wait()


def wait(server, port, log):
    deadline = time.monotonic() + 120
    while server.poll() is None and time.monotonic() < deadline:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(log.read_text())


@pytest.mark.slow
def test_two_clients_at_once_and_a_kill(tmp_path):
    """Nothing is lost or mixed up, also if the server is killed inside two episodes."""
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("fastapi")
    example("service.py", tmp_path)
    example("client.py", tmp_path)
    spec = importlib.util.spec_from_file_location("client", tmp_path / "client.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def play(address, client):
        """Play episodes; the last one stays open after its first step."""
        ward, found = module.Ward(address, TOKENS[client]), {}
        with closing(ward.http):
            return played_by(ward, client, found)

    def played_by(ward, client, found):
        for k in range(EPISODES):
            name = f"patient {k}"  # the same ids for both clients
            ward.begin(name)
            heard = "growl left" if client == "ward" else "growl right"
            steps = 1 if k == EPISODES - 1 else 3
            found[name] = [ward.act(name, heard, step) for step in range(1, steps + 1)]
            assert found[name][0] == ward.act(name, heard, 1)  # a retry
            if steps == 3:
                ward.reveal(name, ["left" if client == "ward" else "right"] * 4)
        return found

    with served(tmp_path) as (address, server):
        with ThreadPoolExecutor(2) as pool:
            played = dict(zip(TOKENS, pool.map(lambda c: play(address, c), TOKENS), strict=True))
        with httpx.Client(base_url=address, timeout=120.0) as http:
            ward, bad = ({"Authorization": f"Bearer {token}"} for token in ("4Kx0", "4Kx1"))
            assert http.get("/status").status_code == 401
            assert http.get("/status", headers=bad).status_code == 401
            assert http.get("/status", headers=ward).json()["begun"] == 2 * EPISODES
            body = {"observation": "roar", "step": 2}
            last = f"/episodes/patient {EPISODES - 1}"
            wrong = http.post(f"{last}/actions", json=body, headers=ward)
            assert (wrong.status_code, wrong.json()["problems"][0]["where"]) == (422, "observation")
            wrong = http.put(f"{last}/states", json={"states": ["left"]}, headers=ward)
            assert (wrong.status_code, wrong.json()["problems"][0]["where"]) == (422, "id")
            assert http.put("/episodes/own", headers=ward).status_code == 200
            lab = {"Authorization": "Bearer Qm7z"}
            other = http.post("/episodes/own/actions", json={**body, "step": 1}, headers=lab)
            assert other.status_code == 422  # an episode of the other client
            text = http.get("/episodes/patient 0/explanation", headers=ward).json()["text"]
            assert "listen" in text
        server.kill()
    with served(tmp_path) as (address, _):
        for client, heard in (("ward", "growl left"), ("lab", "growl right")):
            again, name = module.Ward(address, TOKENS[client]), f"patient {EPISODES - 1}"
            with closing(again.http):
                assert again.act(name, heard, 1) == played[client][name][0]
                played[client][name] += [again.act(name, heard, step) for step in (2, 3)]
    tiger = models.load("tiger", horizon=3)
    agent = Agent(
        tiger.homdp, explorers.posterior_sampling(), history_tree(), tmp_path / "clinic", seed=0
    )
    assert agent.status.revealed == 2 * (EPISODES - 1)
    for client, names in played.items():
        for name, actions in names.items():
            taken = agent.episode(f"{client}: {name}").trajectory.actions
            assert [tiger.spaces.actions[a] for a in taken] == actions
