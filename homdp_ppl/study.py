"""Studies: several rules in one world, over the same seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.declare import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers import EXPLORERS, Explorer
from homdp_ppl.learning import learn
from homdp_ppl.planners import auto, history_tree
from homdp_ppl.planners.auto import SMALL_TREE
from homdp_ppl.planners.histories import Support, count_histories
from homdp_ppl.rounds import Planner
from homdp_ppl.run import Run

CLASSES = ("hop_b_class", "hop_v")  # rules that need tables, which no line of text can hold


class Row(NamedTuple):
    """How one rule did, over all seeds."""

    rule: str
    soundness: str
    regret: float  # mean at the end
    error: float  # its standard error
    gap: float  # mean of the last round
    optimistic: float  # share of rounds
    width: float  # mean of optimistic value minus optimum, over all rounds
    seconds: float  # a run, without compiling


def compare(
    world: World, rules: Sequence[Explorer], planner: Planner, episodes: int, seeds: Sequence[int]
) -> dict[str, list[Run]]:
    """Run several rules in one world over the same seeds: the world's luck is the same for all of them.

    Parameters
    ----------
    world
        The truth.
    rules
        The explorers.
    planner
        The planner.
    episodes
        Episodes of each run.
    seeds
        One run a seed for every rule.
    """
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names):
        raise ParameterError("compare", [Problem("rules", ", ".join(names), "every rule once")])
    return {rule.name: learn(world, rule, planner, episodes, list(seeds)) for rule in rules}


def summarise(runs: Mapping[str, Sequence[Run]]) -> list[Row]:
    """One row a rule."""
    rows = []
    for name, of_rule in runs.items():
        regret = np.array([run.regret[-1] for run in of_rule])
        error = regret.std(ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else np.nan
        rows.append(
            Row(
                name,
                of_rule[0].task.explorer.soundness,
                float(regret.mean()),
                float(error),
                float(np.mean([run.gaps[-1] for run in of_rule])),
                float(np.mean([run.was_optimistic.mean() for run in of_rule])),
                float(np.mean([np.mean(run.optimistic - run.optimum) for run in of_rule])),
                float(np.mean([sum(run.seconds.values()) - run.seconds.get("compiling", 0.0) for run in of_rule])),
            )
        )
    return rows


def choose_planner(world: World) -> Planner:
    """The history tree while it is small, since every rule can use it; else what fits."""
    histories = sum(count_histories(Support.of(world.homdp.structure.support), world.spaces.horizon))
    return history_tree() if histories <= SMALL_TREE else auto()


def make_explorer(text: str, world: World) -> Explorer:
    """A rule from a line of text: its name, and options as in ``hop_b:scale=0.1,delta=0.05``.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> make_explorer("hop_b:scale=0.1", models.load("tiger")).name
    'hop_b(scale=0.1)'
    """
    name, _, rest = text.partition(":")
    if name not in EXPLORERS or name in CLASSES:
        known = ", ".join(rule for rule in EXPLORERS if rule not in CLASSES)
        remedy = "This rule needs a class of tables: use it from Python." if name in CLASSES else ""
        raise ParameterError("explorer", [Problem("name", repr(name), f"one of {known}", remedy)])
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if not equals:
            raise ParameterError("explorer", [Problem(name, repr(part), "an option as in scale=0.1")])
        options[option.strip()] = _value(value.strip())
    try:
        return EXPLORERS[name](world, **options) if name == "oracle" else EXPLORERS[name](**options)
    except TypeError as error:
        raise ParameterError("explorer", [Problem(name, str(error), "options of the rule")]) from None


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
