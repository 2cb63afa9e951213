"""Posterior draws as an xarray Dataset that ArviZ takes, with the model's own names as coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from homdp_ppl.declare import HOMDP
from homdp_ppl.precision import Array


def to_dataset(homdp: HOMDP, samples: Mapping[str, Array], about: Mapping[str, Any]) -> xr.Dataset:
    """A Dataset of the sites of a declaration.

    A site shaped like the rows it moves, (state, action, next_state) or (state, observation) or part of them, gets these names;
    the axes of any other are numbered.

    Parameters
    ----------
    homdp
        The declaration.
    samples
        Values of each site, (chains, draws, ...).
    about
        What to write into the attributes.
    """
    names = {
        "state": homdp.states,
        "action": homdp.actions,
        "next_state": homdp.states,
        "observation": homdp.observations,
    }
    variables, used = {}, set()
    for site, values in samples.items():
        axes = _axes(homdp, site, values.shape[2:])
        variables[site] = (("chain", "draw", *axes), np.asarray(values))
        used |= set(axes)
    chains, draws = next((v.shape[:2] for v in samples.values()), (0, 0))
    coordinates: dict[str, Any] = {"chain": np.arange(chains), "draw": np.arange(draws)}
    coordinates |= {axis: list(words) for axis, words in names.items() if axis in used}
    return xr.Dataset(variables, coordinates, dict(about))


def _axes(homdp: HOMDP, site: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    X, Y, A, _ = homdp.spaces.sizes
    rows = homdp.structure.depends[site]
    transition = {("state", "action", "next_state"): (X, A, X), ("state", "action"): (X, A), ("state",): (X,), ("action",): (A,)}
    emission = {("state", "observation"): (X, Y), ("state",): (X,), ("observation",): (Y,)}
    moved = [
        names
        for names, sizes in (emission if rows.emission.any() else transition).items()
        if sizes == shape and rows.emission.any() != rows.transition.any()
    ]
    return moved[0] if len(moved) == 1 else tuple(f"{site}_dim_{k}" for k in range(len(shape)))
