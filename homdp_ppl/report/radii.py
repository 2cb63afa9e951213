"""Comparison of confidence radii (HOP-B, Weissman, posterior quantile) with the true errors."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, TypeAlias

import jax
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from rich.markup import escape
from rich.table import Table

from homdp_ppl.confidence import Radii, empirical, hop_b_radii, quantile_radii, weissman_radii
from homdp_ppl.confidence.rows import unknown_rows
from homdp_ppl.core.arguments import check_arguments, refuse, size_problems
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import as_key, as_keys
from homdp_ppl.core.rollout import rollout_many
from homdp_ppl.declare.model import World
from homdp_ppl.errors import DataError, ParameterError, Problem, shown
from homdp_ppl.posteriors import posterior
from homdp_ppl.precision import Array
from homdp_ppl.report.formatting import label_log, plain

Part: TypeAlias = Literal["emission", "transition"]

RULES = {"hop_b": "HOP-B", "weissman": "Weissman", "quantile": "posterior quantile"}
ESTIMATES = {"frequencies": "error of the frequencies", "mean": "error of the posterior mean"}
COLOURS = {
    "hop_b": "#c0392b",
    "weissman": "#e08e0b",
    "quantile": "#1f6fb2",
    "frequencies": "#777777",
    "mean": "#6aa5d6",
}
FIRST = "none yet"  # the previous action of the first observation
# the axes of the rows of each table; tables have the last of them
AXES = {"emission": ("step", "previous", "state"), "transition": ("step", "state", "action")}


@checked
def compare_radii(
    key: Array, world: World, policy: Policy, episodes: int = 4096, delta: float = 0.1
) -> xr.Dataset:
    """Radii and true errors of every unknown row after 1, 2, 4, ... episodes of a policy.

    The HOP-B and Weissman radii are centred at the relative frequencies and are valid for a run of
    ``episodes`` episodes. The posterior quantiles are centred at the posterior mean. All radii are
    L1 distances, except the transition radius of HOP-B, which bounds errors of values and is at
    most 2H.

    Parameters
    ----------
    key
        A JAX random key.
    world
        The true world. The posterior is that of its declaration.
    policy
        The policy that collects the data.
    episodes
        The total number of episodes.
    delta
        Allowed failure probability of each kind of radius.

    Returns
    -------
    xarray.Dataset
        Variables ``emission_visits``, ``emission_radius`` (by ``rule``), ``emission_error`` (by
        ``estimate``), and the same for ``transition``. Coordinates are names of the model. Known
        rows are NaN. If tables depend on the step or the previous action, there are further
        dimensions ``step``, from 1, and ``previous``.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, uniform_policy
    >>> world = models.load("tiger")
    >>> seen = compare_radii(jax.random.key(0), world, uniform_policy(world), episodes=64)
    >>> seen.emission_radius.sel(episodes=64, state="left").values.round(
    ...     2
    ... )  # HOP-B, Weissman, posterior quantile
    array([1.1 , 0.42, 0.08])
    """
    check_arguments("compare_radii", episodes=episodes, delta=delta)
    refuse(ParameterError, "compare_radii", size_problems(episodes=episodes))
    key = as_key(key, "compare_radii")
    key = as_keys(key, "compare_radii")
    graph = policy if isinstance(policy, GraphPolicy) else GraphPolicy.from_policy(policy, world)
    data = rollout_many(jax.random.split(jax.random.fold_in(key, 0), episodes), world, graph)
    return follow_radii(key, world, data, delta)


def follow_radii(
    key: Array, world: World, data: Episodes, delta: float = 0.1, factor: int = 2
) -> xr.Dataset:
    """Like :func:`compare_radii`, for given episodes.

    Parameters
    ----------
    key
        A JAX random key, for posteriors that are sampled.
    world
        The true world. The posterior is that of its declaration.
    data
        Episodes, in the order of play.
    delta
        Allowed failure probability of each kind of radius.
    factor
        Compute radii after 1, factor, factor^2, ... episodes, and after all.
    """
    homdp, key, episodes = world.homdp, as_keys(key, "follow_radii"), len(data)
    check_arguments("follow_radii", episodes=episodes, delta=delta)
    stops = sorted(
        {*(factor**k for k in range(int(episodes).bit_length()) if factor**k < episodes), episodes}
    )
    belief = posterior(homdp, Counts.zero(homdp))
    found: dict[str, list[list[Radii]]] = {"visits": [], "radius": [], "error": []}
    for before, after in pairwise([0, *stops]):
        fit, draw = jax.random.split(jax.random.fold_in(key, after))
        belief = belief.update(data[before:after], fit)
        counts = belief.counts
        frequentist = (
            hop_b_radii(homdp, counts, episodes, delta),
            weissman_radii(homdp, counts, episodes, delta),
        )
        found["visits"].append([Radii(counts.state_action, counts.visits)])
        found["radius"].append([*frequentist, quantile_radii(belief, draw, delta)])
        found["error"].append(
            [_distances(estimate, world) for estimate in (empirical(homdp, counts), belief.mean)]
        )
    variables = {}
    for part, every in AXES.items():
        unknown = getattr(unknown_rows(homdp), part)
        axes = every[len(every) - unknown.ndim :]
        for name, kinds in (("visits", ()), ("radius", ("rule",)), ("error", ("estimate",))):
            numbers = np.array(
                [[getattr(rows, part) for rows in at] for at in found[name]]
            )  # (stops, kinds, X) or (..., X, A)
            numbers = np.where(unknown, numbers if kinds else numbers[:, 0], np.nan)
            variables[f"{part}_{name}"] = (("episodes", *kinds, *axes), numbers)
    coordinates = {
        "episodes": stops,
        "rule": list(RULES),
        "estimate": list(ESTIMATES),
        "state": list(homdp.states),
        "action": list(homdp.actions),
    }
    if homdp.form.moves_by_step or homdp.form.shows_by_step:
        coordinates["step"] = list(range(1, homdp.horizon + 1))
    if homdp.form.answers_action:
        coordinates["previous"] = [*homdp.actions, FIRST]
    about = {
        "model": homdp.name,
        "delta": delta,
        "horizon": homdp.horizon,
        "posterior": belief.explanation,
    }
    return xr.Dataset(variables, coordinates, about)


@checked_but("part")
def radius_table(comparison: xr.Dataset, part: Part = "emission") -> Table:
    """Medians over the rows of radii and errors, by number of episodes.

    Print the table with ``rich.print``.

    Parameters
    ----------
    comparison
        The result of :func:`compare_radii`.
    part
        Which rows to use: "emission" or "transition".

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, uniform_policy
    >>> world = models.load("tiger")
    >>> seen = compare_radii(jax.random.key(0), world, uniform_policy(world), episodes=64)
    >>> table = radius_table(seen)
    >>> table.columns[2].header, list(table.columns[0].cells)
    ('HOP-B', ['1', '2', '4', '8', '16', '32', '64'])
    """
    _check_part(comparison, part)
    medians = comparison.median(_rows(comparison, part))
    labels = _labels(part)
    title = f"{escape(comparison.model)}, {part} rows: medians of L1 radii and errors"
    table = Table(
        "episodes",
        "visits",
        *(labels[k] for k in (*RULES, *ESTIMATES)),
        title=title,
        title_justify="left",
    )
    for stop in medians.episodes.values:
        row = medians.sel(episodes=stop)
        numbers = [*_scaled(comparison, part, row).values, *row[f"{part}_error"].values]
        table.add_row(
            f"{stop:,}",
            f"{float(row[f'{part}_visits']):,.0f}",
            *(f"{number:.3g}" for number in numbers),
        )
    for column in table.columns:
        column.justify = "right"
    return table


@checked_but("part")
def draw_radii(comparison: xr.Dataset, part: Part = "emission", axes: Axes | None = None) -> Axes:
    """Plot radii against visits, with one line for each row and rule.

    Dots show the true errors of the estimates. Errors far below all radii are drawn at the lower
    edge.

    Parameters
    ----------
    comparison
        The result of :func:`compare_radii`.
    part
        Which rows to draw: "emission" or "transition".
    axes
        Axes to draw on. Default: a new figure.

    Examples
    --------
    >>> import jax, matplotlib.pyplot as plt
    >>> from homdp_ppl import models, uniform_policy
    >>> world = models.load("tiger")
    >>> seen = compare_radii(jax.random.key(0), world, uniform_policy(world), episodes=64)
    >>> axes = draw_radii(seen)
    >>> axes.get_title(), axes.get_xlabel()
    ('tiger: emission rows, delta = 0.1', 'visits to the row')
    >>> plt.close(axes.figure)
    """
    _check_part(comparison, part)
    if axes is None:
        _, axes = plt.subplots(figsize=(8.2, 4.2), layout="constrained")
    rows = comparison.stack(row=_rows(comparison, part)).dropna("row", subset=[f"{part}_visits"])
    visits = rows[f"{part}_visits"].where(rows[f"{part}_visits"] > 0)  # (episodes, row)
    labels, radii = _labels(part), _scaled(comparison, part, rows)
    mark = "_" if len(rows.episodes) == 1 else None  # a line needs two points
    floor, faint = (
        float(radii.where(radii > 0).min()) / 20,
        min(0.9, max(0.35, 4 / rows.sizes["row"])),
    )
    for rule in RULES:
        style = "--" if rule == "hop_b" and part == "transition" else "-"
        radius = radii.sel(rule=rule).transpose(*visits.dims)
        axes.plot(
            visits.values,
            radius.values,
            style,
            color=COLOURS[rule],
            alpha=faint,
            lw=1.4,
            marker=mark,
        )
        axes.plot([], [], style, color=COLOURS[rule], lw=2, label=labels[rule])
    for estimate in ESTIMATES:
        error = rows[f"{part}_error"].sel(estimate=estimate).transpose(*visits.dims).clip(floor)
        axes.plot(
            visits.values.ravel(),
            error.values.ravel(),
            "o",
            ms=3,
            mew=0,
            color=COLOURS[estimate],
            alpha=max(0.6, faint),
        )
        axes.plot([], [], "o", ms=4, mew=0, color=COLOURS[estimate], label=labels[estimate])
    axes.axhline(2.0, color="#bbbbbb", lw=0.8, zorder=0)
    axes.annotate(
        "2: the largest L1 distance",
        (1.0, 2.0),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color="#888888",
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="visits to the row",
        ylabel="L1 distance",
        ylim=(0.8 * floor, 3.0),
    )
    for axis in (axes.xaxis, axes.yaxis):
        label_log(axis)
    axes.set_title(
        f"{plain(comparison.model)}: {part} rows, delta = {comparison.delta:g}", fontsize=10
    )
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _rows(comparison: xr.Dataset, part: Part) -> tuple[str, ...]:
    """The dimensions of the rows of a table in a comparison."""
    return tuple(str(name) for name in comparison[f"{part}_visits"].dims if name != "episodes")


def _distances(estimate: POMDP, world: World) -> Radii:
    truth = world.pomdp
    errors = estimate.transition - truth.transition, estimate.emission - truth.emission
    return Radii(*(np.abs(error).sum(-1) for error in world.form.short(*errors)))


def _scaled(comparison: xr.Dataset, part: Part, rows: xr.Dataset) -> xr.DataArray:
    """The radii on the scale of L1 distances.

    The transition radius of HOP-B bounds errors of values up to H, so it is divided by H.
    """
    radii = rows[f"{part}_radius"]
    return radii.where((radii.rule != "hop_b") | (part == "emission"), radii / comparison.horizon)


def _labels(part: Part) -> dict[str, str]:
    labels = RULES | ESTIMATES
    return labels | {"hop_b": "HOP-B / H (bounds values)"} if part == "transition" else labels


def _check_part(comparison: xr.Dataset, part: Part) -> None:
    if not isinstance(part, str) or part not in AXES:
        raise DataError("radii", [Problem("part", shown(part), "one of " + ", ".join(AXES))])
    if not np.isfinite(comparison[f"{part}_visits"]).any():
        raise DataError(
            "radii",
            [
                Problem(
                    "part",
                    f"{part!r}, but all {part} rows of this model are known",
                    "a part with unknown rows",
                    "Use the other part.",
                )
            ],
        )
