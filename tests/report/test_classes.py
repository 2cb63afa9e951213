"""Version spaces of a run after each epoch, and their plot."""

import numpy as np

from homdp_ppl import DataError, explorers
from homdp_ppl.report.classes import draw_versions, versions_of
from tests.raising import raises
from tests.runs import hearing, readable


def test_version_spaces_and_their_plot():
    run = readable("tiger", hearing((0.15, 0.75, 0.85, 0.95)), 60)
    spaces = versions_of(run)
    assert (spaces.transitions.shape, spaces.emissions.shape) == ((21, 1), (21, 4))
    assert not spaces.emissions[-1].all()
    for found, kept in zip(
        spaces[:2], (run.state.memory.transitions, run.state.memory.emissions), strict=True
    ):
        np.testing.assert_array_equal(found[-1], kept)
    alive = spaces.emissions[:, :3]
    axes = draw_versions(alive, names="abc", truth=1)
    np.testing.assert_array_equal(axes.images[0].get_array(), alive.T * np.array([[1], [2], [1]]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]


def test_invalid_version_spaces_raise_data_errors():
    with raises(DataError, "names"):
        draw_versions(np.ones((2, 3), dtype=bool), names="ab")
    with raises(DataError, "alive"):
        draw_versions([])
    with raises(DataError, "run"):
        versions_of(readable("tiger", explorers.greedy(), 3))
