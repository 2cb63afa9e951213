"""Labels at the ends of curves do not overlap, keep their order, and stay next to the axes."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from homdp_ppl.report.labels import LINE, _apart, label_ends


def test_positions_are_the_nearest_that_do_not_overlap():
    assert _apart([0.0, 100.0, 50.0], -200, 200) == pytest.approx([0, 100, 50])  # no change needed
    assert _apart([10.0, 10.0], -200, 200) == pytest.approx([10 - LINE / 2, 10 + LINE / 2])
    assert _apart([50.0, 10.0, 10.0, 10.0], -200, 200) == pytest.approx(
        [50, 10 - LINE, 10, 10 + LINE]
    )
    places = _apart([3.0, 1.0, 2.0], -200, 200)  # the order is kept
    assert np.argsort(places).tolist() == [1, 2, 0]
    assert np.diff(np.sort(places)) == pytest.approx([LINE, LINE])


def test_positions_are_within_the_limits_if_there_is_room():
    assert _apart([10.0, 10.0], 10, 200) == pytest.approx([10, 10 + LINE])
    assert _apart([10.0, 190.0, 190.0], 10, 190) == pytest.approx([10, 190 - LINE, 190])
    # not enough room
    assert _apart([10.0, 10.0], 9, 11) == pytest.approx([10 - LINE / 2, 10 + LINE / 2])
    assert len(_apart([], 0, 1)) == 0


def test_labels_after_the_limits_change():
    """A line drawn after the curves changes the limits and moves the curves closer together.

    Their labels do not overlap, and are not below the axes.
    """
    figure, axes = plt.subplots(layout="constrained")
    for height in (0.0, 0.1, 0.2):
        axes.plot([0, 1], [height, height])
    axes.axhline(100.0)
    label_ends(axes, [(1, height, f"{height}", "black") for height in (0.0, 0.1, 0.2)])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))
    assert boxes[0].y0 > axes.get_window_extent().y0 - LINE


def test_curves_that_end_outside_the_axes_or_at_nan():
    _, axes = plt.subplots()
    axes.plot([0, 1], [1, 10])
    axes.set(yscale="log", ylim=(1, 5))
    label_ends(
        axes, [(1, 10, "above", "black"), (1, 0, "below", "black"), (1, np.nan, "nowhere", "black")]
    )
    assert [(text.get_text(), text.get_position()) for text in axes.texts] == [
        ("above", (1, 5)),
        ("below", (1, 1)),
    ]
