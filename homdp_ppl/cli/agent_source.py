"""Agents from text: create one from a model, a rule and a planner, open it again, migrate it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from homdp_ppl.agent.agent import Agent
from homdp_ppl.agent.book import COMMAND, JOURNAL
from homdp_ppl.agent.identity import digest
from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import HOMDPError, ParameterError, Problem, shown
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
CONSENT = "If you trust these files, use --trust, or --model FILE for each of them."


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
    recorded = _consented(path, trust)
    return _agent(path, _parts(recorded), recorded)


def reopen_to_migrate(path: Path, trust: Trust, model: str, horizon: int | None) -> Agent:
    """Open an agent like :func:`reopen`, also if its migration to this model was interrupted.

    Parameters
    ----------
    path
        The directory.
    trust
        The user files that may be imported, in addition to that of the new model.
    model, horizon
        The new model, as on the command line, and its horizon.
    """
    recorded = _consented(path, trust)
    try:
        return _agent(path, _parts(recorded), recorded)
    except ParameterError as error:
        changed = _changed(recorded, model, horizon)
        try:
            return _agent(path, _parts(changed), changed)
        except HOMDPError:
            raise error from None


def migrate(agent: Agent, path: Path, model: Any, horizon: Any, trust: Trust) -> None:
    """Migrate an open agent to another model, and record the model for the next time.

    Parameters
    ----------
    agent
        The agent, opened from the directory.
    path
        The directory.
    model, horizon
        The new model as text, and its horizon; None for the recorded one.
    trust
        Which user file may be imported.
    """
    if not isinstance(model, str):
        raise ParameterError("migrate", [Problem("model", shown(model), "the text of a model")])
    refuse(ParameterError, "migrate", count_problems(horizon=1 if horizon is None else horizon))
    file = file_of(model)
    if file is not None and model not in trusted_files({model: file}, trust, ASKING):
        remedy = "Requests cannot name files. Use the command line: homdp agent migrate."
        raise ParameterError("migrate", [_no_consent(model, file)._replace(remedy=remedy)])
    recorded = _recorded(path)
    changed = _changed(recorded, model, horizon)
    homdp, rule, _ = _parts(changed)
    if digest(rule) != digest(_parts(recorded)[1]):
        text = recorded["texts"]["explorer"]
        expected = "a rule that does not depend on the model"
        remedy = "Create a new agent, and add the revealed episodes to it."
        raise ParameterError("migrate", [Problem("explorer", text, expected, remedy)])
    agent.migrate(homdp)
    write_facts(path / COMMAND, changed)


def _changed(recorded: Mapping[str, Any], model: str, horizon: int | None) -> dict[str, Any]:
    """The record of an agent with another model."""
    texts = {**recorded["texts"], "model": model}
    kept = {text: recorded["sources"].get(text, "") for text in texts.values() if file_of(text)}
    sources = kept if file_of(model) is None else {**kept, model: source_of(model)}
    horizon = recorded["horizon"] if horizon is None else horizon
    return {**recorded, "texts": texts, "sources": sources, "horizon": horizon}


def _no_consent(text: str, file: Path) -> Problem:
    return Problem(text, f"the user file {file}", "your consent to import it")


def _consented(path: Path, trust: Trust) -> dict[str, Any]:
    """The recorded texts and options, if all user files are trusted and unchanged."""
    if not (path / JOURNAL).exists():
        remedy = "Create an agent there: homdp agent new DIR MODEL."
        raise StorageError(path, "no agent", "the directory of an agent", remedy)
    recorded = _recorded(path)
    files = {text: file for text in recorded["texts"].values() if (file := file_of(text))}
    trusted = trusted_files(files, trust, ASKING)
    problems = [_no_consent(text, file) for text, file in files.items() if text not in trusted]
    if problems:
        problems[-1] = problems[-1]._replace(remedy=CONSENT)
        raise ParameterError(str(path), problems)
    remedy = "Undo the change. A changed declaration needs a file of its own: homdp agent migrate."
    problems = [
        Problem(text, got, "the file with which the agent began", remedy)
        for text in files
        if (got := changed_line(recorded["sources"].get(text, ""), source_of(text)))
    ]
    if problems:
        raise ParameterError(str(path), problems)
    return recorded


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
