"""How rules did, over all seeds: one row each, and how sure their differences are."""

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

LEVEL = 0.95  # of intervals


class Row(NamedTuple):
    """How one rule did, over all seeds.

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
    ... )  # in each episode 1.852 - 2 * 1.9 / 3
    ('uniform', 2, 1.756, 0.585)
    """

    rule: str
    soundness: str
    seeds: int
    regret: float  # mean at the end
    error: float  # its standard error
    gap: float  # mean of the last round
    optimistic: float  # share of rounds; nan where nothing was promised
    width: float  # mean of optimistic value minus optimum, over all rounds
    needed: (
        float  # episodes until the average regret is below epsilon for good, median of the seeds
    )
    seconds: float  # a run, without compiling
    less: float  # regret minus that of the first rule, mean over the seeds that both have
    interval: tuple[float, float]  # of that difference, paired by seed
    estimated: bool  # whether values are means of simulated episodes


@checked_but("runs")
def summarise(runs: Mapping[str, Sequence[Measured]], epsilon: float = 0.1) -> list[Row]:
    """One row a rule; differences are to the first.

    Parameters
    ----------
    runs
        For each rule's name its runs, one a seed.
    epsilon
        How near the optimum for the episodes that are needed.

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
    promised = np.array([np.isfinite(run.optimistic).all() for run in runs])
    less, interval = paired_difference(runs, first)
    return Row(
        name,
        str(runs[0].about["soundness"]),
        len(runs),
        float(regret.mean()),
        error,
        float(np.mean([run.gaps[-1] for run in runs])),
        float(np.mean([run.was_optimistic.mean() for run in runs])) if promised.all() else np.nan,
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
    """Mean difference of the final regret between runs with the same seeds, and its interval
    (Student's, 95%).

    The world's luck is the same for the same seed, so that much of it cancels. Nothing is known
    from fewer than two seeds.

    Parameters
    ----------
    runs, others
        Of two rules, one run a seed.

    Returns
    -------
    tuple
        The mean of regret minus regret of the others, and the interval's two ends: nan where
        nothing is known.

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
    >>> round(mean, 3), round(high - low, 3)  # 3 * (1.852 - 1.2667), whatever the seed
    (1.756, 0.0)
    """
    if not len(runs) or not len(others):
        problem = Problem("runs", f"{len(runs)} and {len(others)} runs", "at least one of each")
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
    """After how many episodes the mixture of all policies so far is within epsilon of the optimum,
    and stays so.

    The value of that mixture is the mean of the rounds' values (online-to-batch), so this is where
    the average regret falls below epsilon for good; a first policy that is good by luck does not
    count. Infinite if the run ends before.

    Parameters
    ----------
    run
        What :func:`homdp_ppl.learn` returned.
    epsilon
        How near.

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
    last = (
        int(far[-1]) + 1 if len(far) else 0
    )  # rounds until the average was too large for the last time
    return float((last + 1) * run.episodes_per_round) if last < len(rounds) else np.inf


def check_runs(runs: Mapping[str, Sequence[Measured]], one_length: bool = True) -> None:
    """Refuse what is no mapping of names to runs, rules without runs, runs without rounds and, if
    asked, of different lengths.
    """
    lists = isinstance(runs, Mapping) and all(
        isinstance(several, Sequence) for several in runs.values()
    )
    if not lists or not all(
        isinstance(run, Measured) for several in runs.values() for run in several
    ):
        got = (
            "something else than lists of runs"
            if isinstance(runs, Mapping)
            else f"a {type(runs).__name__}"
        )
        expected = "for each rule's name a list of its runs: {name: [run, ...]}"
        remedy = (
            "Of a study: study.read_runs(study.StudyDirectory.open(DIR)) has them by "
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
            problems.append(Problem(name, got, "runs of one length", "Resume them."))
    if problems:
        raise DataError("runs", problems)
