"""Unknown tables for declarations from files: Dirichlet priors on the support of given tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.sparse import Sparse
from homdp_ppl.precision import Array


class RowGroup(NamedTuple):
    """The rows of a table with the same number of possible outcomes, two or more."""

    site: str
    rows: Array  # (n, 1)
    columns: Array  # (n, d)  the possible outcomes of each row


class EntryGroup(NamedTuple):
    """The entries of the rows of a sparse table with the same number of possible outcomes."""

    site: str
    places: Array  # (n, d)  the possible entries of each row, of all stored ones


def entry_groups(letter: str, table: Sparse) -> Iterator[EntryGroup]:
    """As :func:`row_groups`, for a sparse table."""
    values, rows = np.asarray(table.values), table.pattern.rows
    possible = np.flatnonzero(values > 0)
    outcomes = np.bincount(rows[possible], minlength=len(table.pattern.starts) - 1)[rows[possible]]
    for d in np.unique(outcomes[outcomes > 1]):
        yield EntryGroup(f"{letter}{d}", possible[outcomes == d].reshape(-1, d))


def row_groups(letter: str, table: Array) -> Iterator[RowGroup]:
    """The unknown rows of a table, grouped by their number d of possible outcomes.

    The sites of the groups are called "T2", "O5" and so on. A row with one possible outcome is
    known.
    """
    flat = table.reshape(-1, table.shape[-1])
    outcomes = (flat > 0).sum(-1)
    for d in np.unique(outcomes[outcomes > 1]):
        rows = np.flatnonzero(outcomes == d)
        yield RowGroup(f"{letter}{d}", rows[:, None], np.nonzero(flat[rows])[1].reshape(-1, d))


def truth(letter: str, table: Array | Sparse) -> dict[str, Array]:
    """The values of the sites at which :func:`sampled` returns the table."""
    if isinstance(table, Sparse):
        return {site: table.values[places] for site, places in entry_groups(letter, table)}
    flat = table.reshape(-1, table.shape[-1])
    return {site: flat[rows, columns] for site, rows, columns in row_groups(letter, table)}


def sampled(letter: str, table: Array | Sparse, concentration: float) -> Any:
    """The table with independent symmetric Dirichlet rows on its support.

    Call it inside a NumPyro program.
    """
    if isinstance(table, Sparse):
        values = jnp.asarray(table.values)
        for site, places in entry_groups(letter, table):
            values = values.at[places].set(_rows(site, places.shape, concentration))
        return Sparse(values, table.pattern)
    flat = jnp.asarray(table.reshape(-1, table.shape[-1]))
    for site, rows, columns in row_groups(letter, table):
        flat = flat.at[rows, columns].set(_rows(site, columns.shape, concentration))
    return flat.reshape(table.shape)


def _rows(site: str, shape: tuple[int, ...], concentration: float) -> Array:
    """Independent symmetric Dirichlet rows."""
    prior = dist.Dirichlet(np.full(shape, float(concentration))).to_event(1)
    rows: Array = numpyro.sample(site, prior)
    return rows


def with_first(observation: Array) -> Array:
    """Emissions by the previous action, with the null observation before the first action.

    Parameters
    ----------
    observation
        O(o | a, s') as (A, X, Y).

    Returns
    -------
    Array
        (A + 1, X, Y + 1). The null observation is the last one: it is emitted with certainty before
        the first action, and never later.
    """
    _, X, Y = observation.shape
    nothing = jnp.zeros((1, X, Y + 1)).at[..., Y].set(1.0)
    return jnp.concatenate([jnp.pad(observation, ((0, 0), (0, 0), (0, 1))), nothing])
