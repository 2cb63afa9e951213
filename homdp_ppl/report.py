"""Tables and pictures: what a person looks at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpyro.infer.inspect import get_model_relations
from rich import box
from rich.markup import escape
from rich.table import Table

from homdp_ppl.continuous import ContinuousHOMDP, ContinuousWorld
from homdp_ppl.declare import HOMDP, World
from homdp_ppl.domain import describe, told
from homdp_ppl.episode import Episode
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.learning_pictures import draw_promises as draw_promises
from homdp_ppl.learning_pictures import draw_regret as draw_regret
from homdp_ppl.plan import Plan
from homdp_ppl.policy import Policy
from homdp_ppl.posteriors import PredictiveCheck
from homdp_ppl.precision import Array, x64
from homdp_ppl.radius_picture import compare_radii as compare_radii
from homdp_ppl.radius_picture import draw_radii as draw_radii
from homdp_ppl.radius_picture import radius_table as radius_table
from homdp_ppl.study import Row
from homdp_ppl.study_pictures import draw_episodes_to as draw_episodes_to
from homdp_ppl.study_pictures import draw_optimism as draw_optimism
from homdp_ppl.theory import Statement

LATENT, SEEN, CHOSEN, UNKNOWN = "#c6dbef", "#e5e5e5", "#fdd0a2", "#c7e9c0"


def seen_table(model: HOMDP | ContinuousHOMDP, episode: Episode, title: str = "") -> Table:
    """What the policy saw and did, in the model's names; to be printed with ``rich.print``."""
    _one(episode)
    table = Table("step", "observation", "action", title=title or None, title_justify="left")
    for h, (y, a) in enumerate(zip(episode.observations, episode.actions, strict=True)):
        table.add_row(str(h + 1), escape(told(y, model.spaces.observations)), escape(model.spaces.actions[a]))
    return table


def _one(episode: Episode) -> None:
    if episode.actions.ndim > 1:
        got = f"a batch of shape {episode.actions.shape[:-1]}"
        raise DataError("report", [Problem("episode", got, "one episode", "Pick one: episodes[0].")])


def revealed_table(model: HOMDP | ContinuousHOMDP, episode: Episode, title: str = "") -> Table:
    """The same episode with its latent states and rewards."""
    _one(episode)
    table = Table("step", "latent state", "observation", "action", "reward", title=title or None, title_justify="left")
    latent = [f"[bold]{escape(told(x, model.spaces.states))}[/]" for x in episode.states]
    for h, (y, a) in enumerate(zip(episode.observations, episode.actions, strict=True)):
        x = episode.states[h]
        with x64():
            reward = model.reward(x, a) if isinstance(model, ContinuousHOMDP) else model.reward[h, x, a]
        seen, done = escape(told(y, model.spaces.observations)), escape(model.spaces.actions[a])
        table.add_row(str(h + 1), latent[h], seen, done, f"{float(reward):.2f}")
    table.add_row("end", latent[-1], "", "return", f"{model.returns(episode):.2f}")
    return table


def models_table(worlds: Mapping[str, World | ContinuousWorld]) -> Table:
    """Models with their sizes, horizon and what is unknown in each."""
    table = Table("model", "sizes", "what is unknown", show_lines=True)
    for name, world in worlds.items():
        X, Y, A, H = world.spaces
        if isinstance(world, ContinuousWorld):
            unknown = ", ".join(site.name for site in world.homdp.sites)
        else:
            summary = world.homdp.structure.summary()
            unknown = "\n".join(f"{part}: {phrase}" for part, phrase in summary.items() if phrase != "known")
        sizes = f"{describe(X, 'state')}, {describe(Y, 'obs.')},\n{describe(A, 'action')}, H = {H}".replace("obs.s", "obs.")
        table.add_row(escape(name), sizes, escape(unknown) or "nothing")
    return table


def decisions_table(plan: Plan, rows: int = 6) -> Table:
    """The first decisions of a plan in words: what was seen, what it does then, and what that is worth."""
    table = Table("after", "probability", "do", "value from here on")
    for node, data in plan.first_steps(rows).nodes(data=True):
        if node != 0:
            table.add_row(escape(data["history"]), f"{data['probability']:.3f}", escape(data["action"]), f"{data['value']:.4f}")
    return table


