"""Sections of the page about one run: its last policy, the posterior, and confidence radii."""

from __future__ import annotations

from functools import partial
from typing import get_args

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from homdp_ppl.core.tree_picture import draw_tree
from homdp_ppl.report.forest import MOST, draw_entries
from homdp_ppl.report.page.gather import LEAVES, NOTHING
from homdp_ppl.report.page.html import Html, number, paragraph, picture
from homdp_ppl.report.page.model import Shown
from homdp_ppl.report.page.tables import decisions_table
from homdp_ppl.report.page.tree import unfolding
from homdp_ppl.report.radii import Part, draw_radii


def policy_section(shown: Shown) -> Html:
    """The last policy as a tree plot, or as a table of its first decisions if it is large."""
    tree = shown.exhibit.tree
    if isinstance(tree, str):
        return paragraph(tree, class_="note")
    steps, horizon = max(step for _, step in tree.nodes(data="step")), tree.graph["horizon"]
    which = "The decisions" if steps == horizon else f"The first {steps} of {horizon} decisions"
    summary = (
        f"The policy of the last round of {shown.run_name}. Its value in the true world is "
        f"{number(tree.graph['value'])}; the optimum is {number(tree.graph['optimum'])}."
    )
    if sum(tree.out_degree(node) == 0 for node in tree) > 2 * LEAVES:
        return Html(paragraph(summary) + decisions_table(tree, 2 * LEAVES))
    firsts = [data for _, data in tree.nodes(data=True) if data["step"] == 1]
    decisions = "; ".join(f"after {data['history']}: {data['action']}" for data in firsts)
    drawn = picture(
        lambda: draw_tree(tree, f"{which}, with remaining values"),
        f"A tree of decisions. First decisions: {decisions}.",
        f"{summary} Read from left to right: branches are observations (thicker means likelier), "
        "boxes are actions with the expected remaining return.",
    )
    return Html(drawn + unfolding(tree, f"{which} in words, the likeliest observations first"))


def forest_section(shown: Shown) -> Html:
    """The posterior after the chosen run, and the true values."""
    entries = shown.exhibit.forest
    if isinstance(entries, str):
        return paragraph(entries, class_="note")
    if not entries:
        return paragraph(NOTHING, class_="note")
    inside = sum(
        bool(entry.quantiles[0] <= entry.truth <= entry.quantiles[-1]) for entry in entries
    )
    some = (
        f"The figure shows the {MOST} of {len(entries)} numbers with the widest intervals."
        if len(entries) > MOST
        else ""
    )
    return picture(
        lambda: draw_entries(entries),
        f"Posterior intervals of unknown numbers; {inside} of {len(entries)} intervals of 90% "
        "contain the true value.",
        f"Posterior of every unknown number, given the declared prior and the data of "
        f"{shown.run_name}: 90% intervals (thin), 50% intervals (thick) and true values (crosses). "
        f"{inside} of {len(entries)} intervals of 90% contain the true value. {some}",
    )


def radius_section(shown: Shown) -> Html:
    """Confidence radii against visits in the chosen run."""
    radii = shown.exhibit.radii
    if isinstance(radii, str):
        return paragraph(radii, class_="note")
    drawn = [
        picture(
            partial(_draw_radii, radii, part),
            f"Confidence radii (lines) and true errors (dots) of {part} rows against visits.",
            f"Confidence radii of the {part} rows against the number of visits, for the data of "
            f"{shown.run_name}. Each line is one unknown row and one kind of radius. Dots are true "
            "errors; the distance from the dots to a line shows how conservative the radius is.",
        )
        for part in get_args(Part)
        if np.isfinite(radii[f"{part}_visits"]).any() and (radii[f"{part}_visits"] > 0).any()
    ]
    return Html("".join(drawn))


def _draw_radii(radii: xr.Dataset, part: Part) -> Axes:
    return draw_radii(radii, part, plt.subplots(figsize=(6.6, 3.6), layout="constrained")[1])
