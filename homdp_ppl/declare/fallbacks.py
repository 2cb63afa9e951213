"""Rows without a closed form: which they are, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.probabilities import entry_name
from homdp_ppl.core.spaces import Spaces, kernel_of
from homdp_ppl.declare.matching import SAME, Masks, Matched, is_constant
from homdp_ppl.declare.nesting import Conjugate
from homdp_ppl.declare.probing import POINTS, Probe
from homdp_ppl.precision import Array

WORDS = {
    "transition": "T",
    "emission": "O",
    "revealed_last": "revealed after the last action",
}  # of kernels in summaries
NAMED = 3  # rows that a description names
DENSITY = "the law has a density, or infinitely many outcomes"
PRODUCTS = 400  # largest number of pairs of values that are searched for a product


def table_word(table: str) -> str:
    """A table in summaries: "T", "O", "O[ear]" for the sensor "ear", or its name."""
    kernel = kernel_of(table)
    return WORDS.get(kernel, kernel) + table.removeprefix(kernel)


class Fallback(NamedTuple):
    """Rows of a table that have no closed form for the same reason."""

    table: str
    rows: Array  # (rows, axes)  their indices
    sites: tuple[str, ...]  # on which they depend
    reason: str

    def describe(self, spaces: Spaces, shape: tuple[int, ...]) -> str:
        """The first few rows by name, how many there are, and the reason.

        Parameters
        ----------
        spaces
            The names of the model.
        shape
            The shape of the table.
        """
        table = table_word(self.table)
        if not shape[:-1]:
            return f"{table}: {self.reason}"
        names = [entry_name(self.table, row, shape, spaces) for row in self.rows[:NAMED].tolist()]
        more = ["..."] * (len(self.rows) > NAMED)
        number = f"{len(self.rows)} row{'s' * (len(self.rows) != 1)} of {table}"
        return f"{number} ({'; '.join([*names, *more])}): {self.reason}"


def find_fallbacks(
    start: Probe,
    depends: Mapping[str, Masks],
    conjugate: Conjugate,
    matched: Matched,
    densities: Collection[str] = (),
) -> tuple[Fallback, ...]:
    """The unknown rows without a closed form, grouped by table, sites and reason.

    Parameters
    ----------
    start
        The program's results when all sites change.
    depends
        The rows that change with each site.
    conjugate
        The certified closed forms.
    matched
        What was found before certification.
    densities
        Names of tables whose rows describe a density: no row of theirs has a closed form.
    """
    groups: dict[tuple[str, tuple[str, ...], str], list[tuple[int, ...]]] = {}
    none = {name: np.full_like(start.tables[name][0], -1) for name in densities}
    for table, source in (*conjugate.sources.items(), *none.items()):
        for row in _sampled_rows(table, source, depends):
            sites = tuple(site for site, rows in depends.items() if rows[table][row])
            why = DENSITY if table in densities else _reason(start, table, row, sites, matched)
            groups.setdefault((table, sites, why), []).append(row)
    return tuple(
        Fallback(table, np.array(rows, dtype=int), sites, why)
        for (table, sites, why), rows in groups.items()
    )


def _sampled_rows(
    table: str, source: Array, depends: Mapping[str, Masks]
) -> Iterator[tuple[int, ...]]:
    """The indices of the rows that change with a site and have no closed form."""
    moved = np.any([np.zeros(source.shape[:-1]), *(rows[table] for rows in depends.values())], 0)
    unknown = moved & (source < 0).all(-1)
    return (tuple(row) for row in np.argwhere(unknown).tolist())


def _reason(
    start: Probe, table: str, row: tuple[int, ...], sites: Sequence[str], matched: Matched
) -> str:
    if len(sites) > 1:
        if len(sites) == 2 and _has_product(start, table, row, sites):
            return f"an entry is a product of the sites {sites[0]} and {sites[1]}"
        return f"depends on {len(sites)} sites: {', '.join(sites)}"
    site = sites[0]
    if site not in start.concentrations:
        return f"the prior of {site} is not Dirichlet or Beta"
    if not is_constant(start.concentrations[site]):
        return f"the prior of {site} depends on another site"
    if matched.overlapping[table][row]:
        return f"merged outcomes of {site} overlap without nesting"
    if not matched.fitting[table][row]:
        return f"an entry is not a sum of outcomes of {site}"
    if site not in matched.conjugate.sites:
        return f"{site} is also in rows without a closed form"
    return f"{site} is in a factor, or in an observed, scaled or dependent site"


def _has_product(start: Probe, table: str, row: tuple[int, ...], sites: Sequence[str]) -> bool:
    """Whether an entry is a constant times a value of one site times a value of the other."""
    first, second = (
        np.reshape(start.rows.get(site, start.parameters[site]), (POINTS, -1)) for site in sites
    )
    if first.shape[1] * second.shape[1] > PRODUCTS:
        return False
    entries = np.stack([point[row] for point in start.tables[table]])  # (POINTS, outcomes)
    products = np.reshape(first[:, :, None] * second[:, None], (POINTS, -1))
    moving = np.ptp(entries, axis=0) > SAME
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = entries[:, moving, None] / products[:, None]
    return bool((np.ptp(ratio, axis=0) <= SAME * np.abs(ratio).max(0)).any())
