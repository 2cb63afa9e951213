"""Common mistakes in custom planners and rules, and the errors that they raise."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from homdp_ppl import HOMDPError, explorers, learn, make_plan, report
from homdp_ppl.confidence import empirical
from homdp_ppl.explorers import About, Deployment, Explorer, Objective, Proposal
from homdp_ppl.planners import alpha_vectors, auto, bounded_search, history_tree
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
    ("propose", "told"),
    [
        (lambda key, state: 3, "a Proposal"),
        (lambda key, state: Proposal(empirical(state.homdp, state.counts)), "axis of candidates"),
        (
            explorers.value_quantile(draws=3).propose,
            r"got 3 models; expected 1\. Or change the rule: Objective\(candidates=3\)",
        ),
    ],
)
def test_proposals_that_are_none(propose, told, compiled):
    with pytest.raises(HOMDPError, match=told):
        by_rule(propose, compiled=compiled)


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
def test_numbers_that_make_no_model(spoil, compiled):
    with pytest.raises(HOMDPError, match="propose: got numbers that make no model"):
        by_rule(
            lambda key, state: Proposal(spoil(explorers.greedy().propose(key, state).models)),
            compiled=compiled,
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Deployment(random_actions=1.5), "random_actions: got 1.5; expected a probability"),
        (lambda: Deployment(replan=WRONG), "replan: got 'wrong'"),
        (lambda: Objective(candidates=0), "candidates: got 0"),
        (
            lambda: Objective(pick=2),
            r"pick: got 2; expected None, or one of the candidates 1\.\.1",
        ),
        (lambda: Objective(candidates=3, pick=0), "pick: got 0"),
        (lambda: About("mine", guarantee=WRONG), "guarantee: got 'wrong'"),
        (
            lambda: Explorer(WRONG, propose=impatient),
            r"about: got 'wrong'; expected an About",
        ),
        (
            lambda: Explorer(About("mine"), propose=WRONG),
            "propose: got 'wrong'; expected a function",
        ),
    ],
)
def test_impossible_facts_about_a_rule(make, message):
    """Raised when the rule is made: a traced index beyond the end would be clamped silently."""
    with pytest.raises(HOMDPError, match=message):
        make()


def test_a_rule_that_cannot_be_traced():
    """Whoever asks for the compiled loop learns why not; others get the readable one."""
    with pytest.raises(HOMDPError, match=r"Python `if` on a traced value.*jnp\.where"):
        by_rule(impatient, compiled=True)
    rule = Explorer(About("mine"), propose=impatient)
    run = learn(small("tiger"), rule, TREE, 1000, stop_after=1)
    assert run.loop == "readable loop (mine needs more than array functions on tiger)"


def test_planners_that_make_no_plan():
    with pytest.raises(HOMDPError, match="make_plan"):
        learn(small("tiger"), explorers.greedy(), lambda pomdp: 3, 2)
    plan = TREE(small("tiger").pomdp)
    assert make_plan(plan.policy, plan.value, plan.upper, plan.model, "mine").value == plan.value


@pytest.mark.parametrize("factory", [history_tree, alpha_vectors, bounded_search, auto])
def test_planners_want_numbers(factory):
    with pytest.raises(HOMDPError, match=r"world\.pomdp"):
        factory()(small("tiger"))
    with pytest.raises(HOMDPError, match=r"model\.at\(\.\.\.\)\.pomdp"):
        factory()(small("tiger").homdp)


def test_pictures_want_runs_by_rule():
    run = learn(small("tiger"), explorers.greedy(), TREE, 2, compiled=False)
    for wrong in ([run], run, {"greedy": run}):
        with pytest.raises(HOMDPError, match=r"\{name: \[run, \.\.\.\]\}"):
            report.draw_regret(wrong)


def test_certificates_that_are_none():
    """What contradicts itself is refused when it is made.

    What its policy contradicts, when it is used.
    """
    plan = TREE(small("tiger").pomdp)
    with pytest.raises(HOMDPError, match="got value 2 and upper 1; expected value <= upper"):
        make_plan(plan.policy, 2.0, 1.0, plan.model, "mine")
    with pytest.raises(HOMDPError, match="expected a GraphPolicy"):
        make_plan("go left", 1.0, 1.0, plan.model, "mine")
    with pytest.raises(HOMDPError, match="expected value <= upper"):
        make_plan(plan.policy, float("nan"), 1.0, plan.model, "mine")
    for wrong in (replace(plan, value=1.0, upper=1.0), replace(plan, value=3.0, upper=3.0)):
        with pytest.raises(HOMDPError, match="for a policy that is worth"):
            learn(small("tiger"), explorers.greedy(), lambda pomdp, wrong=wrong: wrong, 2)
