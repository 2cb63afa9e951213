"""ArviZ 0.23 and 1.x behind one interface. ArviZ is imported when it is first used."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


def load_arviz() -> Any:
    """The module ``arviz``. Version 0.23 announces version 1 in a warning, which is ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz
    return arviz


def grouped(groups: Mapping[str, xr.Dataset]) -> Any:
    """The groups as an ``InferenceData`` in ArviZ 0.23, and as an xarray ``DataTree`` in 1.x."""
    arviz = load_arviz()
    if int(arviz.__version__.partition(".")[0]) < 1:
        return arviz.InferenceData(**groups)
    import xarray as xr

    return xr.DataTree.from_dict(dict(groups))
