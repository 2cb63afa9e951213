"""Summaries of runs over the seeds: one row per rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.arguments import number_problems, refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.errors import DataError
from homdp_ppl.explorers.explorer import PROVED
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.precision import Array
from homdp_ppl.study.by_rule import check_runs
from homdp_ppl.study.differences import paired_difference


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
    regret: float  # loss over all episodes played, mean over the seeds
    error: float  # standard error of the regret
    per_episode: float  # mean loss of an episode played
    per_policy: float  # mean gap of the rounds' policies: regret per policy, as in the theorems
    gap: float  # mean gap of the last round
    optimistic: float  # share of optimistic rounds; nan if a rule has no optimistic values
    width: float  # mean of optimistic value minus optimum, over all rounds
    needed: float  # episodes until the average regret stays below epsilon, median over the seeds
    seconds: float  # mean per run, without compilation
    less: float  # regret minus that of the first rule, mean over common seeds and episodes
    interval: tuple[float, float]  # interval of that difference, paired by seed
    estimated: bool  # whether values are means of simulated episodes
    below: int = 0  # runs whose own certificate refutes their last optimistic value

    @property
    def guaranteed(self) -> bool:
        """Whether optimism is proved for the rule, by a frequentist bound or by the posterior."""
        return self.soundness.startswith(PROVED)


@checked_but("runs")
def summarise(runs: Mapping[str, Sequence[Measured]], epsilon: float = 0.1) -> list[Row]:
    """Summarise runs in one row per rule, with differences from the first rule.

    Rules are compared by what they lost over the episodes played (``run.lost``). For HOP-V this
    differs from the regret of the paper, which counts each of the K' = K / H policies once, without
    its uniform actions. That regret per policy is ``per_policy``.

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
    regret = np.array([run.lost[-1] for run in runs])
    error = float(regret.std(ddof=1) / np.sqrt(len(regret))) if len(regret) > 1 else np.nan
    has_optimistic = np.array([np.isfinite(run.optimistic).all() for run in runs])
    less, interval = paired_difference(runs, first)
    return Row(
        name,
        str(runs[0].about["soundness"]),
        len(runs),
        float(regret.mean()),
        error,
        float(np.mean([run.lost[-1] / len(run.lost) for run in runs])),
        float(np.mean([run.gaps.mean() for run in runs])),
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
        sum(run.below_certificate for run in runs),
    )


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