def draw_program(model: HOMDP, steps: int = 2, policy: Policy | None = None, axes: Axes | None = None) -> Axes:
    """Draw a declaration as a graph: its unknown sites above, then states, observations and actions step by step.

    The arrows are the ones that NumPyro finds in the program itself, so a policy that saw a latent state would show it.

    Parameters
    ----------
    model
        The declaration.
    steps
        How many steps of the episode to draw.
    policy
        Who acts; the uniform policy by default.
    axes
        Where to draw; a new figure by default.
    """
    steps = min(steps, model.horizon)
    graph, places, colours = _program_graph(model, steps, policy)
    if axes is None:
        _, axes = plt.subplots(
            figsize=(2.2 * steps + 2.4, 1.2 + max(place[1] for place in places.values())), layout="constrained"
        )
    labels = {node: f"${node.replace('[', '_{').replace(']', '}')}$" if "[" in node else node for node in graph}
    labels["x_last"] = f"$x_{{{steps + 1}}}$"
    steps_only = [node for node in graph if "[" in node or node == "x_last"]
    nx.draw_networkx_nodes(
        graph, places, steps_only, 900, node_color=[colours[node] for node in steps_only], edgecolors="#555555", ax=axes
    )
    for node in set(graph) - set(steps_only):
        box = {"boxstyle": "round,pad=0.5", "facecolor": colours[node], "edgecolor": "#555555"}
        text = node.replace("$", r"\$")  # not mathematics
        nx.draw_networkx_labels(graph, {node: places[node]}, {node: text}, font_size=9, bbox=box, ax=axes)
    nx.draw_networkx_labels(graph, places, {node: labels[node] for node in steps_only}, font_size=10, ax=axes)
    long = [e for e in graph.edges if e[1].startswith("a[") and places[e[1]][0] - places[e[0]][0] > 1.5]
    short = [e for e in graph.edges if e not in long]
    for edges, bend in ((short, "arc3,rad=0.08"), (long, "arc3,rad=0.3")):  # long ones swing below the actions between
        nx.draw_networkx_edges(graph, places, edges, node_size=1000, edge_color="#777777", connectionstyle=bend, ax=axes)
    axes.set_title(f"{model.name}: {steps} of {model.horizon} steps", fontsize=10)
    kinds = {"unknown parameter": UNKNOWN, "latent, revealed in hindsight": LATENT, "observation": SEEN, "action": CHOSEN}
    handles: list[Any] = [Line2D([], [], marker="o", linestyle="", color=c, markeredgecolor="#555555") for c in kinds.values()]
    axes.legend(handles, list(kinds), loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, fontsize=8, frameon=False)
    axes.margins(0.12)
    axes.set_axis_off()
    return axes


