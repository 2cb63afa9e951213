"""Version spaces: which members of a class still explain the data (Algorithm 2)."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.posteriors import highest_density_set, likelihood_set
from homdp_ppl.precision import Array


class Versions(NamedTuple):
    """The version spaces."""

    transitions: Array  # (N,)  which T are alive
    emissions: Array  # (M,)


def survivors(
    log_likelihood: Array, alive: Array, epochs: int, delta: float, mass: float | None
) -> Array:
    """Who is alive after an epoch, (N,).

    The paper's version spaces are nested, and members compete with survivors only; what cannot
    explain the data is never kept.

    Parameters
    ----------
    log_likelihood
        Of every member, (N,).
    alive
        Who was alive before.
    epochs
        K'.
    delta
        Allowed probability of error; beta = 2 log(K' N / delta).
    mass
        Posterior mass of a highest-density set in place of the paper's; taken anew, not nested.
    """
    weighed = np.where(alive, log_likelihood, -np.inf) if mass is None else log_likelihood
    kept: Array = weighed > -np.inf
    if kept.any():
        beta = 2 * log(epochs * len(alive) / delta)
        kept = kept & (
            likelihood_set(weighed, beta) if mass is None else highest_density_set(weighed, mass)
        )
    return kept
