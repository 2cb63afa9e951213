"""The structure of a declaration: which rows are known or conjugate, which entries can be non-zero.

It is found by running the program at a few points of its parameters' support. A row that changes
with no site is known; an entry that is zero at every point is impossible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.form import Form
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.core.spaces import Spaces, kernel_of
from homdp_ppl.declare.conjugacy import find_conjugate
from homdp_ppl.declare.fallbacks import Fallback, find_fallbacks, table_word
from homdp_ppl.declare.kernels import SNAP, Planned, Tables, planned, snap_table
from homdp_ppl.declare.matching import SAME, Masks
from homdp_ppl.declare.nesting import Conjugate
from homdp_ppl.declare.probing import Probe, Prober
from homdp_ppl.precision import Array, to_numpy


class Rows(NamedTuple):
    """One truth value for each row of the tables that planners use."""

    initial: Array  # ()
    transition: Array  # (X, A), or with a step axis
    emission: Array  # (X,), or with axes for the step and the previous action


class Table(NamedTuple):
    """What is certain about a table before any data are seen."""

    support: Array  # which entries can be non-zero
    reference: Array  # the table at one parameter point; its known rows are exact
    known: Array  # rows that changed with no site


class Structure(NamedTuple):
    """What a declaration implies about its tables before any data are seen."""

    tables: Mapping[str, Table]  # by name
    depends: Mapping[str, Masks]  # rows of each table that change with each site
    conjugate: Conjugate
    sizes: Mapping[str, int]  # number of values of each site
    fallbacks: tuple[Fallback, ...]  # unknown rows without a closed form
    pattern: Pattern | None = None  # of sparse transitions; their table has shape (X, A, K)

    @property
    def support(self) -> Tables:
        """Which entries of the planner's tables can be non-zero."""
        return Tables(*(self.tables[name].support for name in Tables._fields))

    @property
    def reference(self) -> Planned:
        """The planner's tables at one parameter point; their known rows are exact."""
        return planned({name: table.reference for name, table in self.tables.items()})

    @property
    def form(self) -> Form:
        """The form of the planner's tables."""
        return self.reference.form._replace(pattern=self.pattern)

    @property
    def known(self) -> Rows:
        """Rows of the planner's tables that changed with no site."""
        return Rows(*(self.tables[name].known for name in Rows._fields))

    def summary(self) -> dict[str, str]:
        """A phrase for each table: the transition rows "T", the emission rows "O", the initial
        distribution, and further tables by their names.
        """
        sources = dict(self.conjugate.sources)
        for name, table in self.tables.items():  # tables whose counts are not sufficient
            if name != "emission":  # the product of sensors
                sources.setdefault(name, np.full(table.support.shape, -1))
        return {table_word(name): self._phrase(name, each) for name, each in sources.items()}

    def reasons(self, spaces: Spaces) -> list[str]:
        """For the rows without a closed form, which they are and why."""
        return [
            f"no closed form for {some.describe(spaces, self.tables[some.table].support.shape)}"
            for some in self.fallbacks
        ]

    def hyperparameters(self) -> list[str]:
        """Sites that affect no row directly: they act through other sites, or not at all."""
        return [
            site
            for site, rows in self.depends.items()
            if not any(np.any(moved) for moved in rows.values())
        ]

    def _phrase(self, name: str, source: Array) -> str:
        known = np.atleast_1d(self.tables[name].known).ravel()
        entries = np.asarray(source).reshape(len(known), -1)
        top = self.conjugate.top
        owners = [tuple(sorted({int(top[e]) for e in row if e >= 0})) for row in entries]
        shared_by = np.bincount([o for row in self._owners() for o in row], minlength=1)
        independent = np.array([len(o) == 1 and shared_by[o[0]] == 1 for o in owners])
        pooled = np.array([len(o) == 1 for o in owners]) & ~independent
        other = ~known & ~independent & ~pooled
        parts = []
        if known.any():
            parts.append("known" if known.all() else f"{known.sum()} of {len(known)} rows known")
        if independent.any():
            parts.append(
                "Dirichlet, conjugate"
                if independent.all()
                else f"{_rows(independent)} Dirichlet, conjugate"
            )
        for mask, conjugate in ((pooled, True), (other, False)):
            if mask.any():
                parts.append(
                    self._shared(name, mask, conjugate, alone=len(parts) == 0 and mask.all())
                )
        return ", ".join(parts)

    def _owners(self) -> list[set[int]]:
        """The Dirichlet rows that each table row uses."""
        tables, top = self.conjugate.sources.values(), self.conjugate.top
        rows = [row for table in tables for row in np.asarray(table).reshape(-1, table.shape[-1])]
        return [{int(top[e]) for e in row if e >= 0} for row in rows]

    def _shared(self, name: str, mask: Array, conjugate: bool, alone: bool) -> str:
        names = [
            site
            for site, rows in self.depends.items()
            if (np.atleast_1d(rows[name]).ravel() & mask).any()
            and (site in self.conjugate.sites) == conjugate
        ]
        numbers = sum(self.sizes[site] for site in names)
        shared = "shared " if mask.sum() > numbers else ""
        text = f"{numbers} {shared}parameter{'s' * (numbers != 1)} ({', '.join(names)})"
        text = f"{text}, conjugate" if conjugate else text
        return text if alone else f"{_rows(mask)} from {text}"


