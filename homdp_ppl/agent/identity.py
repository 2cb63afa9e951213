"""The identity of an agent: its declaration, rule, planner and settings as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from types import FunctionType
from typing import Any

import jax
import numpy as np

from homdp_ppl.agent.declaration import declaration_facts, declaration_problems
from homdp_ppl.core.bound import Bound
from homdp_ppl.core.plan import planner_name
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.world import World
from homdp_ppl.errors import Problem, shown
from homdp_ppl.learning.learner import Learner

FORMAT = "homdp_ppl agent 1"


def agent_facts(learner: Learner, delay: str) -> dict[str, Any]:
    """The identity of an agent."""
    return {
        "format": FORMAT,
        "declaration": declaration_facts(learner.homdp),
        "explorer": [learner.explorer.name, digest(learner.explorer)],
        "planner": [planner_name(learner.planner), digest(learner.planner)],
        "seed": learner.seed,
        "episodes": learner.episodes,
        "delay": delay,
    }


def agent_problems(then: Mapping[str, Any], learner: Learner, delay: str) -> list[Problem]:
    """What differs from the agent that was recorded."""
    now = agent_facts(learner, delay)
    if then.get("format") != FORMAT:
        return [Problem("path", f"format {shown(then.get('format'))}", f"format {FORMAT!r}")]
    remedy = "Use the arguments with which the agent began, or another directory."
    problems = []
    for name in ("explorer", "planner", "seed", "episodes", "delay"):
        mine, theirs = now[name], then.get(name)
        if mine != theirs:
            got, expected = _text(mine), _text(theirs)
            if got == expected:
                got, expected = f"other options of {got}", "the same options"
            problems.append(Problem(name, got, f"{expected}, as when the agent began", remedy))
    return problems + declaration_problems(then.get("declaration"), learner.homdp)


def _text(value: Any) -> str:
    return shown(value[0] if isinstance(value, list) and value else value)


def digest(value: Any) -> str:
    """A digest of a rule or a planner: of its functions by name, of its options by value."""
    hashed = sha256()
    for part in _parts(value):
        hashed.update(f"{len(part)}:".encode() + part)
    return hashed.hexdigest()


def _parts(value: Any) -> list[bytes]:
    if isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        return [repr((array.dtype.str, array.shape)).encode(), array.tobytes()]
    if isinstance(value, World):
        return [b"world", value.homdp.name.encode(), *_parts(dict(value.parameters))]
    if isinstance(value, HOMDP):
        return [b"homdp", value.name.encode()]
    if isinstance(value, Bound):
        return [b"bound", *_parts(value.function), *_parts(dict(value.options))]
    if isinstance(value, FunctionType):
        return [f"{value.__module__}.{value.__qualname__}".encode()]
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda item: str(item[0]))
        return [b"mapping", *(p for k, v in items for p in (str(k).encode(), *_parts(v)))]
    if is_dataclass(value) and not isinstance(value, type):
        named = {each.name: getattr(value, each.name) for each in fields(value) if each.compare}
        return [type(value).__name__.encode(), *_parts(named)]
    if isinstance(value, list | tuple):
        return [b"list", *(part for each in value for part in _parts(each))]
    if value is None or isinstance(value, str | int | float | bool | np.generic):
        return [repr(value).encode()]
    return [f"{type(value).__module__}.{type(value).__qualname__}".encode()]
