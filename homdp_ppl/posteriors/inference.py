"""`posterior`: chooses how to compute what is believed, and says what it chose."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias

import jax
import numpy as np
from numpyro import handlers
from numpyro.distributions import MaskedDistribution
from scipy.special import softmax

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, InferenceError, Problem
from homdp_ppl.posteriors.belief import Atoms, Posterior
from homdp_ppl.posteriors.continuous import ContinuousPosterior, Settings, infer
from homdp_ppl.posteriors.data import as_counts, impossible, plain
from homdp_ppl.posteriors.density import Density
from homdp_ppl.posteriors.diagnostics import Gate
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.laplace import laplace
from homdp_ppl.posteriors.nuts import Sampling, Warm, sampler
from homdp_ppl.precision import Array, in_x64, to_numpy

Method: TypeAlias = Literal["auto", "nuts", "laplace"]

FEWEST = Sampling(chains=1, warmup=1, draws=4)  # with fewer there are no diagnostics


def posterior(
    homdp: HOMDP,
    data: Any,
    *,
    method: Method = "auto",
    key: Array | None = None,
    sampling: Sampling | None = None,
    gate: Gate | None = None,
    force: bool = False,
) -> Posterior | ContinuousPosterior:
    """What is believed of a declared model after episodes whose states were revealed.

    Dirichlet and Beta rows that the program uses as they are have a closed form. Where the other
    sites are all discrete, they are summed over exactly. Everything else is sampled: from the prior
    before there are data, then by NUTS, compiled once for the declaration and fed with counts.
    Continuous models have closed forms for Gaussian emissions of finite states, and NUTS on
    sufficient statistics or padded episodes otherwise.

    Parameters
    ----------
    homdp
        The declaration.
    data
        Episodes, or their counts.
    method
        "auto" for the above; "nuts" to sample all sites by NUTS, also those with a closed form;
        "laplace" for a normal approximation in place of NUTS, which gives quantiles only if its
        calibration check passes.
    key
        A JAX random key; ``jax.random.key(0)`` by default.
    sampling
        How many chains, and their lengths.
    gate
        What divergences, R-hat and ESS must reach.
    force
        Keep a fit that does not pass the gate; the result says so.

    Returns
    -------
    Posterior
        ``.draws(key, n)``, ``.mean``, ``.variance``, ``.dataset``, ``.update(more)``; printing it
        tells what was chosen.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, posterior, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> episodes = rollout(jax.random.split(jax.random.key(1), 100), world, uniform_policy(world))
    >>> belief = posterior(world.homdp, episodes)
    >>> belief
    Posterior of 'tiger' after 400 steps: conjugate
      accuracy in closed form
    >>> belief.mean.shows(0).round(2)
    array([[0.83, 0.17],
           [0.17, 0.83]])
    """
    if not isinstance(homdp, HOMDP):
        remedy = "Of a world, take the declaration: world.homdp."
        raise DataError(
            "posterior", [Problem("homdp", f"a {type(homdp).__name__}", "a HOMDP", remedy)]
        )
    if method not in ("auto", "nuts", "laplace"):
        raise InferenceError(
            "posterior", [Problem("method", repr(method), '"auto", "nuts" or "laplace"')]
        )
    sampling = sampling or Sampling()
    few = [
        Problem(f"sampling.{name}", str(number), f"at least {least}")
        for name, number, least in zip(Sampling._fields, sampling, FEWEST, strict=True)
        if number < least
    ]
    if few:
        raise InferenceError("posterior", few)
    if not homdp.spaces.finite:
        if method == "laplace":
            raise InferenceError(
                "posterior",
                [Problem("method", repr(method), '"auto" or "nuts" for a continuous model')],
            )
        return infer(
            homdp,
            Episodes.of(data, homdp).require_complete(f"data for {homdp.name}"),
            Settings(sampling, gate or Gate(), force, method == "auto"),
            key=key,
        )
    return _compute(
        homdp, method, sampling, gate or Gate(), force, None, as_counts(homdp, data), key
    )


@in_x64
def _compute(
    homdp: HOMDP,
    method: Method,
    sampling: Sampling,
    gate: Gate,
    force: bool,
    warm: Warm | None,
    counts: Counts,
    key: Array | None,
) -> Posterior:
    key = jax.random.key(0) if key is None else as_key(key, "posterior")
    form = closed_form(homdp)
    held = () if method == "nuts" else form.conjugate.sites
    others = [site for site in homdp.sites if site.name not in held]
    names = ", ".join(site.name for site in others)
    found: dict[str, Any] = {"atoms": None}
    if not others:
        how, told = ("conjugate" if held else "known"), ("" if held else "nothing is unknown")
    elif all(site.discrete for site in others):
        how, told = "enumerated", f"{names} summed over exactly"
        found["atoms"] = _enumerated(homdp, held, counts)
    elif (
        method == "auto"
        and not np.any(counts.emission)
        and not np.any(counts.transition)
        and not _weighed(homdp)
    ):
        how, told = "prior", f"{names} from the prior"
        found["atoms"] = _prior(homdp, held, sampling, key)
    elif method == "laplace":
        drawn = laplace(homdp, held, sampling.chains * sampling.draws).fit(key, counts)
        found |= {"atoms": Atoms(drawn.samples, sampling.chains), "calibration": drawn.calibration}
        how, told = "laplace", f"{names} by Laplace's approximation"
    else:
        fit = sampler(homdp, held, sampling).fit(key, plain(counts), warm, gate, force)
        warm = fit.warm
        flat = {name: v.reshape(-1, *v.shape[2:]) for name, v in fit.samples.items()}
        found |= {
            "atoms": Atoms(flat, sampling.chains),
            "diagnostics": fit.diagnostics,
            "forced": fit.forced,
        }
        how, told = "nuts", f"{names} by NUTS, {sampling.chains} chains of {sampling.draws} draws"
    return Posterior(
        homdp,
        counts,
        "mixed" if held and others else how,
        "; ".join(
            part for part in (f"{', '.join(held)} in closed form" if held else "", told) if part
        ),
        form.concentration(counts) if held else np.zeros(0),
        refit=partial(_compute, homdp, method, sampling, gate, force, warm),
        **found,
    )


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
    """Whether the program's prior is not what its sites draw.

    It has factors, observed sites, or scaled or masked ones.
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
    draw = homdp.cache.get("priors", lambda: jax.jit(jax.vmap(homdp.sample_prior)))
    values = to_numpy(draw(jax.random.split(key, sampling.chains * sampling.draws)))
    return Atoms({site: v for site, v in values.items() if site not in held}, sampling.chains)
