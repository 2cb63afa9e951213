"""Paired differences between rules: intervals, sign-flip tests, and Holm's correction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.stats import beta
from scipy.stats import t as student

from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.precision import Array
from homdp_ppl.study.by_rule import check_runs

LEVEL = 0.95  # level of the intervals
FLIPS = 2**14  # all sign flips are enumerated up to this number, more are drawn at random
APART = 0.5  # two clusters: the largest distance between neighbours exceeds this share of the range
TIED = 1e-9  # sums of flipped differences that agree up to this share of their sizes are equal

COVERS = (
    "An interval covers the expected difference in what the two rules lose over the episodes, in "
    "this world and with this number of episodes, for 95% of the sets of seeds. It says nothing "
    "about other worlds. Each interval holds on its own; for all pairs of rules at once, use the "
    "p-values with Holm's correction. With few seeds, rare outcomes may be missing: one of "
    "probability p does not occur in any of n seeds with probability (1 - p)^n."
)


class Difference(NamedTuple):
    """The paired difference of two rules.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> rules = [explorers.oracle(world), explorers.uniform()]
    >>> runs = study.side_by_side(world, rules, history_tree(), episodes=3, seeds=range(6))
    >>> (found,) = study.pairwise_differences(runs)
    >>> found.rule, found.other, found.seeds, round(found.mean, 3), found.p_value  # 2 / 2^6
    ('uniform', 'oracle', 6, 1.756, 0.03125)
    """

    rule: str
    other: str
    seeds: int  # number of common seeds
    mean: float  # what the rule lost minus what the other lost, mean over the common seeds
    interval: tuple[float, float]  # of the expected difference, 95%; nan for fewer than two seeds
    clusters: int  # 2 if the differences form two clusters, which the interval takes into account
    p_value: float  # of the sign-flip test
    adjusted: float  # the p-value with Holm's correction for all pairs
    guaranteed: tuple[bool, bool]  # for each rule, whether its optimism is proved


@checked_but("runs")
def pairwise_differences(runs: Mapping[str, Sequence[Measured]]) -> list[Difference]:
    """The paired differences of all pairs of rules, with p-values corrected for multiplicity.

    Runs with the same seed use the same random numbers of the world. Under the null hypothesis
    that two rules lose equally, in distribution and given the other's result, the sign of each
    difference is a fair coin. The sign-flip test is exact under this hypothesis for all
    distributions, also for regrets with two values. Holm's correction keeps the probability of any
    false rejection among all pairs below the level at which ``adjusted`` is compared.

    With n seeds, a p-value is at least 2^(1 - n), so at least 6 seeds are needed for a level of
    0.05, and more if there are several pairs.

    Parameters
    ----------
    runs
        The runs of each rule by its name, one per seed.

    Returns
    -------
    list
        One difference per pair of rules, the later rule minus the earlier one.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> rules = [explorers.oracle(world), explorers.greedy(), explorers.uniform()]
    >>> runs = study.side_by_side(world, rules, history_tree(), episodes=3, seeds=range(8))
    >>> for found in study.pairwise_differences(runs):
    ...     print(f"{found.rule} - {found.other}: p = {found.p_value:.4f}, {found.adjusted:.4f}")
    greedy - oracle: p = 0.0078, 0.0234
    uniform - oracle: p = 0.0078, 0.0234
    uniform - greedy: p = 0.0078, 0.0234
    """
    if isinstance(runs, Mapping) and not runs:
        return []
    check_runs(runs, one_length=False)
    found = []
    for earlier, later in combinations(runs, 2):
        each = _differences(runs[later], runs[earlier])
        mean, interval, clusters = _interval(each)
        proved = runs[later][0].guaranteed, runs[earlier][0].guaranteed
        figures = len(each), mean, interval, clusters, _sign_flip(each)
        found.append(Difference(later, earlier, *figures, adjusted=1.0, guaranteed=proved))
    adjusted = holm([one.p_value for one in found])
    return [one._replace(adjusted=p) for one, p in zip(found, adjusted, strict=True)]


@checked
def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p-values that are valid for all hypotheses at once.

    The k-th smallest of m p-values is multiplied by m - k + 1; the results are made monotone.

    Parameters
    ----------
    p_values
        The p-values; nan for a test that was not possible.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    wrong = [value for value in p if not (np.isnan(value) or 0 <= value <= 1)]
    if wrong:
        raise DataError("holm", [Problem("p_values", f"{wrong[0]:g}", "numbers in [0, 1]")])
    adjusted = np.full(len(p), np.nan)
    order = [int(k) for k in np.argsort(p, kind="stable") if not np.isnan(p[k])]
    largest = 0.0
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, float(p[k]) * (len(order) - rank)))
        adjusted[k] = largest
    return [float(value) for value in adjusted]


@checked
def paired_difference(
    runs: Sequence[Measured], others: Sequence[Measured]
) -> tuple[float, tuple[float, float]]:
    """Mean difference in what two rules lost over the episodes played, with its 95% interval.

    Runs with the same seed use the same random numbers of the world, so much of the noise cancels.
    If one run is longer, its first episodes are compared with the other run: HOP-V leaves out the
    last episodes if H does not divide K.

    The interval is Student's. Where the differences form two clusters, as for ``greedy`` on a lock
    that it opens or never opens, it is extended to contain Clopper and Pearson's interval for the
    share of the upper cluster. It needs at least two common seeds.

    Parameters
    ----------
    runs
        The runs of one rule, one per seed.
    others
        The runs of another rule, one per seed.

    Returns
    -------
    tuple
        The mean of what the first rule lost minus what the other lost, and the two ends of the
        interval; nan if there are too few seeds.

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
    mean, interval, _ = _interval(_differences(runs, others))
    return mean, interval


