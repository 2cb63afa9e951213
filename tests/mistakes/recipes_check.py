"""Recipes of certificates, checks and explanations of agents, and of their pictures."""

from __future__ import annotations

from collections.abc import Iterator

from homdp_ppl import explain
from homdp_ppl.report import draw_explanation, draw_live_check
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe
from tests.mistakes.recipes_agent import agent


def checks() -> Iterator[Recipe]:
    """What agents say about their declarations and decisions."""
    tiger = things.tiger()
    yield recipe(
        "Agent.certificate",
        lambda delta, mixture, known: agent().certificate(delta, mixture, known),
        delta=0.1,
        mixture="jeffreys",
        known=True,
    )
    yield recipe(
        "Agent.check",
        lambda draws, last: agent("past").check(draws, last),
        patient="draws last",
        draws=500,
        last=10,
    )
    yield recipe("report.draw_live_check", draw_live_check, check=agent("past").check(), axes=None)
    decision = explain(things.policy(), tiger, [0], [])
    yield recipe("report.draw_explanation", draw_explanation, explanation=decision, axes=None)
    yield from reading("HOMDP", tiger.homdp, "hindsight_form")
    yield from reading("Spaces", tiger.spaces, "declared")
