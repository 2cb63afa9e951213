"""All planners on models of full rank: tables by step, previous action and observation, and
terminal states.

References are the recursion over histories, enumeration of all policies, rational arithmetic, and
the same model with step, previous action and observation encoded by hand in the state.
"""

import importlib
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from homdp_ppl import POMDP, evaluate, models
from homdp_ppl.core.plan import Plan, WorldPlanner
from homdp_ppl.planners import (
    PLANNERS,
    Support,
    _belief_tree,
    _faces,
    alpha_vectors,
    auto,
    bounded_search,
    history_tree,
    particle_tree,
    root_bounds,
)
from homdp_ppl.planners._limits import Limits
from homdp_ppl.planners._search import Search
from tests.encodings import encoded, ending_pomdp
from tests.planners.exact import (
    best_by_enumeration,
    dependent_pomdp,
    optimum,
    rational_optimum,
    rational_pomdp,
    tree_values,
)

SEARCH = importlib.import_module("homdp_ppl.planners._search")
NAMES = sorted(name for name in PLANNERS if not isinstance(PLANNERS[name](), WorldPlanner))
OPTIONS = {"bounded_search": {"gap": 1e-6}, "auto": {"gap": 1e-6}}
# transitions by step; emissions by step, by action, by both; rewards by observation
KINDS = ["".join(parts) for parts in product(("", "t"), ("", "s", "a", "o"), ("", "y"))]
RICH = ("o", "ty", "oy", "toy")  # for expensive tests


def planner_of(name: str) -> Callable[[POMDP], Plan]:
    return PLANNERS[name](**OPTIONS.get(name, {}))


def agrees(planner: Callable[[POMDP], Plan], model: POMDP, gap: float = 1.1e-6) -> bool:
    """Whether value <= optimum <= upper, with a small gap and the value of the policy."""
    plan, best = planner(model), optimum(model)
    good = plan.value - 1e-11 <= best <= plan.upper + 1e-11 and plan.gap <= gap
    return good and bool(abs(evaluate(plan.policy, model) - plan.value) <= 1e-10)


def sizes(seed: int) -> tuple[int, ...]:
    """X <= 4, Y <= 3, A <= 3, H <= 4."""
    return tuple(int(np.random.default_rng(seed).integers(1, top)) for top in (5, 4, 4, 5))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_bounds_contain_the_optimum(name, kinds):
    planner = planner_of(name)
    for seed in range(6):
        assert agrees(planner, dependent_pomdp(seed, *sizes(seed), (0, 0.5)[seed % 2], kinds)), seed
    for seed in range(3):
        assert agrees(planner, ending_pomdp(seed, 3, 2, 2, 4, kinds)), seed


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_the_encoded_model_has_the_same_optimum(name, kinds):
    """States of the encoded model include step, previous action and observation."""
    for model in (dependent_pomdp(7, 2, 2, 2, 3, kinds=kinds), ending_pomdp(7, kinds=kinds)):
        plan, other = planner_of(name)(model), history_tree()(encoded(model))
        assert plan.value - 1e-11 <= other.value <= plan.upper + 1e-11


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_enumeration_and_rational_arithmetic(name, kinds):
    model = dependent_pomdp(3, H=2, zeros=0.3, kinds=kinds)
    plan, best = planner_of(name)(model), best_by_enumeration(model)
    assert plan.value - 1e-12 <= best <= plan.upper + 1e-12
    model = rational_pomdp(3, 3, 2, 2, 3, kinds=kinds)
    plan, exact = planner_of(name)(model), float(rational_optimum(model, 12))
    assert plan.value - 1e-13 <= exact <= plan.upper + 1e-13


def wrong_action(model: POMDP) -> POMDP:
    """The emission of another action."""
    O = model.emission  # noqa: E741
    return model._replace(emission=np.concatenate([np.roll(O[:, :-1], 1, 1), O[:, -1:]], axis=1))


def no_first_emission(model: POMDP) -> POMDP:
    """The first observation as after action 0."""
    emission = model.emission.copy()
    emission[:, -1] = emission[:, 0]
    return model._replace(emission=emission)


