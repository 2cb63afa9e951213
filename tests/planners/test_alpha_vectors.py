"""alpha_vectors against enumeration, recursion over histories, and linear programs."""

import importlib

import numpy as np
import pytest
from scipy.optimize import linprog

from homdp_ppl import POMDP, evaluate, models
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners import _belief_tree as belief_tree
from homdp_ppl.planners._pruning import prune_sums
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from tests.planners.exact import best_by_enumeration, optimum, random_pomdp
from tests.raising import raises

# the attribute of the package with this name is the function
MODULE = importlib.import_module("homdp_ppl.planners._vector_backup")


@pytest.fixture(params=["tree and vectors", "vectors only"])
def parts(request, monkeypatch):
    """Small models use the tree of beliefs only; without it, later steps use vectors."""
    if request.param == "vectors only":
        monkeypatch.setattr(belief_tree, "TREE_NUMBERS", 0)


def sizes(seed: int) -> tuple[int, int, int, int]:
    """X <= 5, Y <= 3, A <= 3, H <= 5, with at most a few thousand histories."""
    generator = np.random.default_rng(seed)
    X, Y, A = (int(generator.integers(1, top + 1)) for top in (5, 3, 3))
    return X, Y, A, int(generator.integers(1, 6 if A * Y <= 6 else 5))


def shortfall(vector: np.ndarray, kept: np.ndarray) -> float:
    """max_b min_u b . (vector - u) over kept u, by an independent linear program."""
    d = len(vector)
    gains, bounds = np.c_[kept - vector, np.ones(len(kept))], [(0, None)] * d + [(None, None)]
    total = np.r_[np.ones(d), 0][None]
    return -linprog(np.r_[np.zeros(d), -1], gains, np.zeros(len(kept)), total, [1], bounds).fun


@pytest.mark.parametrize("X", [2, 3])
@pytest.mark.parametrize("H", [1, 2, 3])
def test_best_of_all_deterministic_policies(parts, X, H):
    for seed in range(3):
        model = random_pomdp(seed, X, 2, 2, H, zeros=0.4 * (seed % 2))
        assert alpha_vectors()(model).value == pytest.approx(best_by_enumeration(model), abs=1e-11)


def test_agrees_with_the_recursion_over_histories(parts):
    """With known zeros, and rewards that depend on the step."""
    for seed in range(100):
        model = random_pomdp(seed, *sizes(seed), zeros=0.4 * (seed % 2))
        plan, best = alpha_vectors()(model), optimum(model)
        assert plan.value - 1e-12 <= best <= plan.upper + 1e-12, seed
        assert plan.gap <= 1.01e-9, seed
        assert evaluate(plan.policy, model) == pytest.approx(plan.value, abs=1e-10), seed


def certificates_hold(tolerance: float, seeds: range) -> bool:
    """Whether value <= optimum <= upper on random models, with gaps within the tolerance."""
    good = True
    for seed in seeds:
        model = random_pomdp(seed, 3 + seed % 3, 2, 3, 4)
        plan, best = alpha_vectors(tolerance)(model), optimum(model)
        good &= plan.value - 1e-12 <= best <= plan.upper + 1e-12 and plan.gap <= 1.01 * tolerance
    return good


def test_certificates_hold_when_vectors_are_dropped(monkeypatch):
    monkeypatch.setattr(belief_tree, "TREE_NUMBERS", 0)
    assert certificates_hold(0.1, range(20))
    lossy = [random_pomdp(seed, 3, 2, 3, 4) for seed in range(20)]
    # the bound is not trivial
    assert any(optimum(model) - alpha_vectors(0.3)(model).value > 1e-4 for model in lossy)


def drop_one(kept):
    return (
        kept
        if len(kept.left) < 2
        else kept._replace(left=kept.left[1:], right=kept.right[1:], points=kept.points[1:])
    )


@pytest.mark.parametrize(
    ("bug", "tolerance"), [(drop_one, 1e-9), (lambda kept: kept._replace(loss=0.0), 0.3)]
)
def test_planted_bugs_break_the_certificate(monkeypatch, bug, tolerance):
    """Planted bugs: dropping a vector that is needed, and not reporting the loss."""
    monkeypatch.setattr(belief_tree, "TREE_NUMBERS", 0)
    assert certificates_hold(tolerance, range(20))
    monkeypatch.setattr(MODULE, "prune_sums", lambda *sets: bug(prune_sums(*sets)))
    assert not certificates_hold(tolerance, range(20))


