"""All statements of the theory about a model of given sizes, each with the trivial bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from homdp_ppl.core.arguments import check_sizes
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.spaces import HasTables
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError
from homdp_ppl.theory._ranges import ACCURACY, PROBABILITY
from homdp_ppl.theory._tables import require_covered
from homdp_ppl.theory.counting import reciprocal_pigeonhole, root_pigeonhole
from homdp_ppl.theory.lower import LARGEST, lower_bound, unavoidable_gap
from homdp_ppl.theory.regret import hop_b_bound, hop_b_class_bound, hop_v_bound
from homdp_ppl.theory.samples import (
    SampleSize,
    hop_b_class_samples,
    hop_b_samples,
    hop_v_samples,
    smallest,
)


class Statement(NamedTuple):
    """One statement of the paper in numbers.

    Examples
    --------
    >>> from homdp_ppl import Spaces
    >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait",), horizon=1)
    >>> row = next(row for row in report(lamp, episodes=100) if row.name == "sum of 1 / sqrt n(x)")
    >>> (
    ...     round(row.value, 3),
    ...     row.trivial,
    ...     row.informative,
    ...     row.since,
    ... )  # 2 + 3 sqrt(2 100); the trivial bound is one per step
    (44.426, 100, True, 22)
    """

    name: str
    value: float
    trivial: float  # the trivial bound; infinite if there is none
    informative: bool  # whether it is better than the trivial bound at this number of episodes
    since: float  # the number of episodes from which it is informative; infinite if it never is
    source: str  # the appendix of the paper
    note: str = ""


def report(
    model: HasTables,
    episodes: int,
    delta: float = 0.1,
    accuracy: float | None = None,
    scale: float | None = None,
) -> list[Statement]:
    """The paper's bounds for a model's sizes, each with the trivial bound.

    Regret and gaps are in the user's units: the paper's bounds for rewards in [0, 1] times the
    range of one reward.

    The bounds for function classes are given for tables on a grid with K values per free entry:
    K^(X(Y-1)) emission tables, K^(XA(X-1)) transition tables, rank X. Call
    :func:`hop_b_class_bound` and :func:`hop_v_bound` for other classes.

    Parameters
    ----------
    model
        Anything with sizes: a declaration, a world, a POMDP or spaces. Raises
        :class:`ParameterError` for transitions or emissions that depend on the step or on the
        previous action, and for a declaration in which the start or the rewards have to be
        learned: the paper has no bounds for them.
    episodes
        K.
    delta
        The delta of the algorithms.
    accuracy
        The gap for which sample sizes are given, in the user's units. The default is a tenth of
        the range of returns.
    scale
        The range of one reward, by default that of the model.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> for row in report(models.load("tiger"), episodes=1000)[:2]:
    ...     print(f"{row.name}: {row.value:.3g}, trivially {row.trivial:.3g}; from {row.since:.3g}")
    regret of HOP-B: 3.77e+07, trivially 4e+03; from 1.91e+10
    regret of HOP-B, emission class: 3.13e+06, trivially 4e+03; from 9.87e+08
    """
    X, Y, A, H = spaces_of(model, "theory.report").sizes
    require_covered(model, "theory.report", start=True)
    unit = _scale_of(model) if scale is None else scale
    ranges = {"delta": (delta, PROBABILITY), "scale": (unit, ACCURACY)}
    if accuracy is not None:
        ranges["accuracy"] = (accuracy, ACCURACY)
    (K,) = check_sizes("theory.report", ranges, episodes=episodes)
    unit, delta = float(unit), float(delta)
    aim = unit * H / 10 if accuracy is None else float(accuracy)
    goal = _Goal(aim, aim / unit)
    bounds = _bounds(X, Y, A, H, K, delta)
    regrets = [
        _probable(
            f"regret of {b.rule}",
            unit * b.total,
            unit * b.trivial,
            b.total < b.trivial,
            b.samples(H),
            b.source,
            b.note,
        )
        for b in bounds
    ]
    enough = [_enough(b.rule, b.samples(goal.inside), goal.shown, K, b.source) for b in bounds]
    return [*regrets, *enough, *_lower(X, Y, K, goal, unit), *_counting(X, A, H, K)]


def _scale_of(model: HasTables) -> float:
    """The range of one reward of a declaration, a world or a POMDP; 1 for spaces."""
    if isinstance(model, POMDP):
        return float(model.scale)
    declared = model.homdp if isinstance(model, World) else model
    return declared.rewards.scale if isinstance(declared, HOMDP) else 1.0


class _Goal(NamedTuple):
    shown: float  # a gap in the user's units
    inside: float  # for rewards in [0, 1]


class _Bound(NamedTuple):
    rule: str
    source: str
    total: float
    trivial: float
    note: str
    samples: Callable[[float], SampleSize]  # of the accuracy


def _bounds(X: int, Y: int, A: int, H: int, K: int, delta: float) -> list[_Bound]:
    """The regret bounds of the three algorithms."""
    emissions, transitions = K ** (X * (Y - 1)), K ** (X * A * (X - 1))
    tables, classed = (
        hop_b_bound(X, Y, A, H, K, delta),
        hop_b_class_bound(X, A, H, K, emissions, delta),
    )
    epochs = K // H
    low_rank = hop_v_bound(A, H, K, transitions, emissions, X, delta).total if epochs else 0.0
    return [
        _Bound(
            "HOP-B",
            "C",
            tables.total,
            H * K,
            f"{_largest(tables)}; its proof has a gap, see hop_b_tv_bound",
            lambda gap: hop_b_samples(X, Y, A, H, gap, delta),
        ),
        _Bound(
            "HOP-B, emission class",
            "C.6",
            classed.total,
            H * K,
            f"log size {math.log(emissions):.3g}; {_largest(classed)}",
            lambda gap: hop_b_class_samples(X, A, H, emissions, gap, delta),
        ),
        _Bound(
            "HOP-V",
            "E",
            low_rank,
            H * epochs,
            (
                f"log sizes {math.log(transitions):.3g}, {math.log(emissions):.3g}, rank {X}; "
                f"{epochs} epochs"
            ),
            lambda gap: hop_v_samples(A, H, transitions, emissions, X, gap, delta),
        ),
    ]


def _enough(rule: str, size: SampleSize, goal: float, K: int, source: str) -> Statement:
    name, note = f"episodes for a gap of {goal:g}, {rule}", f"leading order {size.leading:.3g}"
    return _probable(name, size.episodes, math.inf, size.episodes <= K, size, source, note)


def _probable(
    name: str,
    value: float,
    trivial: float,
    informative: bool,
    size: SampleSize,
    source: str,
    note: str,
) -> Statement:
    """A statement that holds with some probability; with probability 0 it is never informative."""
    if not size.probability:
        return Statement(
            name,
            value,
            trivial,
            False,
            math.inf,
            source,
            "delta is too large: holds with probability 0",
        )
    return Statement(
        name,
        value,
        trivial,
        informative,
        size.episodes,
        source,
        f"{note}; probability {size.probability:g}",
    )


def _largest(bound: NamedTuple) -> str:
    """The name and the share of the largest term."""
    terms = {name: float(getattr(bound, name)) for name in bound._fields[:-1]}
    name = max(terms, key=lambda term: terms[term])
    return f"{terms[name] / sum(terms.values()):.0%} of it is {name.replace('_', ' ')}"


def _lower(X: int, Y: int, K: int, goal: _Goal, scale: float) -> list[Statement]:
    """The lower bound at K episodes and at the required gap, for the hardest model."""
    name, note = "gap that no algorithm avoids", "on the hardest model of these sizes"
    try:
        rows = [Statement(name, scale * unavoidable_gap(X, Y, K), 0.0, True, 1, "D", note)]
    except ParameterError as error:
        return [
            Statement(name, 0.0, 0.0, False, math.inf, "D", f"needs {error.problems[0].expected}")
        ]
    if 32 * goal.inside < LARGEST:
        name = f"episodes no algorithm avoids for a gap of {goal.shown:g}"
        episodes = lower_bound(X, Y, 32 * goal.inside).episodes
        rows.append(Statement(name, episodes, 0.0, True, 1, "D", note))
    return rows


def _counting(X: int, A: int, H: int, K: int) -> list[Statement]:
    """The counting lemmas: sums over steps or epochs of a run, with terms of at most 1."""

    def over_steps(name: str, bound: Callable[[int], float]) -> Statement:
        return Statement(
            name, bound(K), H * K, bound(K) < H * K, smallest(lambda k: bound(k) < H * k), "F"
        )

    epochs, potential = K // H, 2 * X * math.log1p(K // H)
    since = H * smallest(lambda k: 2 * X * math.log1p(k) < k)
    note = f"{epochs} epochs, rank {X}"
    return [
        over_steps("sum of 1 / sqrt n(x)", lambda k: root_pigeonhole(X, H, k)),
        over_steps("sum of 1 / sqrt n(x, a)", lambda k: root_pigeonhole(X * A, H, k)),
        over_steps("sum of 1 / n(x, a)", lambda k: reciprocal_pigeonhole(X * A, H, k)),
        Statement("elliptical potential", potential, epochs, potential < epochs, since, "F", note),
    ]
