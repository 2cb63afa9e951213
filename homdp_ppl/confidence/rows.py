"""Which rows of the tables of a declaration are unknown, and how often an episode can visit them.

Confidence sets live on the rows of the declared tables: one row per state and action, per state and
previous action, or per step, as declared. Some rows of emission tables are never used, for example
that of an action before the first step. They are in no confidence set and in no union bound.
"""

from __future__ import annotations

import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.spaces import HasTables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.structure import Rows
from homdp_ppl.precision import Array, namespace


def row_steps(model: HasTables) -> tuple[Array, Array]:
    """The number of steps of an episode at which each transition and emission row can be used.

    K times this number is the largest number of visits of a row in K episodes.
    """
    return model.form.steps(model.spaces.horizon)


def unknown_rows(homdp: HOMDP, known: bool = True) -> Rows:
    """The rows that have to be learned.

    Parameters
    ----------
    homdp
        The declaration.
    known
        Whether rows that depend on no site are known; otherwise all rows of T and O are unknown.
        The initial distribution is unknown if it depends on a site, in both cases.
    """
    exact = homdp.structure.known
    moves, shows = (steps > 0 for steps in row_steps(homdp))
    if known:
        moves, shows = moves & ~exact.transition, shows & ~exact.emission
    return Rows(~np.asarray(exact.initial), moves, shows)


def unknown_start(homdp: HOMDP) -> bool:
    """Whether the initial distribution depends on a site."""
    return not bool(homdp.structure.known.initial)


def first_states(counts: Counts) -> Array:
    """n(x_1), (X,); zeros if first states were not counted."""
    if counts.initial is not None:
        return counts.initial
    return namespace(counts).zeros(counts.form.initial)
