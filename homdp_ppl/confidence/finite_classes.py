"""Confidence sets of members of a finite class, from their log weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.core.arguments import check_arguments, refuse
from homdp_ppl.core.checked import checked_but
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array, namespace


@checked_but("mass")
def highest_density_set(log_weights: Array, mass: float = 0.9) -> Array:
    """The smallest set of members of a finite class with at least this posterior mass.

    Members with equal weights are included or excluded together.

    Parameters
    ----------
    log_weights
        Log posterior of each member, up to a constant, (N,).
    mass
        The smallest allowed posterior probability of the set.

    Examples
    --------
    >>> highest_density_set(np.log([0.05, 0.6, 0.05, 0.3]), mass=0.8)
    array([False,  True, False,  True])
    """
    check_arguments("highest_density_set", mass=mass)
    _check_members("highest_density_set", mass=mass, log_weights=log_weights)
    xp = namespace(log_weights, mass)
    weights = xp.exp(log_weights - xp.max(log_weights))
    weights = weights / weights.sum()
    ordered = -xp.sort(-xp.asarray(weights))
    enough = xp.argmax(xp.cumsum(ordered) >= mass - 1e-12)
    return weights >= ordered[enough] * (1 - 1e-12)


@checked_but("beta")
def likelihood_set(log_likelihood: Array, beta: float) -> Array:
    """The members of a finite class whose log-likelihood is within beta of the best.

    This is the version space of HOP-V (Algorithm 2). Under a uniform prior it is the
    highest-density set {p >= exp(-beta) max p}.

    Examples
    --------
    >>> likelihood_set(np.array([-10.0, -12.5, -11.0]), beta=2.0)
    array([ True, False,  True])
    """
    check_arguments("likelihood_set", beta=beta)
    _check_members("likelihood_set", beta=beta, log_likelihood=log_likelihood)
    return log_likelihood >= namespace(log_likelihood).max(log_likelihood) - beta


def _check_members(subject: str, **given: Any) -> None:
    """Raise :class:`ParameterError` for a limit with axes, and for weights that are not a vector of
    numbers.
    """
    (limit, value), (where, weights) = given.items()
    problems = []
    if np.ndim(value):
        problems.append(Problem(limit, f"shape {np.shape(value)}", "one number"))
    if np.ndim(weights) != 1 or not len(weights):
        problems.append(Problem(where, f"shape {np.shape(weights)}", "one number per member, (N,)"))
    elif isinstance(weights, np.ndarray) and not weights.max() < np.inf:
        problems.append(Problem(where, "nan or inf", "log weights; -inf is allowed"))
    elif isinstance(weights, np.ndarray) and weights.max() == -np.inf:
        problems.append(Problem(where, "-inf for all", "at least one possible member"))
    refuse(ParameterError, subject, problems)
