"""Plots of planning: beliefs along a plan, alpha-vectors, cells of a quantised policy, and the
loss of planning for a wrong model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, pairwise

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.core.plan import Plan
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.precision import Array
from homdp_ppl.report.data import check_finite, check_indices, vectors
from homdp_ppl.report.formatting import COLOURS, GREY, plain

DARK = ("black", COLOURS[0], COLOURS[4])  # of curves on a coloured background


@checked
def draw_beliefs(plan: Plan, state: int = 0, axes: Axes | None = None) -> Axes:
    """Plot the probability of a state given each history of a plan, step by step.

    Histories of the same step with the same belief and the same action share one marker, so the
    plot stays small where a tree does not. The size of a marker and the number in it are the
    probability of its histories.

    Parameters
    ----------
    plan
        A plan for a finite model. Use ``plan.named(world)`` for the names of the model.
    state
        The index of the state.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> axes = draw_beliefs(history_tree()(world.pomdp).named(world))
    >>> axes.get_ylabel()
    'P(left | history)'
    >>> plt.close(axes.figure)
    """
    tree, spaces = plan.tree(), plan.spaces
    if not 0 <= state < len(spaces.states):
        raise DataError(
            "draw_beliefs",
            [Problem("state", str(state), f"an index in 0..{len(spaces.states) - 1}")],
        )
    if axes is None:
        _, axes = plt.subplots(figsize=(9.0, 4.8), layout="constrained")
    belief = _beliefs(plan, tree)
    spots: dict[tuple[int, float, str], float] = {}
    links: dict[tuple[tuple[int, float], tuple[int, float]], float] = {}
    for node in list(tree)[1:]:
        about = tree.nodes[node]
        step, height = about["step"], round(float(belief[node][state]), 6)
        (parent,) = tree.predecessors(node)
        before = step - 1, round(float(belief[parent][state]), 6)
        spots[step, height, about["action"]] = (
            spots.get((step, height, about["action"]), 0.0) + about["probability"]
        )
        links[before, (step, height)] = (
            links.get((before, (step, height)), 0.0) + about["probability"]
        )
    for ((x0, y0), (x1, y1)), share in links.items():
        axes.plot(
            [x0, x1],
            [y0, y1],
            color="#c4c4c4",
            lw=0.5 + 9 * share,
            solid_capstyle="round",
            zorder=1,
        )
    colours = _palette(spaces.actions)
    for (step, height, action), share in spots.items():
        axes.scatter(
            step,
            height,
            s=300 + 1400 * share,
            color=colours[action],
            edgecolor="white",
            lw=2,
            zorder=2,
        )
        axes.annotate(
            f"{share:.2f}", (step, height), ha="center", va="center", fontsize=9, zorder=3
        )
    axes.scatter(0, belief[0][state], s=60, color="white", edgecolor=GREY, lw=1.5, zorder=2)
    steps = max(step for step, *_ in spots)
    axes.set_xticks(range(steps + 1), ["start", *map(str, range(1, steps + 1))])
    axes.set(
        xlim=(-0.2, steps + 0.3),
        ylim=(-0.09, 1.09),
        xlabel="step",
        ylabel=f"P({plain(spaces.states[state])} | history)",
    )
    taken = [name for name in spaces.actions if any(action == name for *_, action in spots)]
    handles = [Line2D([], [], marker="o", ls="", ms=9, color=colours[name]) for name in taken]
    axes.legend(
        handles,
        [plain(name) for name in taken],
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=len(taken),
    )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _beliefs(plan: Plan, tree: nx.DiGraph) -> dict[int, Array]:
    """The belief at each node: predict the next state, then condition on the observation."""
    _, model = plan.finite
    actions, observations = plan.spaces.actions, plan.spaces.observations
    belief: dict[int, Array] = {0: np.asarray(model.initial)}
    for parent, child in nx.bfs_edges(tree, 0):
        edge = tree.edges[parent, child]
        action = None if parent == 0 else actions.index(edge["action"])
        before, h = belief[parent], tree.nodes[child]["step"] - 1
        predicted = before if action is None else model.predict(before, action, h - 1)
        seen = observations.index(edge["observation"])
        joint = predicted * model.likelihood(seen, action, h)
        belief[child] = joint / joint.sum()
    return belief


@checked
def draw_envelope(
    vectors: ArrayLike, chosen: Sequence[int], actions: Sequence[str], axes: Axes | None = None
) -> Axes:
    """Plot the alpha-vectors of a model with two states, their upper envelope, and the best action
    at each belief.

    Parameters
    ----------
    vectors
        Alpha-vectors, (n, 2).
    chosen
        The index of the first action of each vector.
    actions
        Names of all actions.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_envelope([[1.0, 0.0], [0.0, 1.0]], [0, 1], ["left", "right"])
    >>> bool(axes.lines[-1].get_ydata().min() >= 0.5)
    True
    >>> plt.close(axes.figure)
    """
    alpha = np.asarray(vectors, dtype=np.float64)
    if alpha.ndim != 2 or alpha.shape[1] != 2 or len(alpha) != len(chosen):
        got = f"shape {alpha.shape} and {len(chosen)} actions"
        raise DataError(
            "draw_envelope",
            [Problem("vectors", got, "shape (n, 2), for two states, and n actions")],
        )
    check_finite("draw_envelope", vectors=alpha)
    check_indices("draw_envelope", "chosen", chosen, len(actions))
    if not len(alpha):
        raise DataError("draw_envelope", [Problem("vectors", "none", "at least one vector")])
    alone = axes is None
    if axes is None:
        _, axes = plt.subplots(figsize=(5.0, 4.0), layout="constrained")
        axes.set(xlabel="probability of the first state", ylabel="value")
    grid = np.linspace(0, 1, 801)
    lines = np.column_stack([grid, 1 - grid]) @ alpha.T  # (grid, n)
    top, winner = lines.max(1), np.asarray(chosen)[lines.argmax(1)]
    colours = _palette(actions)
    for line, action in zip(lines.T, chosen, strict=True):
        axes.plot(grid, line, color=colours[actions[action]], lw=1.5)
    axes.plot(grid, top, color="black", lw=2.6)
    room = max(0.28, float(np.ptp(top)))
    floor = float(top.min()) - room
    for action, name in enumerate(actions):
        here, strip = list(winner == action), floor + 0.07 * room
        axes.fill_between(
            grid, floor, strip, where=here, color=colours[name], lw=0, label=plain(name)
        )
    axes.set(xlim=(0, 1), ylim=(floor, top.max() + 0.1 * room))
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    if alone:  # several panels share one legend
        axes.legend(
            frameon=False,
            fontsize=9,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.16),
            ncols=len(actions),
        )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


@checked
def draw_losses(
    at: ArrayLike, losses: ArrayLike, axes: Axes | None = None, most: float | None = None
) -> Axes:
    """Plot the loss of planning for one value of a parameter when another is true.

    Black squares enclose values with the same optimal policy.

    Parameters
    ----------
    at
        Values of the parameter, evenly spaced.
    losses
        Loss of the plan for one value in the model with another, (planned for, true); zero on the
        diagonal.
    axes
        Axes to draw on. Default: a new figure.
    most
        The loss at which the colour scale ends. Default: the largest loss.

    Examples
    --------
    >>> axes = draw_losses([0.1, 0.2, 0.3], [[0, 0, 0.5], [0, 0, 0.5], [1, 1, 0]])
    >>> len(axes.lines)  # two optimal policies: one for 0.1 and 0.2, one for 0.3
    2
    >>> plt.close(axes.figure)
    """
    places, table = np.asarray(at, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    if places.ndim != 1 or len(places) < 2 or table.shape != (len(places),) * 2:
        got = f"shape {table.shape} for parameter values of shape {places.shape}"
        raise DataError(
            "draw_losses",
            [Problem("losses", got, "shape (n, n) for n >= 2 parameter values")],
        )
    if axes is None:
        _, axes = plt.subplots(figsize=(5.5, 4.6), layout="constrained")
    check_finite("draw_losses", at=places, losses=table)
    limit = float(table.max()) if most is None else float(most)
    check_finite("draw_losses", most=limit)
    if most is not None and limit <= 0:
        raise DataError("draw_losses", [Problem("most", shown(most), "a loss above 0")])
    image = axes.pcolormesh(
        places, places, table, cmap="cividis_r", vmin=0, vmax=limit, shading="nearest"
    )
    half = (places[1] - places[0]) / 2
    # where the plan for one value is not optimal at the next
    changes = np.flatnonzero(np.diag(table, 1) > 1e-9)
    for low, high in pairwise([places[0] - half, *(places[changes] + half), places[-1] + half]):
        axes.plot([low, high, high, low, low], [low, low, high, high, low], color="black", lw=1.3)
    axes.set(xlabel="true value", ylabel="planned for", aspect="equal")
    axes.figure.colorbar(
        image,
        ax=axes,
        label="loss",
        extend="max" if table.max() > limit else "neither",
        shrink=0.9,
    )
    return axes


@checked
def draw_cells(
    line: ArrayLike,
    decided: ArrayLike,
    actions: Sequence[str],
    edges: ArrayLike,
    densities: Mapping[str, ArrayLike],
    axes: Axes | None = None,
) -> Axes:
    """Plot the actions of a quantised policy after a real-valued observation, the edges of its
    cells, and densities of the observation.

    Parameters
    ----------
    line
        Values of the observation.
    decided
        The index of the action after each value.
    actions
        Names of all actions.
    edges
        Edges of the cells.
    densities
        For each name, for example of a state, the density at each value.
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> axes = draw_cells([-1, 0, 1], [0, 0, 1], ["wait", "go"], [0.5], {"calm": [0.2, 0.4, 0.2]})
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['wait', 'go']
    >>> plt.close(axes.figure)
    """
    numbers, taken = vectors("draw_cells", line=line, decided=decided)
    if not densities or not len(actions):
        problem = Problem("densities", "no densities or no actions", "at least one of each")
        raise DataError("draw_cells", [problem])
    check_indices("draw_cells", "decided", taken, len(actions))
    check_finite("draw_cells", edges=edges)
    heights_of = {
        name: vectors("draw_cells", line=numbers, densities=density)[1]
        for name, density in densities.items()
    }
    if axes is None:
        _, axes = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
    top = 1.2 * max(float(heights.max()) for heights in heights_of.values())
    colours = _palette(actions)
    for a, name in enumerate(actions):
        axes.fill_between(
            numbers,
            0,
            top,
            where=list(taken == a),
            color=colours[name],
            alpha=0.5,
            lw=0,
            label=plain(name),
        )
    axes.legend(
        frameon=False,
        fontsize=9,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=len(actions),
    )
    for (name, heights), colour in zip(heights_of.items(), cycle(DARK), strict=False):
        axes.plot(numbers, heights, color=colour, lw=2.4)
        place = numbers[heights.argmax()], float(heights.max())
        axes.annotate(
            plain(name), place, (0, 5), textcoords="offset points", color=colour, ha="center"
        )
    axes.vlines(np.asarray(edges), 0, top, color="white", lw=1.8)
    axes.set(xlim=(numbers[0], numbers[-1]), ylim=(0, top), ylabel="density")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _palette(actions: Sequence[str]) -> dict[str, str]:
    """A colour for each action, the same as in the tree plot of a plan."""
    return {name: to_hex(colormaps["Set2"](k % 8)) for k, name in enumerate(sorted(actions))}
