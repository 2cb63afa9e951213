"""Checks of the optimism lemmas: with bonuses, values in the learned model exceed the true values.

The lemmas assume the events E_T and E_O, which ``homdp_ppl.confidence.events`` checks. The
functions here check all histories that are possible under the policy's actions, with any
observations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from homdp_ppl.confidence.bonuses import hop_b_bonus, hop_b_class_bonus
from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.confidence.radii import hop_b_class_radii, hop_b_radii
from homdp_ppl.confidence.rows import unknown_start
from homdp_ppl.core.alphas import alphas_of
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.probabilities import row_problems
from homdp_ppl.declare.model import World
from homdp_ppl.errors import DataError, ParameterError, Problem
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.precision import Array
from homdp_ppl.theory._tables import require_covered


class Optimism(NamedTuple):
    """How far a learned model is from violating the lemmas, in the worst case over policies.

    Slack and value are in the user's units.
    """

    # the smallest alpha-hat(x) - alpha(x) - H eps(x) over steps, histories and states; at least 0
    # by the lemma
    slack: float
    value: float  # v-hat - v; at least 0 by the lemma
    # the largest alpha-hat_h(x) / (G (H - h + 1)), where G is the largest possible optimistic
    # reward; at most 1
    size: float


def optimism(
    policy: GraphPolicy, truth: POMDP, learned: POMDP, radius: Array, largest: float
) -> Optimism:
    """Compare a policy's alpha-vectors in the learned model with those in the true model.

    Parameters
    ----------
    policy
        The policy.
    truth
        The true model.
    learned
        T-hat and O-hat, with the bonuses in its rewards.
    radius
        eps(x), (X,).
    largest
        G, a bound on the rewards of the learned model.
    """
    H = truth.horizon
    optimistic, true = alphas_of(policy, learned), alphas_of(policy, truth)
    slack = min(
        float((hat - alpha - H * radius).min()) for hat, alpha in zip(optimistic, true, strict=True)
    )
    size = max(
        float(np.abs(hat).max()) / (largest * (H - h)) for h, hat in enumerate(optimistic)
    )  # h starts at 0 here
    scale = float(truth.scale)
    value = policy_value(policy, learned) - policy_value(policy, truth)
    return Optimism(scale * slack, scale * value, size)


@checked
def hop_b_optimism(
    policy: GraphPolicy,
    world: World,
    counts: Counts,
    episodes: int,
    delta: float = 0.1,
    scale: float = 1.0,
    known: bool = True,
) -> Optimism:
    """Optimism of HOP-B, Algorithm 1 (appendix C.3).

    Alpha-hat >= alpha + H eps(x) for pi*, and |alpha-hat_h| <= 5H(H - h + 1).

    The first inequality holds on E_T and E_O, so in all rounds together with probability 1 - 2
    delta. The only property of pi* that matters is that it does not depend on the data: any such
    policy can be used.

    Parameters
    ----------
    policy
        pi*, as an exact planner returns it for the true model.
    world
        The true world. Raises :class:`ParameterError` if its transitions or emissions depend on the
        step or the previous action, or if its rewards have to be learned: the lemma is not known
        for such models.
    counts
        The data before the round.
    episodes
        K, the number of rounds of the whole run.
    delta, scale, known
        As in ``hop_b_radii``. There is no guarantee for a scale below 1.

    Examples
    --------
    >>> from homdp_ppl import Counts, models, uniform_policy
    >>> world = models.load("tiger")
    >>> check = hop_b_optimism(uniform_policy(world), world, Counts.zero(world), episodes=100)
    >>> (
    ...     check.slack,
    ...     round(check.size, 3),
    ... )  # at the last step the bonus is H eps(x), since the transitions are known
    (0.0, 0.432)
    """
    require_covered(world, "hop_b_optimism")
    H = world.spaces.horizon
    scaled = float(delta), float(scale)  # JAX numbers would make arrays of JAX
    radii = hop_b_radii(world.homdp, counts, episodes, *scaled, known)
    learned = _with_bonus(empirical(world.homdp, counts, known), hop_b_bonus(radii, H))
    return optimism(policy, world.pomdp, learned, radii.emission, _largest(5, world))


@checked
def hop_b_class_optimism(
    policies: Iterable[GraphPolicy],
    world: World,
    counts: Counts,
    emissions: ArrayLike,
    episodes: int,
    delta: float = 0.1,
    scale: float = 1.0,
    known: bool = True,
) -> Optimism:
    """Optimism of HOP-B with an emission class (lemmas of appendix C.6).

    Alpha-hat >= alpha + H eps(x) for every policy.

    It holds on the events of that section, which assume a class that contains the truth. The
    rewards of the learned model are at most 1 + 3H 2 + H 2 <= 9H, which gives G; the paper has no
    lemma about the size here.

    Parameters
    ----------
    policies
        Any policies, including those that depend on the data.
    world, counts, episodes, delta, scale, known
        As in :func:`hop_b_optimism`.
    emissions
        The class Theta: emission tables, (size, X, Y). O-hat is its most likely member (the first
        one in case of ties), except for known rows.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular, uniform_policy
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> world, either = coin.at(O=[[0.5, 0.5]]), [[[0.5, 0.5]], [[0.9, 0.1]]]
    >>> check = hop_b_class_optimism(
    ...     [uniform_policy(world)], world, Counts.zero(world), either, episodes=100
    ... )
    >>> (
    ...     round(check.slack, 6),
    ...     round(check.value, 6),
    ...     round(check.size, 3),
    ... )  # eps(x) = 2: the optimistic reward is 3, at most 9 is possible
    (0.0, 2.0, 0.333)
    """
    require_covered(world, "hop_b_class_optimism")
    H = world.spaces.horizon
    tables = _checked_class(world, emissions)
    scaled = float(delta), float(scale)  # JAX numbers would make arrays of JAX
    radii = hop_b_class_radii(world.homdp, counts, episodes, len(tables), *scaled, known)
    likely = tables[np.argmax(xlogy(counts.emission, tables).sum((1, 2)))]
    estimate = empirical(world.homdp, counts, known)
    exact = (
        world.homdp.structure.known.emission[:, None] & known
    )  # as in the rule: known rows do not depend on the class
    estimate = estimate.with_tables(emission=np.where(exact, estimate.shows(0), likely))
    learned = _with_bonus(estimate, hop_b_class_bonus(radii, H))
    largest = _largest(9, world)
    checks = [
        optimism(policy, world.pomdp, learned, radii.emission, largest) for policy in policies
    ]
    if not checks:
        raise ParameterError(
            "hop_b_class_optimism", [Problem("policies", "none", "at least one policy")]
        )
    slacks, values, sizes = zip(*checks, strict=True)
    return Optimism(min(slacks), min(values), max(sizes))


def _largest(factor: int, world: World) -> float:
    """G: factor times H, and 2 more for the bonus H eps <= 2H of an unknown initial distribution.

    That bonus is added once, at the first step, and 2H is at most 2 per step.
    """
    return factor * world.spaces.horizon + 2 * unknown_start(world.homdp)


def _with_bonus(model: POMDP, bonus: Array) -> POMDP:
    return model.with_bonus(bonus)


def _checked_class(world: World, emissions: ArrayLike) -> Array:
    tables = np.asarray(emissions, dtype=np.float64)
    X, Y, *_ = world.spaces.sizes
    if tables.ndim != 3 or tables.shape[1:] != (X, Y) or not len(tables):
        got = Problem("emissions", f"shape {tables.shape}", f"shape (size, {X}, {Y})")
        raise DataError("emission class", [got])
    problems = [
        problem._replace(at=f"table {k}, {problem.at}")
        for k, table in enumerate(tables)
        for problem in row_problems("emission", table, world.spaces)
    ]
    if problems:
        raise DataError("emission class", problems)
    return tables
