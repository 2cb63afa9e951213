"""Confidence radii from counts, for the rows of tables.

These are pure array functions: NumPy counts give NumPy arrays, and traced counts are traced. Known
rows of the declaration are exact and have radius 0. With ``known=False``, as in the paper,
everything is unknown except the reward and an initial distribution without sites.

Radii have the form of the declared tables without the last axis. Union bounds are over all pairs of
a row and a number of visits. A table with one row per step has H times as many rows, but an episode
visits each of them at most once. Rows that are never used are not counted. An initial distribution
with sites is one more row, with one draw per episode.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.confidence.inequalities import capped, weissman
from homdp_ppl.confidence.rewards import reward_cells, reward_radius
from homdp_ppl.confidence.rows import first_states, row_steps, unknown_rows, unknown_start
from homdp_ppl.confidence.sensors import joint_radius
from homdp_ppl.core.arguments import check_arguments, refuse, scalar_problems
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.form import Form
from homdp_ppl.core.spaces import HasTables
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
    Radii(transition=array([[0.]]), emission=array([2.]), initial=0.0, reward=0.0)
    """

    transition: Array  # (X, A)  eps(x, a), with a step axis if the table has one
    emission: Array  # (X,)    eps(x), with axes for the step and previous action as in the table
    initial: Array | float = 0.0  # ()  of the initial distribution, 0 if it is known
    reward: Array | float = 0.0  # (H|1, X, Y|1, A)  of mean rewards in [0, 1], 0 if known


