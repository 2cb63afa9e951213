"""Plots of learning: curves show the numbers of the runs, labels do not overlap, and invalid input
raises errors.
"""

from functools import cache, partial
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from homdp_ppl import DataError, explorers, learn, models
from homdp_ppl.planners import history_tree
from homdp_ppl.report.formatting import COLOURS
from homdp_ppl.report.learning import POINTS, curve_of, draw_optimistic_values, draw_regret
from homdp_ppl.report.studies import draw_episodes_to, draw_optimism
from tests.raising import raises
from tests.runs import losing

K, SEEDS = 12, 5


@cache
def world():
    return models.load("tiger", horizon=2)


def learned(rule, seeds, **options):
    return learn(world(), rule, history_tree(), K, seeds, compiled=False, **options)


@cache
def runs():
    rules = (explorers.greedy(), explorers.uniform(), explorers.hop_b())
    return {rule.name: learned(rule, range(SEEDS)) for rule in rules}


def texts(axes):
    return {text.get_text(): text for text in axes.texts}


@pytest.mark.parametrize("draw", [draw_regret, draw_optimistic_values])
def test_lines_are_means_and_bands_contain_90_percent(draw):
    """With five seeds, linear interpolation puts the 5% quantile a fifth of the way from the
    smallest number to the next.
    """
    axes = draw(runs())
    for k, several in enumerate(runs().values()):
        if draw is draw_regret:
            numbers = np.array([np.cumsum(run.optimum - run.values) for run in several])
        else:
            numbers = np.array([run.optimistic for run in several])
        line = axes.lines[k]
        assert line.get_xdata() == pytest.approx(np.arange(1, K + 1))
        assert line.get_ydata() == pytest.approx(numbers.mean(0))
        ordered = np.sort(numbers, axis=0)
        low, high = 0.8 * ordered[0] + 0.2 * ordered[1], 0.8 * ordered[-1] + 0.2 * ordered[-2]
        corners = axes.collections[k].get_paths()[0].vertices
        for episode in range(K):
            heights = corners[corners[:, 0] == episode + 1, 1]
            assert [heights.min(), heights.max()] == pytest.approx([low[episode], high[episode]])


def test_each_curve_has_its_name_and_colour():
    axes = draw_regret(runs())
    assert set(texts(axes)) == set(runs())
    for k, name in enumerate(runs()):
        assert to_hex(texts(axes)[name].get_color()) == COLOURS[k].lower()
        assert texts(axes)[name].get_position()[0] == K
    assert axes.get_ylim()[0] == 0
    assert axes.get_title() == f"tiger: mean and 90% band of {SEEDS} seeds"


def test_labels_of_curves_that_end_together_do_not_overlap():
    """The same runs under three names end in one point, with the labels around its height."""
    several = runs()["greedy"]
    axes = draw_regret({"one": several, "two": several, "three": several})
    axes.figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))
    end = np.mean([run.regret[-1] for run in several])
    assert (boxes[1].y0 + boxes[1].y1) / 2 == pytest.approx(
        axes.transData.transform((K, end))[1], abs=25
    )


def test_existing_axes_keep_their_scales_and_points_are_evenly_spaced():
    _, axes = plt.subplots()
    axes.set(xscale="log", yscale="log")
    assert draw_regret(runs(), axes) is axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")

    class Long:
        values = regret = np.arange(1.0, 100_001.0)
        episodes_per_round = 1

    for logarithmic in (False, True):
        curve = curve_of([Long(), Long()], lambda run: run.regret, logarithmic)
        assert len(curve.episodes) <= POINTS
        assert (curve.episodes[0], curve.episodes[-1]) == (1, 100_000)
        assert curve.mean == pytest.approx(curve.episodes)
        step = np.diff(np.log(curve.episodes[-100:]) if logarithmic else curve.episodes)
        assert step.max() / step.min() < 1.1


def test_epochs_are_counted_in_episodes():
    """HOP-V plays H episodes per round; its regret is plotted at the number of episodes played."""
    rule = explorers.hop_v(
        transitions=world().pomdp.moves(0)[None], emissions=world().pomdp.shows(0)[None]
    )
    axes = draw_regret({"hop_v": learned(rule, [0])})
    assert axes.lines[0].get_xdata() == pytest.approx(np.arange(2, K + 1, 2))
    assert len(axes.collections) == 0  # no band for a single seed
    assert axes.get_title().endswith("one seed")


def test_optimistic_values_are_drawn_with_the_optimum_and_the_horizon():
    axes = draw_optimistic_values(runs())
    optimum = history_tree()(world().pomdp).value
    heights = [line.get_ydata()[0] for line in axes.lines[3:]]
    assert heights == pytest.approx([optimum, 2])
    assert {"optimum", "trivial bound H"} <= set(texts(axes))


def test_one_episode_is_a_marker():
    axes = draw_regret({"house": [losing(0.5)]})
    (line,) = axes.lines
    assert line.get_marker() == "o"
    assert axes.get_xlim() == (0, 1)
    assert line.get_xydata().tolist() == [[1, 0.5]]


@pytest.mark.parametrize(
    ("gaps", "limits"),
    [
        ([0.0, 2e-16, -3e-16], (0, 1)),  # of an oracle
        ([-0.5, 0.25], (-0.525, -0.225)),  # of estimated values: the label stays in the plot
    ],
)
def test_zero_and_negative_regret(gaps, limits):
    axes = draw_regret({"house": [losing(*gaps)]})
    assert axes.get_ylim() == pytest.approx(limits, abs=0.02)
    axes.figure.draw_without_rendering()  # warns if the layout collapses
    low, high = axes.get_window_extent().intervaly
    assert low <= axes.texts[0].get_window_extent().get_points()[:, 1].mean() <= high


@pytest.mark.parametrize("draw", [draw_regret, draw_optimistic_values])
def test_invalid_runs_raise_data_errors(draw):
    complete = runs()["greedy"]
    short, empty = (learned(explorers.greedy(), [0], stop_after=n) for n in (4, 0))
    with raises(DataError, "runs"):
        draw({})
    with raises(DataError, "none", "mixed", "empty"):
        draw({"none": [], "mixed": [*complete, *short], "empty": empty})
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    "draw",
    [
        draw_regret,
        draw_optimistic_values,
        draw_optimism,
        partial(draw_episodes_to, epsilons=[1.0, 0.5]),
    ],
)
def test_custom_colours_of_rules(draw):
    runs = {"first": [losing(0.5, 0.4, 0.3)], "second": [losing(0.9, 0.1, 0.0)]}
    drawn = [line.get_color() for line in draw(runs, colours={"second": "black"}).lines]
    assert COLOURS[0] in drawn
    assert "black" in drawn
    assert COLOURS[1] not in drawn
