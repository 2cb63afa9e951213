"""Planners for logs: pessimistic versions of the rules that explore.

An optimistic rule tries what it does not know. Without further data that is a bad idea: these
planners avoid it. None of them certifies its policy; :func:`homdp_ppl.offline.choose` does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import jax
import numpy as np
from scipy.special import ndtri

from homdp_ppl.confidence.backups import draw_backup, moment_backup
from homdp_ppl.confidence.ranges import value_ranges
from homdp_ppl.confidence.reward_beliefs import reward_deviation
from homdp_ppl.confidence.row_moments import has_moments, moments
from homdp_ppl.confidence.sets import MixtureName, Sets, check_mixture, confidence_sets
from homdp_ppl.core.arguments import check_arguments, count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode_validation import incomplete_problems
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, ParameterError
from homdp_ppl.explorers.anytime import optimistic_proposal
from homdp_ppl.learning.checks import check_plan
from homdp_ppl.learning.planning import Planner, plan_allowed
from homdp_ppl.offline.belief import drawn_models
from homdp_ppl.offline.logs import Played, read_log, seed_problems
from homdp_ppl.planners import auto, history_tree
from homdp_ppl.posteriors import Posterior, posterior
from homdp_ppl.precision import Array, in_x64

DRAWS = 256  # models that represent a posterior without closed form


@checked
@in_x64
def bonus_plan(
    homdp: HOMDP,
    log: Played,
    delta: float = 0.1,
    mixture: MixtureName = "jeffreys",
    *,
    planner: Planner | None = None,
) -> Plan:
    """Plan for the log's frequencies with the bonuses of ``explorers.anytime`` subtracted.

    Rewards are lower where values may be lower than the frequencies suggest. It plays safe: with
    few data it avoids everything that was rarely tried.

    Parameters
    ----------
    homdp
        The declaration.
    log
        Recorded episodes, with all states.
    delta, mixture
        As in :func:`homdp_ppl.confidence.confidence_sets`.
    planner
        The planner. Default: :func:`homdp_ppl.planners.auto`.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 30), world, uniform_policy(world))
    >>> offline.bonus_plan(world.homdp, log).named(world).tree().nodes[1]["action"]
    'listen'
    """
    check_arguments("offline.bonus_plan", delta=delta)
    check_mixture("offline.bonus_plan", mixture)
    counts = counts_of(homdp, log, "offline.bonus_plan")
    sets = confidence_sets(homdp, counts, delta, mixture)
    return plan_bonuses(homdp, sets, auto() if planner is None else planner)


@checked
@in_x64
def value_quantile_plan(
    homdp: HOMDP,
    log: Played,
    q: float = 0.1,
    draws: int = 20,
    seed: int = 0,
    *,
    planner: Planner | None = None,
) -> Plan:
    """Draw S models from the posterior and return the plan with the ceil(q S)-th smallest value.

    With a low q, it is the plan of a bad world. ``explorers.value_quantile`` is the same rule with
    a high q. States may be missing.

    Parameters
    ----------
    homdp
        The declaration.
    log
        Recorded episodes.
    q
        The level of the quantile.
    draws
        S, the number of models.
    seed
        The seed of the draws.
    planner
        The planner. Default: :func:`homdp_ppl.planners.auto`.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 30), world, uniform_policy(world))
    >>> low, high = (offline.value_quantile_plan(world.homdp, log, q).value for q in (0.1, 0.9))
    >>> low < high
    True
    """
    check_arguments("offline.value_quantile_plan", q=q)
    problems = count_problems(1, draws=draws) + seed_problems(seed)
    refuse(ParameterError, "offline.value_quantile_plan", problems)
    belief = belief_of(homdp, log, "offline.value_quantile_plan")
    used = auto() if planner is None else planner
    return plan_quantile(homdp, drawn_models(belief, draws, seed), q, used)


@checked
@in_x64
def quantile_backup_plan(homdp: HOMDP, log: Played, q: float = 0.1, seed: int = 0) -> Plan:
    """Plan with one-step backups at a low quantile of the posterior.

    ``explorers.quantile_backup`` is the same rule with a high quantile: the backup is the mean plus
    z standard deviations, here with the normal quantile z < 0 of the level q. States may be
    missing. Requires the history tree, so the number of histories must be small.

    Parameters
    ----------
    homdp
        The declaration.
    log
        Recorded episodes.
    q
        The level of the quantile.
    seed
        The seed of draws, for posteriors without closed form.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 30), world, uniform_policy(world))
    >>> low, high = (offline.quantile_backup_plan(world.homdp, log, q).value for q in (0.1, 0.5))
    >>> low < high
    True
    """
    check_arguments("offline.quantile_backup_plan", q=q)
    refuse(ParameterError, "offline.quantile_backup_plan", seed_problems(seed))
    return plan_backups(homdp, belief_of(homdp, log, "offline.quantile_backup_plan"), q, seed)


def counts_of(homdp: HOMDP, log: Played, subject: str) -> Counts:
    """The counts of a log; raises an error if states are missing."""
    read = read_log(homdp, log, subject)
    if read.counts is None:
        remedy = "Use a planner that needs only the posterior, such as value_quantile_plan."
        problems = incomplete_problems(read.episodes)
        raise DataError(subject, [problem._replace(remedy=remedy) for problem in problems])
    return read.counts


def belief_of(homdp: HOMDP, log: Played, subject: str) -> Posterior:
    """The posterior of a log, whose states may be missing."""
    read = read_log(homdp, log, subject)
    return posterior(homdp, read.episodes if read.counts is None else read.counts)


def plan_bonuses(homdp: HOMDP, sets: Sets, planner: Planner) -> Plan:
    """:func:`bonus_plan` for given sets."""
    proposal = optimistic_proposal(sets, value_ranges(sets))
    assert isinstance(proposal.models, POMDP)
    bonus = proposal.models.reward[0] - sets.reward.high
    model = sets.centre._replace(reward=sets.reward.low - bonus)
    return check_plan(plan_allowed(planner, model, homdp.allowed), "offline.bonus_plan")


def plan_quantile(homdp: HOMDP, drawn: list[POMDP], q: float, planner: Planner) -> Plan:
    """:func:`value_quantile_plan` for given models."""
    subject = "offline.value_quantile_plan"
    plans = [check_plan(plan_allowed(planner, model, homdp.allowed), subject) for model in drawn]
    order = np.argsort([plan.value for plan in plans], kind="stable")
    return plans[order[max(ceil(q * len(plans) - 1e-9), 1) - 1]]


def plan_backups(homdp: HOMDP, belief: Posterior, q: float, seed: int) -> Plan:
    """:func:`quantile_backup_plan` for a posterior."""
    z, random = float(ndtri(q)), homdp.rewards.law is not None
    lower: Callable[[Array], Array] = lambda reward: np.clip(reward, 0.0, 1.0)  # noqa: E731
    if isinstance(belief.data, Counts) and has_moments(homdp):
        believed = moments(homdp, belief.data)
        model = believed.model
        if random:
            deviation = reward_deviation(homdp, belief.data)
            model = model._replace(reward=lower(model.reward + z * deviation))
        return history_tree(backup=moment_backup(homdp, z))(
            model, believed._replace(model=model), allowed=homdp.allowed
        )
    draws = belief.draws(jax.random.key(seed), DRAWS)
    model = belief.mean
    if random:
        model = model._replace(reward=np.quantile(draws.reward, q, axis=0))
    return history_tree(backup=draw_backup(z))(model, draws, allowed=homdp.allowed)
