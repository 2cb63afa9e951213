"""Posteriors of declarations with real-valued spaces: in closed form if possible, else by NUTS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.draw_validation import invalid_draws
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import Posterior, Settings
from homdp_ppl.posteriors.gaussian import gaussian_form
from homdp_ppl.posteriors.nuts import Sampler, Warm, require_room
from homdp_ppl.posteriors.statistics import EpisodeDensity, Moments, gaussian_emissions, statistics
from homdp_ppl.precision import Array, in_x64, to_numpy


@in_x64
def from_episodes(
    homdp: HOMDP, episodes: Episodes, settings: Settings, warm: Warm | None, key: Array | None
) -> Posterior:
    """The posterior given validated episodes."""
    if settings.method == "laplace":
        expected = '"auto" or "nuts" for real-valued spaces'
        raise InferenceError("posterior", [Problem("method", "'laplace'", expected)])
    key = jax.random.key(0) if key is None else as_key(key, "posterior")
    belief = Posterior(
        homdp, episodes, "known", "nothing is unknown", np.zeros(0), settings=settings
    )
    if not homdp.sites:
        return belief
    sampling, names = settings.sampling, ", ".join(site.name for site in homdp.sites)
    gaussian = homdp.cache.get("gaussian", lambda: gaussian_emissions(homdp))
    data = statistics(episodes, homdp.spaces, gaussian, homdp.context)
    simple = gaussian and not homdp.context.moves
    form = gaussian_form(homdp) if simple and settings.method == "auto" else None
    if form is not None and isinstance(data.sights, Moments):
        return replace(
            belief,
            method="conjugate",
            explanation=f"{names} in closed form",
            closed=form.update(data.sights),
        )
    require_room(homdp, (), sampling)
    if not len(episodes):
        draw = homdp.cache.get("priors", lambda: jax.jit(jax.vmap(homdp.sample_prior)))
        values = to_numpy(draw(jax.random.split(key, sampling.chains * sampling.draws)))
        _require_kernels(homdp, values)
        return replace(
            belief,
            method="prior",
            explanation=f"{names} from the prior",
            atoms=Atoms(values, sampling.chains),
        )
    sampler = homdp.cache.get(("nuts", sampling), lambda: Sampler(EpisodeDensity(homdp), sampling))
    fit = sampler.fit(key, data, warm, settings.gate, settings.force)
    atoms = fit.atoms
    _require_kernels(homdp, atoms.values)
    return replace(
        belief,
        method="nuts",
        explanation=f"{names} by NUTS, {sampling.chains} chains of {sampling.draws} draws",
        atoms=atoms,
        warm=fit.warm,
        diagnostics=fit.diagnostics,
        forced=fit.forced,
    )


def _require_kernels(homdp: HOMDP, values: Mapping[str, Array]) -> None:
    """Raise an error for draws at which a kernel is not a distribution."""
    problems = invalid_draws(homdp.dynamics, values)
    refuse(InferenceError, f"posterior of {homdp.name}", problems)
