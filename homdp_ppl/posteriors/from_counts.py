"""Posteriors of finite declarations from counts: closed forms, enumeration, NUTS or Laplace."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpyro import handlers
from numpyro.distributions import MaskedDistribution
from scipy.special import softmax

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import Posterior, Settings
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.posteriors.data import impossible, plain
from homdp_ppl.posteriors.density import Density
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.laplace import laplace
from homdp_ppl.posteriors.nuts import Sampling, Warm, require_room, sampler
from homdp_ppl.precision import Array, in_x64, to_numpy


@in_x64
def from_counts(
    homdp: HOMDP, counts: Counts, settings: Settings, warm: Warm | None, key: Array | None
) -> Posterior:
    """The posterior of a finite declaration given validated counts."""
    method, sampling, gate, force = settings
    key = jax.random.key(0) if key is None else as_key(key, "posterior")
    form = closed_form(homdp)
    held = () if method == "nuts" else form.conjugate.sites
    others = [site for site in homdp.sites if site.name not in held]
    names = ", ".join(site.name for site in others)
    found: dict[str, Any] = {"atoms": None}
    if not others:
        how, text = ("conjugate" if held else "known"), ("" if held else "nothing is unknown")
    elif all(site.discrete for site in others):
        how, text = "enumerated", f"{names} summed over exactly"
        found["atoms"] = _enumerated(homdp, held, counts)
    elif (
        method == "auto"
        and not any(np.any(table) for table in counted(homdp, counts).values())
        and not _weighed(homdp)
    ):
        how, text = "prior", f"{names} from the prior"
        found["atoms"] = _prior(homdp, held, sampling, key)
    elif method == "laplace":
        require_room(homdp, held, sampling)
        drawn = laplace(homdp, held, sampling.chains * sampling.draws).fit(key, plain(counts))
        found |= {"atoms": Atoms(drawn.samples, sampling.chains), "calibration": drawn.calibration}
        how, text = "laplace", f"{names} by Laplace's approximation"
    else:
        fit = sampler(homdp, held, sampling).fit(key, plain(counts), warm, gate, force)
        warm = fit.warm
        found |= {"atoms": fit.atoms, "diagnostics": fit.diagnostics, "forced": fit.forced}
        how, text = "nuts", f"{names} by NUTS, {sampling.chains} chains of {sampling.draws} draws"
    belief = Posterior(
        homdp,
        counts,
        "mixed" if held and others else how,
        "; ".join(
            part for part in (f"{', '.join(held)} in closed form" if held else "", text) if part
        ),
        form.concentration(counts) if held else np.zeros(0),
        settings=settings,
        warm=warm,
        **found,
    )
    belief.require_rows()
    return belief


def _enumerated(homdp: HOMDP, held: tuple[str, ...], counts: Counts) -> Atoms:
    """All values of the discrete sites with their exact probabilities."""
    name = ("enumerated", held)
    density = homdp.cache.get(("density", held), lambda: Density(homdp, held))
    compiled = homdp.cache.get(name, lambda: jax.jit(density.log_joint))
    log_joint = np.asarray(compiled(plain(counts), {}))
    if not np.isfinite(log_joint).any():
        raise impossible(homdp.name)
    values = {name: np.asarray(v) for name, v in density.configurations.items() if name}
    return Atoms(values, weights=softmax(log_joint), complete=True)


def _weighed(homdp: HOMDP) -> bool:
    """Whether the prior differs from the distribution of draws of the sites.

    This is the case if the program has factors, or observed, scaled or masked sites.
    """
    weighed: list[str] = []

    def run(key: Array) -> None:
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            homdp.function()
        sites = [site for site in trace.values() if site["type"] == "sample"]
        weighed.extend(
            site["name"]
            for site in sites
            if site["is_observed"]
            or site["scale"] is not None
            or isinstance(site["fn"], MaskedDistribution)
        )

    jax.eval_shape(run, jax.random.key(0))
    return bool(weighed)


def _prior(homdp: HOMDP, held: tuple[str, ...], sampling: Sampling, key: Array) -> Atoms:
    require_room(homdp, held, sampling)
    draw = homdp.cache.get("priors", lambda: jax.jit(jax.vmap(homdp.sample_prior)))
    values = to_numpy(draw(jax.random.split(key, sampling.chains * sampling.draws)))
    return Atoms({site: v for site, v in values.items() if site not in held}, sampling.chains)
