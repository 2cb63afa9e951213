"""The commands ``evaluate`` and ``choose``: decide from a log of episodes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homdp_ppl import __version__, offline, study
from homdp_ppl.cli.console import say
from homdp_ppl.cli.log_columns import columns_of
from homdp_ppl.core.episodes import SAW_STATES, Episodes
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.spaces import names_of, require_finite
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, PolicyError, Problem
from homdp_ppl.formats import read_log
from homdp_ppl.report.page.logs import write_choice, write_evaluation

if TYPE_CHECKING:
    from rich.console import Console


def evaluate(options: argparse.Namespace, console: Console) -> None:
    """``homdp evaluate``: what a log says about the value of a policy."""
    _check_places("evaluate", options)
    homdp, log = _read("evaluate", options)
    policy = _policy(options.policy, homdp)
    acting = None if options.behaviour is None else _policy(options.behaviour, homdp)
    found = offline.evaluate(
        homdp,
        log,
        policy,
        options.delta,
        acting,
        window=options.window,
        seed=options.seed,
    )
    console.print(found.to_table())
    for name, words in found.tests:
        say(console, f"  {name}: {words}")
    _notes(console, found.notes)
    if options.page:
        write_evaluation(found, options.page, _facts(options, policy=options.policy))
        say(console, f"report: {options.page}")


def choose(options: argparse.Namespace, console: Console) -> None:
    """``homdp choose``: the policy that a log justifies."""
    _check_places("choose", options)
    homdp, log = _read("choose", options)
    baseline: Any = options.baseline
    if baseline == "none":
        baseline = None
    elif baseline != "behaviour":
        baseline = _policy(baseline, homdp)
    choice = offline.choose(homdp, log, baseline=baseline, delta=options.delta, seed=options.seed)
    console.print(choice.to_table())
    say(console, f"  {choice.words}")
    _notes(console, choice.notes)
    if choice.policy is None:
        say(console, "policy: none is saved, because the behaviour of the log is kept")
    else:
        choice.policy.save(options.out)
        say(console, f"policy: {options.out}")
    if options.page:
        write_choice(choice, options.page, _facts(options, baseline=options.baseline))
        say(console, f"report: {options.page}")


def _read(command: str, options: argparse.Namespace) -> tuple[HOMDP, Episodes]:
    """The declaration and the log."""
    homdp = study.find_world(options.model, options.horizon).homdp
    require_finite(homdp.spaces, homdp.name, command)
    columns: dict[str, Any] = columns_of(options.columns, command)
    behaviour = SAW_STATES if options.saw_states else None
    return homdp, read_log(options.log, homdp, behaviour=behaviour, **columns)


def _policy(path: str, homdp: HOMDP) -> GraphPolicy:
    """A saved policy; raises an error if it was made for other names."""
    policy = GraphPolicy.load(path)
    names = tuple(names_of(homdp.spaces.observations)), tuple(homdp.spaces.actions)
    if policy.names is not None and tuple(map(tuple, policy.names)) != names:
        problem = Problem("policy", f"{path}, with other names", "a policy for this model")
        raise PolicyError(homdp.name, [problem])
    steps = policy.card.horizon
    if steps is not None and steps < homdp.horizon:
        got, expected = f"{path}, for {steps} steps", f"a policy for {homdp.horizon} steps"
        remedy = f"Save a policy for this horizon, or use --horizon {steps}."
        raise PolicyError(homdp.name, [Problem("policy", got, expected, remedy)])
    return policy


def _notes(console: Console, notes: tuple[str, ...]) -> None:
    for note in notes:
        say(console, f"  note: {note}")


def _facts(options: argparse.Namespace, **more: str) -> dict[str, str]:
    return {"model": options.model, "log": options.log, **more, "homdp_ppl": __version__}


def _check_places(command: str, options: argparse.Namespace) -> None:
    """Raise ParameterError for files that cannot be written, before anything runs."""
    problems = []
    for name, suffix in (("out", ".npz"), ("page", ".html")):
        place = getattr(options, name, None)
        if not place:
            continue
        if Path(place).suffix != suffix or Path(place).is_dir():
            problems.append(Problem(f"--{name}", place, f"a file name that ends in {suffix}"))
        elif not Path(place).resolve().parent.is_dir():
            problems.append(Problem(f"--{name}", place, "a file in an existing directory"))
    if problems:
        raise ParameterError(command, problems)