def hop_b_betas(model: HasTables, episodes: int, delta: float) -> tuple[Array, Array]:
    """The parameters of Algorithm 1: beta_1 = 4 H^3 log(YXAHK/delta), beta_2 = 8 Y log(YXKH/delta).

    The paper's proof of E_O needs log(2YXKH/delta). The event holds with beta_2 as printed. XAHK
    and XHK are the numbers of pairs of a row and a number of visits. For tables with axes for the
    step or the previous action they are replaced by the numbers of these pairs.
    """
    _, Y, _, H = model.spaces.sizes
    moves, shows = (int(steps.sum()) for steps in row_steps(model))
    xp, episodes = namespace(episodes, delta), _wide(episodes)
    return 4 * H**3 * xp.log(Y * moves * episodes / delta), 8 * Y * xp.log(
        Y * shows * episodes / delta
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

    eps(x, a) = min(sqrt(beta_1 / n(x, a)), 2H) and eps(x) = min(sqrt(beta_2 / n(x)), 2). The paper
    assumes a known initial distribution. If it depends on a site, its radius after n episodes is
    min(sqrt(8 X log(XK/delta) / n), 2), like eps(x) with X outcomes in one row. It holds in all
    rounds with probability 1 - delta, by Weissman's inequality and a union bound over n = 1..K.

    The radius of the mean of a random reward is min(sqrt(log(2 R K / delta) / (2 n)), 1), where R
    is the number of pairs of a reward row and a visit in one episode, XAH for rewards of states and
    actions. It holds for all rows in all rounds with probability 1 - delta, by Hoeffding's
    inequality and a union bound.

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
           [0., 0., 0.]]), emission=array([2., 2.]), initial=0.0, reward=0.0)
    """
    _check_scalars("hop_b_radii", episodes=episodes, delta=delta, scale=scale)
    check_counts(counts, homdp)
    beta_1, beta_2 = hop_b_betas(homdp, episodes, delta)
    xp = namespace(counts, episodes, delta, scale)
    transition = capped(xp, scale, beta_1, counts.state_action, 2 * homdp.spaces.horizon)
    emission = (
        hop_b_sensor_radii(homdp, counts, episodes, delta, scale)
        if known and homdp.spaces.sensors
        else capped(xp, scale, beta_2, counts.visits, 2)
    )
    initial = _hop_b_start(xp, homdp, counts, episodes, delta, scale)
    reward = _hop_b_reward(homdp, counts, episodes, delta, scale, known)
    return _with_known(xp, homdp, Radii(transition, emission, initial, reward), known)


def _hop_b_reward(
    homdp: HOMDP, counts: Counts, episodes: int, delta: float, scale: float, known: bool
) -> Array | float:
    """The radius of random rewards in HOP-B; 0 for other declarations."""
    level = delta / (max(reward_cells(homdp), 1) * _wide(episodes))
    return reward_radius(homdp, counts, level, scale, known)


def hop_b_sensor_radii(
    homdp: HOMDP, counts: Counts, episodes: int, delta: float, scale: float
) -> Array:
    """The emission radii of HOP-B for several sensors, also of rows that are known.

    eps(x) is the smaller of two bounds for the sensors that are unknown: that of a row with the
    product of their outcomes, and the sum of the radii of the sensors, each with its own number of
    outcomes and delta divided by the number of unknown sensors.
    """
    shows = int(row_steps(homdp)[1].sum())
    xp = namespace(counts, episodes, delta, scale)

    def bound(n: Array, outcomes: Array, parts: Array | int) -> Array:
        beta = 8 * outcomes * xp.log(outcomes * shows * _wide(episodes) * parts / delta)
        return capped(xp, scale, beta, n, 2)

    return joint_radius(homdp, counts, bound, support=False)


def _hop_b_start(
    xp: ModuleType, homdp: HOMDP, counts: Counts, episodes: int, delta: float, scale: float
) -> Array | float:
    """The radius of an initial distribution with sites in HOP-B; 0 for other declarations."""
    if not unknown_start(homdp):
        return 0.0
    X = homdp.spaces.sizes[0]
    beta = 8 * X * xp.log(1.0 * X * _wide(episodes) / delta)
    return capped(xp, scale, beta, first_states(counts).sum(), 2)


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
    the class. X is replaced by the number of emission rows, and XAHK by the number of pairs of a
    transition row and a number of visits, if tables have axes for the step or the previous action.
    The radii of an initial distribution with sites and of random rewards are those of
    :func:`hop_b_radii`.

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
    initial = _hop_b_start(xp, homdp, counts, episodes, delta, scale)
    reward = _hop_b_reward(homdp, counts, episodes, delta, scale, known)
    return _with_known(xp, homdp, radii._replace(initial=initial, reward=reward), known)


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
    X = state_action.shape[-2]
    moves, shows = Form((X,), (*state_action.shape, X), (*visits.shape, 1)).steps(horizon)
    cells, rows = int(moves.sum()), int((shows > 0).sum())
    episodes, size = _wide(episodes), _wide(size)
    transition = capped(xp, scale, 8 * X * xp.log(1.0 * X * cells * episodes), state_action, 2)
    emission = capped(xp, scale, 8 * xp.log(1.0 * size * rows * episodes / delta), visits, 2)
    return Radii(transition, emission)


@checked_but("episodes", "size", "delta", "scale")
@in_x64
def weissman_radii(
    homdp: HOMDP, counts: Counts, episodes: int, delta: float = 0.1, known: bool = True
) -> Radii:
    """Radii that cover all rows in all rounds with probability 1 - delta.

    This is :func:`weissman` at level delta / ((X + XA) K H). The union bound is over the X + XA
    rows and their possible numbers of visits, 1..KH. In general, (X + XA) H is the sum over all
    rows that can be used, known rows included, of the largest number of visits in an episode: 1 for
    rows of a single step, for the rows of the first observation and for an initial distribution
    with sites. The means of random rewards are further rows, with :func:`hoeffding` at the same
    level.

    Parameters
    ----------
    homdp, counts, episodes, delta
        As in :func:`hop_b_radii`.
    known
        Whether known rows have radius 0, and the outcomes of a row are those of its declared
        support. The radius for several sensors is then the smaller of that of the joint outcomes
        of the unknown sensors and of the sum of their radii. Otherwise a row has X or Y outcomes.

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
    X, Y, _, _ = homdp.spaces.sizes
    cells = sum(int(steps.sum()) for steps in row_steps(homdp)) + unknown_start(homdp)
    cells += reward_cells(homdp)
    level = delta / (cells * _wide(episodes))
    support = homdp.structure.support
    outcomes = (support.transition.sum(-1), support.emission.sum(-1)) if known else (X, Y)
    if known and homdp.spaces.sensors:
        shows = joint_radius(
            homdp, counts, lambda n, d, parts: weissman(n, d, level / parts), support=True
        )
    else:
        shows = weissman(counts.visits, outcomes[1], level)
    radii = Radii(
        weissman(counts.state_action, outcomes[0], level),
        shows,
        start_radius(homdp, counts, level),
        reward_radius(homdp, counts, level, known=known),
    )
    return _with_known(namespace(radii), homdp, radii, known)


def start_radius(homdp: HOMDP, counts: Counts, level: float) -> Array | float:
    """Weissman's radius of an initial distribution with sites; 0 for other declarations."""
    if not unknown_start(homdp):
        return 0.0
    return weissman(first_states(counts).sum(), homdp.structure.support.initial.sum(), level)


def _wide(number: Any) -> Any:
    """A small NumPy integer as a Python one, whose products cannot overflow."""
    return number.item() if isinstance(number, np.generic) else number


def _check_scalars(subject: str, **given: Any) -> None:
    """Raise :class:`ParameterError` for numbers outside their ranges, and for arrays."""
    check_arguments(subject, **given)
    refuse(ParameterError, subject, scalar_problems(**given))


def _with_known(xp: ModuleType, homdp: HOMDP, radii: Radii, known: bool) -> Radii:
    """Set the radii of rows to 0 that are known, if ``known``, or that are never used."""
    unknown = unknown_rows(homdp, known)
    return radii._replace(
        transition=xp.where(unknown.transition, radii.transition, 0.0),
        emission=xp.where(unknown.emission, radii.emission, 0.0),
    )
