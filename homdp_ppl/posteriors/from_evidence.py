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
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import Rows, log_likelihood_of_gaps
from homdp_ppl.core.gaps import GapTree
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.clue_likelihood import clue_likelihoods
from homdp_ppl.declare.kernels import Kernels, tabulate
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import Posterior, Settings
from homdp_ppl.posteriors.data import impossible, plain
from homdp_ppl.posteriors.density import Density
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.gibbs import gibbs
from homdp_ppl.posteriors.laplace import Laplace
from homdp_ppl.posteriors.nuts import Sampler, Warm, require_room
from homdp_ppl.precision import Array, in_x64


class MarginalDensity(Density):
    """The density of all sites of a finite declaration given counts and gaps."""

    def __init__(self, homdp: HOMDP) -> None:
        super().__init__(homdp, ())
        self._form = homdp.form

    def weigh(self, kernels: Kernels, data: tuple[Counts, GapTree]) -> None:  # type: ignore[override]
        """Add the counts and the gaps as factors."""
        counts, tree = data
        super().weigh(kernels, counts)
        tables = tabulate(kernels, self._homdp.spaces)
        clues = clue_likelihoods(kernels, self._homdp, tree.gaps.clues)
        rows = Rows(tables.initial, tables.transition, tables.emission, self._form, clues)
        numpyro.factor("gaps", log_likelihood_of_gaps(rows, tree))


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
    elif settings.method == "laplace":
        require_room(homdp, (), sampling)
        draws = sampling.chains * sampling.draws
        name = ("laplace with gaps", draws)
        approximation = homdp.cache.get(name, lambda: Laplace(MarginalDensity(homdp), draws))
        found = _approximated(approximation, key, evidence, sampling.chains)
        how, text = "laplace", f"{names} by Laplace's approximation"
    else:
        require_room(homdp, (), sampling)
        sampler = homdp.cache.get(
            ("nuts with gaps", sampling), lambda: Sampler(MarginalDensity(homdp), sampling)
        )
        chains = warm if isinstance(warm, Warm) else None
        fit = sampler.fit(key, _data(evidence), chains, settings.gate, settings.force)
        how, text = "nuts", f"{names} by NUTS, {length}"
        found = _sampled(fit.atoms, fit)
        found["warm"] = fit.warm
    belief = Posterior(
        homdp,
        evidence,
        how,
        "; ".join([text, _summed_over(evidence), *_reasons(homdp, evidence)]),
        np.zeros(0),
        settings=settings,
        **found,
    )
    belief.require_rows()
    return belief


def _data(evidence: Evidence) -> tuple[Counts, GapTree]:
    """Counts and gaps as plain arrays, padded, for compiled functions."""
    return plain(evidence.counts), evidence.tree.padded()


def _approximated(
    approximation: Laplace, key: Array, evidence: Evidence, chains: int
) -> dict[str, Any]:
    drawn = approximation.fit(key, _data(evidence))
    return {"atoms": Atoms(drawn.samples, chains), "calibration": drawn.calibration}


def _sampled(atoms: Atoms, fit: Any) -> dict[str, Any]:
    return {"atoms": atoms, "diagnostics": fit.diagnostics, "forced": fit.forced}


def _summed_over(evidence: Evidence) -> str:
    hidden, gaps = evidence.gaps.hidden, len(evidence.gaps.number)
    states = f"{hidden:,} hidden state{'s' * (hidden != 1)}"
    return f"{states} summed over, in {gaps:,} distinct gap{'s' * (gaps != 1)}"


def _reasons(homdp: HOMDP, evidence: Evidence) -> list[str]:
    """What is evidence of the hidden states apart from observations, and why they are missing."""
    gaps, form = evidence.gaps, homdp.hindsight_form
    inside = np.arange(gaps.seen.shape[1]) < gaps.length[:, None]
    used = np.zeros(len(gaps.clues.label), dtype=np.int64)
    np.add.at(used, gaps.clue[inside], np.repeat(gaps.number, gaps.length))
    rewards = int(used[gaps.clues.paid > 0].sum())
    said = [f"{rewards:,} recorded reward{'s' * (rewards != 1)}"] * bool(rewards)
    if form is not None and form.label is not None:
        labels = int(used[gaps.clues.label < form.labels].sum())
        said = [f"{labels:,} label{'s' * (labels != 1)}", *said]
    if form is not None and form.by_state:
        said.append("what was revealed")
    listed = [f"evidence of them: {', '.join(said)}"] if said else []
    if form is not None and form.revealed is not None and not form.by_state:
        listed.append("what is revealed does not depend on the states, as declared")
    return listed


def _enumerated(homdp: HOMDP, evidence: Evidence) -> Atoms:
    """All values of the discrete sites with their exact probabilities."""
    density = homdp.cache.get("density with gaps", lambda: MarginalDensity(homdp))
    compiled = homdp.cache.get("enumerated with gaps", lambda: jax.jit(density.log_joint))
    log_joint = np.asarray(compiled(_data(evidence), {}))
    if not np.isfinite(log_joint).any():
        raise impossible(homdp.name)
    values = {name: np.asarray(v) for name, v in density.configurations.items() if name}
    return Atoms(values, weights=softmax(log_joint), complete=True)
