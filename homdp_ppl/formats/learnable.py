"""Unknown tables for declarations from files: Dirichlet priors on the support of given tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.precision import Array


class RowGroup(NamedTuple):
    """The rows of a table with the same number of possible outcomes, two or more."""

    site: str
    rows: Array  # (n, 1)
    columns: Array  # (n, d)  the possible outcomes of each row


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


def truth(letter: str, table: Array) -> dict[str, Array]:
    """The values of the sites at which :func:`sampled` returns the table."""
    flat = table.reshape(-1, table.shape[-1])
    return {site: flat[rows, columns] for site, rows, columns in row_groups(letter, table)}


def sampled(letter: str, table: Array, concentration: float) -> Array:
    """The table with independent symmetric Dirichlet rows on its support.

    Call it inside a NumPyro program.
    """
    flat = jnp.asarray(table.reshape(-1, table.shape[-1]))
    for site, rows, columns in row_groups(letter, table):
        prior = dist.Dirichlet(np.full(columns.shape, float(concentration))).to_event(1)
        flat = flat.at[rows, columns].set(numpyro.sample(site, prior))
    return flat.reshape(table.shape)


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
