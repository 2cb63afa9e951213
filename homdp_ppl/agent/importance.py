"""Which rows are least known and matter most for the value of a policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.parameter_rows import row_map
from homdp_ppl.core.alphas import after_observations, alphas_of, layers
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.kernels import Planned, Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array

ROUNDING = 1e-9  # smaller effects, relative to the range of returns, are rounding errors
SHOWN = 3  # table rows that are named if they share a parameter


class UncertainRow(NamedTuple):
    """A row of the tables, or several that share a parameter, and what its uncertainty costs."""

    table: str  # "initial", "transition" or "emission"
    row: str  # in names, such as "broken, repair"
    draws: int  # how often an outcome of the row was seen
    spread: float  # standard deviation of the value, if only this row varies, in the user's units


def uncertain_rows(
    homdp: HOMDP, graph: GraphPolicy, mean: POMDP, tables: Planned, counts: Counts
) -> list[UncertainRow]:
    """The rows whose uncertainty moves the value of a policy most, largest first.

    The effect of a row is computed to first order, at the mean of the posterior.

    Parameters
    ----------
    homdp
        The declaration.
    graph
        The policy.
    mean
        The mean of the posterior.
    tables
        Tables drawn from the posterior, in the form of the declaration.
    counts
        The data.
    """
    slopes, rows = derivatives(homdp, graph, mean), row_map(homdp)
    effects: dict[tuple[str, int], Array] = {}
    names: dict[tuple[str, int], list[str]] = {}
    draws: dict[tuple[str, int], int] = {}
    seen = Tables(
        np.zeros(len(mean.initial)) if counts.initial is None else counts.initial,
        counts.transition,
        counts.emission,
    )
    parts = zip(Tables._fields, tables, slopes, rows.place, seen, strict=False)
    for table, drawn, slope, place, number in parts:
        K = slope.shape[-1]
        moved = (drawn - drawn.mean(0)) * slope  # (D, ..., K)
        flat = moved.reshape(len(moved), -1, K).sum(-1)  # (D, rows)
        owners, n = place.reshape(-1, K).max(-1), np.asarray(number).reshape(-1, K).sum(-1)
        for r in np.flatnonzero(flat.any(0)):
            owner = int(owners[r])
            shared = ("", int(rows.row[owner])) if owner >= 0 else (table, int(r))
            effects[shared] = effects.get(shared, 0.0) + flat[:, r]
            names.setdefault(shared, []).append(f"{table}: {_name(homdp, table, int(r))}")
            draws[shared] = draws.get(shared, 0) + int(n[r])
    scale = float(mean.scale)
    found = [
        UncertainRow(*_split(names[key]), draws[key], scale * float(effect.std(ddof=1)))
        for key, effect in effects.items()
    ]
    least = ROUNDING * scale * mean.horizon
    return sorted((row for row in found if row.spread > least), key=lambda row: -row.spread)


def _split(names: list[str]) -> tuple[str, str]:
    table = names[0].split(": ")[0]
    listed = [name.removeprefix(f"{table}: ") for name in names]
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return table, "; ".join(listed[:SHOWN]) + more


def _name(homdp: HOMDP, table: str, row: int) -> str:
    """The place of a row in names, with its step and previous action if it depends on them."""
    if table == "initial":
        return "first state"
    form, spaces = homdp.form, homdp.spaces
    shape = (form.transition if table == "transition" else form.emission)[:-1]
    index = [int(k) for k in np.unravel_index(row, shape)]
    if table == "transition":
        text, before = spaces.entry(table, index[-2:]), index[:-2]
        return f"{text} at step {before[0] + 1}" if before else text
    text, before = spaces.entry(table, index[-1:]), index[:-1]
    if before and form.answers_action:
        actions = (*spaces.actions, "the start")
        text = f"{text} after {actions[before[-1]]}"
    return f"{text} at step {before[0] + 1}" if form.shows_by_step else text


def derivatives(homdp: HOMDP, graph: GraphPolicy, model: POMDP) -> Tables:
    """The derivatives of the value with respect to the tables, in the form of the declaration.

    Values are for rewards in [0, 1]. Forwards, the probabilities of nodes and states; backwards,
    the alpha-vectors.
    """
    H, (X, _, A) = model.horizon, model.sizes
    by_step = layers(graph, H)
    alphas = alphas_of(graph, model, by_step)
    moves = np.zeros((len(model.transition), X, A, X))
    shows = np.zeros(model.emission.shape)
    places = np.searchsorted(by_step[0], graph.start)  # (Y,)
    first = after_observations(alphas[0], places)  # (Y, X)
    initial = np.einsum("xy,yx->x", model.shows(0), first)
    shows[0, -1] += model.initial[:, None] * first.T
    weights = np.zeros((len(by_step[0]), X))
    np.add.at(weights, places, (model.initial[:, None] * model.shows(0)).T)
    for h in range(H - 1):
        nodes, following = by_step[h], np.zeros((len(by_step[h + 1]), X))
        row, column = min(h + 1, len(shows) - 1), shows.shape[1] - 1
        for a in range(A):
            chance = graph.probabilities[nodes, a]
            taken = np.flatnonzero(chance > 0)
            if not len(taken):
                continue
            flow = weights[taken] * chance[taken, None]  # (n, X)
            successor = graph.successor[nodes[taken], 0 if graph.successor.shape[1] == 1 else a]
            after = np.searchsorted(by_step[h + 1], successor)  # (n, Y)
            later = after_observations(alphas[h + 1], after)  # (n, Y, X)
            seen = model.shows(h + 1, a)
            hoped = np.einsum("nyx,xy->nx", later, seen)
            moves[min(h, len(moves) - 1), :, a] += flow.T @ hoped
            onward = flow @ model.moves(h)[:, a]  # (n, X)
            shows[row, min(a, column)] += np.einsum("nx,nyx->xy", onward, later)
            np.add.at(following, after, onward[:, None] * seen.T)
        weights = following
    return Tables(initial, *homdp.form.short(moves, shows))
