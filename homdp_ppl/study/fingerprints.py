"""Fingerprints of models and user files, to detect changes since a study began."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from itertools import zip_longest
from typing import Any

import numpy as np

from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.study.files import source_of

ANOTHER = "Undo the change, or run a new study in another directory."


def fingerprint(world: World) -> dict[str, Any]:
    """The fingerprint of a model: different models have different fingerprints.

    Parameters
    ----------
    world
        The world of the model.
    """
    spaces = [
        str(space) if not isinstance(space, tuple) else [str(name) for name in space]
        for space in world.spaces[:3]
    ]
    arrays = (
        list(world.pomdp)
        if world.spaces.finite
        else [world.parameters[name] for name in sorted(world.parameters)]
    )
    numbers = sha256(
        b"".join(np.ascontiguousarray(array, dtype=np.float64).tobytes() for array in arrays)
    ).hexdigest()
    return {
        "kind": "finite" if world.spaces.finite else "continuous",
        "declaration": " ".join(repr(world.homdp).split()),
        "spaces": spaces,
        "horizon": world.spaces.horizon,
        "numbers": numbers,
    }


def check_fingerprint(text: str, then: Mapping[str, Any], world: World, subject: str) -> None:
    """Raise ParameterError for a model that has changed since the study began."""
    now = fingerprint(world)
    for name, value in now.items():
        if then.get(name) != value:
            got = f"a changed model ({name} {value!r}, before {then.get(name)!r})"
            raise ParameterError(
                subject, [Problem(text, got, "the model with which the study began", ANOTHER)]
            )


def check_sources(sources: Mapping[str, str], subject: str) -> None:
    """Raise ParameterError for user files whose text has changed; nothing is imported.

    Parameters
    ----------
    sources
        The recorded text of the user file of each model, rule or planner.
    subject
        The subject of the error.
    """
    changed = {text: changed_line(then, source_of(text)) for text, then in sources.items()}
    problems = [
        Problem(text, got, "the file with which the study began", ANOTHER)
        for text, got in changed.items()
        if got
    ]
    if problems:
        raise ParameterError(subject, problems)


def changed_line(then: str, now: str) -> str:
    """A description of the first line that differs; empty if the texts are equal."""
    if then == now:
        return ""
    for number, (old, new) in enumerate(zip_longest(then.splitlines(), now.splitlines()), 1):
        if old != new:
            return (
                f"a changed file (line {number} is {(new or '').strip()!r}, "
                f"before {(old or '').strip()!r})"
            )
    return "a file with changed line endings"
