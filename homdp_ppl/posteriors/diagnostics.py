"""Whether a sampled posterior can be trusted: divergences, rank-normalised split R-hat, bulk effective sample size.

The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), as in ArviZ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from scipy.special import ndtri
from scipy.stats import rankdata

from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array


class Gate(NamedTuple):
    """What a fit must reach."""

    divergences: float = 0.002  # as a share of the draws
    r_hat: float = 1.02
    ess: float = 100.0  # for each chain on average


class Diagnostics(NamedTuple):
    """How well the chains did."""

    divergences: int
    draws: int  # of all chains together
    chains: int
    r_hat: Mapping[str, float]  # the worst entry of each site
    ess: Mapping[str, float]

    def problems(self, gate: Gate) -> list[Problem]:
        """What does not pass the gate, with what to do about it."""
        problems = []
        if self.divergences > gate.divergences * self.draws:
            got = f"{self.divergences} of {self.draws}"
            remedy = "Reparametrise: draw standardised effects and scale them (non-centred), or keep scales away from zero."
            problems.append(Problem("divergences", got, f"at most {gate.divergences:.1%}", remedy))
        longer = "More draws, Sampling(draws=2000), or a program whose parameters the data can tell apart."
        for site, value in self.r_hat.items():
            if not value <= gate.r_hat:
                problems.append(Problem(f"R-hat of {site}", f"{value:.3f}", f"at most {gate.r_hat}", longer))
        for site, value in self.ess.items():
            if not value >= gate.ess * self.chains:
                problems.append(Problem(f"ESS of {site}", f"{value:.0f}", f"at least {gate.ess * self.chains:.0f}", longer))
        return problems


def diagnose(samples: Mapping[str, Array], diverging: Array) -> Diagnostics:
    """Diagnostics of samples (chains, draws, ...) of each site."""
    chains, draws = diverging.shape
    entries = {site: np.asarray(values, dtype=np.float64).reshape(chains, draws, -1) for site, values in samples.items()}
    r_hat = {site: float(np.max(_r_hat(values), initial=1.0)) for site, values in entries.items()}
    ess = {site: float(np.min(_ess(values), initial=np.inf)) for site, values in entries.items()}
    return Diagnostics(int(np.sum(diverging)), chains * draws, chains, r_hat, ess)


def _r_hat(values: Array) -> Array:
    """Of every entry: the larger of the bulk's and the tails' R-hat; one that never moves is 1."""
    folded = np.abs(values - np.median(values, axis=(0, 1)))
    still = np.ptp(values, axis=(0, 1)) == 0
    ratios = np.maximum(*(split_gelman_rubin(_rank_normalise(v)) for v in (values, folded)))
    return np.where(still, 1.0, ratios)


def _ess(values: Array) -> Array:
    still = np.ptp(values, axis=(0, 1)) == 0
    chains, draws = values.shape[:2]
    split = values[:, : draws // 2 * 2].reshape(2 * chains, draws // 2, -1)
    ranks = _rank_normalise(np.where(still, np.random.default_rng(0).normal(size=split.shape), split))
    return np.where(still, float(chains * draws), effective_sample_size(ranks))


def _rank_normalise(values: Array) -> Array:
    ranks = rankdata(values.reshape(-1, values.shape[-1]), axis=0)
    return ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(values.shape)
