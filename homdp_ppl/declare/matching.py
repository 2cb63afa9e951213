"""Find the Dirichlet rows of a program's sites in its tables.

Every table entry that changes with a site must equal an outcome of a Dirichlet row (or b and 1 - b
of a Beta) or a sum of outcomes, up to the constant mass that the known entries of the row leave.
The entries of a table row must contain each outcome of one Dirichlet row exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.declare.nesting import Conjugate, Tree, is_nested, nest
from homdp_ppl.declare.probing import POINTS, Probe
from homdp_ppl.precision import Array

SAME = 1e-12  # two probabilities closer than this are equal
SOLVED = 1e-6  # largest error of the coefficients 0 and 1 of a sum before they are rounded

Masks: TypeAlias = Mapping[str, Array]  # one truth value for each row of the named tables
Sums: TypeAlias = dict[int, dict[int, frozenset[int]]]  # of table rows, by column


class Outcomes(NamedTuple):
    """The outcomes of the Dirichlet rows of some sites."""

    values: Array  # (POINTS, M)
    row: Array  # (M,)  the Dirichlet row of each outcome
    site: Array  # (M,)  its site
    lengths: tuple[int, ...]  # number of outcomes of each site
    order: Array  # (M,)  outcomes sorted by their value at the first point
    ranked: Array  # (POINTS, M)  values in this order


class Matched(NamedTuple):
    """The result of matching, before it is certified."""

    conjugate: Conjugate
    fitting: Masks  # rows that are made of a Dirichlet row
    overlapping: Masks  # those whose sums overlap with other sums without nesting


def match(start: Probe, depends: Mapping[str, Masks], tables: Sequence[str]) -> Matched:
    """Find every changing table entry among the outcomes and sums of the Dirichlet sites."""
    candidates = [
        name
        for name, alpha in start.concentrations.items()
        if is_constant(alpha)
        and any(np.any(moved) for moved in depends[name].values())
        and not any(np.any(rows) for table, rows in depends[name].items() if table not in tables)
    ]
    fitting = {name: np.zeros(start.tables[name].shape[1:-1], dtype=bool) for name in tables}
    overlapping = {name: rows.copy() for name, rows in fitting.items()}
    while candidates:
        outcomes = _outcomes(start, candidates)
        sources, sums = {}, {}
        for name in tables:
            only = _only_site(depends, candidates, name)
            sources[name], sums[name] = _match_table(start.tables[name], outcomes, only)
        tree = nest(outcomes.row, _nested_sums(outcomes, sums))
        for name in tables:
            placed, lost = _place(sources[name], sums[name], tree)
            fitting[name] |= (placed >= 0).any(-1) | lost
            overlapping[name] |= lost
            sources[name] = placed
        site_of = np.append(outcomes.site, [outcomes.site[min(some)] for some in tree.node])
        spoiled = _spoiled(candidates, sources, site_of.astype(int), depends)
        if not spoiled:
            alpha = np.concatenate([start.concentrations[n][0].ravel() for n in candidates])
            added = [alpha[sorted(some)].sum() for some in tree.node]
            conjugate = Conjugate(
                tuple(candidates),
                outcomes.lengths,
                np.append(alpha, added),
                tree.row,
                tree.parent,
                sources,
            )
            return Matched(conjugate, fitting, overlapping)
        candidates = [name for name in candidates if name not in spoiled]
    return Matched(nothing(start, tables), fitting, overlapping)


def nothing(start: Probe, tables: Sequence[str]) -> Conjugate:
    """The closed form of a program in which no row has one."""
    nowhere = {name: np.full(start.tables[name].shape[1:], -1) for name in tables}
    none = np.zeros(0, dtype=int)
    return Conjugate((), (), np.zeros(0), none, none, nowhere)


def is_constant(concentrations: Array) -> bool:
    """Whether the parameters of a prior are the same at all points."""
    return bool(np.ptp(concentrations, axis=0).max(initial=0.0) == 0)


def _outcomes(start: Probe, sites: Sequence[str]) -> Outcomes:
    values = np.concatenate([start.rows[n].reshape(POINTS, -1) for n in sites], axis=1)
    widths = [start.rows[n].shape[-1] for n in sites]
    lengths = tuple(start.rows[n][0].size for n in sites)
    sizes = [w for w, n in zip(widths, lengths, strict=True) for _ in range(n // w)]
    row = np.repeat(np.arange(len(sizes)), sizes)
    site = np.repeat(np.arange(len(sites)), lengths)
    order = np.argsort(values[0])
    return Outcomes(values, row, site, lengths, order, values[:, order])


def _only_site(depends: Mapping[str, Masks], candidates: Sequence[str], name: str) -> Array:
    """The candidate that changes each row of a table, flat; -1 if there is none or another site
    changes the row too.
    """
    number = sum(np.ravel(moved[name]).astype(int) for moved in depends.values())
    only = np.full(np.size(number), -1)
    for k, site in enumerate(candidates):
        only[np.ravel(depends[site][name]) & (number == 1)] = k
    return only


def _spoiled(
    candidates: Sequence[str],
    sources: Mapping[str, Array],
    site_of: Array,
    depends: Mapping[str, Masks],
) -> set[str]:
    """Candidates that change a row without being its only source."""
    return {
        name
        for k, name in enumerate(candidates)
        for place, source in sources.items()
        if (depends[name][place] & ~_comes_from(source, site_of, k)).any()
        or any(
            (depends[other][place] & _comes_from(source, site_of, k)).any()
            for other in depends
            if other != name
        )
    }


def _comes_from(source: Array, site_of: Array, site: int) -> Array:
    """Rows whose changing entries all come from one site."""
    owner = np.where(source >= 0, site_of[source], -1)
    return np.any(source >= 0, axis=-1) & np.where(source >= 0, owner == site, True).all(-1)


def _match_table(table: Array, outcomes: Outcomes, only: Array) -> tuple[Array, Sums]:
    """For each table entry the outcome that it equals, up to a constant factor of the row, and the
    sums of the rows with an entry that is a sum of outcomes.

    The outcome is -1 if there is none.
    """
    flat = table.reshape(POINTS, -1, table.shape[-1])  # (POINTS, rows, d)
    moving = np.ptp(flat, axis=0) > SAME
    mass = np.where(moving, flat, 0).sum(-1)  # of the moving part; constant when the rest is known
    source = np.full(flat.shape[1:], -1)
    sums: Sums = {}
    steady = moving.any(-1) & (np.ptp(mass, axis=0) <= SAME)
    row, column = np.nonzero(moving & steady[:, None])
    wanted = flat[:, row, column] / mass[:, row]
    found = _look_up(outcomes, wanted)
    whole = _whole_rows(row, found, outcomes, len(source))
    entries = whole[row]
    source[row[entries], column[entries]] = found[entries]
    ends = np.searchsorted(row, np.arange(len(source) + 1))
    for r in np.flatnonzero(steady & ~whole & (only >= 0)):
        here = slice(ends[r], ends[r + 1])
        parts = _find_sums(wanted[:, here], found[here], outcomes, int(only[r]))
        if parts is not None:
            sums[int(r)] = dict(zip(column[here].tolist(), parts, strict=True))
    return source.reshape(table.shape[1:]), sums


def _whole_rows(row: Array, found: Array, outcomes: Outcomes, rows: int) -> Array:
    """Which table rows have each outcome of one Dirichlet row exactly once.

    Parameters
    ----------
    row
        The table row of each changing entry, in order.
    found
        The outcome that it equals, -1 if there is none.
    outcomes
        All outcomes.
    rows
        The number of table rows.
    """
    number = np.bincount(row, minlength=rows)
    distinct = np.unique(np.stack([row, found]), axis=1)[0]
    owner = np.where(found >= 0, outcomes.row[found], -1)
    first = np.full(rows, -1)
    first[row[::-1]] = owner[::-1]
    same = np.bincount(row[owner == first[row]], minlength=rows)
    size = np.append(np.bincount(outcomes.row), 0)[first]
    once = np.bincount(distinct, minlength=rows) == number
    whole: Array = (first >= 0) & (same == number) & (size == number) & once
    return whole


def _look_up(outcomes: Outcomes, wanted: Array) -> Array:
    """The outcome that equals each wanted entry at every point, -1 if there is none."""
    ranked = outcomes.ranked
    position = np.searchsorted(ranked[0], wanted[0])
    found = np.full(wanted.shape[1], -1)
    for shift in (-1, 0, 1):
        near = np.clip(position + shift, 0, ranked.shape[1] - 1)
        equal = np.all(np.abs(ranked[:, near] - wanted) <= SAME * 10, axis=0)
        found = np.where(equal, outcomes.order[near], found)
    return found


def _find_sums(
    wanted: Array, found: Array, outcomes: Outcomes, site: int
) -> list[frozenset[int]] | None:
    """The outcomes of one Dirichlet row that add up to each wanted entry, if there are any.

    The coefficients 0 and 1 of the sums are the solution of a linear system with one equation per
    point. So at most ``POINTS`` outcomes can be parts of sums of two or more.

    Parameters
    ----------
    wanted
        The entries of a table row, (POINTS, J).
    found
        The outcomes that they equal, -1 if there is none.
    outcomes
        All outcomes.
    site
        The site to search.
    """
    single = found[found >= 0]
    rows = np.unique(outcomes.row[single] if len(single) else outcomes.row[outcomes.site == site])
    if len(single) and len(rows) > 1:
        return None
    for row in rows:
        left = np.setdiff1d(np.flatnonzero(outcomes.row == row), single)
        if not len(wanted[0]) - len(single) < len(left) <= POINTS:
            continue
        parts, target = outcomes.values[:, left], wanted[:, found < 0]
        if (target.max(-1) < parts.max(-1) - SAME).any() or (
            target.min(-1) < parts.min(-1) - SAME
        ).any():
            continue  # a sum is at least as large as its parts
        weights = np.linalg.lstsq(parts, target, rcond=None)[0]
        whole = np.round(weights)
        valid = np.isin(whole, (0, 1)).all() and (whole.sum(-1) == 1).all()
        if (
            valid
            and np.abs(weights - whole).max() <= SOLVED
            and np.abs(parts @ whole - target).max() <= SAME * 10
        ):
            sums = iter(frozenset(left[column > 0].tolist()) for column in whole.T)
            return [frozenset([int(one)]) if one >= 0 else next(sums) for one in found]
    return None


def _nested_sums(outcomes: Outcomes, sums: Mapping[str, Sums]) -> list[frozenset[int]]:
    """The sums of two or more outcomes, except those of Dirichlet rows in which sums overlap."""
    families: dict[int, set[frozenset[int]]] = {}
    for rows in sums.values():
        for parts in rows.values():
            for some in parts.values():
                if len(some) > 1:
                    families.setdefault(int(outcomes.row[min(some)]), set()).add(some)
    return [some for family in families.values() if is_nested(family) for some in family]


def _place(source: Array, sums: Sums, tree: Tree) -> tuple[Array, Array]:
    """The node of each table entry, and the rows whose sums are not in the tree."""
    placed = source.reshape(-1, source.shape[-1]).copy()
    lost = np.zeros(len(placed), dtype=bool)
    for r, parts in sums.items():
        nodes = {
            column: tree.node.get(some, -1) if len(some) > 1 else min(some)
            for column, some in parts.items()
        }
        lost[r] = -1 in nodes.values()
        if not lost[r]:
            placed[r, list(nodes)] = list(nodes.values())
    return placed.reshape(source.shape), lost.reshape(source.shape[:-1])
