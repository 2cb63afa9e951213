"""Requests to an agent as JSON objects: their entries, how they are carried out, and the answers.

A request is ``{"do": "act", "id": "patient 17", "observation": "growl left"}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.agent.agent import Agent
from homdp_ppl.cli.agent_log import episodes_of
from homdp_ppl.cli.agent_source import migrate
from homdp_ppl.errors import DataError, HOMDPError, ParameterError, Problem, in_one_line, shown
from homdp_ppl.storage._system import printable
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.study.trust import Trust

INTERNAL, INVALID, STORAGE = 1, 2, 4  # exit codes
LONGEST = 50_000_000  # characters of a request
ARGUMENTS = {  # of requests: required, then optional
    "begin": ((), ("id",)),
    "act": (("id", "observation"), ("step",)),
    "end": (("id",), ("reason",)),
    "abandon": (("id",), ("reason",)),
    "reveal": (("id", "states"), ("rewards", "labels")),
    "add": (("episodes",), ()),
    "explain": (("id",), ("draws",)),
    "check": ((), ("draws",)),
    "certificate": ((), ("delta",)),
    "forget": (("id",), ()),
    "migrate": (("model",), ("horizon",)),
    "status": ((), ()),
}


class Desk(NamedTuple):
    """An agent that was opened from its directory, and the user files that may be imported."""

    agent: Agent
    path: Path
    trust: Trust


def call(desk: Desk, request: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a request; returns the entries of the answer."""
    agent, name = desk.agent, request.get("id")
    identified: Any = name
    match request["do"]:
        case "begin":
            return {"id": agent.begin(identified).id}
        case "act":
            episode = agent.episode(identified)
            step = request.get("step")
            given = episode.act(request["observation"], step)
            taken = len(episode.trajectory.actions) if step is None else step
            return {"id": name, "step": taken, "action": given}
        case "end":
            agent.episode(identified).end(request.get("reason"))
        case "abandon":
            agent.abandon(identified, request.get("reason") or "")
        case "reveal":
            states = request["states"]
            if isinstance(states, dict):
                states = {_step(step): state for step, state in states.items()}
            agent.reveal(identified, states, request.get("rewards"), request.get("labels"))
        case "add":
            return _add(agent, request["episodes"])
        case "explain":
            found = agent.explain(identified, **_given(request, "draws"))
            return {"id": name, **plain(found), "text": printable(str(found))}
        case "check":
            check = agent.check(**_given(request, "draws"))
            parts = ("unusual", "findings", "windows", "rows", "notes", "episodes", "revealed")
            kept = {part: plain(getattr(check, part)) for part in parts}
            return {**kept, "text": printable(check.summary())}
        case "certificate":
            bounds = agent.certificate(**_given(request, "delta"))
            return {**plain(bounds), "gap": bounds.gap, "text": printable(repr(bounds))}
        case "forget":
            agent.forget(identified)
        case "migrate":
            migrate(agent, desk.path, request["model"], request.get("horizon"), desk.trust)
            return plain(agent.status)
        case _:
            return plain(agent.status)
    return {"id": name}


def _given(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An optional argument, if it was given."""
    return {} if request.get(name) is None else {name: request[name]}


def _add(agent: Agent, given: Any) -> dict[str, Any]:
    before = agent.status.revealed
    agent.add(episodes_of(given, agent.homdp))
    after = agent.status.revealed
    return {"added": after - before, "revealed": after}


def plain(value: Any) -> Any:
    """The same value as JSON values: records become objects, NaN and infinities become null.

    Examples
    --------
    >>> plain({"left": (0.5, float("nan")), "right": np.arange(2)})
    {'left': [0.5, None], 'right': [0, 1]}
    """
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def respond(desk: Desk, line: str) -> dict[str, Any]:
    """The answer to one line: ``"ok"`` and the results or the problems."""
    try:
        return {"ok": True, **call(desk, _request(line))}
    except Exception as error:  # also of a user file: the next request is answered
        return {"ok": False, **failure(error)}


def failure(error: Exception) -> dict[str, Any]:
    """An error as JSON values."""
    problems: tuple[Problem, ...] = ()
    message = f"internal error: {type(error).__name__}: {error}"
    if isinstance(error, HOMDPError):
        problems, message = error.problems, in_one_line(error)
    elif isinstance(error, OSError):
        message = str(error)
    return {
        "error": type(error).__name__,
        "message": printable(" ".join(message.split())),
        "code": code_of(error),
        "problems": [
            {name: printable(part) for name, part in problem._asdict().items()}
            for problem in problems
        ],
    }


def code_of(error: Exception) -> int:
    """The exit code of an error."""
    if isinstance(error, StorageError | OSError):
        return STORAGE
    return INVALID if isinstance(error, HOMDPError) else INTERNAL


def as_json(where: str, text: str) -> Any:
    """Parse JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        example = '{"do": "status"}' if where == "request" else '["left", "left"]'
        problem = Problem(where, shown(text), "JSON", f"As in '{example}'.")
        raise DataError("agent", [problem]) from None


def _step(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def _request(line: str) -> dict[str, Any]:
    """Parse a request; raises an error unless it has the right entries."""
    request: Any = as_json("request", line) if len(line) <= LONGEST else None
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
