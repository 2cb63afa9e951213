"""The end of one run on the page: its last policy, what was known then, and how that came about."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from homdp_ppl.core.plan import make_plan
from homdp_ppl.core.tree_picture import draw_tree
from homdp_ppl.explorers._believing import closed
from homdp_ppl.learning.replay import restore
from homdp_ppl.posteriors import posterior
from homdp_ppl.report.forest import MOST, draw_forest, forest_entries
from homdp_ppl.report.page.html import Html, number, paragraph, picture
from homdp_ppl.report.page.model import Shown
from homdp_ppl.report.page.tables import DELTA, decisions_table
from homdp_ppl.report.radii import Part, draw_radii, follow_radii
from homdp_ppl.study.specification import Unit
from homdp_ppl.study.units import begin

LEAVES = 12  # histories side by side that can be read on a page


def policy_section(shown: Shown) -> Html:
    """The last policy, planned once more, as a tree, or its first decisions as a table."""
    rule, saved = shown.chosen
    if not shown.world.spaces.finite:
        return paragraph(
            "Observations or states are real numbers here, so the policy is no tree to be drawn.",
            class_="note",
        )
    (fresh,) = begin(
        shown.directory.study, Unit(shown.model, "declared", rule, (int(saved.about["seed"]),))
    )
    run = restore(fresh, saved.record)
    world, value, optimum = run.task.world, float(run.values[-1]), run.optimum
    policy: Any = run.policy  # of a finite world: a graph
    plan = make_plan(policy, value, optimum, world.pomdp, run.task.explorer.name).named(world)
    tree = plan.first_steps(LEAVES)
    steps, horizon = max(step for _, step in tree.nodes(data="step")), world.spaces.horizon
    which = "The decisions" if steps == horizon else f"The first {steps} of {horizon} decisions"
    told = (
        f"The policy of the last round of {shown.whose}. It is worth {number(value)} in the "
        f"true world, where the optimum is "
        f"{number(optimum)}."
    )
    if sum(tree.out_degree(node) == 0 for node in tree) > 2 * LEAVES:
        return Html(paragraph(told) + decisions_table(tree, 2 * LEAVES))
    firsts = [data for _, data in tree.nodes(data=True) if data["step"] == 1]
    decisions = "; ".join(f"after {data['history']}: {data['action']}" for data in firsts)
    return picture(
        lambda: draw_tree(tree, f"{which}, with the value from there on"),
        f"A tree of decisions. First ones: {decisions}.",
        f"{told} From left to right: observations on the branches (thicker is likelier), "
        f"decisions in the boxes, and what is "
        "expected from there on.",
    )


def forest_section(shown: Shown) -> Html:
    """What is believed after the chosen run, and the truth."""
    dataset = posterior(shown.world.homdp, shown.episodes).dataset
    truth = {
        site.replace("/", "."): np.asarray(value) for site, value in shown.world.parameters.items()
    }
    entries = forest_entries(dataset, truth)
    if not entries:
        return paragraph("Nothing is unknown in this model.", class_="note")
    inside = sum(
        bool(entry.quantiles[0] <= entry.truth <= entry.quantiles[-1]) for entry in entries
    )
    some = (
        f"The {MOST} of {len(entries)} that are known worst are drawn."
        if len(entries) > MOST
        else ""
    )
    return picture(
        lambda: draw_forest(dataset, truth),
        f"Intervals of unknown numbers; {inside} of {len(entries)} at 90% hold the truth.",
        f"What the data of {shown.whose} say about every unknown number under the declared "
        f"prior: intervals of 90% (thin) "
        f"and 50% (thick), and the truth (cross). {inside} of {len(entries)} thin intervals "
        f"hold the truth. {some}",
    )


def radius_section(shown: Shown) -> Html:
    """Confidence radii against visits, in the chosen run."""
    world = shown.world
    if not world.spaces.finite:
        return paragraph("Radii are for rows of tables; this model has none.", class_="note")
    known = world.homdp.structure.known
    parts = [part for part in get_args(Part) if not getattr(known, part).all()]
    if not parts:
        return paragraph("Nothing is unknown in this model.", class_="note")
    factor = 2 if closed(world.homdp) else 4  # sampled posteriors take their time
    compared = follow_radii(jax.random.key(0), world, shown.episodes, DELTA, factor)
    drawn = [
        picture(
            partial(_draw_radii, compared, part),
            f"Lines of confidence radii of {part} rows against visits, and dots of true errors.",
            f"How far the {part} rows may be from their estimates after so many visits, in "
            f"the episodes of {shown.whose}: a "
            "line for each unknown row and kind of radius. Dots are true errors; what lies "
            "between dots and lines is caution.",
        )
        for part in parts
        if (compared[f"{part}_visits"] > 0).any()
    ]
    return Html("".join(drawn))


def _draw_radii(compared: xr.Dataset, part: Part) -> Axes:
    return draw_radii(compared, part, plt.subplots(figsize=(6.6, 3.6), layout="constrained")[1])