def _program_graph(model: HOMDP, steps: int, policy: Policy | None = None) -> tuple[nx.DiGraph, dict[str, Array], dict[str, str]]:
    """The sites of the unrolled program with their dependencies, where to put each, and its colour."""
    with x64():
        relations = get_model_relations(model.unrolled, model_args=(policy,), model_kwargs={"steps": steps})
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
    above = graph.subgraph(node for node in graph if node not in places)  # the user's sites, some perhaps observed
    for level, names in enumerate(nx.topological_generations(above.reverse())):  # hyperparameters stand above parameters
        spread = np.linspace(1.5, steps + 0.5, len(names)) if len(names) > 1 else [1.5 + (steps - 1) // 2]
        for place, name in zip(spread, sorted(names, key=list(graph).index), strict=True):
            places[name] = np.array([place, 3.2 + 0.9 * level])
            colours[name] = UNKNOWN if name in sites else SEEN
    return graph, places, colours


def check_table(check: PredictiveCheck, rows: int = 3) -> Table:
    """What a predictive check found, with the most surprising single frequencies; to be printed with ``rich.print``."""
    title = f"{escape(check.homdp.name)}: {check.episodes:,} episodes against {len(check.replicated.mean):,} replications"
    table = Table("finding", "observed", "predicted (90%)", "p", title=title, title_justify="left")
    for what, observed, low, high, p in (*check.findings, *check.frequencies[:rows]):
        told = f"[bold red]{p:.3g}[/]" if what in check.unusual else f"{p:.3g}"
        table.add_row(escape(what), f"{observed:.4g}", f"{low:.4g} to {high:.4g}", told)
    return table


def draw_check(check: PredictiveCheck, axes: tuple[Axes, Axes] | None = None) -> tuple[Axes, Axes]:
    """Observed against predicted frequencies of every observation at every step, and the returns among their replications.

    Parameters
    ----------
    check
        What ``predictive_check`` found.
    axes
        Where to draw the frequencies and the returns; a new figure by default.
    """
    if axes is None:
        _, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
        axes = left, right
    left, right = axes
    replicated, observed = check.replicated, check.observed
    steps = np.repeat(np.arange(1, check.homdp.horizon + 1), len(check.homdp.observations))
    middle = replicated.frequency.mean(0).ravel()
    low, high = np.quantile(replicated.frequency, [0.05, 0.95], axis=0).reshape(2, -1)
    left.axline((0, 0), slope=1, color="#cccccc", lw=1, zorder=0)
    left.vlines(middle, low, high, color="#b8c4d0", lw=2.5, zorder=1, label="predicted, 90%")
    dots = left.scatter(middle, observed.frequency.ravel(), c=steps, cmap="viridis", s=22, zorder=2, label="observed")
    if check.homdp.horizon > 1:
        left.figure.colorbar(dots, ax=left, label="step", ticks=np.unique(np.linspace(1, check.homdp.horizon, 5).round()))
    left.set(xlabel="predicted frequency", ylabel="observed frequency")
    right.scatter(replicated.mean, replicated.deviation, s=14, color="#b8c4d0", label="replicated")
    right.plot(observed.mean, observed.deviation, "x", color="#c0392b", ms=9, mew=2.2, label="observed")
    right.set(xlabel="mean return", ylabel="standard deviation of returns")
    if check.unusual:
        outside = np.maximum(low - observed.frequency.ravel(), observed.frequency.ravel() - high)
        for k in np.argsort(-outside)[: min(3, np.sum(outside > 0))]:
            name = check.homdp.observations[k % len(check.homdp.observations)].replace("$", r"\$")  # not mathematics
            place, inwards = (middle[k], observed.frequency.flat[k]), middle[k] > middle.max() / 2
            left.annotate(f"{name}, step {steps[k]}", place, xytext=(-6 if inwards else 6, 0), textcoords="offset points",
                          ha="right" if inwards else "left", va="center", fontsize=8)  # fmt: skip
    by_step, pairs, mean, spread = (f"p = {finding.p:.2g}" for finding in check.findings)
    left.set_title(f"{check.homdp.name}, {check.episodes:,} episodes\nby step: {by_step}; pairs: {pairs}", fontsize=9)
    right.set_title(f"returns\nmean: {mean}; spread: {spread}", fontsize=9)
    for panel in axes:
        panel.legend(frameon=False, fontsize=8, loc="upper left")
        panel.spines[["top", "right"]].set_visible(False)
    return axes


def comparison_table(rows: Sequence[Row], title: str = "", epsilon: float = 0.1) -> Table:
    """How several rules did in one world; see ``study.summarise``. Differences are paired by seed, with 95% intervals.

    Regret is summed over all episodes, with its standard error; "gap" is that of the last round, "optim." the share of rounds
    whose optimistic value covered the optimum, "width" how far above it that was on average, "to 0.1" the episodes until the
    average regret was below 0.1 for good, "sec" the seconds of a run.
    """
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    near = f"to {epsilon:g}"  # episodes until within epsilon
    for column in ("rule", "regret", "minus first", "gap", "optim.", "width", near, "sec", "guarantee"):
        table.add_column(column, justify="left" if column in ("rule", "guarantee") else "right", no_wrap=True)
    for k, row in enumerate(rows):
        numbers = (
            _with_error(row.regret, row.error),
            "" if k == 0 else _with_interval(row.less, row.interval),
            f"{max(row.gap, 0.0):.3g}",
            "-" if math.isnan(row.optimistic) else f"{row.optimistic:.0%}",
            "-" if math.isnan(row.width) else f"{row.width:.3g}",
            "-" if math.isinf(row.needed) else f"{row.needed:,.0f}",
            f"{row.seconds:.2g}",
        )
        simulated = ", estimated" if row.estimated else ""
        table.add_row(escape(row.rule), *numbers, row.soundness.removeprefix("optimistic, ") + simulated)
    return table


def _with_error(value: float, error: float) -> str:
    return f"{value:.3g}" if math.isnan(error) else f"{value:.3g} ± {error:.2g}"


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    if math.isnan(interval[0]):
        return "-" if math.isnan(value) else f"{value:+.3g}"
    return f"{value:+.3g} ({interval[0]:+.3g} to {interval[1]:+.3g})"


def theory_table(statements: Iterable[Statement]) -> Table:
    """The paper's statements beside what holds anyway, and whether they say more; see ``theory.report``."""
    table = Table("statement", "value", "trivially", "says something", "appendix", "note")
    for column in table.columns[1:3]:
        column.justify = "right"
    for row in statements:
        later = "no" if math.isinf(row.since) else f"not before K = {_number(row.since)}"
        told = "[bold]yes[/]" if row.informative else later
        table.add_row(escape(row.name), _number(row.value), _number(row.trivial), told, row.source, escape(row.note))
    return table


def _number(value: float) -> str:
    if math.isinf(value):
        return "-"
    return f"{value:,.0f}" if 100 <= value < 1e6 or (value < 100 and value == int(value)) else f"{value:.3g}"
