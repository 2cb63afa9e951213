"""Plots of declarations as graphs."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpyro.infer.inspect import get_model_relations

from homdp_ppl.core.checked import checked
from homdp_ppl.core.policy import Policy
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array, x64
from homdp_ppl.report.formatting import plain

APART = 0.6  # between two unknown sites, in steps
LATENT, SEEN, CHOSEN, UNKNOWN = "#c6dbef", "#e5e5e5", "#fdd0a2", "#c7e9c0"


@checked
def draw_program(
    model: HOMDP, steps: int = 2, policy: Policy | None = None, axes: Axes | None = None
) -> Axes:
    """Plot a declaration as a graph: unknown sites at the top, below them the states, observations
    and actions of each step.

    NumPyro finds the edges in the program itself. If the policy used a latent state, the graph
    would show it.

    Parameters
    ----------
    model
        The declaration.
    steps
        Number of steps to draw.
    policy
        The policy that acts. Default: the uniform policy.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from homdp_ppl import models
    >>> axes = draw_program(models.load("tiger", horizon=2).homdp, steps=1)
    >>> axes.get_title(), sorted(text.get_text() for text in axes.texts)
    ('tiger: 1 of 2 steps', ['$a_{1}$', '$x_{1}$', '$x_{2}$', '$y_{1}$', 'accuracy'])
    >>> plt.close(axes.figure)
    """
    steps = min(steps, model.horizon)
    graph, places, colours = _program_graph(model, steps, policy)
    if axes is None:
        across, up = np.array(list(places.values())).T
        _, axes = plt.subplots(
            figsize=(2.2 * np.ptp(across) + 2.4, 1.2 + up.max()), layout="constrained"
        )
    labels = {
        node: f"${node.replace('[', '_{').replace(']', '}')}$" if "[" in node else node
        for node in graph
    }
    labels["x_last"] = f"$x_{{{steps + 1}}}$"
    steps_only = [node for node in graph if "[" in node or node == "x_last"]
    nx.draw_networkx_nodes(
        graph,
        places,
        steps_only,
        900,
        node_color=[colours[node] for node in steps_only],
        edgecolors="#555555",
        ax=axes,
    )
    for node in set(graph) - set(steps_only):
        box = {"boxstyle": "round,pad=0.5", "facecolor": colours[node], "edgecolor": "#555555"}
        nx.draw_networkx_labels(
            graph, {node: places[node]}, {node: plain(node)}, font_size=9, bbox=box, ax=axes
        )
    nx.draw_networkx_labels(
        graph, places, {node: labels[node] for node in steps_only}, font_size=10, ax=axes
    )
    long = [
        e for e in graph.edges if e[1].startswith("a[") and places[e[1]][0] - places[e[0]][0] > 1.5
    ]
    short = [e for e in graph.edges if e not in long]
    for edges, bend in (
        (short, "arc3,rad=0.08"),
        (long, "arc3,rad=0.3"),
    ):  # long edges bend below the actions between their ends
        nx.draw_networkx_edges(
            graph,
            places,
            edges,
            node_size=1000,
            edge_color="#777777",
            connectionstyle=bend,
            ax=axes,
        )
    axes.set_title(f"{plain(model.name)}: {steps} of {model.horizon} steps", fontsize=10)
    kinds = {
        "unknown parameter": UNKNOWN,
        "latent state, revealed in hindsight": LATENT,
        "observation": SEEN,
        "action": CHOSEN,
    }
    handles: list[Any] = [
        Line2D([], [], marker="o", linestyle="", color=c, markeredgecolor="#555555")
        for c in kinds.values()
    ]
    axes.legend(
        handles,
        list(kinds),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=2,
        fontsize=8,
        frameon=False,
    )
    axes.margins(0.12)
    axes.set_axis_off()
    return axes


def _program_graph(
    model: HOMDP, steps: int, policy: Policy | None = None
) -> tuple[nx.DiGraph, dict[str, Array], dict[str, str]]:
    """The sites of the unrolled program as a graph, with their positions and colours."""
    with x64():
        relations = get_model_relations(
            model.unrolled, model_args=(policy,), model_kwargs={"steps": steps}
        )
    parents: dict[str, list[str]] = relations["sample_sample"]
    graph = nx.DiGraph(
        (parent, child) for child, given in parents.items() for parent in given if parent != child
    )
    graph.add_nodes_from(parents)
    sites = [site.name for site in model.sites]
    rows = {"x": 2.0, "y": 1.0, "a": 0.0}
    places: dict[str, Array] = {}
    colours: dict[str, str] = {}
    for h in range(1, steps + 1):
        for letter, colour in (("x", LATENT), ("y", SEEN), ("a", CHOSEN)):
            places[f"{letter}[{h}]"] = np.array(
                [h + (0.25 if letter == "a" else 0.0), rows[letter]]
            )
            colours[f"{letter}[{h}]"] = colour
    places["x_last"], colours["x_last"] = np.array([steps + 1.0, 2.0]), LATENT
    # the user's sites, some of which may be observed
    above = graph.subgraph(node for node in graph if node not in places)
    # hyperparameters are drawn above parameters
    for level, names in enumerate(nx.topological_generations(above.reverse())):
        reach = max(steps - 1.0, APART * (len(names) - 1)) / 2
        spread = (
            1 + steps / 2 + np.linspace(-reach, reach, len(names))
            if len(names) > 1
            else [1.5 + (steps - 1) // 2]
        )
        for place, name in zip(spread, sorted(names, key=list(graph).index), strict=True):
            places[name] = np.array([place, 3.2 + 0.9 * level])
            colours[name] = UNKNOWN if name in sites else SEEN
    return graph, places, colours
