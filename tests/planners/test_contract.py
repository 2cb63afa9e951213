"""The contract of all planners: valid certificates, policies that act after every history, and
agreement with each other.
"""

import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from homdp_ppl import POMDP, HOMDPError, PlanningError, evaluate, models, tabular
from homdp_ppl.core.plan import Plan, Planner, TreePlanner, WorldPlanner
from homdp_ppl.planners import (
    PLANNERS,
    alpha_vectors,
    auto,
    bounded_search,
    history_tree,
    remaining_steps,
)
from homdp_ppl.planners import (
    _belief_tree as belief_tree,
)
from tests.planners.exact import (
    best_by_enumeration,
    random_pomdp,
    rational_optimum,
    rational_pomdp,
    same_models,
)
from tests.raising import raises

ROOT = Path(__file__).parents[2]
NAMES = sorted(name for name in PLANNERS if not isinstance(PLANNERS[name](), WorldPlanner))
OPTIONS = {
    "alpha_vectors": {"tolerance": 1e-3},
    "auto": {"gap": 0.1},
    "bounded_search": {"gap": 0.1},
    "history_tree": {"max_nodes": 7},
    "particle_tree": {"simulations": 20, "particles": 50, "tree_particles": 16},
    "quantised": {"gap": 0.1},
}  # options of every planner that are not its defaults


@pytest.mark.parametrize("name", PLANNERS)
def test_planners_with_equal_options_are_equal(name):
    factory, options = PLANNERS[name], OPTIONS[name]
    assert factory.__module__ == f"homdp_ppl.planners.{name}"
    assert factory() == factory()
    assert hash(factory()) == hash(factory())
    assert factory(**options) == factory(**options) != factory()
    assert pickle.loads(pickle.dumps(factory(**options))) == factory(**options)
    assert isinstance(factory(), Planner)


def test_planners_on_trees_are_equal_by_value_too():
    assert isinstance(history_tree(), TreePlanner)
    assert history_tree().optimistic(None, caps=remaining_steps) == history_tree(
        caps=remaining_steps
    )
    assert not any(
        isinstance(PLANNERS[name](), TreePlanner) for name in {*NAMES} - {"history_tree"}
    )
    history_tree()(random_pomdp(0, 2, 2, 2, 3))
    with raises(PlanningError, "horizon 3"):  # although the tree is cached
        history_tree(max_nodes=7)(random_pomdp(0, 2, 2, 2, 3))


@pytest.mark.parametrize("name", PLANNERS)
def test_all_planners_return_plans(name):
    world = models.load("gaussian_tiger" if name not in NAMES else "tiger", horizon=2)
    planner = PLANNERS[name](
        **OPTIONS[name] | ({"max_nodes": 99} if name == "history_tree" else {})
    )
    plan = planner(world if name not in NAMES else world.pomdp)
    assert isinstance(plan, Plan)
    assert plan.planner.startswith(("history_tree", name))
    assert plan.certified == (name != "particle_tree")
    assert plan.spaces.horizon == 2
    assert plan.policy.act([0 if name in NAMES else 0.1], []).sum() == 1
    assert all(isinstance(number, int | float) for number in plan.statistics.values())
    if plan.certified:
        assert plan.value <= plan.upper
        assert len(plan.tree(1)) > 1
        assert "below the optimum" in repr(plan) or "exact" in repr(plan)
    else:
        assert plan.upper == math.inf
        assert "not certified" in repr(plan)


@pytest.mark.parametrize("name", NAMES)
def test_best_of_all_deterministic_policies(name):
    for seed in range(3):
        for model in (random_pomdp(seed, 2, 2, 2, 2), random_pomdp(seed, 3, 2, 2, 2, zeros=0.4)):
            plan, best = PLANNERS[name]()(model), best_by_enumeration(model)
            assert plan.value - 1e-12 <= best <= plan.upper + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_exact_rational_arithmetic(name):
    for seed in range(5):
        model = rational_pomdp(seed, 3, 2, 2, 3)
        plan, exact = PLANNERS[name]()(model), float(rational_optimum(model, 12))
        assert plan.value - 1e-13 <= exact <= plan.upper + 1e-13


