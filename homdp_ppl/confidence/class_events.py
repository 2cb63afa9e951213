"""The events of function classes: appendix C.6 (HOP-B with an emission class) and E (HOP-V).

As in ``events``, an event of the paper is about a whole run: it holds in a run if it holds in every
round or epoch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.core.arguments import check_arguments, check_sizes, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array


class ClassEvent(NamedTuple):
    """Whether an event holds, and the case in which it is closest to failing.

    Examples
    --------
    >>> event = likelihood_event([[0.5, 0.5]], [[[0.5, 0.5]], [[0.9, 0.1]]], [[6, 4]], epochs=10)
    >>> event.holds, event.where  # the truth: 0 <= 8 log(10 2 / 0.1)
    (True, (0,))
    """

    holds: bool
    slack: float  # the smallest bound minus error; negative if the event fails
    where: tuple[int, ...]  # the row, member, or (epoch, step, transition, emission) of that case


@checked
def class_transition_event(
    world: World, counts: Counts, episodes: int, delta: float = 0.1
) -> ClassEvent:
    """E_T of appendix C.6: ||T - T-hat||_1 (x, a) <= sqrt(8 X log(X^2 A K H / delta) / n(x, a)).

    All rows come from counts. The radius of the rule has no delta in its logarithm; the event in
    the proof has it. Its probability is at least 1 - delta.

    Parameters
    ----------
    world
        The true world, with stationary tables.
    counts
        The data before the round.
    episodes
        K, the number of rounds of the whole run.
    delta
        Allowed probability of error.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> world = models.load("tiger", horizon=2)
    >>> class_transition_event(world, Counts.zero(world), episodes=100).holds  # no visits
    True
    """
    check_arguments("class_transition_event", episodes=episodes, delta=delta)
    check_counts(counts, world)
    X, _, A, H = world.spaces.sizes
    error = np.abs(world.pomdp.moves(0) - empirical(world.homdp, counts, False).moves(0)).sum(-1)
    level = 8 * X * math.log(X**2 * A * float(episodes) * H / float(delta))
    return _worst(_root(level, counts.state_action) - error)


@checked
def class_emission_event(
    world: World, counts: Counts, emissions: ArrayLike, episodes: int, delta: float = 0.1
) -> ClassEvent:
    """E_O of appendix C.6: ||O - O-hat||_1 (x) <= sqrt(8 log(X K |Theta| / delta) / n(x)), where
    O-hat is the most likely member of the class, the first one in case of ties.

    Parameters
    ----------
    world, counts, episodes, delta
        As in :func:`class_transition_event`.
    emissions
        The class Theta: emission tables, (size, X, Y).

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Counts, models
    >>> world = models.load("tiger", horizon=2)
    >>> seen = Counts(np.zeros((2, 3, 2)), np.array([[90, 10], [10, 90]]))
    >>> tables = [[[0.5, 0.5], [0.5, 0.5]], [[0.85, 0.15], [0.15, 0.85]]]
    >>> class_emission_event(world, seen, tables, episodes=100).holds
    True
    """
    check_arguments("class_emission_event", episodes=episodes, delta=delta)
    check_counts(counts, world)
    members = _members("class_emission_event", "emissions", emissions, world.pomdp.shows(0).shape)
    likely = members[np.argmax(xlogy(counts.emission, members).sum((1, 2)))]
    error = np.abs(world.pomdp.shows(0) - likely).sum(-1)
    level = 8 * math.log(len(error) * float(episodes) * len(members) / float(delta))
    return _worst(_root(level, counts.visits) - error)


@checked
def likelihood_event(
    truth: ArrayLike, members: ArrayLike, counts: ArrayLike, epochs: int, delta: float = 0.1
) -> ClassEvent:
    """The events of appendix E about one class, of T or of O, in one epoch.

    For every member M of the class, sum ||M - M*||_1^2 <= 8 log(K' size / delta) + 4 sum log(M* /
    M), where both sums are over the tuples that HOP-V kept. The event holds in all epochs with
    probability at least 1 - delta, and implies that the truth survives.

    Parameters
    ----------
    truth
        The true table T or O: rows of probabilities, (..., n).
    members
        The class: tables of the same shape, (size, ..., n).
    counts
        How often the kept tuples had each outcome, of the same shape as the truth.
    epochs
        K'.
    delta
        Allowed probability of error.

    Examples
    --------
    >>> likelihood_event([[0.5, 0.5]], [[[0.9, 0.1]]], [[90, 10]], epochs=1).holds
    False
    """
    check_arguments("likelihood_event", delta=delta)
    (K,) = check_sizes("likelihood_event", epochs=epochs)
    true = _numbers("likelihood_event", "truth", truth)
    seen = _numbers("likelihood_event", "counts", counts)
    if true.shape != seen.shape or not true.ndim:
        got = f"truth {true.shape} and counts {seen.shape}"
        raise ParameterError("likelihood_event", [Problem("counts", got, "the same shape")])
    tables = _members("likelihood_event", "members", members, true.shape)
    axes = tuple(range(1, tables.ndim))
    distance = np.abs(tables - true).sum(-1) ** 2
    left = (distance * seen.sum(-1)).sum(axes[:-1])
    with np.errstate(divide="ignore"):
        ratio = xlogy(seen, true).sum() - xlogy(seen, tables).sum(axes)
    level = 8 * (math.log(K) + math.log(len(tables)) - math.log(float(delta)))
    return _worst(level + 4 * ratio - left)


@checked
def freedman_event(
    expected: ArrayLike, kept: ArrayLike, epochs: int, size: int, delta: float = 0.1
) -> ClassEvent:
    """E_Fre of appendix E, for given squared errors of members of the classes.

    Let e(x, a) = ||T* - T||_1^2 (x, a) + ||O* - O||_1^2 (x). For all k <= K', h and pairs (T, O),
    sum_{l < k} E e(x_h, a_h) <= 32 log(K' H |T x Theta| / delta) + 2 sum_{l < k} e(x_h^l, a_h^l),
    where E is under pi_l o_h Unif(A) and (x_h^l, a_h^l) is the kept tuple. Its probability is at
    least 1 - delta.

    Parameters
    ----------
    expected
        The expected errors E e(x_h, a_h) of every epoch, step and pair, (epochs so far, H, pairs).
    kept
        The errors e(x_h, a_h) of the kept tuples, of the same shape.
    epochs
        K'.
    size
        The number of all pairs, |T x Theta|.
    delta
        Allowed probability of error.

    Examples
    --------
    >>> import numpy as np
    >>> freedman_event(np.full((50, 1, 1), 8.0), np.zeros((50, 1, 1)), epochs=50, size=1).holds
    False
    """
    check_arguments("freedman_event", delta=delta)
    K, size = check_sizes("freedman_event", epochs=epochs, size=size)
    means = _numbers("freedman_event", "expected", expected)
    errors = _numbers("freedman_event", "kept", kept)
    if means.shape != errors.shape or means.ndim != 3 or not means.size:
        got = f"expected {means.shape} and kept {errors.shape}"
        shape = "the same shape (epochs so far, H, pairs)"
        raise ParameterError("freedman_event", [Problem("kept", got, shape)])
    pairs = math.log(K) + math.log(means.shape[1]) + math.log(size)
    level = 32 * (pairs - math.log(float(delta)))
    return _worst(level + 2 * np.cumsum(errors, 0) - np.cumsum(means, 0))


def _members(subject: str, name: str, given: ArrayLike, shape: tuple[int, ...]) -> Array:
    tables = _numbers(subject, name, given)
    if tables.shape[1:] != shape or not tables.size:
        problem = Problem(name, f"shape {tables.shape}", f"shape (size, {str(shape)[1:]}")
        raise ParameterError(subject, [problem])
    return tables


def _numbers(subject: str, name: str, given: ArrayLike) -> Array:
    found, problems = as_numbers(name, given, "an array")
    refuse(ParameterError, subject, problems)
    return np.asarray(found, dtype=np.float64)


def _root(level: float, n: Array) -> Array:
    """The square root of level / n, infinite where n = 0."""
    return np.sqrt(np.where(n > 0, level / np.where(n > 0, n, 1), np.inf))


def _worst(slack: Array) -> ClassEvent:
    at = np.unravel_index(int(np.argmin(slack)), slack.shape)
    return ClassEvent(bool((slack >= 0).all()), float(slack[at]), tuple(map(int, at)))
