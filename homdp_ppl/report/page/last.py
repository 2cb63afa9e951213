"""The end of one run on the page: its last policy, what was known then, and how that came about."""

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
from homdp_ppl.report.radii import Part, draw_radii


def policy_section(shown: Shown) -> Html:
    """The last policy as a tree, or its first decisions as a table."""
    tree = shown.exhibit.tree
    if isinstance(tree, str):
        return paragraph(tree, class_="note")
    steps, horizon = max(step for _, step in tree.nodes(data="step")), tree.graph["horizon"]
    which = "The decisions" if steps == horizon else f"The first {steps} of {horizon} decisions"
    summary = (
        f"The policy of the last round of {shown.whose}. Its value in the true world is "
        f"{number(tree.graph['value'])}, where the optimum is {number(tree.graph['optimum'])}."
    )
    if sum(tree.out_degree(node) == 0 for node in tree) > 2 * LEAVES:
        return Html(paragraph(summary) + decisions_table(tree, 2 * LEAVES))
    firsts = [data for _, data in tree.nodes(data=True) if data["step"] == 1]
    decisions = "; ".join(f"after {data['history']}: {data['action']}" for data in firsts)
    return picture(
        lambda: draw_tree(tree, f"{which}, with the value from there on"),
        f"A tree of decisions. First ones: {decisions}.",
        f"{summary} From left to right: observations on the branches (thicker is likelier), "
        "decisions in the boxes, and the expected reward from there on.",
    )


def forest_section(shown: Shown) -> Html:
    """What is believed after the chosen run, and the truth."""
    entries = shown.exhibit.forest
    if isinstance(entries, str):
        return paragraph(entries, class_="note")
    if not entries:
        return paragraph(NOTHING, class_="note")
    inside = sum(
        bool(entry.quantiles[0] <= entry.truth <= entry.quantiles[-1]) for entry in entries
    )
    some = (
        f"The {MOST} of {len(entries)} with the widest intervals are drawn."
        if len(entries) > MOST
        else ""
    )
    return picture(
        lambda: draw_entries(entries),
        f"Intervals of unknown numbers; {inside} of {len(entries)} at 90% contain the truth.",
        f"What the data of {shown.whose} say about every unknown number under the declared "
        "prior: intervals of 90% (thin) and 50% (thick), and the truth (cross). "
        f"{inside} of {len(entries)} thin intervals contain the truth. {some}",
    )


def radius_section(shown: Shown) -> Html:
    """Confidence radii against visits, in the chosen run."""
    radii = shown.exhibit.radii
    if isinstance(radii, str):
        return paragraph(radii, class_="note")
    drawn = [
        picture(
            partial(_draw_radii, radii, part),
            f"Lines of confidence radii of {part} rows against visits, and dots of true errors.",
            f"How far the {part} rows may be from their estimates after so many visits, in "
            f"the episodes of {shown.whose}: a "
            "line for each unknown row and kind of radius. Dots are true errors; what lies "
            "between dots and lines is caution.",
        )
        for part in get_args(Part)
        if np.isfinite(radii[f"{part}_visits"]).any() and (radii[f"{part}_visits"] > 0).any()
    ]
    return Html("".join(drawn))


def _draw_radii(radii: xr.Dataset, part: Part) -> Axes:
    return draw_radii(radii, part, plt.subplots(figsize=(6.6, 3.6), layout="constrained")[1])
