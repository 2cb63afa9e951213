"""Compute the data of the page that is not in the journals, with the program of the model."""

from __future__ import annotations

from collections.abc import Callable
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
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.learning.replay import restore
from homdp_ppl.posteriors import posterior
from homdp_ppl.report.forest import Entry, forest_entries
from homdp_ppl.report.page.exhibits import Exhibit
from homdp_ppl.report.page.tables import DELTA
from homdp_ppl.report.radii import Part, follow_radii
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.units import begin

LEAVES = 12  # leaves of a tree that stays legible on a page
NO_TREE = "Observations or states of this model are real numbers, so its policy is not a tree."
NO_ROWS = "Confidence radii are defined for rows of tables. This model has no tables."
NOTHING = "This model has no unknown parameters."
Made = TypeVar("Made")


def gather(study: Study, world: World, unit: Unit, run: Saved) -> Exhibit:
    """Compute the exhibit of a model from one of its runs.

    Parameters
    ----------
    study
        The specification of the study.
    world
        The true world.
    unit, run
        The run and its unit.
    """
    record = run.record
    parts = record.observations, record.actions, record.states
    episodes = Episodes(*parts, rewards=record.rewards)
    return Exhibit(
        _or_reason(lambda: _tree(study, world, unit, run)),
        _or_reason(lambda: _forest(world, episodes)),
        _or_reason(lambda: _radii(world, episodes)),
    )


def _or_reason(make: Callable[[], Made]) -> Made | str:
    try:
        return make()
    except HOMDPError as error:
        return not_shown(error)


def not_shown(error: HOMDPError) -> str:
    """The reason why a part of the page is missing."""
    return f"Not available: {' '.join(str(error).split())}"


def _tree(study: Study, world: World, unit: Unit, saved: Saved) -> nx.DiGraph | str:
    """The last policy of a run, planned again, as a tree."""
    if not world.spaces.finite:
        return NO_TREE
    (fresh,) = begin(study, unit._replace(seeds=(int(saved.about["seed"]),)), world)
    run = restore(fresh, saved.record)
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


def _radii(world: World, episodes: Episodes) -> xr.Dataset | str:
    """Confidence radii and visits during a run."""
    if not world.spaces.finite:
        return NO_ROWS
    known = world.homdp.structure.known
    if all(getattr(known, part).all() for part in get_args(Part)):
        return NOTHING
    factor = 2 if closed(world.homdp) else 4  # sampled posteriors are slow: fewer of them
    return follow_radii(jax.random.key(0), world, episodes, DELTA, factor)
