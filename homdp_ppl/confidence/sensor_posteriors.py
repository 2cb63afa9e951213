"""Variances of backups for several sensors whose rows are Dirichlet."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.sensors import Sensors, at_joint_rows
from homdp_ppl.core.spaces import sensor_table
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.dirichlet import ClosedForm
from homdp_ppl.precision import Array, namespace


class SensorSpread(NamedTuple):
    """The moments of one sensor's rows, in every joint row.

    A row has the mean ``row`` and the covariance scale * (diag(mean) - mean mean^T).
    """

    row: Array  # (..., d)
    mean: Array  # (..., d)  of the Dirichlet part, zero outside of it
    scale: Array  # (...)   mass^2 / (alpha_0 + 1), 0 for known rows


def have_own_rows(homdp: HOMDP) -> bool:
    """Whether no two rows of sensors that occur together use the same Dirichlet row."""
    form = ClosedForm(homdp)
    assert form.product is not None
    row = np.append(form.conjugate.row, -1)
    owners = [row[factor.source].max(-1) for factor in form.product.factors]  # by joint row
    together = np.stack(owners, -1)
    together = together.reshape(-1, prod(together.shape[-2:]))
    return all(len(np.unique(some[some >= 0])) == (some >= 0).sum() for some in together)


def sensor_spreads(form: ClosedForm, concentration: Array) -> tuple[SensorSpread, ...]:
    """The moments of all sensors; may be traced."""
    homdp, xp = form.homdp, namespace(concentration)
    spreads, joint = form.spread(concentration), homdp.form.emission[:-1]
    found = []
    for sensor in homdp.spaces.sensors:
        name = sensor_table(sensor)
        spread, source = spreads[name], form.conjugate.sources[name]
        reference = homdp.structure.tables[name].reference
        row = xp.where(source >= 0, spread.mass[..., None] * spread.mean, reference)
        parts = row, spread.mean, (spread.mass**2 * spread.shrink)[..., None]
        row, mean, scale = (at_joint_rows(part, joint) for part in parts)
        found.append(SensorSpread(row, mean, scale[..., 0]))
    return tuple(found)


def sensor_variances(space: Sensors) -> Callable[..., Array]:
    """A function that computes the variances (A, X) of g(x') = sum_y O(y|x') alpha(y, x').

    The arguments are the moments of all sensors, alpha (A, Y, X), and the index of the rows of O
    apart from the state. Sensors are independent, so the second moment of a joint row is the
    product of the second moments of its sensors, which is applied one sensor at a time.
    """
    sizes = space.shape

    def variances(rows: tuple[SensorSpread, ...], alpha: Array, place: tuple[Any, ...]) -> Array:
        xp = namespace(rows, alpha)
        value = xp.swapaxes(alpha, 1, 2)[..., : prod(sizes)]  # (A, X, outcomes)
        value = value.reshape(*value.shape[:2], *sizes)
        mean = value
        for spread in reversed(rows):  # the last sensor is the last axis
            row = spread.row[place]
            row = row.reshape(*row.shape[:-1], *(1,) * (mean.ndim - 3), row.shape[-1])
            mean = (row * mean).sum(-1)
        centred = value - mean.reshape(*mean.shape, *(1,) * len(sizes))
        moved = centred
        for k, spread in enumerate(rows):
            moved = xp.moveaxis(_applied(spread, place, xp.moveaxis(moved, 2 + k, -1)), -1, 2 + k)
        total: Array = (centred * moved).sum(tuple(range(2, 2 + len(sizes))))
        return xp.maximum(total, 0.0)

    return variances


def _applied(spread: SensorSpread, place: tuple[Any, ...], value: Array) -> Array:
    """The second moments of a sensor's rows, E[q q^T], times a value (A, X, ..., d)."""
    extra = (1,) * (value.ndim - 3)
    row, mean = (
        part[place].reshape(*part[place].shape[:-1], *extra, part.shape[-1])
        for part in (spread.row, spread.mean)
    )
    scale = spread.scale[place].reshape(*spread.scale[place].shape, *extra, 1)
    centred = value - (mean * value).sum(-1, keepdims=True)
    return row * (row * value).sum(-1, keepdims=True) + scale * mean * centred
