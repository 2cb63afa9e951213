"""``homdp demo``: a tour of the toolkit in about a minute, with the commands that it runs."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any

import numpy as np

from homdp_ppl import models
from homdp_ppl.cli.console import say
from homdp_ppl.cli.main import run_command
from homdp_ppl.cli.parser import make_parser
from homdp_ppl.storage.atomic import StorageError

if TYPE_CHECKING:
    from rich.console import Console

RULES = "tight,anytime,quantile_backup"
STUDY = ("compare", "lock", "--explorers", RULES, "--episodes", "500", "--seeds", "20")
STOP = ("learn", "lock", "--explorer", "anytime", "--stop-when", "0.25", "--episodes", "5000")
PLAYED = 20  # episodes of the agent before it is killed

COMPARE = """\
1. A rule with a guarantee that is also good

A lock opens only if the right actions follow each other. `tight` and `anytime` have a proof that
they are optimistic; `quantile_backup` has none. `anytime` loses much less than `tight`."""
CERTIFY = """\
2. A certificate says when to stop

The true parameters are unknown to the learner, but it can bound what its policy may still lose."""
SURVIVE = """\
3. An agent in a live system survives a kill

Another process serves an agent; this one plays the tiger problem against it, over JSON lines."""


class Server:
    """An agent that is served by another process, with JSON lines."""

    def __init__(self, directory: Path) -> None:
        words = [sys.executable, "-m", "homdp_ppl.cli.main", "agent", "serve", str(directory)]
        self.directory = directory
        self.process = Popen(words, stdin=PIPE, stdout=PIPE, encoding="utf-8")

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Send one request; returns the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"ok": False, "message": "no answer"}
        if not answer["ok"]:
            raise StorageError(self.directory, answer["message"], f"an answer to {what}")
        return answer

    def kill(self) -> None:
        """Kill the process at once, as a crash of the machine would."""
        self.process.kill()
        self.process.communicate()


def demo(options: argparse.Namespace, console: Console) -> int:
    """``homdp demo``: compare rules, stop with a certificate, kill an agent and continue."""
    out = Path(options.out)
    study, clinic = out / "study", _unused(out / "clinic")
    say(console, COMPARE)
    _run(console, *STUDY, "--priors", "declared", "--out", str(study))
    say(console, f"\n{CERTIFY}")
    _run(console, *STOP)
    say(console, f"\n{SURVIVE}")
    _run(console, "agent", "new", str(clinic), "tiger")
    _survive(clinic, console)
    _run(console, "agent", "certificate", str(clinic))
    say(console, f"\nNow open {study / 'report.html'} in a browser. What next: `homdp --help`.")
    return 0


def _run(console: Console, *words: str) -> None:
    """Print a command and run it."""
    say(console, f"\n$ homdp {shlex.join(words)}\n")
    run_command(make_parser().parse_args(words), console)


def _unused(path: Path) -> Path:
    """The path itself, or the first one with a number that does not exist: agents are kept."""
    found, number = path, 1
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found


def _survive(clinic: Path, console: Console) -> None:
    """Play episodes, kill the agent within an episode, continue with the same action."""
    world = models.load("tiger")
    spaces, generator = world.spaces, np.random.default_rng(0)
    say(console, f"\n$ homdp agent serve {clinic}\n")
    with ExitStack() as stack:
        server = Server(clinic)
        stack.callback(server.kill)
        for number in range(PLAYED):
            name = f"episode {number + 1}"
            server.ask("begin", id=name)
            states = [_draw(generator, world.pomdp.initial)]
            action = None
            for h in range(spaces.horizon):
                heard = _draw(generator, world.pomdp.shows(h, action)[states[-1]])
                taken = server.ask("act", id=name, observation=spaces.observations[heard])["action"]
                action = spaces.actions.index(taken)
                states.append(_draw(generator, world.pomdp.moves(h)[states[-1], action]))
            server.ask("reveal", id=name, states=[spaces.states[state] for state in states])
        say(console, f"{PLAYED} episodes played; their states were revealed afterwards")
        name, growl = f"episode {PLAYED + 1}", spaces.observations[0]
        server.ask("begin", id=name)
        first = server.ask("act", id=name, observation=growl, step=1)["action"]
        say(console, f"{name}: after {growl!r}, the agent says {first!r}")
        server.kill()
        say(console, "killed the process in the middle of this episode (SIGKILL)")
    with ExitStack() as stack:
        server = Server(clinic)
        stack.callback(server.kill)
        status = server.ask("status")
        say(console, f"started it again: {status['revealed']} episodes known, one open")
        again = server.ask("act", id=name, observation=growl, step=1)["action"]
        second = server.ask("act", id=name, observation=growl, step=2)["action"]
        say(console, f"{name}: the same question has the same answer, {again!r}")
        say(console, f"{name}: after another {growl!r}, it says {second!r}")


def _draw(generator: np.random.Generator, row: Any) -> int:
    return int(generator.choice(len(row), p=row))
