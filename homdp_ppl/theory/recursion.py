"""Both sides of the recursion lemmas: of the simulation lemma, and of HOP-B's regret proof."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.bonuses import hop_b_bonus
from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.confidence.events import tilde_epsilon
from homdp_ppl.confidence.radii import hop_b_radii
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.declare.model import World
from homdp_ppl.evaluation.exact import occupancy, policy_value
from homdp_ppl.evaluation.lemma import simulation_lemma
from homdp_ppl.precision import Array
from homdp_ppl.theory._tables import require_covered
from homdp_ppl.theory.regret import C


class Recursion(NamedTuple):
    """Both sides of a recursion lemma at one step: ``left <= right``.

    Examples
    --------
    >>> from homdp_ppl import models, theory, uniform_policy
    >>> tiger = models.load("tiger", horizon=1)
    >>> theory.simulation_recursion(uniform_policy(tiger), tiger.pomdp, tiger.pomdp)
    [Recursion(step=1, left=0.0, right=0.0)]
    """

    step: int  # h, from 1
    left: float
    right: float


@checked
def simulation_recursion(policy: GraphPolicy, pomdp: POMDP, other: POMDP) -> list[Recursion]:
    """The recursion behind the simulation lemma (appendix F), at every step.

    The distance ||P - P-hat||_1 of the laws of (x_1, y_1, a_1, .., x_h, y_h, a_h) is at most that
    of the laws up to step h - 1, plus E ||O - O-hat||_1 (x_h), plus E ||T - T-hat||_1 (x_{h-1},
    a_{h-1}). All trajectories are enumerated.

    Parameters
    ----------
    policy
        A policy.
    pomdp, other
        Two models with the same rewards and the same initial distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> truth = POMDP.of(
    ...     [0.5, 0.5], np.full((2, 1, 2), 0.5), [[0.9, 0.1], [0.1, 0.9]], [[1], [1]], horizon=2
    ... )
    >>> other = truth.with_tables(emission=np.full((2, 2), 0.5))
    >>> for h, left, right in simulation_recursion(uniform_policy(truth), truth, other):
    ...     print(h, round(left, 3), round(right, 3))
    1 0.8 0.8
    2 1.12 1.6
    """
    pomdp, other = (check_pomdp(model, "simulation_recursion") for model in (pomdp, other))
    found: list[Recursion] = []
    distance = bound = 0.0  # of the steps before
    for h in range(1, pomdp.horizon + 1):
        sides = simulation_lemma(policy, _cut(pomdp, h), _cut(other, h))
        found.append(Recursion(h, sides.distance, distance + sides.bound - bound))
        distance, bound = sides.distance, sides.bound
    return found


def _cut(model: POMDP, horizon: int) -> POMDP:
    """The first steps of a model."""
    return model._replace(
        transition=model.transition[:horizon],
        emission=model.emission[:horizon],
        reward=model.reward[:horizon],
    )


@checked
def alpha_recursion(
    policy: GraphPolicy,
    world: World,
    counts: Counts,
    episodes: int,
    delta: float = 0.1,
    c: float | None = None,
) -> list[Recursion]:
    """The recursion of HOP-B's regret proof (appendix C, lemma "recursive-alpha-bound").

    For pi-hat and h < H, E[alpha-hat_h(x_h) - alpha_h(x_h)] <= E[H eps(x_h) + 2 eps(x_h, a_h) + 21
    H^2 tilde-eps(c, x_h, a_h)] + (1 + 1/(2c)) E[alpha-hat_{h+1}(x_{h+1}) - alpha_{h+1}(x_{h+1}) +
    11 H^2 eps(x_{h+1})], with expectations in the true model; at h = H, <= E[H eps(x_H) + eps(x_H,
    a_H)]. The lemma is proved with "B-bound", which is false as stated, so it is checked here and
    not guaranteed. It is about Algorithm 1 as printed, with all rows unknown.

    Parameters
    ----------
    policy
        pi-hat, an optimal policy of the learned model with bonuses.
    world
        The true world, with stationary tables.
    counts
        The data before the round.
    episodes
        K, the number of rounds of the whole run.
    delta
        The delta of Algorithm 1.
    c
        At least 1. Default: max(1, H/2), as in the proof.

    Examples
    --------
    >>> from homdp_ppl import Counts, models, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> steps = alpha_recursion(uniform_policy(world), world, Counts.zero(world), episodes=100)
    >>> [round(step.left, 3) for step in steps]  # bonuses of 8 in each step that is left
    [16.0, 8.0]
    >>> all(step.left <= step.right for step in steps)
    True
    """
    require_covered(world, "alpha_recursion")
    H, truth = world.spaces.horizon, world.pomdp
    c = max(1.0, H / 2) if c is None else float(c)
    radii = hop_b_radii(world.homdp, counts, episodes, float(delta), 1.0, False)
    tilde = tilde_epsilon(c, world.homdp, counts, episodes, float(delta), False)
    learned = empirical(world.homdp, counts, False).with_bonus(hop_b_bonus(radii, H))
    visits = occupancy(policy, truth)  # (H, X, A)
    by_emission = (visits.sum(2) * radii.emission).sum(1)  # E eps(x_h)
    by_transition = (visits * radii.transition).sum((1, 2))
    lower_order = (visits * tilde).sum((1, 2))
    left = [_difference(policy, truth, learned, h) for h in range(H)]
    found = []
    for h in range(H):
        own = H * by_emission[h] + by_transition[h]
        if h + 1 < H:
            later = left[h + 1] + 11 * H**2 * by_emission[h + 1]
            own += by_transition[h] + C * H**2 * lower_order[h] + (1 + 1 / (2 * c)) * later
        found.append(Recursion(h + 1, left[h], float(own)))
    return found


def _difference(policy: GraphPolicy, truth: POMDP, learned: POMDP, h: int) -> float:
    """E[alpha-hat(x) - alpha(x)] at step h from 0, where the true model generates (x, history).

    It is the difference of two values: of the model that is true up to the observation of step h
    and the learned model afterwards, and of the true model, both with rewards from step h on.
    """
    H, rows = truth.horizon, np.arange(truth.horizon)[:, None, None, None]
    from_here = np.where(rows >= h, 1.0, 0.0)

    def value(transition: Array, emission: Array, reward: Array) -> float:
        mixed = truth._replace(
            transition=transition, emission=emission, reward=reward * from_here
        ).unscaled
        return policy_value(policy, mixed)

    moves, shows = (
        [np.broadcast_to(table, (H, *table.shape[1:])) for table in tables]
        for tables in (
            (truth.transition, learned.transition),
            (truth.emission, learned.emission),
        )
    )
    later = value(
        np.where(rows >= h, moves[1], moves[0]),
        np.where(rows > h, shows[1], shows[0]),
        learned.reward,
    )
    return later - value(truth.transition, truth.emission, truth.reward)