@pytest.mark.parametrize(
    "tree",
    [True, pytest.param(False, marks=pytest.mark.slow)],
    ids=["tree and vectors", "vectors only"],
)
def test_all_planners_agree_on_1000_models(tree, monkeypatch):
    """They agree within their certificates, and each value is that of the policy.

    alpha_vectors uses a tree of beliefs for small models. Without it, all steps but the first use
    vectors.
    """
    if not tree:
        monkeypatch.setattr(belief_tree, "TREE_NUMBERS", 0)
    exact, vectors, search = history_tree(), alpha_vectors(), bounded_search(gap=1e-4)
    for seed in range(1000):
        X, Y, A, H = (int(np.random.default_rng(seed).integers(1, top)) for top in (5, 4, 4, 5))
        model = random_pomdp(seed, X, Y, A, H, zeros=0.3 * (seed % 2))
        optimum = exact(model).upper
        for planner in (vectors, search):
            plan = planner(model)
            assert plan.value - 1e-11 <= optimum <= plan.upper + 1e-11, (seed, plan)
            assert plan.value == pytest.approx(evaluate(plan.policy, model), abs=1e-10)
        assert plan.gap <= 1e-4 + 1e-12
        assert vectors(model).value == pytest.approx(optimum, abs=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_policies_act_after_every_history(name):
    """Also after observations that are impossible in the model."""
    model = random_pomdp(1, 3, 2, 2, 3, zeros=0.3)
    # y2 is impossible
    blind = model.with_tables(emission=np.concatenate([model.shows(0), np.zeros((3, 1))], axis=1))
    policy = PLANNERS[name]()(blind).policy
    for observations in np.ndindex(3, 3, 3):
        actions = []
        for h in range(3):
            chances = policy.act(list(observations[: h + 1]), actions)
            assert chances.sum() == 1
            actions.append(int(chances.argmax()))


@pytest.mark.parametrize("name", NAMES)
def test_metamorphic_relations(name):
    planner = PLANNERS[name]()
    for seed in range(3):
        model = random_pomdp(seed, 3, 3, 2, 3)
        plan = planner(model)
        for other in map(planner, same_models(model)):
            assert other.value <= plan.upper + 1e-11
            assert plan.value <= other.upper + 1e-11
        scaled = planner(model._replace(reward=2.0 * model.reward + 0.5))
        assert scaled.value <= 2 * plan.upper + 1.5 + 1e-11
        assert 2 * plan.value + 1.5 <= scaled.upper + 1e-11


@pytest.mark.parametrize("name", NAMES)
def test_ties_go_to_the_lowest_action(name):
    model = random_pomdp(0, 2, 2, 3, 3).with_tables(reward=np.ones((3, 2, 3)))
    policy = PLANNERS[name]()(model).policy
    assert all(
        policy.act([y, y, y][:h], [0] * (h - 1)).argmax() == 0 for y in range(2) for h in (1, 2, 3)
    )


@pytest.mark.parametrize(
    "planner",
    [alpha_vectors(), bounded_search(), auto()],
    ids=["alpha_vectors", "bounded_search", "auto"],
)
def test_long_horizons_without_underflow(planner):
    hears = np.array([[0.85, 0.15], [0.15, 0.85]])
    moves = np.array([[[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]])
    model = (
        tabular(T=moves, O=hears, initial=[0.5, 0.5], reward=[[0.5, 1.0], [0.5, 0.0]], horizon=500)
        .at()
        .pomdp
    )
    plan = planner(model)
    assert np.isfinite(plan.value)
    assert 250 <= plan.value <= plan.upper <= 500
    assert plan.gap <= 2e-3


GOOD = random_pomdp(0, 3, 2, 2, 2)
INVALID = {  # models, and where their first problem is
    "a reward for one step": (GOOD._replace(reward=GOOD.reward[0]), "reward"),
    "a batch": (POMDP(*(np.stack([part, part]) for part in GOOD)), "initial"),
    "no steps": (GOOD._replace(reward=GOOD.reward[:0]), "reward"),
    "a missing state": (GOOD._replace(transition=GOOD.transition[:, :2]), "transition"),
    "a reward that is nan": (
        GOOD._replace(reward=GOOD.reward * np.nan),
        "reward[step 1, x0, a0]",
    ),
    "a row with nan": (
        GOOD._replace(transition=GOOD.transition * np.nan),
        "transition[x0, a0]",
    ),
    "rows that sum to 2": (GOOD._replace(emission=2 * GOOD.emission), "emission[x0]"),
    "negative entries": (
        GOOD._replace(transition=1.5 * GOOD.transition - 0.5 / 3),
        "transition[x0, a1, x2]",
    ),
    "a world": (models.load("tiger", horizon=2), "model"),
}


@pytest.mark.parametrize("wrong", INVALID)
@pytest.mark.parametrize("name", NAMES)
def test_invalid_models_raise_planning_errors(name, wrong):
    model, where = INVALID[wrong]
    with raises(PlanningError, where):
        PLANNERS[name]()(model)


@pytest.mark.parametrize("name", NAMES)
def test_lists_and_float32_tables_are_accepted(name):
    """The plan has a copy in float64, which the caller cannot change."""
    given = POMDP(*(part.astype(np.float32) for part in GOOD))
    plan = PLANNERS[name]()(given)
    assert all(part.dtype == np.float64 for part in plan.model if part is not plan.model.terminal)
    assert plan.model.terminal.dtype == bool
    assert plan.value == pytest.approx(
        PLANNERS[name]()(POMDP(*(part.tolist() for part in given))).value, abs=1e-12
    )
    given.reward[:] = 0
    assert plan.model.reward.max() > 0


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("auto", "gap"),
        ("bounded_search", "gap"),
        ("alpha_vectors", "tolerance"),
        ("history_tree", "max_nodes"),
    ],
)
def test_invalid_options_raise_errors(name, option):
    for wrong in (-1, "much", np.nan):
        with raises(HOMDPError, option):
            PLANNERS[name](**{option: wrong})


ABSURD = """
import resource, numpy as np
from homdp_ppl import PlanningError
from homdp_ppl.planners import alpha_vectors, bounded_search, history_tree
from tests.planners.exact import random_pomdp
model = random_pomdp(0, 3, 4, 3, 1)
for planner in (history_tree(), alpha_vectors(), bounded_search()):  # compile and warm up
    planner(model)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
vectors = alpha_vectors(max_vectors=1000)
for planner, steps in ((history_tree(), 12), (history_tree(), 2000), (vectors, 60)):
    long = model.with_tables(reward=np.random.default_rng(0).uniform(size=(steps, 3, 3)))
    try:
        planner(long)
    except PlanningError as error:
        assert "bounded_search" in str(error), error
    else:
        raise AssertionError(f"planned {steps} steps")
reward = np.random.default_rng(0).uniform(size=(50, 20, 20))
wide = random_pomdp(0, 20, 100, 20, 1).with_tables(reward=reward)
assert bounded_search(time_limit=1.0)(wide).gap > 0
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_huge_models_do_not_run_out_of_memory():
    """Resident memory, measured in a separate process, grows by megabytes although the requested
    tree has 10^20 histories.
    """
    done = subprocess.run(
        [sys.executable, "-c", ABSURD], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1500  # MiB; bounded_search may use its memory limit
