"""Find sites with closed-form posteriors: Dirichlet rows that the data update by addition.

There are two steps. Matching: every table entry that changes with a site must equal an entry of a
Dirichlet row (or b and 1 - b of a Beta), up to the constant mass that the known entries of the row
leave. Certificate: log prior + log likelihood - log claimed posterior must not change when those
sites change, also at other values of the remaining sites. Rejecting a site is safe, because NUTS
samples it then; accepting one requires the certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from homdp_ppl.declare.probing import POINTS, Probe, Prober
from homdp_ppl.precision import Array

SAME = 1e-12  # two probabilities closer than this are equal
CERTIFICATE = 1e-8  # largest relative spread of a quantity that must be constant
TABLES = ("transition", "emission", "initial")
ROUNDS = 4  # values of the claimed sites to try with every value of the other sites


class Rows(NamedTuple):
    """One truth value for each row of the tables."""

    initial: Array  # ()
    transition: Array  # (X, A), or with a step axis
    emission: Array  # (X,), or with axes for the step and the previous action


class Conjugate(NamedTuple):
    """The Dirichlet rows with a closed-form posterior; one vector of length M has all entries.

    The posterior concentration is ``concentration`` plus the counts of the table entries that refer
    to each place.
    """

    sites: tuple[str, ...]
    lengths: tuple[
        int, ...
    ]  # number of entries of each site; a Beta has two for each of its values
    concentration: Array  # (M,)       prior
    row: Array  # (M,)       which Dirichlet row an entry belongs to
    transition: Array  # place of each entry of the transition table in the vector, -1 for none
    emission: Array  # the same for the emission table
    initial: Array  # (X,)       the same for the initial distribution


def find_conjugate(prober: Prober, start: Probe, depends: Mapping[str, Rows]) -> Conjugate:
    """Find the sites of a program with a closed-form posterior: matching, then certificate.

    Parameters
    ----------
    prober
        The program.
    start
        Its results when all sites change.
    depends
        The rows that change with each site.
    """
    claimed = _match(start, depends)
    if claimed.sites and not (
        _certified(prober, start, claimed) and _separate(prober, start, claimed)
    ):
        return _nothing(start)
    return claimed


def _nothing(start: Probe) -> Conjugate:
    nowhere = (np.full(start.tables[name].shape[1:], -1) for name in TABLES)
    return Conjugate((), (), np.zeros(0), np.zeros(0, int), *nowhere)


def _match(start: Probe, depends: Mapping[str, Rows]) -> Conjugate:
    """Matching: find every changing table entry among the entries of the Dirichlet sites."""
    candidates = [
        name
        for name, alpha in start.concentrations.items()
        if np.ptp(alpha, axis=0).max(initial=0.0) == 0 and _used(depends[name])
    ]
    while candidates:
        entries = np.concatenate(
            [start.rows[n].reshape(POINTS, -1) for n in candidates], axis=1
        )  # (POINTS, M)
        widths = [start.rows[n].shape[-1] for n in candidates]
        lengths = [start.rows[n][0].size for n in candidates]
        sizes = [w for w, n in zip(widths, lengths, strict=True) for _ in range(n // w)]
        row = np.repeat(np.arange(len(sizes)), sizes)
        site_of = np.repeat(np.arange(len(candidates)), lengths)
        sources = {name: _sources(start.tables[name], entries, row) for name in TABLES}
        spoiled = {
            name
            for k, name in enumerate(candidates)
            for place, source in sources.items()
            if (getattr(depends[name], place) & ~_comes_from(source, site_of, k)).any()
            or any(
                (getattr(depends[other], place) & _comes_from(source, site_of, k)).any()
                for other in depends
                if other != name
            )
        }
        if not spoiled:
            concentration = np.concatenate([start.concentrations[n][0].ravel() for n in candidates])
            return Conjugate(
                tuple(candidates), tuple(lengths), concentration, row, *sources.values()
            )
        candidates = [name for name in candidates if name not in spoiled]
    return _nothing(start)


def _used(rows: Rows) -> bool:
    return any(np.any(moved) for moved in rows)


def _comes_from(source: Array, site_of: Array, site: int) -> Array:
    """Rows whose changing entries all come from one site."""
    owner = np.where(source >= 0, site_of[source], -1)
    return np.any(source >= 0, axis=-1) & np.where(source >= 0, owner == site, True).all(-1)


def _sources(table: Array, entries: Array, row: Array) -> Array:
    """For each table entry the Dirichlet entry that it equals, up to a constant factor of the row.

    The value is -1 if there is none. A row counts only if its changing entries are all the entries
    of one Dirichlet row, each once.
    """
    flat = table.reshape(POINTS, -1, table.shape[-1])  # (POINTS, rows, d)
    moving = np.ptp(flat, axis=0) > SAME
    mass = np.where(moving, flat, 0).sum(-1)  # of the moving part; constant when the rest is known
    order = np.argsort(entries[0])
    ranked = entries[:, order]
    source = np.full(flat.shape[1:], -1)
    for r in np.flatnonzero(moving.any(-1)):
        if np.ptp(mass[:, r]) > SAME:
            continue
        columns = np.flatnonzero(moving[r])
        wanted = flat[:, r, columns] / mass[:, r, None]
        found = _look_up(ranked, order, wanted)
        if (found >= 0).all() and np.array_equal(
            np.sort(found), np.flatnonzero(row == row[found[0]])
        ):
            source[r, columns] = found
    return source.reshape(table.shape[1:])


def _look_up(ranked: Array, order: Array, wanted: Array) -> Array:
    """The entry that equals each wanted entry at every point, -1 if there is none.

    Entries are sorted by their value at the first point.
    """
    position = np.searchsorted(ranked[0], wanted[0])
    found = np.full(wanted.shape[1], -1)
    for shift in (-1, 0, 1):
        near = np.clip(position + shift, 0, ranked.shape[1] - 1)
        equal = np.all(np.abs(ranked[:, near] - wanted) <= SAME * 10, axis=0)
        found = np.where(equal, order[near], found)
    return found


def _certified(prober: Prober, start: Probe, conjugate: Conjugate) -> bool:
    """Certificate: the claimed posterior is prior times likelihood, up to a constant factor, for
    all values of the claimed sites.
    """
    held = {name: np.repeat(value[:1], POINTS, axis=0) for name, value in start.parameters.items()}
    for probe in prober.move(held, conjugate.sites):
        difference, scale = _difference(probe, conjugate)
        if not np.ptp(difference) <= CERTIFICATE * scale:
            return False
    return True


def _separate(prober: Prober, start: Probe, conjugate: Conjugate) -> bool:
    """The same certificate at other values of the remaining sites."""
    others = [site.name for site in prober.sites if site.name not in conjugate.sites]
    for probe in prober.move(start.parameters, others) if others else ():
        before, scale = _difference(probe, conjugate)
        for _ in range(ROUNDS):
            for moved in prober.move(probe.parameters, conjugate.sites):
                after, larger = _difference(moved, conjugate)
                if not np.abs(after - before).max() <= CERTIFICATE * max(scale, larger):
                    return False
    return True


def _difference(probe: Probe, conjugate: Conjugate) -> tuple[Array, float]:
    """Log prior + log likelihood of random data - log claimed posterior at every point, and the
    magnitude of these numbers.
    """
    generator = np.random.default_rng(1)
    total = np.array(probe.log_prior, dtype=np.float64)
    posterior = np.array(conjugate.concentration)
    for name in TABLES:
        table, source = probe.tables[name], getattr(conjugate, name)
        counts = generator.integers(0, 6, source.shape) * (table > 0).all(0)
        total += np.sum(
            counts * np.log(np.where(table > 0, table, 1.0)), axis=tuple(range(1, table.ndim))
        )
        np.add.at(posterior, source[source >= 0], counts[source >= 0])
    entries = np.concatenate([probe.rows[n].reshape(POINTS, -1) for n in conjugate.sites], axis=1)
    claimed = (posterior - 1) * np.log(entries)
    sums = np.bincount(conjugate.row, weights=posterior)
    constant = gammaln(sums).sum() - gammaln(posterior).sum()
    difference = total - claimed.sum(1) - constant
    return difference, max(1.0, np.abs(total).max(), np.abs(claimed).max())
