"""The mean rewards of posteriors: deviations, quantiles and optimistic values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import ndtr

from homdp_ppl.confidence.backups import upper_quantile
from homdp_ppl.confidence.inequalities import hoeffding
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors import Posterior
from homdp_ppl.posteriors.dirichlet import ClosedForm, closed_form
from homdp_ppl.posteriors.tables import tables_at
from homdp_ppl.precision import Array, namespace


def reward_quantiles(belief: Posterior, draws: Mapping[str, Array], level: float) -> Array:
    """Quantiles at 1 - level of |mean reward - its posterior mean|, (H|1, X, Y|1, A), in [0, 1].

    Parameters
    ----------
    belief
        The posterior of a declaration with random rewards.
    draws
        Draws of its sites, each (n, ...).
    level
        The posterior probability of a larger distance, for each row.
    """
    rewards, n = belief.homdp.rewards, len(next(iter(draws.values())))
    tables: Any = tables_at(belief.homdp, draws, n)
    drawn = rewards.means(tables.reward, tables.reward.shape[-5])
    centre = belief.mean.reward[: drawn.shape[1]]
    return upper_quantile(np.abs(drawn - centre), 1 - level)


def reward_bounds(form: ClosedForm, concentration: Array, distances: Array, level: float) -> Array:
    """Upper bounds on the quantiles of |mean reward - its posterior mean|; may be traced.

    For a Dirichlet row it is mass sqrt(log(2 / level) / (2 (alpha_0 + 1))): the mean of outcomes in
    [0, 1] has a smaller moment generating function than a Beta variable with the same mean and
    alpha_0 (divide each outcome v into v and 1 - v, and use Jensen's inequality), and that one is
    sub-Gaussian with variance 1 / (4 (alpha_0 + 1)) by Marchal and Arbel (2017). For nested rows it
    is half of the L1 distance of the probabilities.

    Parameters
    ----------
    form, concentration
        The closed form and its parameters.
    distances
        Upper bounds on the L1 distances of the reward rows.
    level
        Allowed posterior probability of error of a row.
    """
    if form.conjugate.nested:
        return distances / 2
    spread = form.spread(concentration)["reward"]
    return spread.mass * hoeffding(1 / spread.shrink, 1.0, level)


def reward_deviation(homdp: HOMDP, counts: Counts) -> Array:
    """The posterior standard deviation of each mean reward, (H, X, Y|1, A), in [0, 1].

    For declarations whose rows are all Dirichlet or known; may be traced.
    """
    law, form = homdp.rewards.law, closed_form(homdp)
    assert law is not None
    if "reward" not in form.conjugate.sources:  # a known density
        return np.zeros((homdp.horizon, *law.form.shape[1:]))
    spread = form.spread(form.concentration(counts))["reward"]
    xp, values = namespace(spread.mean), np.asarray(law.form.outcomes) / homdp.rewards.scale
    centred = values - (spread.mean * values).sum(-1, keepdims=True)
    variance = spread.mass**2 * spread.shrink * (spread.mean * centred**2).sum(-1)
    known = homdp.structure.tables["reward"].known
    deviation = xp.where(known, 0.0, xp.sqrt(variance))
    return xp.broadcast_to(deviation, (homdp.horizon, *deviation.shape[1:]))


def with_upper_rewards(model: POMDP, z: float, deviation: Array) -> POMDP:
    """The model with rewards of z standard deviations above its own, at most 1."""
    xp = namespace(model.reward, deviation)
    return model._replace(reward=xp.minimum(model.reward + z * deviation, 1.0))


def with_quantile_rewards(model: POMDP, z: float, draws: POMDP) -> POMDP:
    """The model with the rewards at the quantile Phi(z) of draws of models."""
    return model._replace(reward=upper_quantile(draws.reward, float(ndtr(z))))
