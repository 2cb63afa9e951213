"""The compiled loop takes the decisions of the readable loop.

It can stop, resume and run several seeds together.
"""

import gc
import weakref
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pytest

from homdp_ppl import Counts, Run, World, evaluate, explorers, learn, models
from homdp_ppl.errors import ParameterError
from homdp_ppl.explorers import EXPLORERS, Explorer
from homdp_ppl.learning.compilable import plain_reason, traced_reason
from homdp_ppl.learning.compiled import STRETCH, compiled_loop
from homdp_ppl.learning.learner import Learner
from homdp_ppl.planners import alpha_vectors, history_tree
from tests import rules
from tests.compiling import compilations
from tests.raising import raises
from tests.runs import OPTIONS, TREE, differences, small

EPISODES = 2300  # more than two stretches
SEED = 3
READABLE = 120  # rounds that the readable loop runs too
TOLERANCE = 1e-9  # NumPy and XLA add in different orders


OPTIONS_OF: dict[str, dict[str, Any]] = {  # fewer plans, shorter phases
    "epsilon_greedy": {"epsilon": 0.2},
    "hop_b_class": {"scale": 0.1},
    "quantile_bonus": {"bound": True},
    "value_quantile": {"q": 0.7, "draws": 5},
}
NEVER = {"hop_v"}  # compiled
RULES = {
    "hop_b, scaled": lambda world: explorers.hop_b(scale=0.1),
    "hop_b, nothing known": lambda world: explorers.hop_b(scale=0.1, known=False),
} | {
    name: lambda world, name=name: rules.example(name, world, **OPTIONS_OF.get(name, {}))
    for name in EXPLORERS
    if name not in NEVER
}
PAIRS = [
    ("hop_b_class", "tiger_table"),
    ("tight", "lock"),
    ("quantile_backup", "lock"),
    ("posterior_sampling", "tiger_listen"),
    ("epsilon_greedy", "tiger"),
]
OTHERS = [
    pair for pair in ((rule, name) for rule in RULES for name in OPTIONS) if pair not in PAIRS
]


@cache
def rule(name: str, model: str) -> Explorer:
    """One object per pair."""
    return RULES[name](small(model))


@cache
def compiled(name: str, model: str) -> Run:
    """A complete run of the compiled loop."""
    return learn(small(model), rule(name, model), TREE, EPISODES, SEED, compiled=True)


def same_decisions(name: str, model: str) -> None:
    """Trajectories, planned rounds, numbers of plans and impossible observations are the same.

    Values within 1e-9.
    """
    fast = compiled(name, model)
    assert fast.loop == "compiled loop"
    plain = learn(
        small(model), rule(name, model), TREE, EPISODES, SEED, stop_after=READABLE, compiled=False
    )
    assert len(plain.values) == READABLE
    assert differences(plain, fast, READABLE, TOLERANCE) == []
    assert fast.gaps.min() >= -TOLERANCE
    np.testing.assert_array_equal(
        fast.state.counts.transition, Counts.of(fast.episodes, small(model)).transition
    )
    np.testing.assert_array_equal(
        fast.state.counts.emission, Counts.of(fast.episodes, small(model)).emission
    )
    for k in (0, 77, 1500, EPISODES - 1):
        assert fast.values[k] == pytest.approx(
            evaluate(fast.policy_at(k), small(model).pomdp), abs=TOLERANCE
        )
    assert fast.values[-1] == pytest.approx(
        evaluate(fast.policy, small(model).pomdp), abs=TOLERANCE
    )


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_same_decisions(name, model):
    same_decisions(name, model)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), OTHERS)
def test_same_decisions_of_all_rules_on_all_models(name, model):
    same_decisions(name, model)


