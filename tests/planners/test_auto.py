"""auto: its choices, turns and limits."""

import importlib
import os
import signal
import time

import numpy as np
import pytest

from homdp_ppl import POMDP, explorers, learn, models
from homdp_ppl.core.plan import Plan, Planner
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners import alpha_vectors, auto, bounded_search
from tests.planners.exact import optimum, random_pomdp, signed_pomdp
from tests.raising import raises

# the attributes of the package with these names are the functions
AUTO = importlib.import_module("homdp_ppl.planners.auto")
VECTORS = importlib.import_module("homdp_ppl.planners.alpha_vectors")


def long_model(X: int, zeros: float = 0.0, H: int = 12) -> POMDP:
    """A model with too many histories for a tree."""
    reward = np.random.default_rng(0).uniform(size=(H, X, 2))
    return random_pomdp(3, X, 3, 2, 1, zeros=zeros).with_tables(reward=reward)


def numbers(plan: Plan) -> tuple[object, ...]:
    """What must be equal in two plans: everything but the time."""
    counts = {name: n for name, n in plan.statistics.items() if name != "seconds"}
    return plan.planner, plan.value, plan.upper, counts


def test_auto_reports_its_choice(monkeypatch: pytest.MonkeyPatch):
    small = random_pomdp(0, 2, 2, 2, 3)
    assert auto()(small).planner == "history_tree, chosen because there are only 42 histories"
    few = long_model(2, H=40)
    assert auto()(few).planner.startswith("alpha_vectors, chosen because there are 2 states")
    sparse = long_model(6, zeros=0.3)
    assert auto()(sparse).planner.startswith("alpha_vectors, chosen because there are 6 states")
    monkeypatch.setattr(AUTO, "FIRST", 1e12)  # enough work in the first turn, which is a search
    assert auto()(sparse).planner.startswith("bounded_search, chosen because there are 6 states")


@pytest.mark.parametrize("first", [1.0, 1e4])
def test_turns_are_counted_in_work_and_repeat(first: float, monkeypatch: pytest.MonkeyPatch):
    """With any size of the turns the bracket holds, and a second plan is the same."""
    monkeypatch.setattr(AUTO, "FIRST", first)
    monkeypatch.setattr(AUTO, "SMALL_TREE", 10)
    for seed in range(6):
        model = signed_pomdp(seed, zeros=seed % 2 == 0, X=2 + seed % 4, Y=2, A=2, H=4)
        plan, again = auto(1e-6)(model), auto(1e-6)(model)
        assert numbers(plan) == numbers(again)
        assert plan.value - 1e-12 <= optimum(model) <= plan.upper + 1e-12
        assert plan.gap <= 1e-6 + 1e-12


def test_the_search_decides_if_there_are_too_many_vectors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(AUTO, "MAX_VECTORS", 1)
    plan = auto(0.05)(long_model(5))
    assert plan.planner.startswith("bounded_search")
    assert plan.planner.endswith("and 1 attempt to find exact vectors failed")
    assert plan.gap <= 0.05


def test_the_vectors_decide_if_the_search_has_no_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.import_module("homdp_ppl.planners._search"), "MEMORY", 1)
    plan = auto(1e-4)(long_model(4, zeros=0.3, H=8))
    assert plan.planner.startswith("alpha_vectors")
    assert plan.gap <= 1e-4 + 1e-9


@pytest.mark.parametrize(
    "planner", [auto(1e-9, time_limit=0.0), alpha_vectors(1e-9, time_limit=0.0)]
)
def test_without_time_the_first_bounds_are_returned(planner):
    model = long_model(5)
    plan, best = planner(model), bounded_search(0.01)(model)
    assert plan.value <= best.upper + 1e-12
    assert plan.upper >= best.value - 1e-12
    assert plan.gap > 1e-3
    assert "interrupted" not in plan.statistics


@pytest.mark.parametrize("moment", [1, 2, 5])
@pytest.mark.parametrize("name", ["alpha_vectors", "auto", "bounded_search"])
def test_ctrl_c_ends_planning_with_a_bracket(
    name: str, moment: int, monkeypatch: pytest.MonkeyPatch
):
    """The signal arrives while a planner works; its plan is valid, and marked as interrupted."""
    monkeypatch.setattr(AUTO, "SMALL_TREE", 10)
    limits = importlib.import_module("homdp_ppl.planners._limits").Limits
    check, calls = limits.check, []

    def pressed(self: object, ahead: float = 0.0) -> None:
        calls.append(ahead)
        if len(calls) == moment:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # Python runs the handler between two instructions
        check(self, ahead)

    monkeypatch.setattr(limits, "check", pressed)
    planners: dict[str, Planner] = {
        "alpha_vectors": alpha_vectors(1e-12),
        "auto": auto(1e-12),
        "bounded_search": bounded_search(1e-12),
    }
    model = signed_pomdp(3, zeros=False, X=4, Y=3, A=3, H=5)
    plan = planners[name](model)
    assert len(calls) >= moment
    assert plan.statistics["interrupted"]
    assert plan.value - 1e-12 <= optimum(model) <= plan.upper
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_run_does_not_use_an_interrupted_plan(monkeypatch: pytest.MonkeyPatch):
    limits = importlib.import_module("homdp_ppl.planners._limits").Limits
    monkeypatch.setattr(limits, "check", lambda self, ahead=0.0: os.kill(os.getpid(), 2))
    with pytest.raises(KeyboardInterrupt):
        learn(models.load("tiger"), explorers.greedy(), bounded_search(1e-9), 2, compiled=False)


def test_sizes_are_checked_before_tables_are_copied():
    one = np.zeros(1)
    shapes = [(9000,), (1, 9000, 50, 9000), (1, 1, 9000, 2), (1, 9000, 1, 50), (9000,), (), ()]
    absurd = POMDP(*(np.broadcast_to(one if shape else one[0], shape) for shape in shapes))
    with raises(PlanningError, "model") as caught:
        auto()(absurd)
    assert "horizon" not in caught.value.problems[0].remedy  # it is 1 already


def test_time_limit_is_checked():
    with raises(PlanningError, "time_limit"):
        auto(time_limit=-1.0)
    with raises(PlanningError, "time_limit"):
        alpha_vectors(time_limit="soon")
    assert auto(time_limit=np.inf)(long_model(3, H=8)).gap <= 1e-3 + 1e-9
