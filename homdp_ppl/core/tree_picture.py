"""Pictures of plans: the decisions of the first steps, drawn as a tree."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_tree(tree: nx.DiGraph, title: str, axes: Axes | None = None) -> Axes:
    """Draw a policy tree from left to right, observations on edges and decisions in nodes.

    Parameters
    ----------
    tree
        The result of ``plan.tree()``.
    title
        The title.
    axes
        Matplotlib axes; a new figure by default.
    """
    import matplotlib.pyplot as plt
    from matplotlib import colormaps
    from matplotlib.lines import Line2D

    depth = {node: data["step"] for node, data in tree.nodes(data=True)}
    steps = max(depth.values())
    heights = _heights(tree)
    places = {node: (depth[node], heights[node]) for node in tree}
    leaves = sum(tree.out_degree(node) == 0 for node in tree)
    if axes is None:
        _, axes = plt.subplots(
            figsize=(2.6 * steps + 1.5, max(2.5, 0.55 * leaves + 1.0)), layout="constrained"
        )
    words = sorted({data["action"] for node, data in tree.nodes(data=True) if node != 0})
    palette = dict(zip(words, (colormaps["Set2"](k % 8) for k in range(len(words))), strict=True))
    for parent, child in tree.edges:
        (x0, y0), (x1, y1) = places[parent], places[child]
        weight = tree.nodes[child]["probability"] / max(tree.nodes[parent]["probability"], 1e-300)
        axes.plot([x0, x1], [y0, y1], color="#999999", lw=0.6 + 2.4 * min(1.0, weight), zorder=1)
        middle = (0.52 * x0 + 0.48 * x1, 0.52 * y0 + 0.48 * y1)
        axes.annotate(
            tree.edges[parent, child]["observation"],
            middle,
            fontsize=7,
            color="#333333",
            ha="center",
            va="center",
            zorder=2,
            parse_math=False,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        )
    for node, (x, y) in places.items():
        data = tree.nodes[node]
        text = "start" if node == 0 else "\n".join(textwrap.wrap(data["action"], 16))
        box = {
            "boxstyle": "round,pad=0.35",
            "facecolor": palette.get(data["action"], "white"),
            "edgecolor": "#555555",
        }
        label = f"{text}\n{data['value']:.2f}"
        axes.annotate(
            label,
            (x, y),
            fontsize=8,
            ha="center",
            va="center",
            zorder=3,
            bbox=box,
            parse_math=False,
        )
    handles = [Line2D([], [], marker="s", linestyle="", color=palette[word]) for word in words]
    legend = axes.legend(
        handles,
        words,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(4, max(1, len(words))),
        frameon=False,
        fontsize=8,
    )
    for written in legend.get_texts():
        written.set_parse_math(False)  # names may contain dollar signs
    axes.set_title(title, fontsize=10)
    axes.set_xlim(-0.4, steps + 0.5)
    axes.margins(y=0.08)
    axes.set_axis_off()
    return axes


def _heights(tree: nx.DiGraph) -> dict[int, float]:
    """Vertical positions: leaves evenly spaced, other nodes centred on their children."""
    heights: dict[int, float] = {}
    below = 0.0
    for node in nx.dfs_postorder_nodes(tree, 0, sort_neighbors=sorted):
        children = sorted(tree.successors(node))
        if children:
            heights[node] = (heights[children[0]] + heights[children[-1]]) / 2
        else:
            heights[node] = below
            below -= 1.0
    return heights
