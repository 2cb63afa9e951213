"""Cells, and the experiment that is more informative than the observation."""

import importlib
from functools import cache

import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import Kernels, PlanningError, Real, homdp
from homdp_ppl.continuous.quadrature import cut, panels
from homdp_ppl.continuous.tabulation import cell_of, emission_table
from homdp_ppl.planners import history_tree, plan_on_cells
from homdp_ppl.planners._cells import UNSEEN, _corners, _weights, spread
from tests.planners.numbers import heard, nodes, screen_densities, screens, two_looks
from tests.raising import raises


@cache
def coins(known):
    """One of two sounds, and with ``known`` a silent coin that is tossed at every step.

    The agent guesses the sound or the coin.
    """
    reward = np.array(
        [[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
    )
    moves = np.kron(np.array([[0.8, 0.2], [0.3, 0.7]]), np.full((2, 2), 0.5))
    if not known:
        reward, moves = reward.reshape(2, 2, 4).mean(1), np.array([[0.8, 0.2], [0.3, 0.7]])
    X = len(moves)

    @homdp(states=X, observations=Real(1), actions=4, horizon=2, reward=reward)
    def sounds():
        return Kernels(
            np.full(X, 1 / X),
            np.repeat(moves[:, None], 4, axis=1),
            lambda x: dist.Normal(2 * x // X, 1.0 + 2 * x // X),
        )

    return sounds.at()


@pytest.mark.slow
def test_only_the_kind_is_revealed_for_states_with_the_same_density():
    """If the state were revealed, the coin would be known, and the bound would be above that of the
    world without the coin.
    """
    edges = [1.0]
    four, two = (plan_on_cells(coins(known), edges, history_tree()) for known in (True, False))
    assert four.statistics["revealed"] > 1e-3
    assert (four.value, four.upper) == pytest.approx((two.value, two.upper), abs=1e-7)
    assert four.upper < 1.9  # with a known coin it would be 2
    above = spread(
        coins(True), cut(coins(True), panels(coins(True)), np.array(edges)), np.array(edges)
    )
    assert above.revealed.shape == (2, 2)
    assert above.emission[[0, 2]].tolist() == above.emission[[1, 3]].tolist()


def test_the_masses_of_the_experiment_above_are_not_too_large():
    """Against a rule with many more points, for kinks anywhere.

    A rule that uses each piece once has an error of 1e-6.
    """
    world, _ = screens()
    for seed in range(6):
        edges = np.sort(np.random.default_rng(seed).uniform(-3, 3, 20))
        pieces = cut(world, panels(world), edges)
        above = spread(world, pieces, edges)
        ends = np.linspace(pieces.breaks[:-1], pieces.breaks[1:], 65)[:-1].T.ravel()
        fine = cut(world, pieces, ends)
        _, inverse = _corners(world, pieces, edges)
        cell = cell_of(fine, edges)
        density = np.exp(fine.log)
        weights = _weights(density, above.corners[cell], inverse[cell])
        exact = np.zeros(above.mass.shape)
        np.add.at(exact, cell, fine.integrate(weights)[0])
        assert np.maximum(above.mass - exact, 0.0).sum() < UNSEEN / 4
        assert np.abs(above.mass - exact).sum() < 1e-6


def convexities(emission, draws=40):
    """The value of y minus that of an experiment, for random convex functions of the likelihoods.

    At most 0 if the experiment is more informative.
    """
    generator, (points, weights) = np.random.default_rng(0), nodes()
    likelihood = screen_densities(points) * weights
    assert likelihood.sum(1) == pytest.approx(1.0, abs=1e-9)
    shortfall = []
    for _ in range(draws):
        slopes = generator.normal(size=(4, len(emission)))
        shortfall.append((slopes @ likelihood).max(0).sum() - (slopes @ emission).max(0).sum())
    return np.array(shortfall)


def contracted(above):
    """Planted bug: corners inside the cell, halfway to its middle; rows still sum to one."""
    weighted = (above.corners * above.mass[:, :, None]).sum(1, keepdims=True)
    middle = weighted / above.mass.sum(1)[:, None, None]
    return above._replace(corners=0.5 * above.corners + 0.5 * middle)


@pytest.mark.parametrize("cells", [3, 10, 40])
def test_the_experiment_above_is_better_for_every_convex_function(cells):
    """Blackwell's order, with independent integrals. Less informative experiments are detected."""
    world, _ = screens()
    edges = np.linspace(-3.0, 3.3, cells - 1)
    above = spread(world, cut(world, panels(world), edges), edges)
    assert above.emission.sum(1) == pytest.approx(1.0, abs=1e-14)
    assert (above.emission >= 0).all()
    assert convexities(above.emission).max() <= 1e-7
    assert convexities(contracted(above).emission).max() > 1e-5
    assert convexities(emission_table(world, edges)).max() > 1e-5
    if cells == 3:  # revealed kinds matter most if cells are wide
        corners = above.emission[:, :-3]
        assert convexities(corners / corners.sum(1, keepdims=True)).max() > 1e-5


def test_corners_inside_the_cells_are_detected(monkeypatch):
    """With the planted bug, the upper bound is below the optimum."""
    edges = [-1.0, 1.0]
    assert plan_on_cells(heard(2), edges).upper > two_looks()
    module = importlib.import_module("homdp_ppl.planners.quantised")
    monkeypatch.setattr(module, "spread", lambda *given: contracted(spread(*given)))
    with raises(PlanningError, "certificate"):
        plan_on_cells(heard(2), edges)
