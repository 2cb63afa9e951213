"""The structure of a declaration: which rows are known or conjugate, which entries can be non-zero.

It is found by running the program at a few points of its parameters' support. A row that changes
with no site is known; an entry that is zero at every point is impossible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from homdp_ppl.declare.conjugacy import SAME, Conjugate, Rows, find_conjugate
from homdp_ppl.declare.kernels import SNAP, Tables, snap
from homdp_ppl.declare.probing import Probe, Prober
from homdp_ppl.precision import Array, to_numpy


class Structure(NamedTuple):
    """What a declaration implies about its tables before any data are seen."""

    support: Tables  # which entries can be non-zero
    reference: Tables  # the tables at one parameter point; their known rows are exact
    known: Rows  # rows that changed with no site
    depends: Mapping[str, Rows]  # rows that change with each site
    conjugate: Conjugate
    sizes: Mapping[str, int]  # number of values of each site

    def summary(self) -> dict[str, str]:
        """A phrase each for the transition rows "T", the emission rows "O" and the initial
        distribution.
        """
        places = {"T": "transition", "O": "emission", "initial": "initial"}
        return {
            word: self._phrase(name, getattr(self.conjugate, name)) for word, name in places.items()
        }

    def hyperparameters(self) -> list[str]:
        """Sites that affect no row directly: they act through other sites, or not at all."""
        return [
            site for site, rows in self.depends.items() if not any(np.any(moved) for moved in rows)
        ]

    def _phrase(self, name: str, source: Array) -> str:
        known = np.atleast_1d(getattr(self.known, name)).ravel()
        entries = np.asarray(source).reshape(len(known), -1)
        owners = [
            tuple(sorted({int(self.conjugate.row[e]) for e in row if e >= 0})) for row in entries
        ]
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
        tables = (self.conjugate.transition, self.conjugate.emission, self.conjugate.initial)
        rows = [row for table in tables for row in np.asarray(table).reshape(-1, table.shape[-1])]
        return [{int(self.conjugate.row[e]) for e in row if e >= 0} for row in rows]

    def _shared(self, name: str, mask: Array, conjugate: bool, alone: bool) -> str:
        names = [
            site
            for site, rows in self.depends.items()
            if (np.atleast_1d(getattr(rows, name)).ravel() & mask).any()
            and (site in self.conjugate.sites) == conjugate
        ]
        numbers = sum(self.sizes[site] for site in names)
        shared = "shared " if mask.sum() > numbers else ""
        text = f"{numbers} {shared}parameter{'s' * (numbers != 1)} ({', '.join(names)})"
        text = f"{text}, conjugate" if conjugate else text
        return text if alone else f"{_rows(mask)} from {text}"


def _rows(mask: Array) -> str:
    return f"{mask.sum()} row{'s' * int(mask.sum() != 1)}"


def analyse(prober: Prober, start: Probe) -> Structure:
    """Find the structure of a program.

    Parameters
    ----------
    prober
        The program.
    start
        Its results when all sites change.
    """
    support = Tables(*(_possible(start.tables[name]) for name in Tables._fields))
    still = _moved_rows(start, start)
    depends = {site.name: still for site in prober.sites}
    for site in prober.sites:
        for probe in prober.move(start.parameters, [site.name]):
            depends[site.name] = Rows(
                *map(np.logical_or, depends[site.name], _moved_rows(start, probe))
            )
            support = Tables(
                *(
                    old | _possible(probe.tables[n])
                    for n, old in zip(Tables._fields, support, strict=True)
                )
            )
    known = Rows(
        *(~np.any([still[k], *(rows[k] for rows in depends.values())], axis=0) for k in range(3))
    )
    sizes = {site.name: int(np.prod(site.shape, dtype=int)) for site in prober.sites}
    reference = to_numpy(snap(Tables(*(start.tables[name][0] for name in Tables._fields))))
    return Structure(
        support, reference, known, depends, find_conjugate(prober, start, depends), sizes
    )


def _possible(table: Array) -> Array:
    return np.any(table > SNAP, axis=0)


def _moved_rows(before: Probe, after: Probe) -> Rows:
    return Rows(
        *(
            np.any(np.abs(before.tables[n] - after.tables[n]) > SAME, axis=(0, -1))
            for n in Rows._fields
        )
    )
