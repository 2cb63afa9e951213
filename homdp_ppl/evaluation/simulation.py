"""Estimates of values by simulation, for any policy in any world."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import jax
import numpy as np
from scipy.stats import t as student

from homdp_ppl.core.arguments import count_problems, probability_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.randomness import as_key
from homdp_ppl.core.rollout import Playable, episode_problems, rollout_many
from homdp_ppl.errors import HOMDPError, Problem, with_article
from homdp_ppl.precision import Array, x64


class Simulator(Playable, Protocol):
    """A world that can also compute the returns of episodes."""

    @property
    def return_range(self) -> tuple[float, float]:
        """The smallest and the largest possible return, in the user's units."""

    def returns(self, episodes: Episodes) -> Array:
        """The sum of rewards of each episode."""


class Estimate(NamedTuple):
    """The mean return of simulated episodes, with its standard error and an interval.

    Examples
    --------
    >>> Estimate(2.55, 0.028, 1000, (2.494, 2.605))
    2.55 ± 0.028 in 1000 episodes (2.494 to 2.605)
    """

    mean: float
    standard_error: float
    episodes: int
    interval: tuple[float, float]  # confidence interval of the value

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"{self.mean:.4g} ± {self.standard_error:.2g} in {self.episodes} episodes "
            f"({low:.4g} to {high:.4g})"
        )


@checked
def estimate(
    policy: Policy, world: Simulator, key: Array, episodes: int, level: float = 0.95
) -> Estimate:
    """Estimate the value of a policy in a world by simulation.

    The interval is Student's t-interval, clipped to the range of returns. Its level is correct if
    the mean return is normally distributed, which holds approximately for many episodes. It is not
    a guaranteed bound: if all returns are equal, its width is zero.

    Parameters
    ----------
    policy
        Any policy.
    world
        A world with finite or real-valued spaces.
    key
        A JAX random key. Policies simulated with the same key use common random numbers.
    episodes
        The number of episodes.
    level
        The confidence level of the interval.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import evaluate, models, uniform_policy
    >>> world = models.load("tiger")
    >>> estimate(uniform_policy(world), world, jax.random.key(0), 1000)
    2.55 ± 0.028 in 1000 episodes (2.494 to 2.605)
    >>> round(evaluate(uniform_policy(world), world.pomdp), 3)
    2.533
    """
    problems = [*count_problems(episodes=episodes), *probability_problems(level=level)]
    if not isinstance(world, Playable):
        problems.append(Problem("world", with_article(type(world).__name__), "a World"))
    elif not problems:
        problems = episode_problems("episodes", int(episodes), world.spaces)
    refuse(HOMDPError, "estimate", problems)
    with x64():
        keys = jax.random.split(as_key(key, "estimate"), int(episodes))
    returns = world.returns(rollout_many(keys, world, policy))
    return summary(returns, world.return_range, level)


def summary(returns: Array, limits: tuple[float, float], level: float = 0.95) -> Estimate:
    """The mean of returns with its standard error; ``limits`` are the possible returns.

    Without returns, all numbers are NaN. With one, the error is infinite and the interval is the
    range of returns.
    """
    low, high = limits
    n = len(returns)
    if n == 0:
        return Estimate(math.nan, math.nan, 0, (math.nan, math.nan))
    mean = float(np.mean(returns))
    if n == 1:
        return Estimate(mean, math.inf, 1, (low, high))
    error = float(np.std(returns, ddof=1)) / math.sqrt(n)
    reach = float(student.ppf((1 + level) / 2, n - 1)) * error
    return Estimate(mean, error, n, (max(low, mean - reach), min(high, mean + reach)))
