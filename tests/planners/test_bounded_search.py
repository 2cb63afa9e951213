"""bounded_search: certificates against the belief tree, and early stops."""

import importlib
import itertools

import numpy as np
import pytest

from homdp_ppl import POMDP, evaluate, models
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners._bounds import root_bounds
from homdp_ppl.planners._limits import Limits
from homdp_ppl.planners._search import Search
from homdp_ppl.planners._search_bounds import Children, Stage, with_points
from homdp_ppl.planners.bounded_search import bounded_search
from tests.planners.exact import optimum, signed_pomdp, tree_values
from tests.raising import raises

module = importlib.import_module("homdp_ppl.planners._search")
# the attribute of the package with this name is the function
planner = importlib.import_module("homdp_ppl.planners.bounded_search")


def check_certificate(pomdp: POMDP, plan: Plan, gap: float = np.inf) -> None:
    """Check value <= optimum <= upper, the gap, and the value of the policy."""
    assert plan.value - 1e-12 <= optimum(pomdp) <= plan.upper
    assert plan.gap <= gap
    assert evaluate(plan.policy, pomdp) == plan.value


def small_model(seed: int, zeros: bool) -> POMDP:
    return signed_pomdp(
        seed, zeros, X=1 + seed % 4, Y=1 + seed % 3, A=1 + seed // 2 % 3, H=1 + seed % 5
    )


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_certificate(seed: int, zeros: bool) -> None:
    pomdp = small_model(seed, zeros)
    gap = (1e-2, 1e-6)[seed % 2]
    check_certificate(pomdp, bounded_search(gap)(pomdp), gap)


def test_bounds_hold_at_every_stored_belief() -> None:
    pomdp = signed_pomdp(7, zeros=True, X=4, Y=3, A=3, H=5)
    search = Search(pomdp, 1e-6, Limits())
    search.run()
    # vectors are values of policies
    assert evaluate(search.policy(), pomdp) == pytest.approx(search.bounds()[1], abs=1e-12)
    for h, stage in enumerate(search.stages[:-1]):
        for i in range(stage.used[1]):
            entries = slice(stage.begin[i], stage.begin[i + 1])
            belief = np.zeros((1, 4))
            belief[0, stage.state[entries]] = stage.weight[entries]
            [value] = tree_values(pomdp, belief, h)
            assert belief.sum() == pytest.approx(1)
            assert (belief @ stage.alpha[:, : stage.used[0]]).max() <= value + 1e-12
            assert value <= stage.upper[i] + 1e-12


def careless_with_points(stage: Stage, children: Children, which: np.ndarray) -> Stage:
    """Planted bug: a sawtooth that ignores one state of each point, as if it had weight zero."""
    before = stage.used[1]
    stage = with_points(stage, children, which)
    for i in range(before, stage.used[1]):
        if stage.size[i] > 1:
            stage.inverse[stage.state[stage.begin[i]], i] = np.inf
            stage.size[i] -= 1
    return stage


def test_the_certificate_check_detects_a_careless_sawtooth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "with_points", careless_with_points)
    caught = 0
    for seed in range(20):
        pomdp = signed_pomdp(seed, zeros=True, X=4, Y=2, A=2, H=4)
        try:
            check_certificate(pomdp, bounded_search(1e-6)(pomdp), 1e-6)
        except AssertionError:
            caught += 1
    assert caught > 0


def test_sawtooth_where_points_have_zeros() -> None:
    """Guess a state that never changes, twice.

    The value is 2 at the corners and 1 in the middle between two of them. Only the fast informed
    bound, 2 everywhere, and the point in the middle are known.
    """
    stay = np.broadcast_to(np.eye(3)[:, None], (3, 3, 3))
    pomdp = POMDP.of(np.ones(3) / 3, stay, np.ones((3, 1)), np.broadcast_to(np.eye(3), (2, 3, 3)))
    middle, value, informed = np.array([0.5, 0.5, 0.0]), np.ones(1), np.full((1, 3), 2.0)
    search = Search(pomdp, 0.0, Limits())
    search.stages[0].informed[:] = 2.0
    point = Children(
        np.array([0, 2]), np.array([0, 1]), middle[:2], informed, value, value, value, value, value
    )
    search._store(0, with_points(search.stages[0], point, np.array([0])))

    def sawtooth(belief: np.ndarray, states: np.ndarray) -> float:
        c = (belief[states] / middle[states]).min()
        return c * 1.0 + 2.0 * (belief - c * middle).sum()

    for belief in np.array(
        [
            [0.5, 0.5, 0.0],
            [0.25, 0.25, 0.5],
            [0.1, 0.4, 0.5],
            [1.0, 0, 0],
            [0, 0, 1.0],
            [0.5, 0, 0.5],
        ]
    ):
        search.models[0] = search.models[0]._replace(initial=belief)
        upper = search.bounds()[0] - search.rounding
        assert upper == pytest.approx(sawtooth(belief, middle > 0), abs=1e-14)
        assert tree_values(pomdp, belief[None])[0] <= upper + 1e-14
    corner = np.array([1.0, 0, 0])
    # c must be zero if the point has a state that the belief does not have
    careless = sawtooth(corner, (middle > 0) & (corner > 0))
    assert careless < tree_values(pomdp, corner[None])[0]


@pytest.mark.parametrize("name", ["tiger_listen", "lower_bound_three"])
def test_zoo(name: str) -> None:
    pomdp = models.load(name).pomdp
    plan = bounded_search(1e-4)(pomdp)
    bounds = root_bounds(pomdp)
    assert bounds.blind - 1e-12 <= plan.value <= plan.upper <= bounds.fast_informed + 1e-10
    assert plan.gap <= 1e-4
    assert evaluate(plan.policy, pomdp) == plan.value


