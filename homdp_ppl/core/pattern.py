"""The places of the entries of sparse transition tables, and tables padded to the longest row.

Padded tables have a last axis of possible next states, (X, A, K), in place of all states. Counts
and posteriors of sparse models have this form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from homdp_ppl.precision import Array, namespace


@final
@dataclass(frozen=True, eq=False, repr=False)
class Pattern:
    """The places of the stored entries of a table (H or 1, X, A, X), in order.

    Patterns compare and hash by their entries.
    """

    columns: Array  # (N,)  the next state of each entry, increasing in each row
    starts: Array  # (rows + 1,)  the first entry of each row; rows are (step, x, a), flat
    shape: tuple[int, int, int, int]

    @cached_property
    def rows(self) -> Array:
        """The flat row of each entry, (N,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def longest(self) -> int:
        """The largest number of entries of a row."""
        return int(np.diff(self.starts).max())

    @cached_property
    def digest(self) -> str:
        """A digest of the places."""
        parts = (self.columns.tobytes(), self.starts.tobytes(), repr(self.shape).encode())
        return sha256(b"".join(parts)).hexdigest()

    @cached_property
    def slots(self) -> Array:
        """The place of each entry in a table that is padded to the longest row, (N,)."""
        within = np.arange(len(self.columns)) - self.starts[self.rows]
        return self.rows * self.longest + within

    @property
    def padded(self) -> tuple[int, ...]:
        """The shape of a padded table: (X, A, longest), with a step axis if there are steps."""
        shape = (*self.shape[:3], self.longest)
        return shape if shape[0] > 1 else shape[1:]

    def pad(self, values: Array) -> Array:
        """The values of the entries (..., N) as a padded table; can be traced."""
        flat = (*values.shape[:-1], (len(self.starts) - 1) * self.longest)
        if namespace(values) is np:
            table: Any = np.zeros(flat, values.dtype)
            table[..., self.slots] = values
        else:
            table = jnp.zeros(flat, values.dtype).at[..., self.slots].set(values)
        return table.reshape(*values.shape[:-1], *self.padded)

    def entries(self, table: Array) -> Array:
        """The values (..., N) of the entries of a padded table; the inverse of :meth:`pad`."""
        batch = table.shape[: table.ndim - len(self.padded)]
        return table.reshape(*batch, -1)[..., self.slots]

    def following(self, index: Sequence[int]) -> list[int]:
        """The index of an entry of a padded table, with its next state instead of its place."""
        *row, place = map(int, index)
        first = self.starts[np.ravel_multi_index(row, self.padded[:-1])]
        return [*row, int(self.columns[first + place])]

    def dense_rows(self, table: Array, h: Any, x: Any, a: Any) -> Array:
        """Rows of a padded table as probabilities of all states, (..., X); can be traced."""
        row = self.row(h, x, a)
        starts, columns = jnp.asarray(self.starts), jnp.asarray(self.columns)
        place = starts[row][..., None] + np.arange(self.longest)
        place = jnp.minimum(place, len(self.columns) - 1)
        chances = jnp.reshape(table, (-1, self.longest))[row]  # zero beyond the end of a row
        rows = jnp.zeros((chances.size // self.longest, self.shape[3]), chances.dtype)
        index = np.arange(len(rows))[:, None], columns[place].reshape(-1, self.longest)
        rows = rows.at[index].add(chances.reshape(-1, self.longest))
        return rows.reshape(*chances.shape[:-1], -1)

    def slot(self, h: Any, x: Any, a: Any, following: Any) -> Array:
        """The place of next states in their padded rows; ``longest`` if they are not stored."""
        xp = namespace(h, x, a, following)
        # states that are not revealed have any number
        row = xp.clip(self.row(h, x, a), 0, len(self.starts) - 2)
        place = xp.asarray(self.starts)[row][..., None] + np.arange(self.longest)
        inside = place < xp.asarray(self.starts)[row + 1][..., None]
        columns = xp.asarray(self.columns)[xp.minimum(place, len(self.columns) - 1)]
        found = inside & (columns == xp.asarray(following)[..., None])
        return xp.where(found.any(-1), found.argmax(-1), self.longest)

    def row(self, h: Any, x: Any, a: Any) -> Any:
        """The flat row of a step, a state and an action."""
        steps, X, A, _ = self.shape
        return ((h if steps > 1 else 0) * X + x) * A + a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and (self is other or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)
