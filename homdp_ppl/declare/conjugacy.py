"""Find sites with closed-form posteriors: Dirichlet rows that the data update by addition.

There are two steps. Matching finds the Dirichlet rows in the tables. Certificate: log prior + log
likelihood - log claimed posterior must not change when those sites change, also at other values of
the remaining sites. Rejecting a site is safe, because NUTS samples it then; accepting one requires
the certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from homdp_ppl.declare.matching import Masks, Matched, match, nothing
from homdp_ppl.declare.nesting import Conjugate
from homdp_ppl.declare.probing import POINTS, Probe, Prober
from homdp_ppl.precision import Array

CERTIFICATE = 1e-8  # largest relative spread of a quantity that must be constant
ROUNDS = 4  # values of the claimed sites to try with every value of the other sites


def find_conjugate(
    prober: Prober, start: Probe, depends: Mapping[str, Masks], tables: Sequence[str]
) -> tuple[Conjugate, Matched]:
    """Find the sites of a program with a closed-form posterior: matching, then certificate.

    It returns what is certified and what was matched.

    Parameters
    ----------
    prober
        The program.
    start
        Its results when all sites change.
    depends
        The rows that change with each site.
    tables
        The names of the tables whose rows are drawn independently given the sites, so that their
        counts are sufficient.
    """
    matched = match(start, depends, tables)
    claimed = matched.conjugate
    if claimed.sites and not (
        _certified(prober, start, claimed) and _separate(prober, start, claimed)
    ):
        return nothing(start, tables), matched
    return claimed, matched


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

    The counts are real numbers above 1, so that every entry matters and no two terms cancel.
    """
    generator = np.random.default_rng(1)
    total = np.array(probe.log_prior, dtype=np.float64)
    posterior = np.append(conjugate.concentration, 0.0)  # the last entry is padding
    for name, source in conjugate.sources.items():
        table = probe.tables[name]
        counts = generator.uniform(1, 6, source.shape) * (table > 0).all(0)
        total += np.sum(
            counts * np.log(np.where(table > 0, table, 1.0)), axis=tuple(range(1, table.ndim))
        )
        paths = conjugate.paths[source[source >= 0]]
        np.add.at(posterior, paths, counts[source >= 0][:, None])
    outcomes = np.concatenate([probe.rows[n].reshape(POINTS, -1) for n in conjugate.sites], axis=1)
    claimed = conjugate.log_density(posterior[:-1], outcomes)
    return total - claimed, max(1.0, np.abs(total).max(), np.abs(claimed).max())