BUGS: dict[str, tuple[str, Callable[[POMDP], POMDP]]] = {
    "the emission of another action": ("o", wrong_action),
    "the first emission is ignored": ("a", no_first_emission),
    "transitions one step late": (
        "t",
        lambda model: model._replace(transition=np.roll(model.transition, 1, 0)),
    ),
    "emissions one step late": (
        "s",
        lambda model: model._replace(emission=np.roll(model.emission, 1, 0)),
    ),
    "rewards of the next observation": (
        "y",
        lambda model: model._replace(reward=np.roll(model.reward, 1, 2)),
    ),
    "rewards one step late": (
        "y",
        lambda model: model._replace(reward=np.roll(model.reward, 1, 0)),
    ),
}


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.parametrize("name", NAMES)
def test_planted_bugs_are_caught(name, bug):
    """A planner that reads the wrong table is caught on some of six models."""
    kinds, mistake = BUGS[bug]
    planner = planner_of(name)
    cases = [dependent_pomdp(seed, 3, 2, 2, 3, kinds=kinds) for seed in range(6)]
    assert all(agrees(planner, model) for model in cases)
    assert not all(agrees(lambda given: planner(mistake(given)), model) for model in cases)


@pytest.mark.parametrize("kinds", RICH)
@pytest.mark.parametrize("many", [False, True], ids=["merged faces", "all faces"])
def test_vectors_without_a_tree_of_beliefs(monkeypatch, kinds, many):
    monkeypatch.setattr(_belief_tree, "TREE_NUMBERS", 0)
    monkeypatch.setattr(_faces, "MAX_FACES", 200 if many else 1)
    for seed in range(12):
        model = dependent_pomdp(seed, *sizes(seed), (0, 0.4, 0.7)[seed % 3], kinds)
        assert agrees(alpha_vectors(), model, 1.1e-9), seed


@pytest.mark.parametrize("kinds", RICH)
def test_search_with_small_blocks_and_widths(monkeypatch, kinds):
    monkeypatch.setattr(SEARCH, "BLOCK", 2)
    monkeypatch.setattr(SEARCH, "WIDTH", 1)
    for seed in range(10):
        model = dependent_pomdp(seed, *sizes(seed), (0, 0.5)[seed % 2], kinds)
        assert agrees(bounded_search(1e-6), model), seed


@pytest.mark.parametrize("kinds", RICH)
def test_bounds_hold_at_every_stored_belief(kinds):
    """If rewards depend on the observation, the states of the bounds are pairs s = y X + x."""
    model = dependent_pomdp(7, 3, 3, 3, 4, 0.3, kinds)
    search = Search(model, 1e-6, Limits())
    search.run()
    assert sum(int(stage.used[1]) for stage in search.stages) > 10
    for h, stage in enumerate(search.stages[:-1]):
        for i in range(stage.used[1]):
            entries = slice(stage.begin[i], stage.begin[i + 1])
            belief, seen = np.zeros((1, 3)), stage.state[entries] // 3
            belief[0, stage.state[entries] % 3] = stage.weight[entries]
            assert len(set(seen)) == 1
            [value] = tree_values(model, belief, h, seen[:1])
            scores = stage.weight[entries] @ stage.alpha[stage.state[entries], : stage.used[0]]
            assert scores.max() <= value + 1e-12
            assert value <= stage.upper[i] + 1e-12


@pytest.mark.parametrize("kinds", RICH)
@pytest.mark.parametrize("name", NAMES)
def test_policies_act_after_every_history(name, kinds):
    """Also after observations that are impossible in the model."""
    model = dependent_pomdp(1, 3, 2, 2, 3, 0.6, kinds)
    blind = model._replace(
        emission=np.pad(model.emission, ((0, 0), (0, 0), (0, 0), (0, 1))),  # y2 is impossible
        reward=np.pad(model.reward, ((0, 0), (0, 0), (0, int("y" in kinds)), (0, 0))),
    )
    assert agrees(planner_of(name), blind)
    policy = planner_of(name)(blind).policy
    for observations in np.ndindex(3, 3, 3):
        assert policy.act(list(observations), [0, 1]).sum() == 1


@pytest.mark.parametrize("kinds", KINDS)
def test_bounds_without_search_are_ordered(kinds):
    for seed in range(3):
        model = dependent_pomdp(seed, *sizes(seed), (0, 0.5)[seed % 2], kinds)
        blind, informed, one_step, mdp = root_bounds(model)
        assert np.all(np.diff([blind, optimum(model), informed, one_step, mdp]) >= -1e-12)


