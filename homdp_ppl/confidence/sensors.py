"""Estimates and radii of the joint emissions of several sensors.

Given the state, sensors are independent. The estimate is the product of the estimates of the
sensors. The distance of two products is at most the sum of the distances of their factors. The
bound for the joint row holds for the product of frequencies too: docs/explanation/soundness.md has
the argument. After a given number of visits both radii are constants, so the smaller one is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.sensors import Sensors, at_joint_rows
from homdp_ppl.core.spaces import sensor_table
from homdp_ppl.declare.kernels import joint_emission
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.precision import Array, namespace


class Bound(Protocol):
    """The radius of a row."""

    def __call__(self, n: Array, outcomes: Array, parts: Array | int) -> Array:
        """A radius after n visits, at the level of one row divided by ``parts``."""


class SensorRows(NamedTuple):
    """One sensor in every joint row; all arrays have the axes of the joint rows."""

    visits: Array  # of the sensor's row, may be traced
    unknown: Array  # whether the sensor's row depends on a site
    outcomes: Array  # number of outcomes, in the declared support
    size: int  # number of outcomes of the sensor
    own: bool  # whether the sensor has one row per joint row


def joint_estimate(homdp: HOMDP, tables: Mapping[str, Array]) -> Array:
    """The joint emission table of estimated tables of the sensors; known rows are exact."""
    _, reference, known = homdp.structure.tables["emission"]
    joint = joint_emission([tables[sensor_table(s)] for s in homdp.spaces.sensors], homdp.spaces)
    return namespace(joint).where(known[..., None], reference, joint)


def joint_radius(homdp: HOMDP, counts: Counts, bound: Bound, support: bool) -> Array:
    """The radii of the joint emission rows of a declaration with several sensors.

    Parameters
    ----------
    homdp, counts
        The declaration and its data.
    bound
        The radius of a row from its number of visits and outcomes.
    support
        Whether outcomes outside of the declared support are not counted.
    """
    sensors = _rows(homdp, counts)
    xp = namespace(counts)
    shape = sensors[0].unknown.shape
    others = tuple(range(len(shape) - 1))  # the step and the previous action
    # rows of one state share the level, because a sensor may have one row for all of them
    parts = np.maximum(np.sum([row.unknown.any(others) for row in sensors], axis=0), 1)
    sizes = [row.outcomes if support else np.full_like(row.outcomes, row.size) for row in sensors]
    total: Array = np.zeros(shape)
    for row, size in zip(sensors, sizes, strict=True):
        total = total + xp.where(row.unknown, bound(row.visits, size, parts), 0.0)
    product = np.prod(
        [np.where(row.unknown, size, 1) for row, size in zip(sensors, sizes, strict=True)], axis=0
    )
    together = np.all([(row.own | ~row.unknown).all(others) for row in sensors], axis=0)
    joint = bound(counts.visits, product, 1)
    return xp.where(together, xp.minimum(joint, total), total)


def _rows(homdp: HOMDP, counts: Counts) -> list[SensorRows]:
    space, numbers = homdp.spaces.observations, counted(homdp, counts)
    assert isinstance(space, Sensors)
    joint = homdp.form.emission[:-1]
    found = []
    for sensor, names in space.sensors.items():
        name = sensor_table(sensor)
        support, _, known = homdp.structure.tables[name]
        visits, unknown, outcomes = (
            at_joint_rows(part[..., None], joint)[..., 0]
            for part in (numbers[name].sum(-1), ~known, support.sum(-1))
        )
        found.append(SensorRows(visits, unknown, outcomes, len(names), known.shape == joint))
    return found
