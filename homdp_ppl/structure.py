"""What a declared program reveals about itself: which rows are known, which are conjugate, which entries can be non-zero.

Everything is found by running the program at a few points of its parameters' support: a row that moves with no site is known, an
entry that is zero at every point is impossible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from homdp_ppl.conjugacy import SAME, Conjugate, Rows, find_conjugate
from homdp_ppl.kernels import Tables
from homdp_ppl.precision import Array
from homdp_ppl.probing import Probe, Prober

SNAP = 1e-15  # Bernoulli(1.) tabulates to 2e-16: what never exceeds this is an impossible entry


class Structure(NamedTuple):
    """What is known of a declaration before any data are seen."""

    support: Tables  # which entries can be non-zero
    known: Rows  # rows that depend on no unknown site
    depends: Mapping[str, Rows]  # rows that move with each site
    conjugate: Conjugate

    def summary(self) -> dict[str, str]:
        """One phrase for the transition rows "T", the emission rows "O" and the initial distribution."""
        places = {"T": "transition", "O": "emission"}
        return {
            **{letter: self._phrase(name, getattr(self.conjugate, name)) for letter, name in places.items()},
            "initial": self._phrase("initial", np.full(np.shape(self.support.initial), -1)),
        }

    def _phrase(self, name: str, source: Array) -> str:
        known = np.atleast_1d(getattr(self.known, name)).ravel()
        entries = np.asarray(source).reshape(len(known), -1)
        owners = [tuple(sorted({int(self.conjugate.row[e]) for e in row if e >= 0})) for row in entries]
        shared_by = np.bincount([o for row in self._owners() for o in row], minlength=1)
        independent = np.array([len(o) == 1 and shared_by[o[0]] == 1 for o in owners])
        pooled = np.array([len(o) == 1 for o in owners]) & ~independent
        other = ~known & ~independent & ~pooled
        parts = []
        if known.any():
            parts.append("known" if known.all() else f"{known.sum()} of {len(known)} rows known")
        if independent.any():
            parts.append("Dirichlet, conjugate" if independent.all() else f"{_rows(independent)} Dirichlet, conjugate")
        for mask, conjugate in ((pooled, True), (other, False)):
            if mask.any():
                parts.append(self._shared(name, mask, conjugate, alone=len(parts) == 0 and mask.all()))
        return ", ".join(parts)

    def _owners(self) -> list[set[int]]:
        """The Dirichlet rows behind every table row."""
        tables = (self.conjugate.transition, self.conjugate.emission)
        rows = [row for table in tables for row in np.asarray(table).reshape(-1, table.shape[-1])]
        return [{int(self.conjugate.row[e]) for e in row if e >= 0} for row in rows]

    def _shared(self, name: str, mask: Array, conjugate: bool, alone: bool) -> str:
        names = [
            site
            for site, rows in self.depends.items()
            if (np.atleast_1d(getattr(rows, name)).ravel() & mask).any() and (site in self.conjugate.sites) == conjugate
        ]
        plural = "s" if len(names) > 1 else ""
        text = f"{len(names)} shared parameter{plural} ({', '.join(names)})"
        text = f"{text}, conjugate" if conjugate else text
        return text if alone else f"{_rows(mask)} from {text}"


def _rows(mask: Array) -> str:
    return f"{mask.sum()} row{'s' * int(mask.sum() != 1)}"


def analyse(prober: Prober, base: dict[str, Array], start: Probe) -> Structure:
    """The structure of a program.

    Parameters
    ----------
    prober
        The program.
    base, start
        Coordinates of all sites, and what the program shows there.
    """
    moved = {site.name: prober(base | prober.points(site.name)) for site in prober.sites}
    support = Tables(*(_possible(name, [start, *moved.values()]) for name in Tables._fields))
    depends = {site: _moved_rows(start, probe) for site, probe in moved.items()}
    still = _moved_rows(start, start)
    known = Rows(*(~np.any([still[k], *(rows[k] for rows in depends.values())], axis=0) for k in range(3)))
    return Structure(support, known, depends, find_conjugate(prober, base, start, depends))


def _possible(name: str, probes: list[Probe]) -> Array:
    return np.any([(probe.tables[name] > SNAP).any(0) for probe in probes], axis=0)


def _moved_rows(before: Probe, after: Probe) -> Rows:
    return Rows(*(np.any(np.abs(before.tables[n] - after.tables[n]) > SAME, axis=(0, -1)) for n in Rows._fields))
