"""Version spaces: the members of a class that still explain the data (Algorithm 2)."""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.confidence.finite_classes import highest_density_set, likelihood_set
from homdp_ppl.precision import Array


class Versions(NamedTuple):
    """The version spaces, and further evidence about their members."""

    transitions: Array  # (N,)  whether each T is alive
    emissions: Array  # (M,)  whether each O is alive
    evidence: Any = None  # Evidence, if states or observations are real-valued


class Evidence(NamedTuple):
    """Log-likelihoods of classes of densities, and the tuples of the current epoch."""

    transitions: Array  # (N,)  log-likelihoods of all finished epochs
    emissions: Array  # (M,)
    waiting: tuple[tuple[Any, ...], ...] = ()  # (x, a, x', y, h, previous a), uniform a


def survivors(
    log_likelihood: Array, alive: Array, epochs: int, delta: float, mass: float | None
) -> Array:
    """Whether each member is alive after an epoch, (N,).

    The paper's version spaces are nested: members are compared with survivors only. Members under
    which the data are impossible are always removed.

    Parameters
    ----------
    log_likelihood
        The log-likelihood of every member, (N,).
    alive
        Whether each member was alive before, (N,).
    epochs
        K', the number of epochs.
    delta
        Allowed probability of error; beta = 2 log(K' N / delta).
    mass
        If given, use highest-density sets of this posterior mass instead of the paper's sets. They
        are computed from all members in every epoch and are not nested.
    """
    weighed = np.where(alive, log_likelihood, -np.inf) if mass is None else log_likelihood
    kept: Array = weighed > -np.inf
    if kept.any():
        beta = 2 * log(epochs * len(alive) / delta)
        kept = kept & (
            likelihood_set(weighed, beta) if mass is None else highest_density_set(weighed, mass)
        )
    return kept
