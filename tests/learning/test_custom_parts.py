"""Common mistakes in custom planners and rules, and the errors that they raise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from homdp_ppl import HOMDPError, explorers, learn, make_plan, report
from homdp_ppl.confidence import empirical
from homdp_ppl.explorers import About, Deployment, Explorer, Objective, Proposal
from homdp_ppl.planners import alpha_vectors, auto, bounded_search, history_tree
from tests.raising import raises
from tests.runs import TREE, small

WRONG: Any = "wrong"


def by_rule(propose, episodes=2, compiled=False):
    rule = Explorer(About("mine"), propose=propose)
    learn(small("tiger"), rule, TREE, episodes, compiled=compiled)


def impatient(key, state):
    if state.counts.visits.sum() > 3:
        return Proposal(state.homdp)
    return explorers.greedy().propose(key, state)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("propose", "got"),
    [
        (lambda key, state: 3, "a int"),
        (lambda key, state: Proposal(empirical(state.homdp, state.counts)), "axis of candidates"),
        (explorers.value_quantile(draws=3).propose, "3 models"),
    ],
)
def test_invalid_proposals(propose, got, compiled):
    with raises(HOMDPError, "propose") as caught:
        by_rule(propose, compiled=compiled)
    assert got in caught.value.problems[0].got


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda model: model._replace(reward=model.reward * np.nan),
        lambda model: model._replace(transition=model.transition * 1.5),
        lambda model: model._replace(emission=2 * model.emission - 1 / model.emission.shape[-1]),
    ],
    ids=["no number", "rows above one", "negative"],
)
def test_invalid_numbers_in_a_model(spoil, compiled):
    with raises(HOMDPError, "propose"):
        by_rule(
            lambda key, state: Proposal(spoil(explorers.greedy().propose(key, state).models)),
            compiled=compiled,
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Deployment(random_actions=1.5), "random_actions"),
        (lambda: Deployment(replan=WRONG), "replan"),
        (lambda: Objective(candidates=0), "candidates"),
        (
            lambda: Objective(pick=2),
            "pick",
        ),
        (lambda: Objective(candidates=3, pick=0), "pick"),
        (lambda: About("mine", guarantee=WRONG), "guarantee"),
        (
            lambda: Explorer(WRONG, propose=impatient),
            "about",
        ),
        (lambda: Explorer(About("mine"), propose=WRONG), "propose"),
    ],
)
def test_invalid_attributes_of_a_rule(make, message):
    """Raised when the rule is created: a traced index beyond the end would be clamped silently."""
    with raises(HOMDPError, message):
        make()


def test_a_rule_that_cannot_be_traced():
    """With compiled=True the error gives the reason; otherwise the readable loop runs."""
    with raises(HOMDPError, "compiled"):
        by_rule(impatient, compiled=True)
    rule = Explorer(About("mine"), propose=impatient)
    run = learn(small("tiger"), rule, TREE, 1000, stop_after=1)
    assert run.loop == "readable loop (mine needs more than array functions on tiger)"


def test_planners_that_return_no_plan():
    with raises(HOMDPError, "planner"):
        learn(small("tiger"), explorers.greedy(), lambda pomdp: 3, 2)
    plan = TREE(small("tiger").pomdp)
    assert make_plan(plan.policy, plan.value, plan.upper, plan.model, "mine").value == plan.value


@pytest.mark.parametrize("factory", [history_tree, alpha_vectors, bounded_search, auto])
def test_planners_require_numbers(factory):
    with raises(HOMDPError, "model"):
        factory()(small("tiger"))
    with raises(HOMDPError, "model"):
        factory()(small("tiger").homdp)


def test_pictures_require_runs_by_rule():
    run = learn(small("tiger"), explorers.greedy(), TREE, 2, compiled=False)
    for wrong in ([run], run, {"greedy": run}):
        with raises(HOMDPError, "runs"):
            report.draw_regret(wrong)


def test_invalid_certificates():
    """Inconsistent bounds raise an error when the plan is created.

    Bounds that contradict the policy raise one when the plan is used.
    """
    plan = TREE(small("tiger").pomdp)
    with raises(HOMDPError, "certificate"):
        make_plan(plan.policy, 2.0, 1.0, plan.model, "mine")
    with raises(HOMDPError, "policy"):
        make_plan("go left", 1.0, 1.0, plan.model, "mine")
    with raises(HOMDPError, "certificate"):
        make_plan(plan.policy, float("nan"), 1.0, plan.model, "mine")
    for wrong in (replace(plan, value=1.0, upper=1.0), replace(plan, value=3.0, upper=3.0)):
        with raises(HOMDPError, "planner"):
            learn(small("tiger"), explorers.greedy(), lambda pomdp, wrong=wrong: wrong, 2)
