"""Progress of a study: which runs are complete, which can be plotted, and which are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from homdp_ppl.learning.metrics import Saved
from homdp_ppl.study import StudyDirectory
from homdp_ppl.study.reading import Runs, run_is_complete
from homdp_ppl.study.specification import Unit


def of_model(runs: Runs, model: str, prior: str = "declared") -> dict[str, list[Saved]]:
    """The runs of one model and prior, by rule."""
    return {
        rule: several
        for (name, under, rule), several in runs.items()
        if (name, under) == (model, prior)
    }


def complete_runs(runs: Mapping[str, Sequence[Saved]]) -> dict[str, list[Saved]]:
    """The complete runs, by rule. Rules without complete runs are left out."""
    found = {
        name: [run for run in several if run_is_complete(run)] for name, several in runs.items()
    }
    return {name: several for name, several in found.items() if several}


def drawable(runs: Mapping[str, Sequence[Saved]]) -> dict[str, list[Saved]]:
    """The complete runs of each rule; if it has none, all its runs, cut to the shortest."""
    ended = complete_runs(runs)
    return {name: ended.get(name) or _cut(several) for name, several in runs.items() if several}


def missing(directory: StudyDirectory, runs: Runs, failed: Mapping[Unit, str]) -> list[str]:
    """Descriptions of the units that failed or are not complete."""
    lines = []
    for unit in directory.units():
        several = [run for run in runs.get(unit[:3], []) if int(run.about["seed"]) in unit.seeds]
        ended = sum(map(run_is_complete, several))
        if unit not in failed and ended == len(unit.seeds):
            continue
        begun = [run for run in several if not run_is_complete(run)]
        parts = [f"{ended} of {len(unit.seeds)} runs complete"]
        parts += [
            (
                f"seed {run.about['seed']} at episode {len(run.played):,} of "
                f"{run.about['episodes']:,}"
            )
            for run in begun
        ]
        reason = f"failed ({failed[unit]}); " if unit in failed else ""
        lines.append(f"{unit.name}: {reason}{', '.join(parts)}.")
    return lines


def _cut(runs: Sequence[Saved]) -> list[Saved]:
    rounds = min(len(run.values) for run in runs)
    return [
        replace(run, record=run.record.until(rounds, rounds * run.episodes_per_round))
        for run in runs
    ]
