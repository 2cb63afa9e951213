"""Tables and pictures: what a person looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpyro.infer.inspect import get_model_relations
from rich.table import Table

from homdp_ppl.declare import HOMDP, World
from homdp_ppl.episode import Episode
from homdp_ppl.precision import Array, x64

if TYPE_CHECKING:
    from homdp_ppl.policy import Trajectory

LATENT, SEEN, CHOSEN, UNKNOWN = "#c6dbef", "#e5e5e5", "#fdd0a2", "#c7e9c0"


def seen_table(model: HOMDP, trajectory: Trajectory, title: str = "") -> Table:
    """What the policy saw and did, in the model's names; to be printed with ``rich.print``."""
    table = Table("step", "observation", "action", title=title or None, title_justify="left")
    for h, (y, a) in enumerate(zip(trajectory.observations, trajectory.actions, strict=True)):
        table.add_row(str(h + 1), model.observations[y], model.actions[a])
    return table


def revealed_table(model: HOMDP, episode: Episode, title: str = "") -> Table:
    """A finished episode with its latent states and rewards, in the model's names."""
    table = Table("step", "latent state", "observation", "action", "reward", title=title or None, title_justify="left")
    for h, (x, y, a) in enumerate(zip(episode.states, episode.observations, episode.actions, strict=False)):
        reward = f"{model.reward[h, x, a]:.2f}"
        table.add_row(str(h + 1), f"[bold]{model.states[x]}[/]", model.observations[y], model.actions[a], reward)
    table.add_row("end", f"[bold]{model.states[episode.states[-1]]}[/]", "", "return", f"{model.returns(episode):.2f}")
    return table


def models_table(worlds: dict[str, World]) -> Table:
    """Models with their sizes, horizon and what is unknown in each."""
    table = Table("model", "sizes", "what is unknown", show_lines=True)
    for name, world in worlds.items():
        X, Y, A, H = world.spaces.sizes
        summary = world.homdp.structure.summary()
        unknown = "\n".join(f"{part}: {phrase}" for part, phrase in summary.items() if phrase != "known")
        table.add_row(name, f"{X} states, {Y} obs.,\n{A} actions, H = {H}", unknown or "nothing")
    return table


def draw_program(model: HOMDP, steps: int = 2, axes: Axes | None = None) -> Axes:
    """Draw a declaration as a graph: its unknown sites above, then states, observations and actions step by step.

    The arrows are the ones that NumPyro finds in the program itself, so a policy that saw a latent state would show it.

    Parameters
    ----------
    model
        The declaration.
    steps
        How many steps of the episode to draw.
    axes
        Where to draw; a new figure by default.
    """
    steps = min(steps, model.horizon)
    graph, places, colours = _program_graph(model, steps)
    labels = {node: f"${node.replace('[', '_{').replace(']', '}')}$" if "[" in node else node for node in graph}
    labels["x_last"] = f"$x_{{{steps + 1}}}$"
    if axes is None:
        _, axes = plt.subplots(figsize=(2.2 * steps + 2.4, 4.2), layout="constrained")
    nx.draw_networkx_nodes(
        graph,
        places,
        node_color=[colours[node] for node in graph],
        edgecolors="#555555",
        node_size=[900 + 260 * max(0, len(labels[node]) - 7) for node in graph],
        ax=axes,
    )
    nx.draw_networkx_labels(graph, places, labels, font_size=9, ax=axes)
    nx.draw_networkx_edges(
        graph, places, node_size=1300, edge_color="#777777", connectionstyle="arc3,rad=0.08", arrowsize=12, ax=axes
    )
    axes.set_title(f"{model.name}: {steps} of {model.horizon} steps", fontsize=10)
    legend = [
        ("unknown parameter", UNKNOWN),
        ("latent, revealed in hindsight", LATENT),
        ("observation", SEEN),
        ("action", CHOSEN),
    ]
    handles: list[Any] = [
        Line2D([], [], marker="o", linestyle="", markersize=9, color=c, markeredgecolor="#555") for _, c in legend
    ]
    axes.legend(
        handles, [text for text, _ in legend], loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, fontsize=8, frameon=False
    )
    axes.margins(0.12)
    axes.set_axis_off()
    return axes


def _program_graph(model: HOMDP, steps: int) -> tuple[nx.DiGraph, dict[str, Array], dict[str, str]]:
    """The sites of the unrolled program with their dependencies, where to put each, and its colour."""
    with x64():
        relations = get_model_relations(model.unrolled, model_kwargs={"steps": steps})
    parents: dict[str, list[str]] = relations["sample_sample"]
    graph = nx.DiGraph((parent, child) for child, given in parents.items() for parent in given if parent != child)
    graph.add_nodes_from(parents)
    sites = [site.name for site in model.sites]
    rows = {"x": 2.0, "y": 1.0, "a": 0.0}
    places, colours = {}, {}
    for h in range(1, steps + 1):
        for letter, colour in (("x", LATENT), ("y", SEEN), ("a", CHOSEN)):
            places[f"{letter}[{h}]"] = np.array([h + (0.25 if letter == "a" else 0.0), rows[letter]])
            colours[f"{letter}[{h}]"] = colour
    places["x_last"], colours["x_last"] = np.array([steps + 1.0, 2.0]), LATENT
    for k, name in enumerate(sites):
        places[name] = np.array([1 + steps * (k + 0.5) / len(sites), 3.2])
        colours[name] = UNKNOWN
    others = [node for node in graph if node not in places]  # observed sites of the user's own
    for k, name in enumerate(others):
        places[name], colours[name] = np.array([1 + steps * (k + 0.5) / len(others), 4.0]), SEEN
    return graph, places, colours
