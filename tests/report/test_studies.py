"""Plots of studies: markers and lines show the numbers of the runs, episodes to epsilon by hand,
and invalid input.
"""

from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_hex

from homdp_ppl import DataError, explorers, learn, models
from homdp_ppl.planners import history_tree
from homdp_ppl.report.formatting import COLOURS
from homdp_ppl.report.studies import draw_episodes_to, draw_optimism
from homdp_ppl.study import episodes_to
from tests.raising import raises
from tests.runs import losing

K, SEEDS = 10, 4


@cache
def runs():
    world = models.load("tiger", horizon=2)
    rules = (explorers.greedy(), explorers.hop_b())
    return {
        rule.name: learn(world, rule, history_tree(), K, range(SEEDS), compiled=False)
        for rule in rules
    }


@pytest.mark.parametrize(
    ("epsilon", "needed"),
    [(1.0, 1), (0.6, 4), (0.4, 5), (0.3, np.inf)],  # means 0.2, 0.6, 0.667, 0.5, 0.4
)
def test_episodes_to_by_hand(epsilon, needed):
    """The first mean, 0.2, does not count, since later means are larger.

    A mean equal to epsilon is close enough.
    """
    assert episodes_to(losing(0.2, 1.0, 0.8, 0.0, 0.0), epsilon) == needed


def test_epochs_count_all_their_episodes():
    assert episodes_to(losing(0.8, 0.0, 0.0, episodes_per_round=3), 0.5) == 6


def test_episodes_to_of_a_real_run():
    for run in runs()["greedy"]:
        needed = episodes_to(run, 0.05)
        near = [run.optimum - run.values[:k].mean() <= 0.05 for k in range(1, K + 1)]
        assert needed == next((k + 1.0 for k in range(K) if all(near[k:])), np.inf)


def test_lines_are_medians_with_bands_and_labels_at_their_ends():
    """The median of three runs needs 2 episodes, then 3. The slowest run needs 4, then more than
    there are, so the band ends at 4.
    """
    slow, middle, quick = (
        losing(1.0, 1.0, 0.1, 0.1),
        losing(1.0, 0.2, 0.0, 0.0),
        losing(0.1, 0.1, 0.1, 0.1),
    )
    axes = draw_episodes_to({"rule": [slow, middle, quick]}, [0.4, 0.6])
    line = next(line for line in axes.lines if to_hex(line.get_color()) == COLOURS[0].lower())
    assert np.array_equal(line.get_xdata(), [0.6, 0.4])
    assert np.array_equal(line.get_ydata(), [2, 3])
    corners = axes.collections[0].get_paths()[0].vertices
    assert all(set(corners[corners[:, 0] == epsilon, 1]) == {1, 4} for epsilon in (0.6, 0.4))
    (name,) = axes.texts
    assert (name.get_text(), name.get_position()) == ("rule", (0.4, 3.0))
    assert axes.get_xlim() == (0.6, 0.4)
    assert axes.get_title() == "house: median and 90% band of the seeds"


def test_a_line_ends_where_most_runs_are_too_short():
    axes = draw_episodes_to(
        {"rule": [losing(1.0, 0.0), losing(1.0, 1.0), losing(1.0, 1.0)]}, [2.0, 0.5]
    )
    line = next(line for line in axes.lines if to_hex(line.get_color()) == COLOURS[0].lower())
    assert np.array_equal(line.get_ydata(), [1, np.inf])
    (name,) = axes.texts
    assert name.get_position() == (2.0, 1.0)


def test_rules_that_never_come_close_have_no_label():
    assert not draw_episodes_to({"rule": [losing(1.0)]}, [0.5, 0.1]).texts


def test_markers_are_shares_and_excesses_of_the_runs():
    axes = draw_optimism(runs())
    optimum = next(iter(runs().values()))[0].optimum
    for k, several in enumerate(runs().values()):
        width = [np.mean([value - optimum for value in run.optimistic]) for run in several]
        share = [np.mean([value >= optimum - 2e-9 for value in run.optimistic]) for run in several]
        small, large = axes.lines[2 * k], axes.lines[2 * k + 1]
        assert small.get_xdata() == pytest.approx(width)
        assert small.get_ydata() == pytest.approx(share)
        assert large.get_xdata() == pytest.approx([np.mean(width)])
        assert large.get_ydata() == pytest.approx([np.mean(share)])
        assert to_hex(large.get_color()) == COLOURS[k].lower()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(runs())
    assert axes.get_xscale() == "symlog"
    assert axes.get_xlabel().endswith("(log scale beyond ±0.1)")


def test_small_excesses_have_a_linear_axis():
    assert (
        draw_optimism({"rule": [losing(0.0, 0.0, optimistic=[1.0, 1.02])]}).get_xscale() == "linear"
    )


@pytest.mark.parametrize("draw", [draw_optimism, lambda runs: draw_episodes_to(runs, [0.2, 0.1])])
@pytest.mark.parametrize(
    ("bad", "where"),
    [({}, "runs"), ({"rule": []}, "rule"), ({"rule": [losing()]}, "rule")],
)
def test_missing_runs_raise_data_errors(draw, bad, where):
    with raises(DataError, where):
        draw(bad)


@pytest.mark.parametrize("epsilons", [[0.1, 0.0], [0.1, 0.1], [], [0.1, np.nan]])
def test_invalid_epsilons_raise_data_errors(epsilons):
    with raises(DataError, "epsilons"):
        draw_episodes_to(runs(), epsilons)


def test_dollar_signs_in_names_are_not_formulas():
    several = runs()["greedy"]
    for axes in (
        draw_optimism({"a $ and a $": several}),
        draw_episodes_to({"a $ and a $": several}, [1.0, 0.5]),
    ):
        axes.figure.draw_without_rendering()
