"""Confidence sets from counts: empirical tables, and radii for their rows.

These are pure array functions: NumPy counts give NumPy arrays, and traced counts are traced. Known
rows of the declaration are exact and have radius 0. With ``known=False``, as in the paper,
everything is unknown except the initial distribution and the reward.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.arguments import (
    broadcast_problems,
    check_arguments,
    refuse,
    scalar_problems,
)
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import HasSpaces
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError
from homdp_ppl.precision import Array, in_x64, namespace


class Radii(NamedTuple):
    """Bounds on the distance between the truth and the estimate, row by row.

    Distances are ||p-hat - p||_1, except for the transition radius of HOP-B, which bounds errors of
    values.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> weissman_radii(coin, Counts.zero(coin), episodes=100)  # T is known, O has no data yet
    Radii(transition=array([[0.]]), emission=array([2.]))
    """

    transition: Array  # (X, A)  eps(x, a)
    emission: Array  # (X,)    eps(x)


@checked
@in_x64
def empirical(homdp: HOMDP, counts: Counts, known: bool = True) -> POMDP:
    """T-hat and O-hat: relative frequencies (the two updates after Algorithm 1), and known rows.

    The printed update of T-hat counts y where it means the action: T-hat(x'|x, a) = n(x, a, x') /
    n(x, a).

    Parameters
    ----------
    homdp
        The declaration.
    counts
        The data.
    known
        Whether known rows are exact and unvisited rows are uniform on their declared support.
        Otherwise every row is estimated, and unvisited rows are uniform over all outcomes.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> tiger = models.load("tiger").homdp
    >>> empirical(tiger, Counts.zero(tiger)).moves(0)[
    ...     0, 0
    ... ]  # known: listening does not move the tiger
    array([1., 0.])
    >>> empirical(tiger, Counts.zero(tiger), known=False).moves(0)[0, 0]
    array([0.5, 0.5])
    """
    check_counts(counts, homdp)
    xp = namespace(counts)
    support, reference, exact = (
        homdp.structure.support,
        homdp.structure.reference,
        homdp.structure.known,
    )

    def rows(name: str) -> Array:
        seen = getattr(counts, name)
        estimate = frequencies(seen, getattr(support, name) if known else np.ones(seen.shape))
        return (
            xp.where(getattr(exact, name)[..., None], getattr(reference, name), estimate)
            if known
            else estimate
        )

    return homdp.pomdp_of((reference.initial, rows("transition"), rows("emission")))


def frequencies(seen: Array, possible: Array) -> Array:
    """Relative frequencies of counted outcomes, row by row.

    Rows without data are uniform over the possible outcomes.
    """
    xp = namespace(seen)
    visits = seen.sum(-1, keepdims=True)
    return xp.where(
        visits > 0,
        seen / xp.where(visits > 0, visits, 1),
        possible / possible.sum(-1, keepdims=True),
    )


def hop_b_betas(model: HasSpaces, episodes: int, delta: float) -> tuple[Array, Array]:
    """The parameters of Algorithm 1: beta_1 = 4 H^3 log(YXAHK/delta), beta_2 = 8 Y log(YXKH/delta).

    The proof of E_O needs log(2YXKH/delta); beta_2 is as printed.
    """
    X, Y, A, H = model.spaces.sizes
    xp, episodes = namespace(episodes, delta), _wide(episodes)
    return 4 * H**3 * xp.log(Y * X * A * H * episodes / delta), 8 * Y * xp.log(
        Y * X * episodes * H / delta
    )


@checked_but("episodes", "size", "delta", "scale")
@in_x64
def hop_b_radii(
    homdp: HOMDP,
    counts: Counts,
    episodes: int,
    delta: float = 0.1,
    scale: float = 1.0,
    known: bool = True,
) -> Radii:
    """The radii of HOP-B, Algorithm 1.

    eps(x, a) = min(sqrt(beta_1 / n(x, a)), 2H) and eps(x) = min(sqrt(beta_2 / n(x)), 2).

    Parameters
    ----------
    homdp
        The declaration.
    counts
        The data before this round.
    episodes
        K, the number of rounds of the whole run.
    delta
        Allowed probability of error.
    scale
        A factor for the square roots, but not for the caps: an unvisited row has its full cap. The
        paper has 1.
    known
        Whether known rows have radius 0.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> tiger = models.load("tiger").homdp
    >>> hop_b_radii(tiger, Counts.zero(tiger), episodes=100)
    Radii(transition=array([[0., 0., 0.],
           [0., 0., 0.]]), emission=array([2., 2.]))
    """
    _check_scalars("hop_b_radii", episodes=episodes, delta=delta, scale=scale)
    check_counts(counts, homdp)
    beta_1, beta_2 = hop_b_betas(homdp, episodes, delta)
    xp = namespace(counts, episodes, delta, scale)
    transition = _capped(xp, scale, beta_1, counts.state_action, 2 * homdp.spaces.horizon)
    emission = _capped(xp, scale, beta_2, counts.visits, 2)
    return _with_known(xp, homdp, Radii(transition, emission), known)


@checked_but("episodes", "size", "delta", "scale")
@in_x64
def hop_b_class_radii(
    homdp: HOMDP,
    counts: Counts,
    episodes: int,
    size: int,
    delta: float = 0.1,
    scale: float = 1.0,
    known: bool = True,
) -> Radii:
    """The radii of HOP-B with an emission class Theta (appendix C.6, display of the bonus before
    the proposition).

    eps(x, a) = min(2, sqrt(8 X log(X^2 A K H) / n(x, a))), as printed without delta, and eps(x) =
    min(2, sqrt(8 log(|Theta| X K / delta) / n(x))), the distance from the maximum-likelihood O in
    the class.

    Parameters
    ----------
    homdp, counts, episodes, delta, scale, known
        As in :func:`hop_b_radii`.
    size
        The number of emission tables in the class.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> seen = Counts(np.ones((1, 1, 1)), np.array([[500, 500]]))
    >>> hop_b_class_radii(coin, seen, episodes=1000, size=5).emission.round(
    ...     4
    ... )  # sqrt(8 log(5 1000 / 0.1) / 1000)
    array([0.2942])
    """
    _check_scalars("hop_b_class_radii", episodes=episodes, size=size, delta=delta, scale=scale)
    check_counts(counts, homdp)
    xp = namespace(counts, episodes, size, delta, scale)
    radii = class_radii(
        counts.state_action, counts.visits, homdp.spaces.horizon, episodes, size, delta, scale
    )
    return _with_known(xp, homdp, radii, known)


def class_radii(
    state_action: Array,
    visits: Array,
    horizon: int,
    episodes: int,
    size: int,
    delta: float,
    scale: float,
) -> Radii:
    """The same from n(x, a) and n(x) only. The radii do not depend on Y, which may be infinite."""
    xp = namespace(state_action, visits, episodes, size, delta, scale)
    X, A = state_action.shape
    episodes, size = _wide(episodes), _wide(size)
    transition = _capped(
        xp, scale, 8 * X * xp.log(1.0 * X**2 * A * episodes * horizon), state_action, 2
    )
    emission = _capped(xp, scale, 8 * xp.log(1.0 * size * X * episodes / delta), visits, 2)
    return Radii(transition, emission)


@checked_but("episodes", "size", "delta", "scale")
@in_x64
def weissman_radii(
    homdp: HOMDP, counts: Counts, episodes: int, delta: float = 0.1, known: bool = True
) -> Radii:
    """Radii that cover all rows in all rounds with probability 1 - delta.

    This is :func:`weissman` at level delta / ((X + XA) K H). The union bound is over the X + XA
    rows and their possible numbers of visits, 1..KH.

    Parameters
    ----------
    homdp, counts, episodes, delta
        As in :func:`hop_b_radii`.
    known
        Whether known rows have radius 0, and the outcomes of a row are those of its declared
        support. Otherwise a row has X or Y outcomes.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> tiger = models.load("tiger").homdp
    >>> weissman_radii(
    ...     tiger, Counts(np.zeros((2, 3, 2)), np.full((2, 2), 500)), episodes=1000
    ... ).emission.round(4)
    array([0.1635, 0.1635])
    """
    _check_scalars("weissman_radii", episodes=episodes, delta=delta)
    check_counts(counts, homdp)
    X, Y, A, H = homdp.spaces.sizes
    level = delta / ((X + X * A) * _wide(episodes) * H)
    support = homdp.structure.support
    outcomes = (support.transition.sum(-1), support.emission.sum(-1)) if known else (X, Y)
    radii = Radii(
        weissman(counts.state_action, outcomes[0], level),
        weissman(counts.visits, outcomes[1], level),
    )
    return _with_known(namespace(radii), homdp, radii, known)


@in_x64
def weissman(n: Array | int, outcomes: Array | int, level: float) -> Array:
    """An eps with P(||p-hat - p||_1 >= eps) <= level for p-hat from n draws.

    It is sqrt(2 log((2^d - 2) / level) / n), at most 2.

    Weissman et al., "Inequalities for the L1 deviation of the empirical distribution" (2003),
    Theorem 2.1 with phi >= 2.

    Parameters
    ----------
    n
        Number of draws; 0 gives 2.
    outcomes
        The number d of possible outcomes; 1 gives 0.
    level
        Allowed probability of error.

    Examples
    --------
    >>> round(float(weissman(200, 2, 0.05)), 6)  # sqrt(2 log(40) / 200)
    0.192065
    """
    _check_numbers("weissman", n=n, outcomes=outcomes, level=level)
    xp = namespace(n, level)
    d = np.asarray(outcomes, dtype=np.float64)
    plural = np.maximum(d, 2)
    subsets = plural * math.log(2) + np.log1p(-(2 ** (1 - plural)))  # log(2^d - 2) without overflow
    return xp.where(d > 1, _capped(xp, 1, 2 * (subsets - xp.log(level)), n, 2), 0.0)


@in_x64
def hoeffding(n: Array | int, span: float, level: float) -> Array:
    """An eps with P(|mean - expectation| >= eps) <= level.

    It is span sqrt(log(2 / level) / (2 n)), at most span.

    Hoeffding, "Probability inequalities for sums of bounded random variables" (1963), Theorem 2,
    both tails.

    Parameters
    ----------
    n
        Number of independent values; 0 gives the span.
    span
        Length of the interval that contains the values.
    level
        Allowed probability of error.

    Examples
    --------
    >>> round(float(hoeffding(50, 1.0, 0.1)), 6)
    0.173082
    """
    _check_numbers("hoeffding", n=n, span=span, level=level)
    xp = namespace(n, span, level)
    return _capped(xp, span, xp.log(2 / level) / 2, n, span)


@in_x64
def bernstein(n: Array | int, variance: Array | float, span: float, level: float) -> Array:
    """The empirical Bernstein bound on |mean - expectation|, at most span.

    It is sqrt(2 V L / n) + 7 span L / (3 (n - 1)) with L = log(4 / level): Maurer and Pontil,
    "Empirical Bernstein bounds and sample variance penalization" (2009), Theorem 4, which has log(2
    / level) for one tail of values in [0, 1]; here each of the two tails has level / 2.

    Parameters
    ----------
    n, span, level
        As in :func:`hoeffding`; a single value gives the span too.
    variance
        V, the sample variance with n - 1 in the denominator.

    Examples
    --------
    >>> round(float(bernstein(1000, 0.01, 1.0, 0.1)), 6)
    0.017205
    """
    _check_numbers("bernstein", n=n, variance=variance, span=span, level=level)
    xp = namespace(n, variance, span, level)
    n = xp.asarray(n)
    log = xp.log(4 / level)
    counted = xp.where(n > 1, n, 2)
    bound = xp.sqrt(2 * variance * log / counted) + 7 * span * log / (3 * (counted - 1))
    return xp.where(n > 1, xp.minimum(bound, span), span)


def _wide(number: Any) -> Any:
    """A small NumPy integer as a Python one, whose products cannot overflow."""
    return number.item() if isinstance(number, np.generic) else number


def _check_scalars(subject: str, **given: Any) -> None:
    """Raise :class:`ParameterError` for numbers outside their ranges, and for arrays."""
    check_arguments(subject, **given)
    refuse(ParameterError, subject, scalar_problems(**given))


def _check_numbers(subject: str, **given: Any) -> None:
    """Raise :class:`ParameterError` for numbers outside their ranges, and for arrays that cannot be
    broadcast together.
    """
    check_arguments(subject, **given)
    refuse(ParameterError, subject, broadcast_problems(**given))


def _capped(
    xp: ModuleType, scale: Array | float, numerator: Array | float, n: Array | int, cap: float
) -> Array:
    """min(scale sqrt(numerator / n), cap); at n = 0 the cap, for every scale."""
    n = xp.asarray(n)
    root = scale * xp.sqrt(numerator / xp.where(n > 0, n, 1))
    return xp.where(n > 0, xp.minimum(root, cap), cap)


def _with_known(xp: ModuleType, homdp: HOMDP, radii: Radii, known: bool) -> Radii:
    """Set the radius of known rows to 0 if ``known``."""
    exact = homdp.structure.known
    zeroed = Radii(
        xp.where(exact.transition, 0.0, radii.transition),
        xp.where(exact.emission, 0.0, radii.emission),
    )
    return zeroed if known else radii
