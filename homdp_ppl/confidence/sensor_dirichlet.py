"""Posterior radii of the joint emissions of several sensors, from closed forms of their rows."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.confidence.backups import upper_quantile
from homdp_ppl.confidence.dirichlet import (
    COPIES,
    DRAWS,
    cut_bounds,
    cuts_of,
    draw_cut,
    stale_cuts,
)
from homdp_ppl.confidence.inequalities import weissman
from homdp_ppl.confidence.radii import Radii
from homdp_ppl.core.sensors import at_joint_rows
from homdp_ppl.core.spaces import sensor_table
from homdp_ppl.errors import InferenceError
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.posteriors.dirichlet import ClosedForm
from homdp_ppl.precision import Array, namespace


class _Sensor(NamedTuple):
    """The Dirichlet part of one sensor's row in every joint row."""

    unknown: Array  # whether there is one
    cut: Array  # the number of its cut
    mass: Array  # its probability
    support: Array  # number of outcomes of the row


def _sensors(form: ClosedForm) -> list[_Sensor]:
    homdp, found = form.homdp, []
    joint, cuts = homdp.form.emission[:-1], cuts_of(form)
    for sensor in homdp.spaces.sensors:
        name = sensor_table(sensor)
        parts = (
            form.rows[name],
            cuts.of[name],
            form.mass(name),
            homdp.structure.tables[name].support.sum(-1),
        )
        found.append(_Sensor(*(at_joint_rows(part[..., None], joint)[..., 0] for part in parts)))
    return found


def product_bounds(form: ClosedForm, concentration: Array, level: float) -> Array:
    """Upper bounds on the quantiles of the L1 distance of joint rows from their means.

    A bound is the smaller of two. The first is the sum of the bounds of the sensors, each at an
    equal part of the level. The second is Weissman's argument for all sets of joint outcomes: the
    probability of a set is a linear function of one sensor's row given the rows of the others, so
    it is sub-Gaussian with the sum over sensors of mass^2 / (4 (alpha_0 + 1)).

    If rows are nested, only the first holds. If sensors share a Dirichlet row, it holds for the
    distance from the product of the means, and the distance of this product from the mean is added.
    It may be traced.
    """
    product, xp = form.product, namespace(concentration)
    assert product is not None
    sensors = _sensors(form)
    parts = np.maximum(np.sum([rows.unknown for rows in sensors], axis=0), 1)
    total: Array = np.zeros(parts.shape)
    for number in range(1, len(sensors) + 1):
        radii = cut_bounds(form, concentration, level / number)
        for rows in sensors:
            used = rows.unknown & (parts == number)
            total = total + xp.where(used, rows.mass * radii[rows.cut], 0.0)
    if not form.conjugate.nested:
        alone = xp.minimum(total, _together(form, concentration, sensors, level))
        total = xp.where(product.shared, total, alone)
    totals = form.totals(concentration)
    means = product.fill(form.means(concentration))
    shift = xp.abs(product.moment(concentration, totals, 1) - means).sum(-1)
    return xp.minimum(xp.where(product.shared, total + shift, total), 2.0)


def _together(
    form: ClosedForm, concentration: Array, sensors: list[_Sensor], level: float
) -> Array:
    """The second bound; rows that are nested or shared do not fulfil its conditions."""
    xp, cuts = namespace(concentration), cuts_of(form)
    first = np.array([*(nodes[0] for nodes in cuts.nodes), 0])  # a node of each cut
    strength = form.totals(concentration)[first] + 1  # of each cut
    variance: Array = np.zeros(sensors[0].unknown.shape)
    for rows in sensors:
        variance = variance + xp.where(rows.unknown, rows.mass**2 / strength[rows.cut], 0.0)
    outcomes = np.prod([np.where(rows.unknown, rows.support, 1) for rows in sensors], axis=0)
    return weissman(1 / xp.where(variance > 0, variance, 1.0), outcomes, level)


def product_quantiles(
    form: ClosedForm,
    concentration: Array,
    key: Array,
    level: float,
    kept: tuple[Array, Radii] | None,
) -> Array:
    """Quantiles of the L1 distance of joint rows from their means, over draws of all sensors.

    Parameters
    ----------
    form, concentration, key, level, kept
        As in :func:`homdp_ppl.confidence.dirichlet.quantiles`.
    """
    product, cuts = form.product, cuts_of(form)
    assert product is not None
    S, width = ceil(DRAWS / level), form.homdp.form.emission[-1]
    got = f"{count(S)} draws of {width} numbers for a quantile at level {level:g}"
    remedy = "Use a larger delta, or dirichlet_radii, which needs no draws (in rules: bound=True)."
    require_memory(InferenceError, "quantiles", "delta", got, COPIES * NUMBER * S * width, remedy)
    seed, stale = np.asarray(jax.random.key_data(key)), stale_cuts(form, concentration, kept)
    mean = product.moment(concentration, form.totals(concentration), 1)
    radius = np.zeros(product.rows.shape) if kept is None else np.array(kept[1].emission)
    sensors = _sensors(form)
    for index in map(tuple, np.argwhere(product.rows)):
        if not any(rows.unknown[index] and stale[rows.cut[index]] for rows in sensors):
            continue
        chance: Array = np.ones(())
        for rows, factor in zip(sensors, product.factors, strict=True):
            source, part = factor.source[index], factor.fixed[index]
            if rows.unknown[index]:
                cut = int(rows.cut[index])
                drawn, _ = draw_cut(form, cut, concentration, S, seed)
                place = np.searchsorted(cuts.nodes[cut], np.maximum(source, cuts.nodes[cut][0]))
                part = np.where(source >= 0, factor.mass[index] * drawn[:, place], part)
            chance = chance * part
        distance = np.abs(chance - mean[index][: chance.shape[-1]]).sum(-1)
        radius[index] = upper_quantile(distance, 1 - level)
    return radius
