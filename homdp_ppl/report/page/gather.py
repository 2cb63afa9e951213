"""Compute the data of the page that is not in the journals, with the program of the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import jax
import networkx as nx
import numpy as np
import xarray as xr

from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.plan import make_plan
from homdp_ppl.declare.model import World
from homdp_ppl.errors import HOMDPError
from homdp_ppl.explorers._believing import closed
from homdp_ppl.learning.certificate import Certificate, Certifier
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.learning.replay import restore
from homdp_ppl.learning.run import Run
from homdp_ppl.posteriors import posterior
from homdp_ppl.report.forest import Entry, forest_entries
from homdp_ppl.report.page.exhibits import Certified, Described, Exhibit
from homdp_ppl.report.page.tables import DELTA
from homdp_ppl.report.radii import Part, follow_radii
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.units import begin
from homdp_ppl.theory._tables import require_covered

LEAVES = 12  # leaves of a tree that stays legible on a page
NO_TREE = "Observations or states of this model are real numbers, so its policy is not a tree."
NO_ROWS = "Confidence radii are defined for rows of tables. This model has no tables."
NO_BOUNDS = "The bounds of the paper are for finite tables. This model has none."
NO_COUNTS = "Certificates are defined for finite spaces. This model has real-valued ones."
LONGEST = 20_000  # characters of a text
NOTHING = "This model has no unknown parameters."
Made = TypeVar("Made")


def gather(study: Study, world: World, unit: Unit, runs: Mapping[str, Saved]) -> Exhibit:
    """Compute the exhibit of a model from one run of each rule.

    Parameters
    ----------
    study
        The specification of the study.
    world
        The true world.
    unit
        The unit whose run is shown in detail: its rule is one of ``runs``.
    runs
        The runs to certify, by rule.
    """
    run = runs[unit.rule]
    record = run.record
    parts = record.observations, record.actions, record.states
    episodes = Episodes(*parts, rewards=record.rewards)
    return Exhibit(
        _describe(world),
        _or_reason(lambda: _certify(study, world, unit, runs)),
        _or_reason(lambda: _tree(study, world, unit, run)),
        _or_reason(lambda: _forest(world, episodes)),
        _or_reason(lambda: _radii(world, episodes)),
        _bounds(world),
    )


def _or_reason(make: Callable[[], Made]) -> Made | str:
    try:
        return make()
    except HOMDPError as error:
        return not_shown(error)


def not_shown(error: HOMDPError) -> str:
    """The reason why a part of the page is missing."""
    return f"Not available: {' '.join(str(error).split())}"


def _describe(world: World) -> Described:
    """The text above the declaration in its file, what is printed of it, and its code."""
    function = world.homdp.function
    texts = (function.__globals__.get("__doc__"), function.__doc__)
    story = "\n\n".join(inspect.cleandoc(text) for text in texts if text)
    try:
        source = inspect.cleandoc(inspect.getsource(function))
    except (OSError, TypeError):  # declared interactively
        source = ""
    return Described(story[:LONGEST], f"{world.homdp!r}\n{world!r}"[:LONGEST], source[:LONGEST])


def _certify(
    study: Study, world: World, unit: Unit, runs: Mapping[str, Saved]
) -> list[Certified] | str:
    """The certificates of the last policies."""
    if not world.spaces.finite:
        return NO_COUNTS
    found, reasons = [], []
    for rule, saved in runs.items():
        run = _restored(study, world, unit._replace(rule=rule), saved)
        try:
            certifier, rounds = Certifier(run), len(run.values)
            last = certifier.add(Certificate.empty(certifier.delta), run, rounds, run.policy)
        except HOMDPError as error:  # the page lists the rules without a certificate
            reasons.append(not_shown(error))
            continue
        numbers = (last.lower[-1], run.values[-1], last.upper[-1], run.optimum)
        found.append(
            Certified(rule, int(saved.about["seed"]), certifier.delta, *map(float, numbers))
        )
    return found or reasons[0]


def _restored(study: Study, world: World, unit: Unit, saved: Saved) -> Run:
    """A run with its last policy, which is planned again."""
    (fresh,) = begin(study, unit._replace(seeds=(int(saved.about["seed"]),)), world)
    return restore(fresh, saved.record)


def _tree(study: Study, world: World, unit: Unit, saved: Saved) -> nx.DiGraph | str:
    """The last policy of a run, planned again, as a tree."""
    if not world.spaces.finite:
        return NO_TREE
    run = _restored(study, world, unit, saved)
    value, optimum = float(run.values[-1]), run.optimum
    policy: Any = run.policy  # a graph, in a finite world
    plan = make_plan(policy, value, optimum, world.pomdp, run.task.explorer.name).named(world)
    tree = plan.first_steps(LEAVES)
    tree.graph.clear()
    tree.graph.update(value=value, optimum=optimum, horizon=world.spaces.horizon)
    return tree


def _forest(world: World, episodes: Episodes) -> list[Entry]:
    """The posterior after a run, with the true values."""
    dataset = posterior(world.homdp, episodes).dataset
    truth = {site.replace("/", "."): np.asarray(value) for site, value in world.parameters.items()}
    return forest_entries(dataset, truth)


def _bounds(world: World) -> str:
    """Why the bounds of the paper do not apply to a model; empty if they do."""
    if not world.spaces.finite:
        return NO_BOUNDS
    try:
        require_covered(world, "theory.report", start=True)
    except HOMDPError as error:
        found = "; ".join(f"{problem.where}: {problem.got}" for problem in error.problems)
        return f"The paper has no bounds for this model ({found})."
    return ""


def _radii(world: World, episodes: Episodes) -> xr.Dataset | str:
    """Confidence radii and visits during a run."""
    if not world.spaces.finite:
        return NO_ROWS
    known = world.homdp.structure.known
    if all(getattr(known, part).all() for part in get_args(Part)):
        return NOTHING
    factor = 2 if closed(world.homdp) else 4  # sampled posteriors are slow: fewer of them
    return follow_radii(jax.random.key(0), world, episodes, DELTA, factor)
