"""Optimistic one-step backups from posteriors, for the history tree.

The optimistic value is the mean plus z standard deviations (see
:mod:`homdp_ppl.confidence.row_moments`), or a quantile of draws.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr

from homdp_ppl.confidence.row_moments import Moments, moments, moments_of_backups, shown_after
from homdp_ppl.core.arguments import refuse, share_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.posteriors.dirichlet import Spread
from homdp_ppl.precision import Array, namespace

Backup: TypeAlias = Callable[[Any, int, Array], Array]


@checked
def moment_backup(homdp: HOMDP, z: float, unvisited: float | None = None) -> Backup:
    """The backup min(H - h, mean + z standard deviations); its parameters are :class:`Moments`.

    Planners validate the parameters once per plan; the backup itself does not.

    Parameters
    ----------
    homdp
        The declaration.
    z
        The number of standard deviations.
    unvisited
        The number of standard deviations for rows of T without data. With n observations it is z +
        (unvisited - z) (a + 1) / (a + n + 1), where a is the total concentration of the prior.
        Default: z.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=3,
    ... )
    >>> believed, lit = moments(lamp, Counts.zero(lamp)), np.array([[[0, 1], [0, 1]]])
    >>> moment_backup(lamp, z=1.0)(believed, 1, lit).ravel().round(
    ...     4
    ... ).tolist()  # 1/2 + sqrt(1/12); the cap is H - h = 2
    [0.7887, 0.7887]
    """
    evaluate = moments_of_backups(homdp)
    prior = None if unvisited is None else moments(homdp, Counts.zero(homdp)).transition.shrink

    def deviations(row: Spread, h: int) -> Array | float:
        if prior is None or unvisited is None:
            return z
        share = row.shrink / prior  # (a + 1) / (a + n + 1)
        return z + (unvisited - z) * (share[h - 1] if homdp.form.moves_by_step else share)

    def backup(parameters: Moments, h: int, alpha_next: Array) -> Array:
        xp = namespace(parameters, alpha_next)
        mean, variance = evaluate(parameters, alpha_next, h)
        optimistic = mean + deviations(parameters.transition, h) * xp.sqrt(variance)
        return xp.minimum(optimistic, float(parameters.model.horizon - h))

    return backup


@checked
def draw_backup(z: float) -> Backup:
    """The backup min(H - h, quantile of draws at level Phi(z)); its parameters are draws of models.

    Planners validate the parameters once per plan; the backup itself does not.

    Examples
    --------
    >>> from homdp_ppl.core.pomdp import Stationary
    >>> p = (
    ...     np.arange(1, 100) / 100
    ... )  # probability of the second observation in 99 models with one state
    >>> from homdp_ppl import tabular
    >>> coin = tabular(T=[[[1.0]]], O=[[0.5, 0.5]], initial=[1], reward=[[1]], horizon=2)
    >>> tables = np.ones((99, 1)), np.ones((99, 1, 1, 1)), np.stack([1 - p, p], -1)[:, None]
    >>> draws = coin.model_of(tables)
    >>> draw_backup(z=1.0)(draws, 1, np.array([[[0.0], [1.0]]])).round(
    ...     2
    ... )  # Phi(1) = 0.841: the 85th of 99
    array([[0.85]])
    """

    def backup(parameters: POMDP, h: int, alpha_next: Array) -> Array:
        xp = namespace(parameters, alpha_next)
        values = one_step_values(parameters, h, alpha_next)
        return xp.minimum(upper_quantile(values, float(ndtr(z))), float(parameters.horizon - h))

    return backup


def one_step_values(draws: POMDP, h: int, alpha_next: Array) -> Array:
    """The one-step backup of step h in each of S models, (S, X, A)."""
    xp = namespace(draws, alpha_next)
    shows = shown_after(draws, h)
    if shows.shape[1] == 1:
        g = xp.einsum("szy,ayz->saz", shows[:, 0], alpha_next)
    else:
        g = xp.einsum("sazy,ayz->saz", shows, alpha_next)
    return xp.einsum("sxaz,saz->sxa", draws.moves(h - 1), g)


@checked
def upper_quantile(values: Array, level: float) -> Array:
    """The ceil(level (S + 1))-th smallest of S draws along the first axis.

    A further draw exceeds it with probability at most 1 - level.

    Examples
    --------
    >>> upper_quantile(np.arange(1.0, 100.0), 0.95).item()
    95.0
    """
    if np.ndim(values) == 0 or not len(values):
        problem = Problem("values", f"shape {np.shape(values)}", "draws along the first axis")
        raise ParameterError("upper_quantile", [problem])
    refuse(ParameterError, "upper_quantile", share_problems(level=level))
    if isinstance(values, np.ndarray) and np.isnan(values).any():
        raise ParameterError("upper_quantile", [Problem("values", "nan", "numbers")])
    S = len(values)
    place = min(max(ceil(level * (S + 1) - 1e-9), 1), S) - 1
    return namespace(values).sort(values, axis=0)[place]
