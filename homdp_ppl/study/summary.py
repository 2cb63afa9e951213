"""Summaries of runs over the seeds: one row per rule, and paired differences with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from homdp_ppl.core.arguments import number_problems, refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.precision import Array

LEVEL = 0.95  # level of the intervals


class Row(NamedTuple):
    """The results of one rule over all seeds.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> runs = learn(
    ...     models.load("tiger", horizon=2),
    ...     explorers.uniform(),
    ...     history_tree(),
    ...     episodes=3,
    ...     seed=[0, 1],
    ... )
    >>> row = study.summarise({"uniform": runs})[0]
    >>> (
    ...     row.rule,
    ...     row.seeds,
    ...     round(row.regret, 3),
    ...     round(row.gap, 3),
    ... )  # the gap of an episode is 1.852 - 2 * 1.9 / 3
    ('uniform', 2, 1.756, 0.585)
    """

    rule: str
    soundness: str
    seeds: int
    regret: float  # mean final regret
    error: float  # standard error of the regret
    gap: float  # mean gap of the last round
    optimistic: float  # share of optimistic rounds; nan if a rule has no optimistic values
    width: float  # mean of optimistic value minus optimum, over all rounds
    needed: float  # episodes until the average regret stays below epsilon, median over the seeds
    seconds: float  # mean per run, without compilation
    less: float  # regret minus that of the first rule, mean over common seeds
    interval: tuple[float, float]  # interval of that difference, paired by seed
    estimated: bool  # whether values are means of simulated episodes


@checked_but("runs")
def summarise(runs: Mapping[str, Sequence[Measured]], epsilon: float = 0.1) -> list[Row]:
    """Summarise runs in one row per rule, with differences from the first rule.

    Parameters
    ----------
    runs
        The runs of each rule by its name, one per seed.
    epsilon
        Threshold on the average regret for ``needed``.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = study.side_by_side(
    ...     world,
    ...     [explorers.oracle(world), explorers.uniform()],
    ...     history_tree(),
    ...     episodes=3,
    ...     seeds=[0, 1],
    ... )
    >>> [(row.rule, round(row.less, 3), row.needed) for row in summarise(runs)]
    [('oracle', 0.0, 1.0), ('uniform', 1.756, inf)]
    """
    if isinstance(runs, Mapping) and not runs:
        return []
    check_runs(runs, one_length=False)
    first = next(iter(runs.values()))
    return [_row(name, several, first, epsilon) for name, several in runs.items()]


def _row(name: str, runs: Sequence[Measured], first: Sequence[Measured], epsilon: float) -> Row:
    regret = np.array([run.regret[-1] for run in runs])
    error = float(regret.std(ddof=1) / np.sqrt(len(regret))) if len(regret) > 1 else np.nan
    has_optimistic = np.array([np.isfinite(run.optimistic).all() for run in runs])
    less, interval = paired_difference(runs, first)
    return Row(
        name,
        str(runs[0].about["soundness"]),
        len(runs),
        float(regret.mean()),
        error,
        float(np.mean([run.gaps[-1] for run in runs])),
        float(np.mean([run.was_optimistic.mean() for run in runs]))
        if has_optimistic.all()
        else np.nan,
        float(np.mean([np.mean(run.optimistic - run.optimum) for run in runs])),
        float(np.median([episodes_to(run, epsilon) for run in runs])),
        float(
            np.mean([sum(run.seconds.values()) - run.seconds.get("compiling", 0.0) for run in runs])
        ),
        less,
        interval,
        any(run.estimated for run in runs),
    )


@checked
def paired_difference(
    runs: Sequence[Measured], others: Sequence[Measured]
) -> tuple[float, tuple[float, float]]:
    """Mean difference in final regret between runs with the same seeds, with its 95% interval
    (Student's t).

    Runs with the same seed use the same random numbers of the world, so much of the noise cancels.
    An interval needs at least two common seeds.

    Parameters
    ----------
    runs
        The runs of one rule, one per seed.
    others
        The runs of another rule, one per seed.

    Returns
    -------
    tuple
        The mean of regret minus regret of the others, and the two ends of the interval; nan if
        there are too few seeds.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = study.side_by_side(
    ...     world,
    ...     [explorers.oracle(world), explorers.uniform()],
    ...     history_tree(),
    ...     episodes=3,
    ...     seeds=[0, 1],
    ... )
    >>> mean, (low, high) = paired_difference(runs["uniform"], runs["oracle"])
    >>> round(mean, 3), round(high - low, 3)  # 3 * (1.852 - 1.2667) for every seed
    (1.756, 0.0)
    """
    if not len(runs) or not len(others):
        got = f"{len(runs)} and {len(others)} runs"
        problem = Problem("runs", got, "at least one run of each rule")
        raise DataError("paired_difference", [problem])
    theirs = {run.about["seed"]: float(run.regret[-1]) for run in others}
    differences = np.array(
        [
            float(run.regret[-1]) - theirs[run.about["seed"]]
            for run in runs
            if run.about["seed"] in theirs
        ]
    )
    if len(differences) < 2:
        return (float(differences.mean()) if len(differences) else np.nan), (np.nan, np.nan)
    mean, error = (
        float(differences.mean()),
        float(differences.std(ddof=1) / np.sqrt(len(differences))),
    )
    reach = float(student.ppf((1 + LEVEL) / 2, len(differences) - 1)) * error
    return mean, (mean - reach, mean + reach)


@checked
def episodes_to(run: Measured, epsilon: float) -> float:
    """Number of episodes until the mixture of all policies so far stays within epsilon of the
    optimum.

    The value of that mixture is the mean of the values of the rounds (online-to-batch conversion).
    So this is the number of episodes until the average regret stays below epsilon. A first policy
    that is good by chance does not count. Infinite if the run ends earlier.

    Parameters
    ----------
    run
        A run, as :func:`homdp_ppl.learn` returns it.
    epsilon
        The distance from the optimum.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> run = learn(world, explorers.oracle(world), history_tree(), episodes=5)
    >>> episodes_to(run, 0.01)
    1.0
    """
    refuse(DataError, "episodes_to", number_problems(epsilon=epsilon))
    rounds: Array = np.arange(1, len(run.gaps) + 1)
    far = np.flatnonzero(run.regret > float(epsilon) * rounds)
    last = int(far[-1]) + 1 if len(far) else 0  # last round whose average regret is too large
    return float((last + 1) * run.episodes_per_round) if last < len(rounds) else np.inf


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
            else f"a {type(runs).__name__}"
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