@pytest.mark.parametrize("eps", [1e-12, 1e-3, 0.1])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_pruning_against_linear_programs(d, eps):
    """The loss is within the reported bound, and no kept vector is covered by others.

    With ties and known zeros.
    """
    generator = np.random.default_rng(d)
    corners = np.concatenate([np.full((1, d), 1 / d), np.eye(d)])
    for kind in range(6):
        left, right = generator.uniform(size=(8, d)), generator.uniform(size=(5, d))
        if kind % 3 == 1:
            left, right = left.round(1), right.round(1)
        elif kind % 3 == 2:
            left, right = left * (generator.uniform(size=left.shape) < 0.5), right * 1e-3
        kept = prune_sums(left, right, corners, eps)
        sums, some = (left[:, None] + right).reshape(-1, d), left[kept.left] + right[kept.right]
        assert max(shortfall(vector, some) for vector in sums) <= kept.loss + 1e-9
        assert 0 <= kept.loss <= 1.1 * eps
        for k in range(len(some)) if len(some) > 1 else ():
            assert shortfall(some[k], np.delete(some, k, 0)) > -1e-9
        at = np.einsum("kd,kd->k", kept.points, some)
        assert (at >= (kept.points @ sums.T).max(1) - max(eps, 1e-2)).all()


def test_the_lowest_of_equal_actions_is_taken(parts):
    model = random_pomdp(0, 3, 2, 2, 4)
    double = model._replace(
        transition=model.transition[:, :, [0, 0, 1, 1]], reward=model.reward[..., [0, 0, 1, 1]]
    )
    plan = alpha_vectors()(double)
    assert plan.policy.probabilities[:, [1, 3]].sum() == 0
    assert plan.value == pytest.approx(alpha_vectors()(model).value, abs=1e-9)


def test_impossible_observations_leave_the_predicted_belief(parts):
    emission = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])  # the last is impossible
    moves = np.broadcast_to(np.eye(2)[:, None], (2, 2, 2))
    model = POMDP.of(
        np.array([0.3, 0.7]), moves, emission, np.broadcast_to([[1.0, 0.0], [0.0, 1.0]], (3, 2, 2))
    )
    policy = alpha_vectors()(model).policy
    assert policy.act([2], []).argmax() == 1  # the initial belief favours the second state
    assert policy.act([0, 2], [0]).argmax() == policy.act([0], []).argmax() == 0
    assert policy.act([2, 0, 0], [1, 0]).argmax() == 0


def test_known_zeros_make_many_states_tractable():
    """65 states, at most four of which are possible at the same time."""
    plan = alpha_vectors()(models.load("rocksample", horizon=8).pomdp)
    assert plan.gap < 1e-10
    assert plan.statistics["largest"] < 1000
    assert plan.value == pytest.approx(evaluate(plan.policy, plan.model), abs=1e-10)


@pytest.mark.parametrize("X", [2, 3])
def test_long_horizons(X):
    model = random_pomdp(1, X, 2, 2, 1)
    long = model._replace(reward=np.broadcast_to(model.reward, (500, X, 1, 2)))
    plan = alpha_vectors()(long)
    assert plan.gap <= 1.1e-9
    assert evaluate(plan.policy, long) == pytest.approx(plan.value, abs=1e-10)
    assert 0.3 < plan.value / 500 < 1


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_reward_do_not_matter(parts, unit):
    for seed in range(5):
        model = random_pomdp(seed, 4, 2, 3, 4)
        plan = alpha_vectors(1e-9 * unit)(model._replace(reward=unit * (model.reward - 0.5)))
        assert plan.value / unit + 2 == pytest.approx(optimum(model), abs=1e-8)
        assert plan.gap <= 1.01e-9 * unit


def test_too_many_sums_raise_a_planning_error(monkeypatch):
    monkeypatch.setattr(belief_tree, "TREE_NUMBERS", 0)
    model = random_pomdp(0, 4, 3, 3, 12)
    with raises(PlanningError, "max_vectors"):
        alpha_vectors(max_vectors=5)(model)


def test_invalid_options_raise_planning_errors():
    with raises(PlanningError, "tolerance", "max_vectors"):
        alpha_vectors(tolerance=-1, max_vectors=0)
