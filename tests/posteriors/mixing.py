"""R-hat and the bulk effective sample size in NumPy: an implementation independent of ArviZ.

Definitions of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021).
"""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata


def split(values):
    """Split every chain in two halves, (2 chains, draws // 2, entries).

    For an odd number of draws, the middle draw is dropped.
    """
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def r_hat(split):
    """R-hat of every entry: the maximum of the R-hats of bulk and tails."""
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    return np.maximum(ratio(rank_normalise(split)), ratio(rank_normalise(folded)))


def ratio(values):
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


def ess(split):
    """Bulk effective sample size of every entry.

    Autocorrelations are summed in pairs while the pairs are positive (Geyer 1992).
    """
    values = rank_normalise(split)
    chains, n, _ = values.shape
    covariance = autocovariance(values).mean(axis=0)  # (n, entries)
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


def autocovariance(values):
    """Autocovariance along the draws, (chains, n, entries), divided by n at every lag."""
    n = values.shape[1]
    spectrum = np.fft.rfft(values - values.mean(axis=1, keepdims=True), 2 * n, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n] / n


def rank_normalise(values):
    ranks = rankdata(values.reshape(-1, values.shape[-1]), axis=0)
    return ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(values.shape)
