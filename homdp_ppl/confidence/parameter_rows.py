"""Parameter rows: the unknown categorical distributions of a declaration.

One parameter that is used in many rows of the tables is one parameter row, with pooled counts. For
example, the accuracy of the tiger problem is one row with two outcomes, although it is in two rows
of the emission table. A table row that depends on sites without a closed form is a parameter row of
its own, on its support. If a table row shows sums of the outcomes of a Dirichlet row, the sums are
the outcomes of a parameter row, shared by all table rows with the same sums. Confidence sets are
for parameter rows; tables are views of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.rows import first_states, unknown_rows
from homdp_ppl.core.counts import Counts
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array, namespace


class RowMap(NamedTuple):
    """The unknown parameter rows of a declaration, and the table entries that are made of them.

    All rows are in one vector with M entries. A table entry with place i >= 0 is ``mass`` times the
    i-th entry; the others are ``fixed``.
    """

    row: Array  # (M,)  the parameter row of each entry, from 0
    outcomes: Array  # (M,)  the number of outcomes of that row
    prior: Array  # (M,)  declared Dirichlet concentration, NaN if there is none
    place: Tables  # of each table entry in the vector, -1 if it is known
    fixed: Tables  # the known entries of the tables, 0 elsewhere
    mass: Tables  # (..., 1)  the probability of the unknown entries of each table row

    @property
    def intervals(self) -> int:
        """The number of intervals of all rows: one for two outcomes, d for d > 2."""
        sizes = np.bincount(self.row)
        return int(np.where(sizes == 2, 1, sizes).sum())

    def pooled(self, counts: Counts) -> Array:
        """How often each outcome of each row was seen, (M,); can be traced."""
        xp = namespace(counts)
        seen = Tables(first_states(counts), counts.transition, counts.emission)
        places = np.concatenate([place.ravel() for place in self.place])
        numbers = xp.concatenate([part.reshape(-1) for part in seen])
        unknown = np.flatnonzero(places >= 0)
        return self._sums(places[unknown], numbers[unknown], len(self.row))

    def visits(self, pooled: Array) -> Array:
        """The number of draws of the row of each entry, (M,)."""
        rows = int(self.row.max(initial=-1)) + 1
        return self._sums(self.row, pooled, rows)[self.row]

    def tables(self, entries: Array, known: bool = True) -> Tables:
        """Tables made of entries, (M,); known entries are ``fixed``, or 0 if not ``known``."""
        xp = namespace(entries)
        if not len(self.row):
            return self.fixed if known else Tables(*map(np.zeros_like, self.fixed))
        return Tables(
            *(
                xp.where(place >= 0, mass * entries[place], fixed if known else 0.0)
                for place, fixed, mass in zip(self.place, self.fixed, self.mass, strict=True)
            )
        )

    @staticmethod
    def _sums(label: Array, numbers: Array, groups: int) -> Array:
        xp = namespace(numbers)
        if xp is np:
            return np.bincount(label, weights=numbers, minlength=groups)
        return xp.zeros(groups).at[label].add(numbers)


def row_map(homdp: HOMDP, known: bool = True) -> RowMap:
    """The parameter rows of a declaration, cached.

    Parameters
    ----------
    homdp
        The declaration, with finite spaces.
    known
        Whether the declared structure is used. Otherwise every row of T and O is a parameter row on
        its full support. Rows of terminal states stay known, and only they show that the episode
        has ended. The initial distribution is unknown only if it depends on a site.
    """
    name = "parameter rows", known, homdp.horizon
    return homdp.cache.get(name, lambda: _row_map(homdp, known))


def _row_map(homdp: HOMDP, known: bool) -> RowMap:
    conjugate, reference = homdp.structure.conjugate, homdp.structure.reference
    first: dict[tuple[int, ...], int] = {}  # the first entry of the row with these outcomes
    sizes: list[int] = []  # of the rows
    prior: list[float] = []
    places = []
    for name, unknown, support in zip(
        Tables._fields, _unknown(homdp, known), _support(homdp, known), strict=True
    ):
        place = np.full(support.shape, -1)
        declared = known or name == "initial"
        source = conjugate.sources.get(name, place) if declared else place
        for r in zip(*np.nonzero(np.atleast_1d(unknown)), strict=True):
            index = r if unknown.ndim else ()
            nodes = np.unique(source[index][source[index] >= 0])  # outcomes, or sums of them
            columns = np.flatnonzero(source[index] >= 0 if len(nodes) else support[index])
            key = tuple(nodes.tolist()) or (-1, len(prior))  # or a row of its own
            if key not in first:
                first[key] = len(prior)
                sizes.append(len(columns))
                prior += conjugate.concentration[nodes].tolist() or [np.nan] * len(columns)
            within = np.arange(len(columns))
            if len(nodes):
                within = np.searchsorted(nodes, source[index][columns])
            place[(*index, columns)] = first[key] + within
        places.append(place)
    row, tables = np.repeat(np.arange(len(sizes)), sizes), Tables(*places)
    parts = list(zip(tables, reference[:3], strict=True))
    return RowMap(
        row,
        np.repeat(sizes, sizes).astype(int),
        np.asarray(prior),
        tables,
        Tables(*(np.where(each >= 0, 0.0, table) for each, table in parts)),
        Tables(*(np.where(each >= 0, table, 0.0).sum(-1, keepdims=True) for each, table in parts)),
    )


def _unknown(homdp: HOMDP, known: bool) -> Tables:
    """The rows with confidence sets: unknown, of more than one outcome, with effect on values."""
    initial, moves, shows = unknown_rows(homdp, known)
    moves, shows = np.array(moves), np.array(shows)
    if homdp.form.moves_by_step or homdp.horizon == 1:
        moves[-1 if homdp.form.moves_by_step else slice(None)] = False  # no value after step H
    ends = homdp.spaces.ends
    moves[..., ends, :] = False
    shows[..., ends] = False
    several = (part.sum(-1) > 1 for part in _support(homdp, known))
    masks = zip((initial, moves, shows), several, strict=True)
    return Tables(*(mask & many for mask, many in masks))


def _support(homdp: HOMDP, known: bool) -> Tables:
    """The possible outcomes of each row."""
    support = homdp.structure.support
    if known:
        return support
    shows, ends = np.ones_like(support.emission), homdp.spaces.ends
    if ends.any():
        shows[..., -1] = False
    moves = np.ones_like(support.transition)
    return Tables(support.initial, moves, shows)
