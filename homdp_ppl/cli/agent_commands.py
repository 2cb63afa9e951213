"""``homdp agent``: create and use an agent, one call at a time or as a server of JSON lines."""

from __future__ import annotations

import argparse
import json
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homdp_ppl.agent.agent import Agent
from homdp_ppl.cli.agent_log import read_episodes
from homdp_ppl.cli.agent_requests import ARGUMENTS, Desk, as_json, call, code_of, failure, respond
from homdp_ppl.cli.agent_source import create, reopen, reopen_to_migrate
from homdp_ppl.cli.console import say
from homdp_ppl.errors import HOMDPError
from homdp_ppl.study.files import file_of

if TYPE_CHECKING:
    from rich.console import Console


def run(options: argparse.Namespace, console: Console) -> int:
    """``homdp agent``: run one of its commands."""
    try:
        if options.action == "serve":
            return serve(_opened(options))
        answer = _answer(options)
    except (HOMDPError, OSError) as error:
        if not options.json:
            raise
        print(json.dumps(failure(error)))
        return code_of(error)
    if options.json:
        print(json.dumps(answer))
    else:
        say(console, _text(options.action, answer))
        if options.action == "new" and file_of(options.model):
            file = options.model.rpartition(":")[0]
            say(console, f"Later commands need your consent to import this file: --model {file}")
    return 0


def serve(desk: Desk) -> int:
    """Answer requests until the end of standard input, one JSON object per line.

    Answers have ``"ok"``: true with the results, or false with the problems.
    """
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(respond(desk, line)), flush=True)
    return 0


def _opened(options: argparse.Namespace) -> Desk:
    """The agent; requests cannot import further user files."""
    path, trust = Path(options.directory), options.files or options.trust
    return Desk(reopen(path, trust), path, False)


def _answer(options: argparse.Namespace) -> dict[str, Any]:
    """The result of one command."""
    if options.action == "new":
        texts = {name: getattr(options, name) for name in ("model", "explorer", "planner")}
        given = {n: getattr(options, n) for n in ("horizon", "seed", "episodes", "delay")}
        with create(Path(options.directory), texts, given) as agent:
            return call(Desk(agent, Path(options.directory), False), {"do": "status"})
    required, optional = ARGUMENTS[options.action]
    request = {name: getattr(options, name) for name in (*required, *optional)}
    request["do"] = options.action
    for name in ("states", "rewards", "labels"):
        if request.get(name) is not None:
            request[name] = as_json(name, request[name])
    if options.action == "migrate":
        path, trust = Path(options.directory), options.files or options.trust
        agent = reopen_to_migrate(path, trust, options.model, options.horizon)
        named = file_of(options.model)  # in this command, so it may be imported
        desk = Desk(agent, path, False if named is None else [named])
    else:
        desk = _opened(options)
    with desk.agent as agent:
        if options.action == "act":
            request["observation"] = _observation(options.observation, agent)
        if options.action == "add":
            file = Path(options.episodes)
            request["episodes"] = read_episodes(file, options.columns, agent.homdp)
        return call(desk, request)


def _observation(text: str, agent: Agent) -> Any:
    """An observation of the command line: a name, or a number or list as JSON."""
    space = agent.homdp.spaces.observations
    if isinstance(space, tuple) and text in space:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(action: str, answer: dict[str, Any]) -> str:
    """An answer for people."""
    if action in ("act", "begin"):
        return str(answer["action" if action == "act" else "id"])
    if "text" in answer:
        return str(answer["text"])
    return "\n".join(f"{name}: {_listed(value)}" for name, value in answer.items())


def _listed(value: Any) -> str:
    """A value of an answer; nothing is a word, too."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else str(value)
