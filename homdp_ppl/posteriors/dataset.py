"""Posterior draws as an xarray Dataset for ArviZ, with the model's names as coordinates."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    import xarray as xr


def to_dataset(homdp: HOMDP, samples: Mapping[str, Array], about: Mapping[str, Any]) -> xr.Dataset:
    """Draws of the sites of a declaration as a Dataset.

    The axes of a site are named if its shape matches the rows that depend on it: (state, action,
    next_state), (state, observation) or a part of these. The axes of other sites are numbered. The
    slash in the name of a scoped site becomes a dot, and a name that is already used gets an
    underscore, because ArviZ and netCDF allow neither slashes nor duplicate names.

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
        axes = _axes(homdp, site, np.asarray(samples[site])) or [
            f"{label}_dim_{k}" for k in range(samples[site].ndim - 2)
        ]
        renamed = {axis: _unused(axis, set(labels.values())) for axis in axes}
        variables[label] = (("chain", "draw", *renamed.values()), np.asarray(samples[site]))
        coordinates |= {renamed[axis]: list(names[axis]) for axis in axes if axis in names}
    return xr.Dataset(variables, coordinates, dict(about))


def _names(homdp: HOMDP) -> dict[str, tuple[str, ...]]:
    if not homdp.spaces.finite:
        return {}
    X, Y, A = homdp.spaces.names
    return {"state": X, "action": A, "next_state": X, "observation": Y}


def _axes(homdp: HOMDP, site: str, values: Array) -> tuple[str, ...]:
    """The names of a site's axes if its shape is unambiguous, else nothing.

    The last axis of a distribution is the axis of its outcomes.
    """
    if not homdp.spaces.finite:
        return ()
    X, Y, A, _ = homdp.spaces.sizes
    sizes = {"state": X, "action": A, "next_state": X, "observation": Y}
    moved = homdp.structure.depends[site]
    if moved.emission.any() == moved.transition.any():
        return ()
    rows = ["state observation", "observation"]
    numbers = ["state"]
    if moved.transition.any():
        rows = ["state action next_state", "state next_state", "action next_state", "next_state"]
        numbers = ["state action", "state", "action"]
    distribution = values.ndim > 2 and np.allclose(values.sum(-1), 1.0)
    candidates = [tuple(names.split()) for names in (rows if distribution else [rows[0], *numbers])]
    fitting = [
        names for names in candidates if tuple(sizes[name] for name in names) == values.shape[2:]
    ]
    # a site that does not affect all states is probably not indexed by state
    everywhere = (moved.transition.any(-1) | moved.emission).all()
    ambiguous = fitting == [("action",)] or (fitting == [("state",)] and not everywhere)
    return fitting[0] if len(fitting) == 1 and not ambiguous else ()


def _unused(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