def answering(horizon: int, zeros: float = 0.0) -> POMDP:
    """Each observation answers the last action; before the first one there is none, "nothing"."""
    model = dependent_pomdp(0, 3, 2, 3, 1, zeros, kinds="a")
    emission = np.pad(model.emission[0], ((0, 0), (0, 0), (0, 1)))
    emission[-1] = [0.0, 0.0, 1.0]
    reward = np.random.default_rng(1).uniform(size=(3, 3))
    return POMDP.of(model.initial, model.transition[0], emission, reward, horizon)


def test_auto_selects_planners_by_the_states_that_stay_possible():
    """An observation that is impossible in all states excludes no state."""
    assert auto()(answering(2)).planner.startswith("history_tree")
    assert Support.of(answering(2)).mixing
    assert not Support.of(answering(2)).complete
    plan = auto()(answering(20))
    assert plan.planner.startswith("alpha_vectors")
    assert plan.gap <= 1e-3
    sparse = answering(20, zeros=0.4)
    assert not Support.of(sparse).mixing
    other = auto()(sparse)
    exact = alpha_vectors()(sparse)
    assert other.value <= exact.upper + 1e-10
    assert exact.value <= other.upper + 1e-10


def with_last_action(model: POMDP) -> POMDP:
    """The same model with the last action encoded in the state, A at first."""
    X, Y, A = model.sizes
    T, r = model.moves(0), np.repeat(model.reward[:, None], A + 1, 1).reshape(-1, (A + 1) * X, 1, A)
    moves = np.zeros((A + 1, X, A, A + 1, X))
    for a in range(A):
        moves[:, :, a, a] = T[:, a]
    initial = np.concatenate([np.zeros(A * X), model.initial])
    shape = (A + 1) * X, A, (A + 1) * X
    return POMDP.of(initial, moves.reshape(shape), model.emission[0].reshape(-1, Y), r[:, :, 0])


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_long_horizons_agree_with_the_encoded_last_action(zeros):
    model = answering(25, zeros)
    for planner in (alpha_vectors(1e-6), bounded_search(1e-2)):
        native, other = planner(model), planner(with_last_action(model))
        assert native.value - 1e-9 <= other.upper
        assert other.value <= native.upper + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ["t", "o", "a", "y", "toy"])
def test_particle_tree_is_near_the_optimum(kinds):
    """The policy is not certified; with this budget it loses less than 0.06 on these models."""
    options: dict[str, Any] = {"simulations": 300, "particles": 1000, "tree_particles": 64}
    for model in (dependent_pomdp(1, 3, 2, 2, 3, kinds=kinds), ending_pomdp(1, kinds=kinds)):
        policy = particle_tree(**options)(model).policy
        assert evaluate(policy, model) >= optimum(model) - 0.06


def test_particle_tree_reads_the_tables_of_the_step_and_action():
    """A guess of the state is worth 1. Only the answer to the last action, at its step, helps."""
    stay = np.broadcast_to(np.eye(2)[:, None], (2, 2, 2))
    blank, clear = np.full((2, 2), 0.5), np.eye(2)
    emission = np.stack([[blank, blank, blank], [clear, blank, blank], [blank, blank, blank]])
    reward = np.zeros((3, 2, 2))
    reward[2] = np.eye(2)
    model = POMDP.of([0.5, 0.5], stay, emission, reward)
    assert optimum(model) == 1.0  # after action 0 at step 1, step 2 shows the state
    plan = particle_tree(simulations=200, particles=500, tree_particles=64, episodes=30)(model)
    assert evaluate(plan.policy, model) == 1.0
    assert plan.value == 1.0
    for mistake in (wrong_action, lambda given: given._replace(emission=given.emission[[2, 0, 1]])):
        policy = particle_tree(simulations=200, particles=500, tree_particles=64)(
            mistake(model)
        ).policy
        assert evaluate(policy, model) < 1.0


@pytest.mark.parametrize("name", ["tiger", "maze"])
def test_stationary_models_written_in_full_give_the_same_plan(name):
    """Tables repeated for every step, action and observation change nothing."""
    model = models.load(name, horizon=5).pomdp
    X, Y, A = model.sizes
    whole = POMDP.of(
        model.initial,
        np.repeat(model.transition, 5, 0),
        np.broadcast_to(model.emission, (5, A + 1, X, Y)),
        np.broadcast_to(model.reward, (5, X, Y, A)),
    )
    for planner in (alpha_vectors(), bounded_search(1e-6)):
        short, long = planner(model), planner(whole)
        assert long.value == pytest.approx(short.value, abs=1.1e-6)
        assert long.upper == pytest.approx(short.upper, abs=1.1e-6)
