"""Empirical models: the relative frequencies of counted outcomes, and known rows."""

from __future__ import annotations

import numpy as np

from homdp_ppl.confidence.rewards import empirical_rewards
from homdp_ppl.confidence.rows import first_states, unknown_start
from homdp_ppl.confidence.sensors import joint_estimate
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import sensor_table
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.precision import Array, in_x64, namespace


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
        Emissions of several sensors are then products of the frequencies of each sensor. Otherwise
        every row is estimated, and unvisited rows are uniform over all outcomes. The initial
        distribution is the relative frequency of first states if it depends on a site. Random
        rewards are replaced by the averages of the recorded ones.

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

    def rows(name: str, seen: Array) -> Array:
        if not known:
            return frequencies(seen, np.ones(seen.shape))
        support, reference, exact = homdp.structure.tables[name]
        return xp.where(exact[..., None], reference, frequencies(seen, support))

    if known and homdp.spaces.sensors:
        numbers = counted(homdp, counts)
        names = [sensor_table(sensor) for sensor in homdp.spaces.sensors]
        shows = joint_estimate(homdp, {name: rows(name, numbers[name]) for name in names})
    else:
        shows = rows("emission", counts.emission)
    moves = rows("transition", counts.transition)
    tables = [estimated_start(homdp, counts), moves, shows]
    model = homdp.model_of([*tables, *homdp.structure.reference[3:]])
    if homdp.rewards.law is None:
        return model
    return model._replace(reward=empirical_rewards(homdp, counts, known))


def estimated_start(homdp: HOMDP, counts: Counts) -> Array:
    """The initial distribution, (X,): relative frequencies if it depends on a site, else exact."""
    if not unknown_start(homdp):
        return homdp.structure.reference.initial
    return frequencies(first_states(counts), homdp.structure.support.initial)


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
