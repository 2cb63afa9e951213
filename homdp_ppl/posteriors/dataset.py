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
    """A Dataset of the sites of a declaration.

    A site shaped like the rows it moves, (state, action, next_state) or (state, observation) or
    part of them, gets these names; the axes of any other are numbered. The slash of a scoped site
    becomes a point, and a name that is taken gets an underscore: ArviZ and netCDF know no slash,
    and no two things of one name.

    Parameters
    ----------
    homdp
        The declaration.
    samples
        Values of each site, (chains, draws, ...).
    about
        What to write into the attributes.
    """
    import xarray as xr

    words = _words(homdp)
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
        told = {axis: _unused(axis, set(labels.values())) for axis in axes}
        variables[label] = (("chain", "draw", *told.values()), np.asarray(samples[site]))
        coordinates |= {told[axis]: list(words[axis]) for axis in axes if axis in words}
    return xr.Dataset(variables, coordinates, dict(about))


def _words(homdp: HOMDP) -> dict[str, tuple[str, ...]]:
    if not homdp.spaces.finite:
        return {}
    X, Y, A = homdp.spaces.names
    return {"state": X, "action": A, "next_state": X, "observation": Y}


def _axes(homdp: HOMDP, site: str, values: Array) -> tuple[str, ...]:
    """The names of a site's axes, if its shape leaves no doubt.

    The last axis of a distribution is its outcome.
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
    everywhere = (
        moved.transition.any(-1) | moved.emission
    ).all()  # numbers that leave a state alone are not told by state
    doubtful = fitting == [("action",)] or (
        fitting == [("state",)] and not everywhere
    )  # as often it is something else
    return fitting[0] if len(fitting) == 1 and not doubtful else ()


def _unused(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
