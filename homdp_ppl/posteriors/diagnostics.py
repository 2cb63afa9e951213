"""Diagnostics of sampled posteriors.

They are divergences, rank-normalised split R-hat and the bulk effective sample size. The
definitions are those of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), as in ArviZ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from homdp_ppl.core.checked import checked
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array


class Gate(NamedTuple):
    """Thresholds that a fit must pass, else :func:`posterior` raises an error.

    They require few divergences, chains that agree, and enough effective draws.

    Examples
    --------
    >>> from homdp_ppl.posteriors import Diagnostics, Gate
    >>> chains = Diagnostics(
    ...     divergences=0, draws=2000, chains=4, r_hat={"accuracy": 1.03}, ess={"accuracy": 1500.0}
    ... )
    >>> [problem.where for problem in chains.problems(Gate())], chains.problems(Gate(r_hat=1.05))
    (['R-hat of accuracy'], [])
    """

    divergences: float = 0.002  # as a share of the draws
    r_hat: float = 1.02
    ess: float = 100.0  # per chain on average


class Diagnostics(NamedTuple):
    """Diagnostics of the chains, for posteriors that were sampled by NUTS.

    Examples
    --------
    >>> from homdp_ppl.posteriors import Diagnostics, Gate
    >>> stuck = Diagnostics(
    ...     divergences=40, draws=2000, chains=4, r_hat={"T": 1.3}, ess={"T": 150.0}
    ... )
    >>> for problem in stuck.problems(Gate()):
    ...     print(f"{problem.where}: {problem.got}, expected {problem.expected}")
    divergences: 40 of 2000, expected at most 0.2%
    R-hat of T: 1.300, expected at most 1.02
    ESS of T: 150, expected at least 400
    """

    divergences: int
    draws: int  # total over all chains
    chains: int
    r_hat: Mapping[str, float]  # worst entry of each site
    ess: Mapping[str, float]

    @checked
    def problems(self, gate: Gate) -> list[Problem]:
        """The thresholds that were not passed, with remedies."""
        problems = []
        if self.divergences > gate.divergences * self.draws:
            got = f"{self.divergences} of {self.draws}"
            remedy = (
                "Reparametrise the model: draw standardised effects and scale them "
                "(non-centred), or keep scales away from zero."
            )
            problems.append(Problem("divergences", got, f"at most {gate.divergences:.1%}", remedy))
        longer = (
            "Sample longer, for example Sampling(draws=2000), or use a program whose "
            "parameters the data can identify."
        )
        for site, value in self.r_hat.items():
            if not value <= gate.r_hat:
                problems.append(
                    Problem(f"R-hat of {site}", f"{value:.3f}", f"at most {gate.r_hat}", longer)
                )
        for site, value in self.ess.items():
            if not value >= gate.ess * self.chains:
                problems.append(
                    Problem(
                        f"ESS of {site}",
                        f"{value:.0f}",
                        f"at least {gate.ess * self.chains:.0f}",
                        longer,
                    )
                )
        return problems


def diagnose(samples: Mapping[str, Array], diverging: Array) -> Diagnostics:
    """Diagnostics of samples (chains, draws, ...) of each site; needs at least four draws."""
    chains, draws = diverging.shape
    entries = {
        site: _split(np.asarray(values, dtype=np.float64).reshape(chains, draws, -1))
        for site, values in samples.items()
    }
    r_hat = {site: float(np.max(_r_hat(values), initial=1.0)) for site, values in entries.items()}
    ess = {site: float(np.min(_ess(values), initial=np.inf)) for site, values in entries.items()}
    return Diagnostics(int(np.sum(diverging)), chains * draws, chains, r_hat, ess)


def _split(values: Array) -> Array:
    """Split every chain in two halves, (2 chains, draws // 2, entries).

    For an odd number of draws, the middle draw is dropped.
    """
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _r_hat(split: Array) -> Array:
    """R-hat of every entry: the maximum of the R-hats of bulk and tails."""
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    return np.maximum(_ratio(_rank_normalise(split)), _ratio(_rank_normalise(folded)))


def _ratio(values: Array) -> Array:
    """Split R-hat; 1 for constant entries."""
    n = values.shape[1]
    within, between = (
        values.var(axis=1, ddof=1).mean(axis=0),
        values.mean(axis=1).var(axis=0, ddof=1),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            np.ptp(values, axis=(0, 1)) == 0, 1.0, np.sqrt((n - 1) / n + between / within)
        )


def _ess(split: Array) -> Array:
    """Bulk effective sample size of every entry.

    Autocorrelations are summed in pairs while the pairs are positive (Geyer 1992).
    """
    values = _rank_normalise(split)
    chains, n, _ = values.shape
    covariance = _autocovariance(values).mean(axis=0)  # (n, entries)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + values.mean(axis=1).var(axis=0, ddof=1)
    still = np.ptp(values, axis=(0, 1)) == 0
    correlation = 1 - (within - covariance) / np.where(still, 1.0, total)
    correlation[0] = 1.0
    pairs = correlation[: n // 2 * 2].reshape(n // 2, 2, -1).sum(axis=1)
    inspected = pairs[: max(1, (n - 1) // 2)]
    ends = inspected <= 0
    last = np.where(
        ends.any(axis=0), ends.argmax(axis=0), len(inspected) - 1
    )  # the pair at which the sum ends
    decreasing = np.minimum.accumulate(inspected, axis=0)
    counted = np.where(np.arange(len(inspected))[:, None] < last, decreasing, 0.0).sum(axis=0)
    entry = np.arange(len(last))
    edge = correlation[2 * last, entry]
    edge = np.where(inspected[last, entry] >= 0, edge, np.maximum(edge, 0.0))
    size = chains * n
    return np.where(
        still, float(size), size / np.maximum(2 * counted + edge - 1, 1 / np.log10(size))
    )


def _autocovariance(values: Array) -> Array:
    """Autocovariance along the draws, (chains, n, entries), divided by n at every lag."""
    n = values.shape[1]
    spectrum = np.fft.rfft(values - values.mean(axis=1, keepdims=True), 2 * n, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n


def _rank_normalise(values: Array) -> Array:
    ranks = rankdata(values.reshape(-1, values.shape[-1]), axis=0)
    return ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(values.shape)
