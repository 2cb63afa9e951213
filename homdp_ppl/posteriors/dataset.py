"""Draws of sites as an xarray Dataset for ArviZ, with the model's names as coordinates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from homdp_ppl.core.spaces import kernel_of, sensor_table
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    import xarray as xr

USED = (
    "chain",
    "draw",
    "step",
    "previous_action",
    "state",
    "action",
    "next_state",
    "observation",
)  # names of axes


def to_dataset(homdp: HOMDP, samples: Mapping[str, Array], about: Mapping[str, Any]) -> xr.Dataset:
    """Draws of the sites of a declaration as a Dataset.

    The axes of a site are named if its shape matches the rows that depend on it: (state, action,
    next_state), (state, observation), (state,) or a part of these, with axes for the step and the
    previous action if rows depend on them. The axes of other sites are numbered. The slash in the
    name of a scoped site becomes a dot, and a name that is already used gets an underscore, because
    ArviZ and netCDF allow neither slashes nor duplicate names.

    Parameters
    ----------
    homdp
        The declaration.
    samples
        Values of each site, (chains, draws, ...).
    about
        The attributes of the Dataset.
    """
    import xarray as xr

    names = _names(homdp)
    chains, draws = next((v.shape[:2] for v in samples.values()), (0, 0))
    coordinates: dict[str, Any] = {"chain": np.arange(chains), "draw": np.arange(draws)}
    labels: dict[str, str] = {}
    for site in samples:
        labels[site] = _unused(site.replace("/", "."), {*coordinates, *labels.values()})
    variables = {}
    for site, label in labels.items():
        values = np.asarray(samples[site])
        axes = _axes(homdp, site, values) or [f"{label}_dim_{k}" for k in range(values.ndim - 2)]
        renamed = {axis: _unused(axis, set(labels.values())) for axis in axes}
        variables[label] = (("chain", "draw", *renamed.values()), values)
        for axis, size in zip(axes, values.shape[2:], strict=True):
            coordinates[renamed[axis]] = names.get(axis, np.arange(size))
    return xr.Dataset(variables, coordinates, dict(about))


def _names(homdp: HOMDP) -> dict[str, list[str] | Array]:
    """The coordinates of the named axes; the previous action of the first step is "none"."""
    if not homdp.spaces.finite:
        return {}
    X, Y, A = (list(names) for names in homdp.spaces.names)
    return {
        **{_sensor_axis(name): list(names) for name, names in homdp.spaces.sensors.items()},
        "step": np.arange(1, homdp.horizon + 1),
        "previous_action": [*A, "none"],
        "state": X,
        "action": A,
        "next_state": X,
        "observation": Y,
    }


def _sensor_axis(sensor: str) -> str:
    return _unused(sensor, USED)


def _axes(homdp: HOMDP, site: str, values: Array) -> tuple[str, ...]:
    """The names of a site's axes if its shape is unambiguous, else nothing.

    The last axis of a distribution is the axis of its outcomes.
    """
    if not homdp.spaces.finite:
        return ()
    sizes = {axis: len(names) for axis, names in _names(homdp).items()}
    moved = homdp.structure.depends[site]
    product = ["emission"] if homdp.spaces.sensors else []
    tables = [name for name, rows in moved.items() if rows.any() and name not in product]
    if len(tables) != 1 or kernel_of(tables[0]) not in ("initial", "transition", "emission"):
        return ()
    *given, outcome = _table_axes(homdp, tables[0])
    parts = [part for n in range(len(given) + 1) for part in combinations(given, n)]
    if values.ndim > 2 and np.allclose(values.sum(-1), 1.0):
        candidates = [(*part, outcome) for part in parts]
    else:
        candidates = [(*given, outcome), *parts[1:]]
    fitting = [
        axes for axes in candidates if tuple(sizes[axis] for axis in axes) == values.shape[2:]
    ]
    if len(fitting) != 1:
        return ()
    if len(fitting[0]) == 1 and fitting[0] != (outcome,):
        # a vector that does not affect every state, or step, is probably not indexed by it
        axis = fitting[0][0]
        rows = np.reshape(moved[tables[0]], [sizes[name] for name in given])
        covered = np.moveaxis(rows, given.index(axis), 0).reshape(sizes[axis], -1).any(-1).all()
        if "action" in axis or not covered:
            return ()
    return fitting[0]


def _table_axes(homdp: HOMDP, table: str) -> tuple[str, ...]:
    """The names of the axes of a table; the last is the outcome."""
    shape = homdp.structure.tables[table].reference.shape
    if table == "initial":
        return ("state",)
    if table == "transition":
        return (*["step"] * (len(shape) == 4), "state", "action", "next_state")
    answers = len(shape) > 2 and shape[-3] > 1
    more = ["step"] * (len(shape) == 4) + ["previous_action"] * answers
    sensors = {sensor_table(name): _sensor_axis(name) for name in homdp.spaces.sensors}
    return (*more, "state", sensors.get(table, "observation"))


def _unused(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
