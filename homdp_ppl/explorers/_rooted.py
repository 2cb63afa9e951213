"""Shared parts of `tight` and `quantile_bonus`.

Centred bonuses are added to the rewards, and a start term to the root value after all clipping.
"""

from __future__ import annotations

from homdp_ppl.confidence.bonuses import centred_bonus, start_bonus
from homdp_ppl.confidence.radii import Radii
from homdp_ppl.confidence.rewards import with_optimistic_rewards
from homdp_ppl.core.bound import bind
from homdp_ppl.core.plan import Solution
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers.explorer import Root
from homdp_ppl.explorers.state import Proposal, one
from homdp_ppl.precision import Array, namespace


def with_bonuses(model: POMDP, radii: Radii) -> Proposal:
    """Propose a model with the bonuses of its radii.

    The start term is passed as the parameter of :func:`capped_root`.
    """
    bonus = centred_bonus(radii, planned_moves(model), model.horizon)
    return one(
        with_optimistic_rewards(model, radii.reward).with_bonus(bonus),
        start_bonus(radii, model.initial, model.horizon),
    )


def planned_moves(model: POMDP) -> Array:
    """The transition table of a model, (X, A, X), or (H, X, A, X) if it depends on the step."""
    return model.transition if model.transition.shape[0] > 1 else model.moves(0)


def capped_root(homdp: HOMDP) -> Root:
    """The root value min(H, value + offset).

    If the offset were added to the first reward, it would be clipped, and the value would not be
    optimistic.
    """
    return bind(_capped, cap=float(homdp.horizon))


def _capped(offset: Array, solution: Solution, cap: float) -> Array:
    return namespace(offset, solution.upper).minimum(solution.upper + offset, cap)
