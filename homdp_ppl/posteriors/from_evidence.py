"""Posteriors of finite declarations from episodes with gaps.

Hidden states are summed over: by Gibbs sampling if all sites have closed forms, and otherwise by
the forward recursion inside an enumeration of discrete sites or inside NUTS.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpyro
from scipy.special import softmax

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.evidence import Evidence, Gaps
from homdp_ppl.core.forward import Rows, log_likelihood_of_gaps
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.kernels import Kernels, tabulate
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import Posterior, Settings
from homdp_ppl.posteriors.data import impossible
from homdp_ppl.posteriors.density import Density
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.gibbs import gibbs
from homdp_ppl.posteriors.nuts import Sampler, Warm, require_room
from homdp_ppl.precision import Array, in_x64


class MarginalDensity(Density):
    """The density of all sites of a finite declaration given counts and gaps."""

    def __init__(self, homdp: HOMDP) -> None:
        super().__init__(homdp, ())
        self._form = homdp.form

    def weigh(self, kernels: Kernels, data: tuple[Counts, Gaps]) -> None:  # type: ignore[override]
        """Add the counts and the gaps as factors."""
        counts, gaps = data
        super().weigh(kernels, counts)
        tables = tabulate(kernels, self._homdp.spaces)
        rows = Rows(tables.initial, tables.transition, tables.emission, self._form)
        numpyro.factor("gaps", log_likelihood_of_gaps(rows, gaps))


@in_x64
def from_evidence(
    homdp: HOMDP,
    evidence: Evidence,
    settings: Settings,
    warm: Warm | Array | None,
    key: Array | None,
) -> Posterior:
    """The posterior of a finite declaration given validated episodes with gaps."""
    sampling = settings.sampling
    key = jax.random.key(0) if key is None else as_key(key, "posterior")
    if settings.method == "laplace":
        expected = '"auto" or "nuts" for episodes with missing states'
        raise InferenceError("posterior", [Problem("method", "'laplace'", expected)])
    names = ", ".join(site.name for site in homdp.sites)
    free = [site for site in homdp.sites if site.name not in closed_form(homdp).conjugate.sites]
    length = f"{sampling.chains} chains of {sampling.draws} draws"
    found: dict[str, Any] = {}
    if not homdp.sites:
        how, text = "known", "nothing is unknown"
    elif not free and settings.method == "auto":
        require_room(homdp, (), sampling)
        start = warm if isinstance(warm, np.ndarray) else None
        drawn = gibbs(homdp, evidence, key, settings, start)
        how, text = "gibbs", f"{names} by Gibbs sampling, {length}"
        flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in drawn.samples.items()}
        found = _sampled(Atoms(flat, sampling.chains), drawn)
        found["warm"] = drawn.entries
    elif all(site.discrete for site in homdp.sites):
        how, text = "enumerated", f"{names} summed over exactly"
        found["atoms"] = _enumerated(homdp, evidence)
    else:
        require_room(homdp, (), sampling)
        sampler = homdp.cache.get(
            ("nuts with gaps", sampling), lambda: Sampler(MarginalDensity(homdp), sampling)
        )
        chains = warm if isinstance(warm, Warm) else None
        fit = sampler.fit(key, evidence.data, chains, settings.gate, settings.force)
        how, text = "nuts", f"{names} by NUTS, {length}"
        found = _sampled(fit.atoms, fit)
        found["warm"] = fit.warm
    belief = Posterior(
        homdp,
        evidence,
        how,
        f"{text}; {_summed_over(evidence)}",
        np.zeros(0),
        settings=settings,
        **found,
    )
    belief.require_rows()
    return belief


def _sampled(atoms: Atoms, fit: Any) -> dict[str, Any]:
    return {"atoms": atoms, "diagnostics": fit.diagnostics, "forced": fit.forced}


def _summed_over(evidence: Evidence) -> str:
    hidden, gaps = evidence.gaps.hidden, len(evidence.gaps.number)
    states = f"{hidden:,} hidden state{'s' * (hidden != 1)}"
    return f"{states} summed over, in {gaps:,} distinct gap{'s' * (gaps != 1)}"


def _enumerated(homdp: HOMDP, evidence: Evidence) -> Atoms:
    """All values of the discrete sites with their exact probabilities."""
    density = homdp.cache.get("density with gaps", lambda: MarginalDensity(homdp))
    compiled = homdp.cache.get("enumerated with gaps", lambda: jax.jit(density.log_joint))
    log_joint = np.asarray(compiled(evidence.data, {}))
    if not np.isfinite(log_joint).any():
        raise impossible(homdp.name)
    values = {name: np.asarray(v) for name, v in density.configurations.items() if name}
    return Atoms(values, weights=softmax(log_joint), complete=True)
