"""Agents from text: create one from a model, a rule and a planner, and open it again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from homdp_ppl.agent.agent import Agent
from homdp_ppl.agent.book import COMMAND, JOURNAL
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers import Explorer
from homdp_ppl.learning.planning import Planner
from homdp_ppl.storage.atomic import StorageError, storage_errors
from homdp_ppl.storage.records import walk
from homdp_ppl.storage.whole_journal import write_facts
from homdp_ppl.study.files import file_of, source_of
from homdp_ppl.study.fingerprints import changed_line
from homdp_ppl.study.sources import find_planner, find_rule, find_world
from homdp_ppl.study.trust import Asking, Trust, trusted_files

TEXTS = ("model", "explorer", "planner")
ASKING = Asking("agent", "the agent", "homdp agent COMMAND DIR --model")


def create(path: Path, texts: Mapping[str, str], options: Mapping[str, Any]) -> Agent:
    """Create an agent; its model, rule and planner are recorded as text.

    Parameters
    ----------
    path
        A new directory.
    texts
        "model", "explorer" and "planner", as on the command line.
    options
        "horizon", "seed", "episodes" and "delay".
    """
    if (path / JOURNAL).exists():
        remedy = "Use it with the other commands, or choose another directory."
        raise StorageError(path, "an agent", "a new directory", remedy)
    sources = {text: source_of(text) for text in texts.values() if file_of(text) is not None}
    recorded = {"texts": dict(texts), "sources": sources, **options}
    parts = _parts(recorded)  # raises errors before anything is written
    with storage_errors(path, "a directory that can be created"):
        path.mkdir(parents=True, exist_ok=True)
    write_facts(path / COMMAND, recorded)
    return _agent(path, parts, recorded)


def reopen(path: Path, trust: Trust) -> Agent:
    """Open an agent that was created from text.

    User files are imported only if they are trusted and have the recorded content.
    """
    if not (path / JOURNAL).exists():
        remedy = "Create an agent there: homdp agent new DIR MODEL."
        raise StorageError(path, "no agent", "the directory of an agent", remedy)
    recorded = _recorded(path)
    files = {text: file for text in recorded["texts"].values() if (file := file_of(text))}
    trusted = trusted_files(files, trust, ASKING)
    problems = [
        Problem(text, f"the user file {file}", "your consent to import it")
        for text, file in files.items()
        if text not in trusted
    ]
    if problems:
        remedy = "If you trust these files, use --trust, or --model FILE for each of them."
        problems[-1] = problems[-1]._replace(remedy=remedy)
        raise ParameterError(str(path), problems)
    remedy = "Undo the change, or create a new agent."
    problems = [
        Problem(text, got, "the file with which the agent began", remedy)
        for text in files
        if (got := changed_line(recorded["sources"].get(text, ""), source_of(text)))
    ]
    if problems:
        raise ParameterError(str(path), problems)
    return _agent(path, _parts(recorded), recorded)


def _recorded(path: Path) -> dict[str, Any]:
    """The recorded texts and options; raises an error if the agent was not created from text."""
    if os.path.lexists(path / COMMAND):
        first = next(walk(path / COMMAND), None)
        match {} if first is None else first[1].facts:
            case {
                "texts": {"model": str(), "explorer": str(), "planner": str()} as texts,
                "sources": dict() as sources,
                "horizon": None | int(),
                "seed": int(),
                "episodes": None | int(),
                "delay": "any" | "independent",
            } as facts if len(texts) == len(TEXTS) and all(
                isinstance(text, str) for text in sources.values()
            ):
                return dict(facts)
    remedy = "Open it in Python: Agent(homdp, explorer, planner, path)."
    raise StorageError(path, "no file that homdp agent new has written", "such a file", remedy)


def _parts(recorded: Mapping[str, Any]) -> tuple[HOMDP, Explorer, Planner]:
    """The declaration, the rule and the planner."""
    texts = recorded["texts"]
    world = find_world(texts["model"], recorded["horizon"])
    rule, planner = find_rule(texts["explorer"], world), find_planner(texts["planner"], world)
    return world.homdp, rule, planner


def _agent(
    path: Path, parts: tuple[HOMDP, Explorer, Planner], recorded: Mapping[str, Any]
) -> Agent:
    options = {name: recorded[name] for name in ("seed", "episodes", "delay")}
    return Agent(*parts, path, **options)