def test_long_horizon_without_underflow() -> None:
    pomdp = models.load("tiger", horizon=120).pomdp
    plan = bounded_search(1e-2)(pomdp)
    assert plan.gap <= 1e-2
    assert evaluate(plan.policy, pomdp) == plan.value


def test_time_limit_of_zero() -> None:
    pomdp = signed_pomdp(3, zeros=False, X=4, Y=3, A=3, H=5)
    plan = bounded_search(1e-6, time_limit=0)(pomdp)
    check_certificate(pomdp, plan)
    assert plan.statistics["passes"] == 0
    assert plan.value == pytest.approx(root_bounds(pomdp).blind)
    assert plan.upper == pytest.approx(root_bounds(pomdp).fast_informed)


@pytest.mark.parametrize("part", ["descend", "refine", "improve", "with_points"])
def test_interrupted_search_has_a_certificate(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pomdp = signed_pomdp(3, zeros=False, X=4, Y=3, A=3, H=5)
    function = getattr(module, part)
    for moment in (1, 3, 5):
        calls = itertools.count()

        def interrupted(*args: object, calls=calls, moment=moment) -> object:
            if next(calls) == moment:
                raise KeyboardInterrupt
            return function(*args)

        monkeypatch.setattr(module, part, interrupted)
        plan = bounded_search(1e-9)(pomdp)
        assert next(calls) > moment
        check_certificate(pomdp, plan)
        assert plan.gap > 1e-9


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    pomdp = signed_pomdp(3, zeros=False, X=4, Y=3, A=3, H=5)
    monkeypatch.setattr(module, "ENTRIES", 1000)
    monkeypatch.setattr(module, "MEMORY", 60_000)
    plan = bounded_search(0.0)(pomdp)
    check_certificate(pomdp, plan)
    assert plan.gap > 1e-9
    monkeypatch.setattr(planner, "MEMORY", 10_000)
    with raises(PlanningError, "model"):
        bounded_search()(pomdp)


def test_huge_models_raise_errors_before_anything_is_allocated() -> None:
    one = np.zeros(1)
    shapes = ((3000,), (3000, 50, 3000), (3000, 10), (10, 3000, 50))
    absurd = Stationary(*(np.broadcast_to(one, shape) for shape in shapes)).pomdp
    with raises(PlanningError, "model"):
        bounded_search()(absurd)


def test_a_gap_of_zero_is_reached_up_to_rounding() -> None:
    for seed in range(10):
        pomdp = signed_pomdp(seed, zeros=True, H=3)
        check_certificate(pomdp, bounded_search(0.0)(pomdp), 1e-12)


def test_certificates_hold_with_small_blocks_and_widths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BLOCK", 2)
    monkeypatch.setattr(module, "WIDTH", 1)
    for seed in range(10):
        pomdp = signed_pomdp(seed, zeros=seed % 2 == 0, X=3, Y=3, A=2, H=4)
        check_certificate(pomdp, bounded_search(1e-6)(pomdp), 1e-6)


def test_ties_go_to_the_lowest_action() -> None:
    for seed in range(5):
        pomdp = signed_pomdp(seed, zeros=False, A=2, H=4)
        twice = pomdp._replace(
            transition=pomdp.transition[:, :, [0, 1, 0, 1]],
            reward=pomdp.reward[..., [0, 1, 0, 1]],
        )
        plan = bounded_search(1e-9)(twice)
        assert np.all(plan.finite[0].probabilities[:, 2:] == 0)
        assert plan.value == pytest.approx(optimum(pomdp), abs=1e-9)


def test_all_actions_equal() -> None:
    pomdp = signed_pomdp(0, zeros=False, A=1)
    three = pomdp._replace(
        transition=np.repeat(pomdp.transition, 3, 2), reward=np.repeat(pomdp.reward, 3, 3)
    )
    assert np.all(bounded_search()(three).finite[0].probabilities[:, 0] == 1)


def test_impossible_observations_leave_the_predicted_belief() -> None:
    """Guess a state that never changes and that is more often 1; y2 is impossible."""
    pomdp = POMDP.of(
        np.array([0.3, 0.7]),
        np.broadcast_to(np.eye(2)[:, None], (2, 2, 2)),
        np.array([[0.8, 0.2, 0.0], [0.2, 0.8, 0.0]]),
        np.broadcast_to(np.eye(2), (3, 2, 2)),
    )
    plan = bounded_search(1e-9)(pomdp)
    check_certificate(pomdp, plan, 1e-9)
    assert plan.policy.act([2], [])[1] == 1
    assert plan.policy.act([1, 2], [1])[1] == 1
    for observations in itertools.product(range(3), repeat=3):
        assert plan.policy.act(observations, [0, 1]).sum() == 1


def test_plans_are_reproducible() -> None:
    pomdp = signed_pomdp(11, zeros=False, X=5, Y=3, A=3, H=6)
    first, second = (bounded_search(1e-4)(pomdp) for _ in range(2))
    assert (first.value, first.upper) == (second.value, second.upper)
    one, other = first.finite[0], second.finite[0]
    np.testing.assert_array_equal(one.successor, other.successor)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)


def test_invalid_options_raise_planning_errors() -> None:
    with raises(PlanningError, "gap", "time_limit"):
        bounded_search(gap=-1.0, time_limit=-1.0)
    assert bounded_search(time_limit=np.inf)(signed_pomdp(0, zeros=False)).gap <= 1e-3
