"""Diagnostics of sampled posteriors.

They are divergences, rank-normalised split R-hat and the bulk effective sample size (Vehtari,
Gelman, Simpson, Carpenter and Buerkner, 2021). ArviZ computes R-hat and the effective sample size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.errors import Problem
from homdp_ppl.posteriors.arviz_versions import load_arviz
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
    """Diagnostics of samples (chains, draws, ...) of each site; needs at least four draws.

    R-hat compares chains, so a single chain is compared half by half. It then needs eight draws.
    """
    chains, draws = diverging.shape
    entries = {
        site: np.asarray(values, dtype=np.float64).reshape(chains, draws, -1)
        for site, values in samples.items()
    }
    r_hat = {site: float(np.max(_r_hat(values), initial=1.0)) for site, values in entries.items()}
    ess = {
        site: float(np.min(_by_arviz("ess", values), initial=np.inf))
        for site, values in entries.items()
    }
    return Diagnostics(int(np.sum(diverging)), chains * draws, chains, r_hat, ess)


def _r_hat(values: Array) -> Array:
    """R-hat of every entry; 1 for constant entries, for which ArviZ returns NaN."""
    half = values.shape[1] // 2
    compared = values if len(values) > 1 else np.concatenate([values[:, :half], values[:, -half:]])
    return np.where(np.ptp(values, axis=(0, 1)) == 0, 1.0, _by_arviz("rhat", compared))


def _by_arviz(name: str, values: Array) -> Array:
    """A diagnostic of every entry, from values (chains, draws, entries)."""
    import xarray as xr

    if not values.shape[-1]:
        return np.zeros(0)
    dataset = xr.Dataset({"values": (("chain", "draw", "entry"), values)})
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = getattr(load_arviz(), name)(dataset)["values"].values
    return found
