"""The lower bound (appendix D), which holds for all algorithms, and the quantities of its proof.

The instances are trees with X states and Y observations, the model ``lower_bound_tree`` of the zoo.
X' leaves emit Y' = Y - 2 observations that no other state emits. An instance is a vector u of
X'Y'/4 signs, one for each parent of two leaves and each observation of the first half.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import check_sizes, count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array
from homdp_ppl.theory._ranges import ACCURACY

LARGEST = (
    1 / 2
    # epsilon must be smaller, so that the divergence of two instances is at most 8 epsilon^2 per
    # episode
)
LENGTH = 96  # signs of the longest packing that is built: e^12 = 162,755 vectors


class LowerBound(NamedTuple):
    """The lower bound at one epsilon, with the quantities of its proof."""

    leaves: int  # X' = (X + 1) / 2, X + 1 reduced to a power of two
    last_observations: int  # Y' = Y - 2, Y reduced to an even number
    instances: float  # log |U| >= X' Y' / 32, the packing
    separation: float  # epsilon / 8, lower bound on the sum of a policy's gaps on two instances
    divergence: float  # 8 epsilon^2, of two instances, per episode
    episodes: float  # X' Y' / (1024 epsilon^2): after at most this number of episodes ...
    gap: float  # ... the expected gap is at least epsilon / 32 on some instance


def lower_bound(states: int, observations: int, epsilon: float) -> LowerBound:
    """The lower bound theorem (appendix D).

    After K <= X'Y'/(1024 epsilon^2) episodes, E[v(pi*) - v(pi)] >= epsilon/32 on some instance.

    It is about the hardest HOMDP with X states, Y observations, two actions and H = log2(X + 1)
    steps, whether states are revealed in hindsight or immediately. For the number of episodes that
    an expected gap below g requires, use epsilon = 32 g.

    Parameters
    ----------
    states, observations
        X with X + 1 >= 128 log 2, and Y >= 6.
    epsilon
        The distance of the leaves from uniform, below 1/2. The epsilon of the printed theorem is
        1/32 of it.

    Examples
    --------
    >>> bound = lower_bound(127, 10, epsilon=0.1)
    >>> bound.leaves, bound.last_observations, round(bound.episodes, 6), bound.gap
    (64, 8, 50.0, 0.003125)
    """
    X, Y = check_sizes(
        "lower_bound",
        {"epsilon": (epsilon, (ACCURACY[0], LARGEST))},
        states=states,
        observations=observations,
    )
    epsilon = float(epsilon)
    leaves, seen = tree_sizes(X, Y)
    product = leaves * seen
    return LowerBound(
        leaves,
        seen,
        product / 32,
        epsilon / 8,
        8 * epsilon**2,
        product / (1024 * epsilon**2),
        epsilon / 32,
    )


def unavoidable_gap(states: int, observations: int, episodes: int) -> float:
    """A lower bound on the expected gap of any algorithm after K episodes.

    For every algorithm, some HOMDP of these sizes has at least this expected gap. The bound is
    epsilon / 32 at the best epsilon.

    Parameters
    ----------
    states, observations
        X and Y, as in :func:`lower_bound`.
    episodes
        K.

    Examples
    --------
    >>> unavoidable_gap(127, 10, episodes=50)
    0.003125
    """
    X, Y, K = check_sizes(
        "unavoidable_gap", states=states, observations=observations, episodes=episodes
    )
    leaves, seen = tree_sizes(X, Y)
    return min(LARGEST, math.sqrt(leaves * seen / (1024 * K))) / 32


def tree_sizes(states: int, observations: int) -> tuple[int, int]:
    """X' and Y' of the largest tree within these sizes.

    Raises :class:`ParameterError` for sizes that the theorem does not cover.
    """
    if observations < 6 or states + 1 < 128 * math.log(2):
        got = f"{states} states, {observations} observations"
        raise ParameterError(
            "lower bound", [Problem("sizes", got, "X + 1 >= 128 log 2 and Y >= 6")]
        )
    return 2 ** ((states + 1).bit_length() - 2), observations // 2 * 2 - 2


@checked
def separation(signs: ArrayLike, others: ArrayLike, epsilon: float) -> float:
    """The gap of the best policy of instance u' in instance u (appendix D, separability).

    It is 2 epsilon N / (X'Y'), where N is the number of decisions in which the two best policies
    differ: two for each differing sign, as every observation has a mirror. So it is epsilon times
    the share of signs that differ. The paper counts one of the two, which is conservative.

    Parameters
    ----------
    signs, others
        u and u', of the same shape.
    epsilon
        The distance of the leaves from uniform.

    Examples
    --------
    >>> separation([1, 1, -1, 1], [1, -1, -1, 1], epsilon=0.2)
    0.05
    """
    return float(epsilon) * _share(signs, others, epsilon)


@checked
def divergence(signs: ArrayLike, others: ArrayLike, epsilon: float) -> float:
    """KL divergence of an episode in instance u from one in instance u' (appendix D, Fano).

    It is the share of signs that differ times epsilon log((1 + epsilon) / (1 - epsilon)), for every
    algorithm. For epsilon < 1/2 it is at most 8 epsilon^2.

    Parameters
    ----------
    signs, others
        u and u', of the same shape.
    epsilon
        The distance of the leaves from uniform.

    Examples
    --------
    >>> round(divergence([1, 1, -1, 1], [1, -1, -1, 1], epsilon=0.5), 6)  # log(3) / 8
    0.137327
    """
    share, epsilon = _share(signs, others, epsilon), float(epsilon)
    return share * epsilon * math.log((1 + epsilon) / (1 - epsilon))


def _share(signs: ArrayLike, others: ArrayLike, epsilon: float) -> float:
    check_sizes("lower bound", {"epsilon": (epsilon, (0.0, 1.0))})
    u, v = np.asarray(signs), np.asarray(others)
    wrong = [name for name, w in (("signs", u), ("others", v)) if not np.isin(w, (-1, 1)).all()]
    problems = [Problem(name, "other numbers", "-1 and 1") for name in wrong]
    refuse(ParameterError, "lower bound", problems)
    if u.shape != v.shape or not u.size:
        raise ParameterError(
            "lower bound",
            [Problem("others", f"shape {v.shape}", f"the shape of signs, {u.shape}, not empty")],
        )
    return float((u != v).mean())


def packing(length: int, seed: int = 0) -> Array:
    """At least e^(D/8) sign vectors of length D, any two of which differ in at least D/4 entries.

    With D = X'Y'/4 these are the paper's e^(X'Y'/32) instances with ||u - u'||_1 >= X'Y'/8
    (appendix D; Massart 2007, lemma 4.7). They are built as a linear code, one generator at a time.
    As long as there are fewer than e^(D/8) words, some candidates are at a distance of at least D/4
    from all of them, so random search finds a candidate that doubles the code.

    Parameters
    ----------
    length
        D, at most 96.
    seed
        The seed of the random search.

    Returns
    -------
    Array
        Entries -1 and 1, (size, D).

    Examples
    --------
    >>> packing(16).shape  # e^2 = 7.4
    (8, 16)
    """
    check_sizes("packing", {"length": (length, (0, LENGTH + 1))}, length=length)
    refuse(ParameterError, "packing", count_problems(0, seed=seed))
    generator = np.random.default_rng(seed)
    words = np.zeros((1, length), dtype=bool)
    while len(words) < math.exp(length / 8):
        more = words ^ generator.integers(0, 2, length, dtype=bool)
        if more.sum(1).min() >= length / 4:
            words = np.concatenate([words, more])
    return np.where(words, -1, 1).astype(np.int8)
