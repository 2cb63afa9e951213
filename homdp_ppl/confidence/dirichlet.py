"""Radii of Dirichlet rows in closed form, nested or not: quantiles, and bounds without draws.

A table row shows a cut of the tree of its Dirichlet row: outcomes, or sums of outcomes (see
:mod:`homdp_ppl.declare.nesting`). Its radius bounds the distance of this cut from its mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.confidence.backups import upper_quantile
from homdp_ppl.confidence.inequalities import weissman
from homdp_ppl.confidence.radii import Radii
from homdp_ppl.errors import InferenceError
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.posteriors.dirichlet import ClosedForm
from homdp_ppl.precision import Array, namespace

DRAWS = 10  # a row's quantile uses DRAWS / level draws
COPIES = 3  # of the draws of a row
ROWS = ("transition", "emission", "initial")  # tables whose rows have L1 radii


class Cuts(NamedTuple):
    """The different cuts of a declaration's Dirichlet rows that its table rows show."""

    nodes: tuple[Array, ...]  # of each cut
    branchings: tuple[Array, ...]  # above each cut
    of: Mapping[str, Array]  # the cut of each row of the named tables; 0 without a closed form


def cuts_of(form: ClosedForm) -> Cuts:
    """The cuts of a closed form, cached."""
    return form.homdp.cache.get("cuts", lambda: _find_cuts(form))


def _find_cuts(form: ClosedForm) -> Cuts:
    number: dict[bytes, int] = {}
    nodes: list[Array] = []
    of = {}
    for name, source in form.conjugate.sources.items():
        flat = np.sort(source.reshape(-1, source.shape[-1]), axis=-1)
        chosen = np.zeros(len(flat), dtype=int)
        for r in np.flatnonzero(flat[:, -1] >= 0):
            cut = flat[r][flat[r] >= 0]
            chosen[r] = number.setdefault(cut.tobytes(), len(nodes))
            if chosen[r] == len(nodes):
                nodes.append(cut)
        of[name] = chosen.reshape(source.shape[:-1])
    row = np.append(form.conjugate.row, -1)
    above = [np.unique(row[form.paths[cut]]) for cut in nodes]
    return Cuts(tuple(nodes), tuple(rows[rows >= 0] for rows in above), of)


def quantiles(
    form: ClosedForm,
    concentration: Array,
    key: Array,
    level: float,
    kept: tuple[Array, Radii] | None,
) -> Radii:
    """Quantiles of ||p - mean||_1 for closed forms, times the mass of the row.

    Each branching has its own draws. Rows with the same cut have the same quantile. Products of
    several sensors have 0.

    Parameters
    ----------
    form, concentration
        The closed form and its parameters.
    key
        A JAX random key.
    level
        Allowed posterior probability of error of a row.
    kept
        Earlier parameters with their radii. Rows without new data keep their radii.
    """
    S = ceil(DRAWS / level)
    seed, cuts = np.asarray(jax.random.key_data(key)), cuts_of(form)
    width = max(map(len, cuts.nodes))
    got = f"{count(S)} draws of {width} numbers for a quantile at level {level:g}"
    needed = COPIES * NUMBER * S * width
    remedy = "Use a larger delta, or dirichlet_radii, which needs no draws (in rules: bound=True)."
    require_memory(InferenceError, "quantiles", "delta", got, needed, remedy)
    radius = np.zeros(len(cuts.nodes))
    stale = stale_cuts(form, concentration, kept)
    for k in np.flatnonzero(stale):
        p, mean = draw_cut(form, int(k), concentration, S, seed)
        radius[k] = upper_quantile(np.abs(p - mean).sum(-1), 1 - level)
    tables: list[Array] = []
    for name in ROWS:
        if name not in cuts.of:  # the product of several sensors
            tables.append(np.zeros(form.rows[name].shape))
            continue
        owner = cuts.of[name]
        fresh = form.mass(name) * radius[owner]
        tables.append(
            fresh
            if kept is None or not len(kept[0])
            else np.where(stale[owner], fresh, getattr(kept[1], name))
        )
    return Radii(*tables)


def stale_cuts(form: ClosedForm, concentration: Array, kept: tuple[Array, Radii] | None) -> Array:
    """Which cuts have new data since the radii that are kept."""
    branchings = cuts_of(form).branchings
    if kept is None or not len(kept[0]):
        return np.ones(len(branchings), dtype=bool)
    changed = np.bincount(form.conjugate.row, weights=kept[0] != concentration) > 0
    return np.array([changed[rows].any() for rows in branchings])


def bounds(form: ClosedForm, concentration: Array, level: float) -> Mapping[str, Array]:
    """Upper bounds on the quantiles of ||p - mean||_1, times the mass, by table; may be traced.

    In one branching with d children, Weissman's argument with the constant of Marchal and Arbel
    gives sqrt(2 log((2^d - 2) / level) / (alpha_0 + 1)). In a tree, let q_S be the shares of the
    children of a node S. Then ||p - mean||_1 <= sum over S of mean(S) ||q_S - mean||_1, because
    |P(S) q - m(S) m| <= |P(S) - m(S)| q + m(S) |q - m|. Each of the branchings has an equal part
    of the level.
    """
    cuts, radii = cuts_of(form), cut_bounds(form, concentration, level)
    return {name: form.mass(name) * radii[cut] for name, cut in cuts.of.items()}


def cut_bounds(form: ClosedForm, concentration: Array, level: float) -> Array:
    """The bound of each cut, and a last 0; may be traced."""
    xp, conjugate = namespace(concentration), form.conjugate
    cuts = cuts_of(form)
    children = np.bincount(conjugate.row)
    first = np.unique(conjugate.row, return_index=True)[1]  # child of each branching
    number = np.array([len(rows) for rows in cuts.branchings], dtype=int)
    total: Array = xp.zeros(len(number))
    for k in range(number.max(initial=0)):  # the k-th branching of every cut that has one
        rows = np.array([rows[min(k, len(rows) - 1)] for rows in cuts.branchings])
        parent = conjugate.parent[first[rows]]
        weight = xp.where(parent < 0, 1.0, form.means(concentration)[parent])
        strength = form.totals(concentration)[first[rows]] + 1
        radius = weissman(strength, children[rows], level / number)
        total = total + xp.where(k < number, weight * radius, 0.0)
    return xp.append(xp.minimum(total, 2.0), 0.0)


def draw_cut(
    form: ClosedForm, number: int, concentration: Array, n: int, seed: Array
) -> tuple[Array, Array]:
    """Draws of the probabilities of the nodes of a cut, (n, nodes), and their means.

    Draws of a branching are the same in all cuts.
    """
    cuts = cuts_of(form)
    row, nodes = form.conjugate.row, cuts.nodes[number]
    members = [np.flatnonzero(row == r) for r in cuts.branchings[number]]
    shares, means = [], []
    for r, some in zip(cuts.branchings[number], members, strict=True):
        alpha = concentration[some]
        shares.append(np.random.default_rng([*seed, r]).dirichlet(alpha, n))
        means.append(alpha / alpha.sum())
    if len(members) == 1:
        return shares[0], means[0]
    share, mean = np.concatenate(shares, axis=1), np.concatenate(means)
    place = np.full(len(row) + 1, share.shape[1])
    place[np.concatenate(members)] = np.arange(share.shape[1])
    above = place[form.paths[nodes]]  # a place past the end is padding
    return np.append(share, np.ones((n, 1)), axis=1)[:, above].prod(-1), np.append(mean, 1.0)[
        above
    ].prod(-1)
