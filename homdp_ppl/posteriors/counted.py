"""The counts of the tables of a declaration, by the name of the table."""

from __future__ import annotations

from typing import Any

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.hindsight_form import HINDSIGHT
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import sensor_table
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array, namespace


def counted(homdp: HOMDP, counts: Counts) -> dict[str, Array]:
    """The counts of each table whose rows have counts as sufficient statistics.

    They are traced if the counts are. Tables that were not counted have zeros. Counts of joint
    observations give the counts of every sensor.
    """
    xp = namespace(counts.transition, counts.emission)
    tables, space = homdp.structure.tables, homdp.spaces.observations
    found: dict[str, Any] = {
        sensor_table(sensor): space.counts_of(
            sensor, counts.emission, tables[sensor_table(sensor)].reference.shape
        )
        for sensor in homdp.spaces.sensors
        if isinstance(space, Sensors)
    }
    further = counts.hindsight or {}
    found = {
        name: found[name]
        if name in found
        else further.get(name)
        if name in HINDSIGHT
        else getattr(counts, name)
        for name in homdp.structure.conjugate.sources
    }
    return {
        name: xp.zeros(tables[name].reference.shape) if table is None else table
        for name, table in found.items()
    }
