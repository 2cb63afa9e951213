"""The section of the page about the value of hindsight, for studies with several shares."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt

from homdp_ppl.core.reveal import Reveal
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.report.hindsight import draw_hindsight
from homdp_ppl.report.page.html import Html, number, picture
from homdp_ppl.report.page.model import Shown
from homdp_ppl.study.revealing import HindsightStudy, kind_of
from homdp_ppl.study.reveals import FORESIGHT, OBSERVATION, by_share


def shares_of(shown: Shown) -> dict[str, dict[float | str, list[Saved]]]:
    """Complete runs of all seeds by rule and share, for rules with at least two shares."""
    seeds = shown.directory.study.seeds
    return by_share({rule: runs for rule, runs in shown.ended.items() if len(runs) == seeds})


def hindsight_section(shown: Shown) -> Html:
    """Regret against the share of states revealed, with references."""
    study = _study(shown)
    numbers = "; ".join(
        f"{row.rule}, {kind_of(study, row)}: {number(row.regret)}" for row in study.rows
    )
    references = {
        FORESIGHT: "Dotted: a collector that sees the state gathers the episodes.",
        OBSERVATION: "Dashed: one more observation of each state is revealed, and no state.",
    }
    drawn = [
        references[kind]
        for kind, runs in ((FORESIGHT, study.foresight), (OBSERVATION, study.extra))
        if runs
    ]
    return picture(
        lambda: draw_hindsight(
            study, axes=plt.subplots(figsize=(6.6, 3.8), layout="constrained")[1]
        ),
        f"Regret by the share of states revealed. {numbers}.",
        "The regret against the share of states that are revealed after an episode. Lines are "
        "means over the seeds, bands contain the central 90% of them. Equal seeds use the same "
        f"random numbers, and a smaller share reveals a subset. {' '.join(drawn)}",
    )


def _study(shown: Shown) -> HindsightStudy:
    """The complete runs as a study of the shares that all its rules have."""
    found: dict[str, Any] = shares_of(shown)
    common = set.intersection(*(_numbers(each) for each in found.values()))
    if len(common) < 2:  # of rules with different shares, show the first
        rule = next(iter(found))
        found, common = {rule: found[rule]}, _numbers(found[rule])
    shares = tuple(sorted(common))
    runs = {rule: {share: each[share] for share in shares} for rule, each in found.items()}
    seeing, extra = (
        {rule: each[kind] for rule, each in found.items() if kind in each}
        for kind in (FORESIGHT, OBSERVATION)
    )
    epsilon = shown.directory.study.epsilon
    return HindsightStudy(Reveal(), shares, runs, seeing, epsilon, (), extra, 1)


def _numbers(by_kind: dict[Any, Any]) -> set[float]:
    return {share for share in by_kind if not isinstance(share, str)}
