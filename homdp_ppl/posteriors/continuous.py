"""What is believed of a continuous model after revealed episodes.

In closed form where there is one, else by NUTS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jax
import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.belief import Atoms
from homdp_ppl.posteriors.diagnostics import Diagnostics, Gate
from homdp_ppl.posteriors.gaussian import GaussianForm, Updated, gaussian_form
from homdp_ppl.posteriors.nuts import Sampler, Sampling, Warm
from homdp_ppl.posteriors.statistics import EpisodeDensity, Moments, gaussian_emissions, statistics
from homdp_ppl.precision import Array, in_x64, to_numpy

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Settings:
    """How a posterior is computed."""

    sampling: Sampling
    gate: Gate
    force: bool
    closed: bool = True  # whether closed forms are used where there are some


@dataclass(frozen=True, eq=False, repr=False)
class ContinuousPosterior:
    """The posterior of a continuous declaration.

    Made by :func:`homdp_ppl.posterior`; printing it tells how.

    Attributes
    ----------
    homdp
        The declaration.
    episodes
        The data.
    method
        "known", "prior", "conjugate" or "nuts".
    settings
        How it is computed, also after :meth:`update`.
    atoms
        Draws of the sites, from the prior or by NUTS.
    form, updated
        The closed form, and its parameters given the data.
    warm
        Where the chains stand.
    diagnostics
        Of the chains, where there are some.
    forced
        Whether a fit that did not pass the gate was kept.
    """

    homdp: HOMDP
    episodes: Episodes
    method: str
    settings: Settings
    atoms: Atoms | None = None
    form: GaussianForm | None = None
    updated: tuple[Updated, ...] = ()
    warm: Warm | None = None
    diagnostics: Diagnostics | None = None
    forced: bool = False

    @in_x64
    def parameters(self, key: Array, n: int) -> dict[str, Array]:
        """Joint draws of the program's sites, each (n, ...)."""
        if not (isinstance(n, int | np.integer) and n >= 0):
            raise InferenceError(
                "posterior", [Problem("draws", repr(n), "a whole number of at least 0")]
            )
        key = as_key(key, "posterior")
        if self.form is not None:
            return self.form.draw(key, list(self.updated), n)
        if self.atoms is None:
            return {}
        return self.atoms.pick(np.random.default_rng(np.asarray(jax.random.key_data(key))), n)

    def worlds(self, key: Array, n: int) -> list[World]:
        """Worlds drawn from the posterior."""
        values = self.parameters(key, n)
        return [World(self.homdp, {name: v[k] for name, v in values.items()}) for k in range(n)]

    @property
    def mean(self) -> Mapping[str, Array]:
        """The posterior mean of every site: exact in closed form, else the draws' average."""
        values = (
            self.parameters(jax.random.key(0), 4000) if self.atoms is None else self.atoms.values
        )
        means = {name: value.mean(0) for name, value in values.items()}
        if self.form is not None:
            for group, now in zip(self.form.groups, self.updated, strict=True):
                means[group.mean[0]].reshape(-1)[group.mean[1]] = now.location
                if group.spread:
                    exact = now.rate / (now.shape - 1) if group.inverse else now.shape / now.rate
                    means[group.spread[0]].reshape(-1)[group.spread[1]] = (
                        exact if exact > 0 else np.inf
                    )
        return means

    @property
    def dataset(self) -> xr.Dataset:
        """Draws of all sites as an xarray Dataset with (chain, draw), ready for ArviZ."""
        import xarray as xr

        chains = self.atoms.chains if self.atoms is not None else 4
        values = (
            self.parameters(jax.random.key(0), 2000) if self.atoms is None else self.atoms.values
        )
        variables = {}
        for name, value in values.items():
            axes = [f"{name}_dim_{k}" for k in range(value.ndim - 1)]
            variables[name] = (
                ("chain", "draw", *axes),
                value.reshape(chains, -1, *value.shape[1:]),
            )
        about = {"model": self.homdp.name, "method": self.method, "forced": int(self.forced)}
        return xr.Dataset(variables, attrs=about)

    def update(
        self, data: Episode | Iterable[Episode], key: Array | None = None
    ) -> ContinuousPosterior:
        """The posterior after more episodes; chains go on from where they stand."""
        more = Episodes.of(data, self.homdp).require_complete(f"data for {self.homdp.name}")
        return infer(self.homdp, self.episodes + more, self.settings, self.warm, key)

    def __repr__(self) -> str:
        steps = len(self.episodes) * self.homdp.horizon
        names = ", ".join(site.name for site in self.homdp.sites)
        sampling = self.settings.sampling
        told = {
            "known": "nothing is unknown",
            "prior": f"{names} from the prior",
            "conjugate": f"{names} in closed form",
            "nuts": f"{names} by NUTS, {sampling.chains} chains of {sampling.draws} draws",
        }[self.method]
        forced = "\n  kept by force: it did not pass the gate" if self.forced else ""
        return (
            f"Posterior of {self.homdp.name!r} after {steps:,} steps: {self.method}\n  "
            f"{told}{forced}"
        )


@in_x64
def infer(
    homdp: HOMDP,
    episodes: Episodes,
    settings: Settings,
    warm: Warm | None = None,
    key: Array | None = None,
) -> ContinuousPosterior:
    """The posterior given checked episodes."""
    key = jax.random.key(0) if key is None else as_key(key, "posterior")
    belief = ContinuousPosterior(homdp, episodes, "known", settings)
    if not homdp.sites:
        return belief
    gaussian = homdp.cache.get("gaussian", lambda: gaussian_emissions(homdp))
    data = statistics(episodes, homdp.spaces, gaussian)
    form = gaussian_form(homdp) if gaussian and settings.closed else None
    if form is not None and isinstance(data.sights, Moments):
        return replace(
            belief, method="conjugate", form=form, updated=tuple(form.update(data.sights))
        )
    sampling = settings.sampling
    if not len(episodes):
        draw = homdp.cache.get("priors", lambda: jax.jit(jax.vmap(homdp.sample_prior)))
        values = to_numpy(draw(jax.random.split(key, sampling.chains * sampling.draws)))
        return replace(belief, method="prior", atoms=Atoms(values, sampling.chains))
    name = ("nuts", sampling)
    sampler = homdp.cache.get(name, lambda: Sampler(EpisodeDensity(homdp), sampling))
    fit = sampler.fit(key, data, warm, settings.gate, settings.force)
    flat = {site: v.reshape(-1, *v.shape[2:]) for site, v in fit.samples.items()}
    atoms = Atoms(flat, sampling.chains)
    return replace(
        belief,
        method="nuts",
        atoms=atoms,
        warm=fit.warm,
        diagnostics=fit.diagnostics,
        forced=fit.forced,
    )
