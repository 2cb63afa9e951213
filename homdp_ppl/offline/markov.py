"""A test that the revealed state is Markov: given it, the past does not matter.

At each step, episodes with the same state and action are one stratum. If the state is Markov, the
next state of an episode depends on nothing else, so that within a stratum the next states can be
exchanged between episodes. Pearson's statistics of all strata are added. Their exact means and
variances under such exchanges are those of Dawson, "A simplified expression for the variance of the
chi-squared function on a contingency table", Biometrika 41 (1954). The sum is compared with a gamma
distribution of the same mean and variance, which also suits tables with few data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import gamma

from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.offline.logs import Played, read_log
from homdp_ppl.precision import Array

LEVEL = 0.01  # false-alarm rate of the test
FEWEST = 5  # episodes in a stratum


class MarkovTest(NamedTuple):
    """The result of the test that the revealed state is Markov.

    Examples
    --------
    >>> MarkovTest({"the next state on the state before": 0.4}, level=0.01)
    MarkovTest: no evidence against it (p = 0.4, false-alarm rate 0.01)
    """

    p_values: dict[str, float]  # of each dependence that was tested
    level: float  # false-alarm rate of the whole test

    @property
    def p_value(self) -> float:
        """The smallest p-value times the number of tests (Bonferroni), 1 if nothing was tested."""
        if not self.p_values:
            return 1.0
        return min(1.0, len(self.p_values) * min(self.p_values.values()))

    @property
    def violated(self) -> bool:
        """Whether the test rejects."""
        return self.p_value < self.level

    @property
    def words(self) -> str:
        """The result in words."""
        if not self.p_values:
            return "too few data to test whether the revealed state is Markov"
        rate = f"(p = {self.p_value:.2g}, false-alarm rate {self.level:g})"
        if not self.violated:
            return f"no evidence against it {rate}"
        worst = min(self.p_values, key=lambda name: self.p_values[name])
        return f"violated: {worst} {rate}"

    def __repr__(self) -> str:
        return f"MarkovTest: {self.words}"


@checked
def markov_test(homdp: HOMDP, log: Played, level: float = LEVEL) -> MarkovTest:
    """Test whether the revealed state is Markov, as the declaration says.

    Three dependences are tested, given the state and the action: of the next state on the state
    before, of the next state on the observation, and of the observation on the state before. The
    behaviour policy does not matter, and may have seen the states. States must be revealed.

    Parameters
    ----------
    homdp
        The declaration.
    log
        Recorded episodes.
    level
        The false-alarm rate of the whole test.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> log = rollout(jax.random.split(jax.random.key(0), 300), world, uniform_policy(world))
    >>> offline.markov_test(world.homdp, log).violated
    False
    """
    check_arguments("markov_test", delta=level)
    episodes = read_log(homdp, log, "markov_test").episodes.require_revealed("markov_test")
    return markov_test_of(episodes, homdp, level)


def markov_test_of(episodes: Episodes, homdp: HOMDP, level: float = LEVEL) -> MarkovTest:
    """:func:`markov_test` for validated episodes with all states."""
    x, y, a, steps = episodes.states, episodes.observations, episodes.actions, episodes.steps
    X, Y, A, H = homdp.spaces.sizes
    parts: dict[str, list[tuple[Array, ...]]] = {
        "the next state depends on the state before": [],
        "the next state depends on the observation": [],
        "the observation depends on the state before": [],
    }
    before_state, on_seen, seen_before = parts.values()
    for h in range(H):
        taken = np.flatnonzero(steps[:, h])
        here = (h * X + x[taken, h]) * A + a[taken, h]
        on_seen.append((here, y[taken, h], x[taken, h + 1]))
        if h:
            before_state.append((here, x[taken, h - 1], x[taken, h + 1]))
            answered = (h * X + x[taken, h]) * A + a[taken, h - 1]
            seen_before.append((answered, x[taken, h - 1], y[taken, h]))
    found = {}
    for name, tables in parts.items():
        if not tables:
            continue
        strata, rows, columns = (np.concatenate(column) for column in zip(*tables, strict=True))
        p_value = conditional_dependence(strata, rows, columns, max(X, Y))
        if p_value is not None:
            found[name] = p_value
    return MarkovTest(found, level)


def conditional_dependence(
    strata: Array, rows: Array, columns: Array, outcomes: int
) -> float | None:
    """The p-value of a dependence of columns on rows within strata; None if there are too few data.

    Parameters
    ----------
    strata, rows, columns
        One entry per observation, (n,).
    outcomes
        More than the largest row and column.
    """
    statistic = mean = variance = 0.0
    names, which = np.unique(strata, return_inverse=True)
    places = (which.ravel() * outcomes + rows) * outcomes + columns
    counted = np.bincount(places, minlength=len(names) * outcomes**2)
    for table in counted.reshape(-1, outcomes, outcomes):
        table = table[table.sum(1) > 0][:, table.sum(0) > 0]
        n = int(table.sum())
        if n < FEWEST or min(table.shape) < 2:
            continue
        expected = table.sum(1)[:, None] * table.sum(0) / n
        statistic += float(((table - expected) ** 2 / expected).sum())
        one, other = exchange_moments(table.sum(1), table.sum(0))
        mean, variance = mean + one, variance + other
    if variance <= 0:
        return None
    return float(gamma.sf(statistic, mean**2 / variance, scale=variance / mean))


def exchange_moments(rows: Array, columns: Array) -> tuple[float, float]:
    """The mean and variance of Pearson's statistic over exchanges, given the margins of a table."""
    n, r, c = float(rows.sum()), len(rows), len(columns)
    mean = n * (r - 1) * (c - 1) / (n - 1)
    v1, v2 = (r - 1) * (n - r) / (n - 1), (c - 1) * (n - c) / (n - 1)
    w1, w2 = ((n * (1 / margin).sum() - len(margin) ** 2) / (n - 2) for margin in (rows, columns))
    variance = 2 * n / (n - 3) * (v1 - w1) * (v2 - w2) + n**2 / (n - 1) * w1 * w2
    return mean, float(variance)
