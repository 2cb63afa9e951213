"""Planning with real-valued observations: brackets against closed forms, fine grids, quadrature by
SciPy, and simulation.
"""

import jax
import numpy as np
import pytest
from scipy.stats import norm

from homdp_ppl import GraphPolicy, PlanningError, PolicyError, __version__, rollout
from homdp_ppl.continuous.quantised_policy import OLDER, PARTS, QuantisedPolicy
from homdp_ppl.continuous.tabulation import quantised_pomdp
from homdp_ppl.core.policy_card import PolicyCard
from homdp_ppl.planners import alpha_vectors, bounded_search, history_tree, plan_on_cells, quantised
from homdp_ppl.storage.npz import write_arrays
from tests.chances import believable
from tests.planners.numbers import LISTEN, door, grid, heard, screen_optimum, screens, two_looks
from tests.raising import raises


def test_one_step_against_quadrature():
    (world, _), optimum, gaps = screens(), screen_optimum(), []
    for gap in (1e-1, 1e-2, 1e-4, 1e-6):
        plan = quantised(gap)(world)
        assert plan.value - 1e-9 <= optimum <= plan.upper + 1e-9
        assert plan.gap <= gap
        gaps.append(plan.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert plan.value == pytest.approx(optimum, abs=1e-6)
    assert plan.upper == pytest.approx(optimum, abs=1e-6)


def test_two_steps_against_the_closed_form():
    optimum = two_looks()
    for gap in (1e-2, 1e-4):
        plan = quantised(gap)(heard(2))
        assert plan.gap <= gap
        assert plan.value - 1e-6 <= optimum <= plan.upper + 1e-6
    # check of the closed form
    assert history_tree()(grid(2, 100)).value == pytest.approx(optimum, abs=1e-3)


def test_three_steps_against_a_fine_grid():
    """The optimum on a grid of 200 cells is slightly below that on real-valued observations."""
    fine = alpha_vectors(1e-8)(grid(3, 200)).value
    brackets = [quantised(gap)(heard()) for gap in (1e-1, 1e-2, 1e-3)]
    for plan, gap in zip(brackets, (1e-1, 1e-2, 1e-3), strict=True):
        assert plan.gap <= gap
        assert plan.value <= fine + gap
        assert fine <= plan.upper
        assert plan.statistics["cells"] == len(plan.policy.edges) + 1 <= 64
    assert brackets[-1].value - 1e-3 <= fine <= brackets[-1].upper
    assert [plan.gap for plan in brackets] == sorted((plan.gap for plan in brackets), reverse=True)


def test_three_states_against_the_closed_form_for_several_parameters_on_the_same_cells():
    plan = quantised(3e-3)(door().at(noise=1.0))
    assert plan.gap <= 3e-3
    for noise in (1.0, 0.8, 1.5):
        world = door().at(noise=noise)
        again = plan_on_cells(world, plan.policy.edges)
        assert again.value - 1e-9 <= norm.cdf(np.sqrt(3) / noise) <= again.upper + 1e-9
        assert again.gap < 0.02
        assert plan.policy.value(world) <= again.value + 1e-4  # the gap of the finite planner


def wins(policy, world, episodes=2000, seed=0):
    """Which episodes end at the right door."""
    played = rollout(jax.random.split(jax.random.key(seed), episodes), world, policy)
    return world.homdp.returns(played).round(9) == 1


def test_the_value_agrees_with_simulated_episodes():
    """Returns are 0 or 1, so wins are binomial: false-alarm rate 1e-6.

    Planted bug: a policy with shifted cells is detected.
    """
    world = door().at(noise=1.0)
    plan = quantised(3e-3)(world)
    assert believable(wins(plan.policy, world), plan.value)
    shifted = QuantisedPolicy(plan.policy.edges + 1.0, plan.policy.graph)
    assert not believable(wins(shifted, world), plan.value)
    assert believable(wins(shifted, world), shifted.value(world))


def test_the_reason_for_stopping_is_reported():
    assert "the gap of 0.1 is reached" in quantised(0.1)(heard()).planner
    few = quantised(1e-9, max_cells=6)(heard())
    assert few.gap > 1e-9
    assert few.statistics["cells"] == 6
    assert "6 cells, max_cells is reached before the gap of 1e-09" in few.planner
    small = quantised(1e-6, planner=history_tree(max_nodes=5000))(heard())
    assert "the planner failed with" in small.planner
    assert small.value <= alpha_vectors()(grid(3, 200)).value <= small.upper
    rough = quantised(1e-2, planner=bounded_search(gap=0.5))(heard())
    assert "the finite planner's gap of" in rough.planner
    assert rough.gap > 1e-2
    with raises(PlanningError, "horizon 3"):
        quantised(planner=history_tree(max_nodes=3))(heard())


def test_initial_cells():
    plan = quantised(1e-2)(heard())
    again = quantised(1e-2)(heard(), edges=plan.policy.edges)
    assert again.statistics["rounds"] == 1
    assert (again.value, again.upper) == pytest.approx((plan.value, plan.upper), abs=2e-3)
    assert again.policy.graph.names == plan.policy.graph.names
    assert "history" in plan.tree(1).nodes[1]
    outside = plan_on_cells(heard(), [-1e6, 0.0, 1e6])  # cells that never occur
    assert outside.value == pytest.approx(plan_on_cells(heard(), [0.0]).value, abs=1e-9)
    blind = plan_on_cells(heard(), [])
    assert blind.value == pytest.approx(3 * LISTEN, abs=1e-12)
    assert blind.upper > plan.upper


def test_policies_can_act_and_be_saved(tmp_path):
    plan = quantised(1e-1)(heard())
    policy = plan.policy
    assert policy.act([-9.0], []).argmax() == 2  # the tiger is left
    assert policy.act([0.0], []).argmax() == 0
    assert policy.act([0.0, 9.0], [0]).argmax() == 1
    assert policy.value(heard()) == pytest.approx(plan.value, abs=1e-12)
    policy.save(tmp_path / "policy.npz")
    loaded = QuantisedPolicy.load(tmp_path / "policy.npz")
    assert (loaded.edges == policy.edges).all()
    assert (loaded.graph.successor == policy.graph.successor).all()
    assert loaded.graph.names == policy.graph.names
    assert repr(loaded) == repr(policy)
    horizon = heard().spaces.horizon
    assert loaded.card[:5] == (horizon, "", plan.value, None, plan.upper)
    assert loaded.card.version == __version__
    assert loaded.act([0.0, 9.0], [heard().spaces.actions[0]]).argmax() == 1  # names are accepted
    with raises(PolicyError, "history"):
        loaded.act([0.0] * (horizon + 1), [0] * horizon)
    arrays = {name: getattr(policy.graph, name) for name in PARTS[1:4]}
    arrays |= {"edges": policy.edges, "actions": np.array(policy.graph.names[1])}
    write_arrays(tmp_path / "old.npz", OLDER[0], **arrays)  # as the first format was written
    old = QuantisedPolicy.load(tmp_path / "old.npz")
    assert old.card == PolicyCard()
    assert (old.act([0.0, 9.0], [0]) == policy.act([0.0, 9.0], [0])).all()
    policy.graph.save(tmp_path / "graph.npz")
    (tmp_path / "text.npz").write_text("no policy")
    for name in ("graph.npz", "text.npz"):
        with raises(PolicyError, "file"):
            QuantisedPolicy.load(tmp_path / name)
    with raises(PolicyError, "edges"):
        QuantisedPolicy([0.0], GraphPolicy([0], [[1.0]], np.zeros((1, 1, 1), int)))
    with raises(PolicyError, "observations"):
        policy.act([np.nan], [])


def test_learners_can_use_the_finite_planner():
    planner = quantised(1e-2, max_cells=32)
    assert (planner.gap, planner.max_cells) == (1e-2, 32)
    plan = planner(heard())
    again = planner.planner(quantised_pomdp(heard(), plan.policy.edges))
    assert again.value == pytest.approx(plan.value, abs=1e-12)
    exact = alpha_vectors(1e-9)
    assert quantised(planner=exact).planner is exact


def test_invalid_options_raise_planning_errors():
    with raises(PlanningError, "gap", "max_cells"):
        quantised(gap=0.0, max_cells=1)
    with raises(PlanningError, "edges"):
        plan_on_cells(heard(), [1.0, 0.0])