def test_the_comparison_can_fail():
    """Planted: a run of another seed, and one that planned differently in a single round."""
    run = compiled("greedy", "random")
    other = learn(
        small("random"),
        rule("greedy", "random"),
        TREE,
        EPISODES,
        SEED + 1,
        stop_after=20,
        compiled=False,
    )
    assert set(differences(other, run, 20)) >= {"states", "observations"}
    shifted = run.record.values + np.eye(1, EPISODES, 7)[0] * 1e-8
    record = type(run.record)(
        **{f.name: getattr(run.record, f.name) for f in fields(run.record)} | {"values": shifted}
    )
    wrong = Run(**{f.name: getattr(run, f.name) for f in fields(run)} | {"record": record})
    assert differences(run, wrong, 120, TOLERANCE) == ["values"]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("greedy", "random"),
        ("tight", "lock"),
        ("epsilon_greedy", "tiger"),
        ("posterior_sampling", "tiger_listen"),
    ],
)
def test_a_resumed_run_equals_an_uninterrupted_run(name, model):
    """Stop at the first episode, inside stretches and at their ends; nothing is compiled again."""
    whole = compiled(name, model)
    with compilations() as made:
        run = learn(
            small(model), rule(name, model), TREE, EPISODES, SEED, stop_after=0
        )  # to be resumed: not a short run
        assert run.loop == "compiled loop"
        assert len(run.values) == 0
        assert run.decision is None
        for stop in (1, 7, STRETCH - 1, STRETCH, STRETCH + 501, None):
            run = run.resume(stop)
            assert len(run.values) == (EPISODES if stop is None else stop)
        again = learn(small(model), rule(name, model), TREE, EPISODES, SEED)
    assert made == []
    assert differences(run, whole) == []
    assert differences(again, whole) == []
    assert again.loop == "compiled loop"
    assert run.resume() is run
    for ours, theirs in zip(
        run.policy.tree_flatten()[0], whole.policy.tree_flatten()[0], strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_several_seeds_give_several_runs():
    """Runs come in the given order and equal single runs; each can be resumed alone."""
    world, greedy = small("random"), rule("greedy", "random")
    both = learn(world, greedy, TREE, EPISODES, [SEED + 1, SEED], stop_after=1203, compiled=True)
    assert [run.task.seed for run in both] == [SEED + 1, SEED]
    assert differences(both[1], compiled("greedy", "random"), 1203) == []
    alone = learn(world, greedy, TREE, EPISODES, SEED + 1, stop_after=1203, compiled=True)
    assert differences(both[0], alone) == []
    assert set(differences(both[0], both[1])) >= {"observations", "states"}
    assert differences(both[1].resume(), compiled("greedy", "random")) == []


def test_equal_parts_share_compiled_code():
    """A loop that creates equal rules and planners repeatedly compiles only once.

    Planted: another option is compiled again.
    """
    world = small("random")

    def run(scale):
        rule = explorers.hop_b(scale=scale)
        return learn(world, rule, history_tree(), 30, compiled=True)

    first = run(0.3)
    with compilations() as made:
        again = [run(0.3) for _ in range(3)]
        loops = {id(compiled_loop(each.task)) for each in (first, *again)}
    assert made == []
    assert len(loops) == 1
    assert all(differences(first, each) == [] for each in again)
    with compilations() as made:
        run(0.31)
    assert made
    assert set(first.seconds) == {"compiling", "compiled"}


def test_compiled_code_does_not_keep_the_world_alive():
    """Not even the compiled code of the oracle, which plans in the world."""
    world = models.load("tiger", horizon=2)
    for make in (explorers.oracle, lambda world: explorers.greedy()):
        assert learn(world, make(world), TREE, 5, compiled=True).compiled
    gone = weakref.ref(world)
    del world
    gc.collect()
    assert gone() is None


def slow_tiger() -> World:
    """A tiger that sometimes stays after a door was opened, and moves while you listen."""
    return small("tiger_table").homdp.at(
        T=np.full((2, 3, 2), [0.6, 0.4]), O=small("tiger_table").pomdp.shows(0)
    )


def reason(world, explorer, planner, model, foresight):
    learner = Learner(model, explorer, planner, 10)
    state = learner.init()
    found = plain_reason(world, learner, state, foresight) or traced_reason(learner, state)
    return found and found.reason


def test_why_some_runs_are_not_compiled():
    tiger, table = small("tiger"), small("tiger_table")
    greedy = explorers.greedy()
    assert reason(tiger, greedy, TREE, tiger.homdp, False) is None
    assert reason(tiger, greedy, TREE, table.homdp, False) is None
    assert reason(table, explorers.greedy(known=False), TREE, tiger.homdp, False) is None
    reasons = {
        "the world allows outcomes that the learner's declaration excludes": (
            slow_tiger(),
            greedy,
            TREE,
            tiger.homdp,
            False,
        ),
        "the planner cannot be traced": (tiger, greedy, alpha_vectors(), tiger.homdp, False),
        "quantile_bonus needs more than array functions on tiger": (
            tiger,
            explorers.quantile_bonus(),
            TREE,
            tiger.homdp,
            False,
        ),
        "foresight is played step by step": (tiger, greedy, TREE, tiger.homdp, True),
    }
    for words, arguments in reasons.items():
        assert reason(*arguments) == words
        world, explorer, planner, model, foresight = arguments
        with raises(ParameterError, "compiled"):
            learn(world, explorer, planner, 10, model=model, foresight=foresight, compiled=True)
        run = learn(world, explorer, planner, 1001, model=model, foresight=foresight, stop_after=2)
        assert run.loop == f"readable loop ({words})"
    few = "readable loop (few episodes: compiling would take longer)"
    assert [run.loop for run in learn(tiger, greedy, TREE, 10, [0, 1])] == [few, few]
    assert learn(tiger, greedy, TREE, 10, compiled=False).loop == "readable loop (as requested)"
