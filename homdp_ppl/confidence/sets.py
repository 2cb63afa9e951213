"""Confidence sets of all unknown rows, as boxes around relative frequencies."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.confidence.parameter_rows import RowMap, row_map
from homdp_ppl.confidence.rewards import (
    empirical_rewards,
    recorded,
    require_bounded,
    unknown_rewards,
)
from homdp_ppl.confidence.sequences import Interval, mixture_interval
from homdp_ppl.core.arguments import check_arguments, choice_problems, refuse
from homdp_ppl.core.checked import check_types, checked
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_shapes import check_index
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.core.sparse import as_dense
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array, in_x64, namespace

MixtureName: TypeAlias = Literal["jeffreys", "declared"]
MIXTURES = ("jeffreys", "declared")


class Box(NamedTuple):
    """Distributions near an estimate: entries between centre - down and centre + up.

    Examples
    --------
    >>> Box(np.array([0.5, 0.5]), up=np.full(2, 0.1), down=np.full(2, 0.2)).up
    array([0.1, 0.1])
    """

    centre: Array  # (..., d)
    up: Array  # (..., d)
    down: Array  # (..., d)


class Sets(NamedTuple):
    """A box for each row of the tables; known rows have width 0.

    The tables have the full ranks of a :class:`homdp_ppl.POMDP`. With probability 1 - delta, the
    true rows are in their boxes after every episode.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> tiger = models.load("tiger").homdp
    >>> seen = Counts(np.zeros((2, 3, 2)), np.array([[80, 20], [20, 80]]))
    >>> sets = confidence_sets(tiger, seen)
    >>> sets.shows(0, None).up.round(4)  # both states share one parameter, with 200 draws
    array([[0.08  , 0.1003],
           [0.1003, 0.08  ]])
    >>> sets.moves(0).up.max()  # known
    np.float64(0.0)
    """

    centre: POMDP  # relative frequencies and known rows; average or known rewards
    up: Tables  # (X,), (H|1, X, A, X), (H|1, A+1|1, X, Y)
    down: Tables
    reward: Interval  # (H, X, Y|1, A)  of the mean rewards; low = high if they are known

    @property
    def least(self) -> POMDP:
        """The centre with every probability at the lower end of its interval."""
        centre, down = self.centre, self.down
        return centre._replace(
            initial=centre.initial - down.initial,
            transition=centre.transition - down.transition,
            emission=centre.emission - down.emission,
        )

    def start(self) -> Box:
        """The initial distribution, (X,)."""
        return Box(self.centre.initial, self.up.initial, self.down.initial)

    @checked
    def moves(self, h: int) -> Box:
        """T_h(x' | x, a), (X, A, X); steps count from 0."""
        check_index("step", h, self.centre.horizon)
        parts = (self.centre.transition, self.up.transition, self.down.transition)
        return Box(*(part[min(h, len(part) - 1)] for part in parts))

    @checked
    def shows(self, h: int, a: int | None) -> Box:
        """O_h(y | x, a) after the previous action a, (X, Y); a is None before the first action."""
        check_index("step", h, self.centre.horizon)
        if a is not None:
            check_index("action", a, self.centre.sizes[2])
        parts = (self.centre.emission, self.up.emission, self.down.emission)
        last = min(h, len(parts[0]) - 1)
        previous = -1 if a is None else min(a, parts[0].shape[1] - 1)
        return Box(*(part[last, previous] for part in parts))


@checked
@in_x64
def confidence_sets(
    homdp: HOMDP,
    counts: Counts,
    delta: float = 0.1,
    mixture: MixtureName = "jeffreys",
    known: bool = True,
) -> Sets:
    """Boxes that contain all rows of the true tables after every episode, with probability 1 -
    delta.

    The bound is on parameter rows: a parameter in several rows of the tables is estimated from the
    data of all of them. Each outcome of each row has the interval of
    :func:`confidence_sequence` at level delta / I, where I is the number of intervals: one for a
    row with two outcomes, d for a row with d > 2, one for an unknown mean reward. Rewards must be
    within the declared range. There is no number of episodes in the bound, and
    actions may be chosen by anyone, also with knowledge of the states.

    Parameters
    ----------
    homdp
        The declaration.
    counts
        The data so far.
    delta
        Allowed probability that a row is ever outside its box.
    mixture
        "jeffreys" for Beta(1/2, 1/2) mixtures, or "declared" for the marginals of declared
        Dirichlet rows. A wrong prior makes the boxes wider; they stay valid.
    known
        Whether the declared structure is used: known rows, supports and shared parameters.
        Otherwise every row of T and O is unknown on its full support, except those of terminal
        states.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> tiger = models.load("tiger").homdp
    >>> confidence_sets(tiger, Counts.zero(tiger)).shows(0, None)  # without data, in [0, 1]
    Box(centre=array([[0.5, 0.5],
           [0.5, 0.5]]), up=array([[0.5, 0.5],
           [0.5, 0.5]]), down=array([[0.5, 0.5],
           [0.5, 0.5]]))
    """
    check_arguments("confidence_sets", delta=delta)
    check_mixture("confidence_sets", mixture)
    check_counts(counts, homdp)
    require_bounded(homdp)
    rows = row_map(homdp, known)
    pooled = rows.pooled(counts)
    n = rows.visits(pooled)
    xp = namespace(pooled)
    frequency = xp.where(n > 0, pooled / xp.where(n > 0, n, 1.0), 1 / rows.outcomes)
    a, b = _mixture(rows, mixture)
    level = delta / max(rows.intervals + int(unknown_rewards(homdp, known).sum()), 1)
    interval = mixture_interval(pooled, n, level, a, b)
    up, down = interval.high - frequency, frequency - interval.low
    form = homdp.form

    def full(moved: Array) -> Tables:
        initial, *tables = rows.tables(xp.maximum(moved, 0.0), known=False)
        transition, emission = form.full(*tables)
        return Tables(initial, as_dense(transition, "confidence_sets"), emission)

    centre = homdp.model_of([*rows.tables(frequency), *homdp.structure.reference[3:]]).dense
    if homdp.rewards.law is None:
        return Sets(centre, full(up), full(down), Interval(centre.reward, centre.reward))
    centre = centre._replace(reward=empirical_rewards(homdp, counts, known))
    reward = _reward_interval(homdp, counts, level, known, centre.reward)
    return Sets(centre, full(up), full(down), reward)


def _reward_interval(
    homdp: HOMDP, counts: Counts, level: float, known: bool, centre: Array
) -> Interval:
    """Intervals for the mean rewards, (H, X, Y|1, A), in [0, 1].

    The sum of n rewards in [0, 1] is the number of successes: the martingale of the confidence
    sequence is a supermartingale for every law on [0, 1], since it is convex in the reward.
    """
    seen, rewards = recorded(counts), homdp.rewards
    xp = namespace(seen.number)
    total = (seen.total - seen.number * rewards.shift) / rewards.scale
    total = xp.clip(total, 0.0, seen.number)  # rounding
    interval = mixture_interval(total, seen.number, level, 0.5, 0.5)
    unknown = unknown_rewards(homdp, known)
    low, high = (xp.where(unknown, end, centre) for end in interval)
    return Interval(xp.minimum(low, centre), xp.maximum(high, centre))


def check_sets(sets: Sets, subject: str) -> None:
    """Raise an error for invalid sets; traced numbers are accepted."""
    check_types(subject, centre=(sets.centre, POMDP))
    centre, problems = check_pomdp(sets.centre, subject), []
    for side in ("up", "down"):
        tables = getattr(sets, side)
        for name in Tables._fields:
            table = getattr(tables, name) if isinstance(tables, Tables) else None
            numbers, wrong = as_numbers(f"{side}.{name}", table, "probabilities")
            shape = np.shape(getattr(centre, name))
            if numbers is None or wrong:
                problems += wrong
            elif numbers.shape != shape:
                got = f"shape {numbers.shape}"
                problems.append(Problem(f"{side}.{name}", got, f"shape {shape}"))
            elif (
                isinstance(numbers, np.ndarray) and not ((numbers >= 0) & (numbers < np.inf)).all()
            ):
                got = "nan, inf or negative entries"
                problems.append(Problem(f"{side}.{name}", got, "non-negative numbers"))
    refuse(ParameterError, subject, problems)


def check_mixture(subject: str, mixture: str) -> None:
    """Raise an error for an unknown mixture."""
    refuse(ParameterError, subject, choice_problems(MIXTURES, mixture=mixture))


def _mixture(rows: RowMap, mixture: MixtureName) -> tuple[Array, Array]:
    """The Beta parameters of each entry, (M,)."""
    half = np.full(len(rows.row), 0.5)
    if mixture == "jeffreys":
        return half, half
    total = rows.visits(rows.prior)
    declared = np.isfinite(rows.prior)
    return np.where(declared, rows.prior, half), np.where(declared, total - rows.prior, half)
