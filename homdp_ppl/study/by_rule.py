"""Validation of runs that are given by rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from homdp_ppl.errors import DataError, Problem, with_article
from homdp_ppl.learning.metrics import Measured


def check_runs(runs: Mapping[str, Sequence[Measured]], one_length: bool = True) -> None:
    """Raise DataError unless every rule has runs with rounds.

    Parameters
    ----------
    runs
        The runs by rule.
    one_length
        Whether the runs of a rule must have the same number of rounds.
    """
    lists = isinstance(runs, Mapping) and all(
        isinstance(several, Sequence) for several in runs.values()
    )
    if not lists or not all(
        isinstance(run, Measured) for several in runs.values() for run in several
    ):
        got = (
            "a mapping with other values than lists of runs"
            if isinstance(runs, Mapping)
            else with_article(type(runs).__name__)
        )
        expected = "a list of runs for each rule: {name: [run, ...]}"
        remedy = (
            "For a study, study.read_runs(study.StudyDirectory.open(DIR)) returns them by "
            "model, prior and rule."
        )
        raise DataError("runs", [Problem("runs", got, expected, remedy)])
    problems = [] if runs else [Problem("runs", "no rules", "at least one rule with its runs")]
    for name, several in runs.items():
        lengths = {len(run.values) for run in several}
        if not lengths:
            problems.append(Problem(name, "no runs", "at least one run"))
        elif 0 in lengths:
            problems.append(
                Problem(name, "runs without rounds", "at least one round", "Resume them.")
            )
        elif one_length and len(lengths) > 1:
            got = f"runs of {min(lengths)} to {max(lengths)} rounds"
            problems.append(Problem(name, got, "runs of equal length", "Resume them."))
    if problems:
        raise DataError("runs", problems)
