"""``homdp agent``: create and use an agent, one call at a time or as a server of JSON lines."""

from __future__ import annotations

import argparse
import json
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homdp_ppl.agent.agent import Agent
from homdp_ppl.cli.agent_source import create, reopen
from homdp_ppl.cli.console import say
from homdp_ppl.errors import DataError, HOMDPError, ParameterError, Problem, in_one_line, shown
from homdp_ppl.storage._system import printable
from homdp_ppl.storage.atomic import StorageError

if TYPE_CHECKING:
    from rich.console import Console

INVALID, STORAGE = 2, 4  # exit codes
LONGEST = 1_000_000  # characters of a request
ARGUMENTS = {  # of requests: required, then optional
    "begin": ((), ("id",)),
    "act": (("id", "observation"), ("step",)),
    "end": (("id",), ("reason",)),
    "abandon": (("id",), ("reason",)),
    "reveal": (("id", "states"), ("rewards", "labels")),
    "forget": (("id",), ()),
    "status": ((), ()),
}


def run(options: argparse.Namespace, console: Console) -> int:
    """``homdp agent``: run one of its commands."""
    try:
        if options.action == "serve":
            return serve(_opened(options))
        answer = _answer(options)
    except HOMDPError as error:
        if not options.json:
            raise
        print(json.dumps(failure(error)))
        return _code(error)
    if options.json:
        print(json.dumps(answer))
    else:
        say(console, _text(options.action, answer))
    return 0


def serve(agent: Agent) -> int:
    """Answer requests until the end of standard input, one JSON object per line.

    A request is ``{"do": "act", "id": "patient 17", "observation": "growl left"}``. Answers have
    ``"ok"``: true with the results, or false with the problems.
    """
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(respond(agent, line)), flush=True)
    return 0


def respond(agent: Agent, line: str) -> dict[str, Any]:
    """The answer to one request."""
    try:
        return {"ok": True, **call(agent, _request(line))}
    except HOMDPError as error:
        return {"ok": False, **failure(error)}


def call(agent: Agent, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out a request."""
    name: Any = request.get("id")
    match request["do"]:
        case "begin":
            return {"id": agent.begin(name).id}
        case "act":
            episode = agent.episode(name)
            step = request.get("step")
            given = episode.act(request["observation"], step)
            taken = len(episode.trajectory.actions) if step is None else step
            return {"id": name, "step": taken, "action": given}
        case "end":
            agent.episode(name).end(request.get("reason"))
        case "abandon":
            agent.abandon(name, request.get("reason") or "")
        case "reveal":
            states = request["states"]
            if isinstance(states, dict):
                states = {_step(step): state for step, state in states.items()}
            agent.reveal(name, states, request.get("rewards"), request.get("labels"))
        case "forget":
            agent.forget(name)
        case _:
            return agent.status._asdict()
    return {"id": name}


def failure(error: HOMDPError) -> dict[str, Any]:
    """An error as JSON values."""
    return {
        "error": type(error).__name__,
        "message": printable(in_one_line(error)),
        "code": _code(error),
        "problems": [
            {name: printable(part) for name, part in problem._asdict().items()}
            for problem in error.problems
        ],
    }


def _code(error: HOMDPError) -> int:
    return STORAGE if isinstance(error, StorageError) else INVALID


def _opened(options: argparse.Namespace) -> Agent:
    return reopen(Path(options.directory), options.files or options.trust)


def _answer(options: argparse.Namespace) -> dict[str, Any]:
    """The result of one command."""
    if options.action == "new":
        texts = {name: getattr(options, name) for name in ("model", "explorer", "planner")}
        given = {n: getattr(options, n) for n in ("horizon", "seed", "episodes", "delay")}
        with create(Path(options.directory), texts, given) as agent:
            return agent.status._asdict()
    required, optional = ARGUMENTS[options.action]
    request = {name: getattr(options, name) for name in (*required, *optional)}
    request["do"] = options.action
    for name in ("states", "rewards", "labels"):
        if request.get(name) is not None:
            request[name] = _json(name, request[name])
    with _opened(options) as agent:
        if options.action == "act":
            request["observation"] = _observation(options.observation, agent)
        return call(agent, request)


def _observation(text: str, agent: Agent) -> Any:
    """An observation of the command line: a name, or a number or list as JSON."""
    space = agent.homdp.spaces.observations
    if isinstance(space, tuple) and text in space:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        problem = Problem(where, shown(text), "JSON", 'As in \'["left", "left"]\'.')
        raise DataError("agent", [problem]) from None


def _step(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def _request(line: str) -> dict[str, Any]:
    """Parse a request; raises an error unless it has the right entries."""
    request: Any = _json("request", line) if len(line) <= LONGEST else None
    action = request.get("do") if isinstance(request, dict) else None
    if not isinstance(action, str) or action not in ARGUMENTS:
        expected = f'an object with "do": one of {", ".join(ARGUMENTS)}'
        raise ParameterError("request", [Problem("request", shown(line.strip()), expected)])
    required, optional = ARGUMENTS[action]
    given = set(request) - {"do"}
    problems = [
        Problem(name, "no value", f"a value for {action}") for name in required if name not in given
    ]
    problems += [
        Problem(name, "an entry", f"only {', '.join((*required, *optional)) or 'do'}")
        for name in sorted(given - {*required, *optional})
    ]
    if problems:
        raise ParameterError("request", problems)
    found: dict[str, Any] = request
    return found


def _text(action: str, answer: dict[str, Any]) -> str:
    """An answer for people."""
    if action == "act":
        return str(answer["action"])
    if action == "begin":
        return str(answer["id"])
    return "\n".join(
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list | tuple) else value}"
        for name, value in answer.items()
    )
