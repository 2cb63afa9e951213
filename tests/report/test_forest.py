"""Forest plots: quantiles by hand, labels with names of the model, and invalid input."""

import numpy as np
import xarray as xr

from homdp_ppl import DataError
from homdp_ppl.report.forest import draw_forest, forest_entries
from tests.raising import raises


def test_forest():
    """Quantiles of the draws of each entry, labels with coordinates, and known true values."""
    draws = np.arange(101.0)[None] / 100  # (1, 101)
    variables = {
        "p": (("chain", "draw", "state"), np.stack([draws, draws / 2], -1)),
        "shift": (("chain", "draw"), 10 * draws),
    }
    dataset = xr.Dataset(variables, {"state": ["on", "off"]})
    entries = forest_entries(dataset, {"p": np.array([0.3, 0.4])})
    assert [entry.name for entry in entries] == ["p[on]", "p[off]", "shift"]
    np.testing.assert_allclose(entries[1].quantiles, [0.025, 0.125, 0.25, 0.375, 0.475])
    assert [entry.truth for entry in entries[:2]] == [0.3, 0.4]
    assert np.isnan(entries[2].truth)
    assert len(draw_forest(dataset, {}).figure.axes) == 2  # probabilities, and the rest
    widest = draw_forest(dataset, {}, most=2)
    assert [
        label.get_text() for panel in widest.figure.axes for label in panel.get_yticklabels()
    ] == ["p[on]", "shift"]
    with raises(DataError, "dataset"):
        draw_forest(xr.Dataset(), {})
