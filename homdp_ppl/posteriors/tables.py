"""Tables of a finite model under a posterior: at draws of its sites, mean and variance."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.parameters import bad_draw
from homdp_ppl.errors import InferenceError
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.precision import Array, in_x64, to_numpy

CHUNK = 2**22  # table entries in memory while draws are averaged


@in_x64
def tables_at(homdp: HOMDP, parameters: Mapping[str, Array], n: int) -> Tables:
    """The tables at n values of the program's sites, each with a leading axis of length n."""
    if not parameters:
        return Tables(*(np.broadcast_to(t, (n, *t.shape)) for t in homdp.structure.reference))
    tables = homdp.cache.get(
        "tables", lambda: jax.jit(jax.vmap(lambda values: homdp.tables(values).stationary_rows()))
    )
    return Tables(*to_numpy(tables(dict(parameters))))


def table_moments(homdp: HOMDP, closed: Array, atoms: Atoms | None) -> tuple[Tables, Tables]:
    """Mean and variance of the tables.

    They come from the closed form for rows that have one, and from the atoms elsewhere.
    """
    form = closed_form(homdp)
    exact = form.mean(closed), form.variance(closed)
    if atoms is None:
        return exact
    rows_closed = form.rows if len(closed) else (False, False, False)
    settled = [
        rows | known[..., None]
        for rows, known in zip(rows_closed, homdp.structure.known, strict=True)
    ]
    mean, variance = (
        Tables(
            *(
                np.where(rows, ours, theirs)
                for rows, ours, theirs in zip(settled, *pair, strict=True)
            )
        )
        for pair in zip(exact, _averages(homdp, len(closed) > 0, atoms), strict=True)
    )
    return mean, variance


@in_x64
def _averages(homdp: HOMDP, closed: bool, atoms: Atoms) -> tuple[Tables, Tables]:
    """Mean and variance of the tables over the atoms, in chunks that fit in memory."""
    N, weights = len(atoms), atoms.probabilities
    # sites in closed form are fixed at their means: their rows are not used
    held = closed_form(homdp).middle() if closed else {}
    size = max(1, min(N, CHUNK // sum(table.size for table in homdp.structure.reference)))
    first = second = Tables(np.zeros(()), np.zeros(()), np.zeros(()))
    for start in range(0, N, size):
        part = slice(start, min(start + size, N))
        n = part.stop - start
        values: dict[str, Array] = {
            name: np.repeat(value[None], n, axis=0) for name, value in held.items()
        }
        values |= {name: value[part] for name, value in atoms.values.items()}
        tables = tables_at(homdp, values, n)
        weighed = weights[part] > 0
        problems = bad_draw(
            {name: table[weighed] for name, table in tables._asdict().items()},
            {name: value[weighed] for name, value in values.items()},
            homdp.spaces,
        )
        refuse(InferenceError, f"posterior of {homdp.name}", problems)
        first = _added(first, tables, weights[part])
        second = _added(second, Tables(*(t**2 for t in tables)), weights[part])
    return first, Tables(*(np.maximum(s - f**2, 0.0) for f, s in zip(first, second, strict=True)))


def _added(totals: Tables, tables: Tables, weights: Array) -> Tables:
    return Tables(
        *(
            total + np.tensordot(weights, table, 1)
            for total, table in zip(totals, tables, strict=True)
        )
    )
