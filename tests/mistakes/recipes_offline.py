"""Recipes of offline evaluation and choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from homdp_ppl import offline, report
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record

LIMITS = (offline.MarkovTest({"a": 0.5}, 0.01), offline.Agreement("per decision", 0.5, 40.0))


def offline_recipes() -> Iterator[Recipe]:
    """Evaluation, choice, planners and their parts."""
    tiger, log, policy = things.tiger().homdp, things.episodes(), things.policy()
    both: dict[str, Any] = {"homdp": tiger, "log": log}
    evaluated = offline.evaluate(tiger, log, policy, draws=4)
    chosen = offline.choose(tiger, log, [policy], search=False)
    acting = offline.estimate_behaviour(tiger, log)
    yield recipe(
        "offline.evaluate",
        offline.evaluate,
        **both,
        policy=policy,
        delta=0.1,
        behaviour=None,
        mixture="jeffreys",
        known=True,
        window=1,
        draws=4,
        seed=0,
        sampling=None,
        patient="draws window",
    )
    yield recipe(
        "offline.choose",
        offline.choose,
        **both,
        candidates=[policy],
        baseline="behaviour",
        delta=0.1,
        behaviour=None,
        planner=None,
        mixture="jeffreys",
        search=False,
        seed=0,
        sampling=None,
    )
    yield recipe("offline.estimate_behaviour", offline.estimate_behaviour, **both, window=1)
    yield recipe("offline.markov_test", offline.markov_test, **both, level=0.01)
    yield recipe(
        "offline.bonus_plan",
        offline.bonus_plan,
        **both,
        delta=0.1,
        mixture="jeffreys",
        planner=None,
    )
    yield recipe(
        "offline.value_quantile_plan",
        offline.value_quantile_plan,
        **both,
        q=0.1,
        draws=2,
        seed=0,
        planner=None,
        patient="draws",
    )
    yield recipe(
        "offline.quantile_backup_plan", offline.quantile_backup_plan, **both, q=0.1, seed=0
    )
    yield recipe(
        "offline.returns_interval",
        offline.returns_interval,
        returns=np.array([1.0, 2.0]),
        low=0.0,
        high=3.0,
        delta=0.1,
    )
    yield recipe("report.draw_evaluation", _drawn_evaluation, evaluation=evaluated)
    yield recipe("report.draw_choice", _drawn_choice, choice=chosen)
    yield recipe("offline.Behaviour.act", acting.act, observations=[0, 1], actions=[0])
    yield recipe("offline.Behaviour.chances", acting.chances, episodes=log)
    yield recipe("offline.Behaviour.graph", acting.graph)
    yield from reading("offline.Behaviour", acting, "uses")
    yield record("offline.Agreement", offline.Agreement, **LIMITS[1]._asdict())
    yield record("offline.MarkovTest", offline.MarkovTest, **LIMITS[0]._asdict())
    yield record("offline.Estimate", offline.Estimate, name="a", value=1.0, error=0.1)
    yield record("offline.ValueBelief", offline.ValueBelief, values=np.ones(3), level=0.1)
    yield record(
        "offline.Candidate", offline.Candidate, name="a", policy=None, low=0.0, high=1.0, gain=0.0
    )
    yield from reading("offline.MarkovTest", LIMITS[0], "p_value", "violated", "words")
    yield from reading("offline.Agreement", LIMITS[1], "enough", "violated", "words")
    yield from reading("offline.Estimate", offline.Estimate("a", 1.0, 0.1), "low", "high")
    belief = evaluated.belief
    yield from reading("offline.ValueBelief", belief, "mean", "deviation", "low", "high")
    yield recipe("offline.Evaluation.to_table", evaluated.to_table)
    yield recipe("offline.Choice.to_table", chosen.to_table)
    yield from reading("offline.Evaluation", evaluated, "rows", "tests")
    yield from reading("offline.Choice", chosen, "kept", "policy", "words")


def _drawn_evaluation(evaluation: Any) -> Any:
    return report.draw_evaluation(evaluation, plt.figure().add_subplot())


def _drawn_choice(choice: Any) -> Any:
    return report.draw_choice(choice, plt.figure().add_subplot())
