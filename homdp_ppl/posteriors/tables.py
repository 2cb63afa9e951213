"""Tables of a finite model under a posterior: at draws of its sites, mean and variance."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.declare.kernels import Planned
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.parameters import bad_draw
from homdp_ppl.errors import InferenceError
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.dirichlet import ClosedForm, closed_form
from homdp_ppl.precision import Array, in_x64, to_numpy

CHUNK = 2**22  # table entries in memory while draws are averaged


@in_x64
def tables_at(homdp: HOMDP, parameters: Mapping[str, Array], n: int) -> Planned:
    """The tables at n values of the program's sites, each with a leading axis of length n."""
    if not parameters:
        reference: Planned = homdp.structure.reference
        return jax.tree.map(lambda table: np.broadcast_to(table, (n, *table.shape)), reference)
    tables = homdp.cache.get("tables", lambda: jax.jit(jax.vmap(homdp.short_tables)))
    made: Planned = to_numpy(tables(dict(parameters)))
    return made


@in_x64
def counted_tables_at(homdp: HOMDP, parameters: Mapping[str, Array], n: int) -> Mapping[str, Array]:
    """All tables, those of sensors and of hindsight included, at n values of the sites."""
    tables = tables_at(homdp, parameters, n)._asdict()
    if not homdp.spaces.sensors and homdp.hindsight_form is None:
        return tables
    make = homdp.cache.get("counted tables", lambda: jax.jit(jax.vmap(homdp.counted_tables)))
    found: Mapping[str, Array] = to_numpy(make(dict(parameters)))
    return {**tables, **found}


def hindsight_tables_at(
    homdp: HOMDP, parameters: Mapping[str, Array], n: int
) -> Mapping[str, Array]:
    """The tables of labels and of the mechanism at n values of the sites; none if not declared."""
    if homdp.hindsight_form is None:
        return {}
    tables = counted_tables_at(homdp, parameters, n)
    return {name: tables[name] for name in homdp.hindsight_form.tables}


def table_moments(homdp: HOMDP, closed: Array, atoms: Atoms | None) -> tuple[Planned, Planned]:
    """Mean and variance of the tables.

    They come from the closed form for rows that have one, and from the atoms elsewhere.
    """
    form = closed_form(homdp)
    exact = form.mean(closed), form.variance(closed)
    if atoms is None:
        return exact
    tables = homdp.structure.tables
    settled = [
        ((form.rows.get(name, False) if len(closed) else False) | tables[name].known)[..., None]
        for name in homdp.structure.reference._fields
    ]
    averages = _averages(homdp, len(closed) > 0, atoms)
    if form.product is not None and len(closed):
        averages = _with_closed(form, closed, *averages)
    mean, variance = (
        type(homdp.structure.reference)(
            *(
                np.where(rows, ours, theirs)
                for rows, ours, theirs in zip(settled, *pair, strict=True)
            )
        )
        for pair in zip(exact, averages, strict=True)
    )
    return mean, variance


def _with_closed(
    form: ClosedForm, closed: Array, mean: Planned, variance: Planned
) -> tuple[Planned, Planned]:
    """Replace the fixed closed forms in averages of joint emissions by their posterior."""
    assert form.product is not None
    prior = form.conjugate.concentration
    fixed, totals = form.means(prior), form.totals(closed)
    first, second = (form.product.ratio(closed, totals, fixed, order) for order in (1, 2))
    joint = mean.emission * first
    square = (variance.emission + mean.emission**2) * second
    return (
        mean._replace(emission=joint),
        variance._replace(emission=np.maximum(square - joint**2, 0.0)),
    )


@in_x64
def _averages(homdp: HOMDP, closed: bool, atoms: Atoms) -> tuple[Planned, Planned]:
    """Mean and variance of the tables over the atoms, in chunks that fit in memory."""
    N, weights = len(atoms), atoms.probabilities
    # sites in closed form are fixed at their means: their rows are not used
    held = closed_form(homdp).middle() if closed else {}
    size = max(1, min(N, CHUNK // sum(table.size for table in homdp.structure.reference)))
    kind = type(homdp.structure.reference)
    first = second = kind(*(np.zeros(()) for _ in kind._fields))
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
            homdp.rewards,
        )
        refuse(InferenceError, f"posterior of {homdp.name}", problems)
        first = _added(first, tables, weights[part])
        second = _added(second, kind(*(t**2 for t in tables)), weights[part])
    return first, kind(*(np.maximum(s - f**2, 0.0) for f, s in zip(first, second, strict=True)))


def _added(totals: Planned, tables: Planned, weights: Array) -> Planned:
    return type(totals)(
        *(
            total + np.tensordot(weights, table, 1)
            for total, table in zip(totals, tables, strict=True)
        )
    )