def _differences(runs: Sequence[Measured], others: Sequence[Measured]) -> Array:
    """What each run lost minus what the other rule's run with the same seed lost."""
    theirs = {run.about["seed"]: run.lost for run in others}
    found = []
    for run in runs:
        if run.about["seed"] in theirs:
            mine, other = run.lost, theirs[run.about["seed"]]
            common = min(len(mine), len(other))
            found.append(float(mine[common - 1]) - float(other[common - 1]))
    return np.array(found)


def _interval(each: Array) -> tuple[float, tuple[float, float], int]:
    """The mean of the differences, its interval, and the number of clusters."""
    if len(each) < 2:
        return (float(each.mean()) if len(each) else np.nan), (np.nan, np.nan), 1
    mean, error = float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))
    reach = float(student.ppf((1 + LEVEL) / 2, len(each) - 1)) * error
    low, high = mean - reach, mean + reach
    ordered = np.sort(each)
    gaps = np.diff(ordered)
    below = int(gaps.argmax()) + 1
    # differences that are equal up to rounding are one cluster
    if gaps.max() <= APART * np.ptp(each) or np.ptp(each) <= TIED * np.abs(each).max():
        return mean, (low, high), 1
    lower, upper = float(ordered[:below].mean()), float(ordered[below:].mean())
    above, tail = len(each) - below, (1 - LEVEL) / 2
    shares = beta.ppf(tail, above, below + 1), beta.ppf(1 - tail, above + 1, below)
    ends = [lower + float(share) * (upper - lower) for share in shares]
    return mean, (min(low, ends[0]), max(high, ends[1])), 2


def _sign_flip(each: Array) -> float:
    """The two-sided p-value of the sign-flip test; nan for fewer than two differences.

    It enumerates all flips of the signs, apart from flips of all signs at once, or draws flips at
    random, with the identity counted once more.
    """
    n = len(each)
    if n < 2:
        return np.nan
    if 2 ** (n - 1) <= FLIPS:
        bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)
        signs = np.concatenate([1 - 2 * (bits & 1), np.ones((len(bits), 1), dtype=int)], axis=1)
    else:
        drawn = np.random.default_rng(0).integers(0, 2, (FLIPS, n))
        signs = np.concatenate([np.ones((1, n), dtype=int), 1 - 2 * drawn])
    sums = np.abs(signs @ each)
    rounding = TIED * float(np.abs(each).sum())
    return float(np.mean(sums >= abs(float(each.sum())) - rounding))
