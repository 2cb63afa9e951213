"""Recipes of partial hindsight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from homdp_ppl import (
    Episodes,
    LabelValue,
    Reveal,
    explorers,
    models,
    posterior,
    posteriors,
    rank_labels,
    report,
    study,
)
from homdp_ppl.planners import history_tree
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record
from tests.posteriors import programs

SMALL: dict[str, Any] = {"planner": history_tree(), "key": 0, "draws": 3, "policies": 1}


@cache
def worth() -> study.HindsightStudy:
    """A small study of two shares."""
    world = models.load("tiger_table", horizon=2)
    rules = [explorers.posterior_sampling()]
    return study.hindsight(world, rules, history_tree(), 2, [0], shares=(0.5, 1))


def hindsight() -> Iterator[Recipe]:
    """Protocols, label symmetries, prices of labels, and studies of hindsight."""
    fifth, tiger = Reveal(0.2), things.tiger()
    yield recipe("Reveal", Reveal, share=0.2, unit="step", states="all", episodes=5)
    yield recipe("Reveal.with_share", fifth.with_share, share=0.5)
    yield recipe("Reveal.mask", fifth.mask, seed=0, episode=3, steps=4, patient="steps")
    yield from reading("Reveal", fifth, "complete", "coin")
    (swap,) = posteriors.label_symmetries(models.load("tiger_table", horizon=2).homdp)
    yield recipe("posteriors.label_symmetries", posteriors.label_symmetries, homdp=tiger.homdp)
    yield record("posteriors.Symmetry", posteriors.Symmetry, **swap._asdict())
    model = programs.one_of_two()
    hidden: Any = [[None] * 4]
    gaps = posterior(model, Episodes([[0, 0, 0]], [[0, 0, 0]], hidden))
    yield recipe("rank_labels", rank_labels, belief=gaps, patient="draws policies", **SMALL)
    yield record("LabelValue", LabelValue, episode=0, step=1, gain=0.5)
    yield recipe(
        "study.hindsight",
        study.hindsight,
        world=models.load("tiger_table", horizon=2),
        rules=[explorers.posterior_sampling()],
        planner=history_tree(),
        episodes=2,
        seeds=[0],
        shares=(0.5, 1.0),
        protocol=Reveal(),
        model=None,
        foresight=False,
        observations=0,
        epsilon=0.1,
        patient="episodes seeds",
    )
    found = worth()
    yield recipe("study.HindsightStudy.regret", found.regret, rule="posterior_sampling")
    yield recipe("study.HindsightStudy.steps", found.steps, rule="posterior_sampling")
    yield from reading("study.HindsightStudy", found, "rows")
    yield recipe(
        "report.draw_hindsight",
        report.draw_hindsight,
        study=found,
        quantity="regret",
        axes=None,
        colours={"posterior_sampling": "black"},
    )
