"""Version spaces: which members of a class still explain the data (Algorithm 2)."""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.confidence.posteriors import highest_density_set, likelihood_set
from homdp_ppl.precision import Array


class Versions(NamedTuple):
    """The version spaces, and what is known about their members besides counts."""

    transitions: Array  # (N,)  which T are alive
    emissions: Array  # (M,)
    evidence: Any = None  # Evidence, where states or observations are real-valued


class Evidence(NamedTuple):
    """Log-likelihoods of classes of densities; tuples of an epoch wait until it is over."""

    transitions: Array  # (N,)  log-likelihoods of all finished epochs
    emissions: Array  # (M,)
    waiting: tuple[tuple[Any, ...], ...] = ()  # (x, a, x', y) of the steps that were uniform


def survivors(
    log_likelihood: Array, alive: Array, epochs: int, delta: float, mass: float | None
) -> Array:
    """Which members are alive after an epoch, (N,).

    The paper's version spaces are nested, and members compete with survivors only; a member that
    cannot explain the data is never kept.

    Parameters
    ----------
    log_likelihood
        Of every member, (N,).
    alive
        Which were alive before.
    epochs
        K'.
    delta
        Allowed probability of error; beta = 2 log(K' N / delta).
    mass
        Posterior mass of a highest-density set instead of the paper's; computed from all members
        in every epoch, not nested.
    """
    weighed = np.where(alive, log_likelihood, -np.inf) if mass is None else log_likelihood
    kept: Array = weighed > -np.inf
    if kept.any():
        beta = 2 * log(epochs * len(alive) / delta)
        kept = kept & (
            likelihood_set(weighed, beta) if mass is None else highest_density_set(weighed, mass)
        )
    return kept