def _rows(mask: Array) -> str:
    return f"{mask.sum()} row{'s' * int(mask.sum() != 1)}"


def analyse(prober: Prober, start: Probe, densities: Collection[str] = ()) -> Structure:
    """Find the structure of a program.

    Parameters
    ----------
    prober
        The program.
    start
        Its results when all sites change.
    densities
        Names of tables whose rows describe a density: counts are not sufficient for them.
    """
    support = {name: _possible(table) for name, table in start.tables.items()}
    still = _moved_rows(start, start)
    depends = {site.name: still for site in prober.sites}
    for site in prober.sites:
        for probe in prober.move(start.parameters, [site.name]):
            moved = _moved_rows(start, probe)
            depends[site.name] = {
                name: rows | moved[name] for name, rows in depends[site.name].items()
            }
            support = {name: old | _possible(probe.tables[name]) for name, old in support.items()}
    tables = {
        name: Table(
            support[name],
            to_numpy(table[0] if name in densities else snap_table(table[0])),
            ~np.any([still[name], *(rows[name] for rows in depends.values())], axis=0),
        )
        for name, table in start.tables.items()
    }
    sizes = {site.name: int(np.prod(site.shape, dtype=int)) for site in prober.sites}
    counted = [name for name in _counted(tables) if name not in densities]
    # the product of sensors says nothing that their tables do not
    single = {
        site: {name: moved for name, moved in rows.items() if name in (*counted, *densities)}
        for site, rows in depends.items()
    }
    conjugate, matched = find_conjugate(prober, start, single, counted)
    fallbacks = find_fallbacks(start, single, conjugate, matched, densities)
    return Structure(tables, depends, conjugate, sizes, fallbacks)


def _counted(tables: Mapping[str, Table]) -> tuple[str, ...]:
    """The tables whose counts are sufficient: those of single sensors instead of their product."""
    sensors = [name for name in tables if kernel_of(name) == "emission" and name != "emission"]
    first = ("transition", *(sensors or ["emission"]), "initial")
    return (*first, *(name for name in tables if name not in (*first, "emission")))


def _possible(table: Array) -> Array:
    return np.any(table > SNAP, axis=0)


def _moved_rows(before: Probe, after: Probe) -> Masks:
    return {
        name: np.any(np.abs(table - after.tables[name]) > SAME, axis=(0, -1))
        for name, table in before.tables.items()
    }
