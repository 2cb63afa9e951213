"""Computes what the page shows beyond the journals; this takes the model's program."""

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

LEAVES = 12  # histories side by side that can be read on a page
NO_TREE = "Observations or states are real numbers here, so the policy is no tree to be drawn."
NO_ROWS = "Radii are for rows of tables; this model has none."
NOTHING = "Nothing is unknown in this model."
Made = TypeVar("Made")


def gather(study: Study, world: World, unit: Unit, run: Saved) -> Exhibit:
    """What a model shows, computed from one of its runs.

    Parameters
    ----------
    study
        What was asked for.
    world
        The model.
    unit, run
        Whose run, and the run.
    """
    record = run.record
    episodes = Episodes(record.observations, record.actions, record.states)
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
    """Why a part of the page is missing."""
    return f"This could not be shown: {' '.join(str(error).split())}"


def _tree(study: Study, world: World, unit: Unit, saved: Saved) -> nx.DiGraph | str:
    """The last policy, planned once more, as a tree."""
    if not world.spaces.finite:
        return NO_TREE
    (fresh,) = begin(study, unit._replace(seeds=(int(saved.about["seed"]),)), world)
    run = restore(fresh, saved.record)
    value, optimum = float(run.values[-1]), run.optimum
    policy: Any = run.policy  # of a finite world: a graph
    plan = make_plan(policy, value, optimum, world.pomdp, run.task.explorer.name).named(world)
    tree = plan.first_steps(LEAVES)
    tree.graph.clear()
    tree.graph.update(value=value, optimum=optimum, horizon=world.spaces.horizon)
    return tree


def _forest(world: World, episodes: Episodes) -> list[Entry]:
    """What is believed after a run, and the truth."""
    dataset = posterior(world.homdp, episodes).dataset
    truth = {site.replace("/", "."): np.asarray(value) for site, value in world.parameters.items()}
    return forest_entries(dataset, truth)


def _radii(world: World, episodes: Episodes) -> xr.Dataset | str:
    """Confidence radii against visits."""
    if not world.spaces.finite:
        return NO_ROWS
    known = world.homdp.structure.known
    if all(getattr(known, part).all() for part in get_args(Part)):
        return NOTHING
    factor = 2 if closed(world.homdp) else 4  # sampled posteriors take their time
    return follow_radii(jax.random.key(0), world, episodes, DELTA, factor)
