"""The plot of the value of hindsight."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from homdp_ppl import ParameterError, explorers, models, study
from homdp_ppl.report import draw_hindsight
from tests.raising import raises


@pytest.fixture(scope="module")
def found():
    world = models.load("tiger_table", horizon=2)
    rules = [explorers.posterior_sampling(), explorers.greedy()]
    return study.hindsight(world, rules, episodes=6, seeds=[0, 1, 2], shares=(0.1, 0.5, 1))


def test_curves_show_the_rows(found):
    axes = draw_hindsight(found)
    curves = [line for line in axes.lines if len(line.get_xdata()) == 3]
    for curve, rule in zip(curves, found.runs, strict=True):
        assert curve.get_xdata().tolist() == [0.1, 0.5, 1.0]
        assert np.allclose(curve.get_ydata(), np.maximum(found.regret(rule).mean(1), 1e-3))
    texts = [text.get_text() for text in axes.texts]
    assert "greedy" in texts
    assert "greedy, foresight" in texts
    plt.close(axes.figure)


def test_episodes_that_are_never_enough_are_at_the_top(found):
    axes = draw_hindsight(found, "episodes")
    highest = max(line.get_ydata().max() for line in axes.lines[::2])
    assert highest <= 7
    plt.close(axes.figure)
    with raises(ParameterError, "quantity"):
        draw_hindsight(found, "cost")
