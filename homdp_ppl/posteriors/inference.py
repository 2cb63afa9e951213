"""`posterior`: compute the posterior of a declaration by the appropriate method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.spaces import no_tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, InferenceError, Problem, shown, with_article
from homdp_ppl.posteriors.belief import Data, Method, Posterior, Settings
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.posteriors.data import data_and_episodes
from homdp_ppl.posteriors.diagnostics import Gate
from homdp_ppl.posteriors.from_counts import from_counts
from homdp_ppl.posteriors.from_episodes import from_episodes
from homdp_ppl.posteriors.from_evidence import from_evidence
from homdp_ppl.posteriors.nuts import Sampling, Warm
from homdp_ppl.precision import Array

FEWEST = Sampling(chains=1, warmup=1, draws=4)  # the minimum for diagnostics


@checked_but("homdp", "data", "method")
def posterior(
    homdp: HOMDP,
    data: Data,
    *,
    method: Method = "auto",
    key: Array | None = None,
    sampling: Sampling | None = None,
    gate: Gate | None = None,
    force: bool = False,
) -> Posterior:
    """Compute the posterior of a declared model given episodes with revealed states.

    Dirichlet and Beta sites that the program uses directly as rows have a closed form. If all other
    sites are discrete, they are summed over exactly. Otherwise they are sampled: from the prior
    before there are data, then by NUTS on counts, which is compiled once per declaration.

    States that were not revealed are summed over: by Gibbs sampling if all sites have a closed
    form, else inside NUTS or the enumeration. This assumes that which states are revealed depends
    only on observations, actions and revealed states.

    For real-valued spaces, there are closed forms for Gaussian emissions of finitely many states;
    otherwise NUTS runs on sufficient statistics or padded episodes.

    Parameters
    ----------
    homdp
        The declaration.
    data
        Episodes or, for finite spaces, their counts.
    method
        "auto" chooses as described above. "nuts" samples all sites by NUTS, including those with a
        closed form. "laplace" uses a normal approximation instead of NUTS; quantiles are available
        only if its calibration check passes.
    key
        A JAX random key. Default: ``jax.random.key(0)``.
    sampling
        The number of chains and their lengths.
    gate
        Thresholds for divergences, R-hat and ESS.
    force
        Keep a fit that does not pass the gate. The ``repr`` of the result says so.

    Returns
    -------
    Posterior
        It has ``.draws(key, n)``, ``.mean``, ``.variance``, ``.update(more)`` and ``.to_arviz()``.
        Its ``repr`` shows the method that was chosen.

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
        remedy = "Pass the declaration of the world: world.homdp."
        raise DataError(
            "posterior", [Problem("homdp", with_article(type(homdp).__name__), "a HOMDP", remedy)]
        )
    if not isinstance(method, str) or method not in ("auto", "nuts", "laplace"):
        raise InferenceError(
            "posterior", [Problem("method", shown(method), '"auto", "nuts" or "laplace"')]
        )
    sampling = sampling or Sampling()
    few = [
        Problem(f"sampling.{name}", str(number), f"at least {least}")
        for name, number, least in zip(Sampling._fields, sampling, FEWEST, strict=True)
        if number < least
    ]
    if few:
        raise InferenceError("posterior", few)
    settings = Settings(method, sampling, gate or Gate(), force)
    if not homdp.spaces.finite:
        return from_episodes(homdp, as_episodes(homdp, data), settings, None, key)
    known, episodes = data_and_episodes(homdp, data)
    belief = _finite(homdp, known, settings, None, key)
    if episodes is not None:
        return replace(belief, parts=(episodes,))
    empty = not any(np.any(table) for table in counted(homdp, belief.counts).values())
    return replace(belief, parts=() if empty else None)


def refit(belief: Posterior, data: Counts | Evidence | Episodes, key: Array | None) -> Posterior:
    """The posterior given a new set of all data; chains start from their current positions."""
    homdp, settings, warm = belief.homdp, belief.settings, belief.warm
    if isinstance(data, Episodes):
        return from_episodes(homdp, data, settings, _chains(warm), key)
    return _finite(homdp, data, settings, warm, key)


def _finite(
    homdp: HOMDP,
    data: Counts | Evidence,
    settings: Settings,
    warm: Warm | Array | None,
    key: Array | None,
) -> Posterior:
    if isinstance(data, Evidence):
        return from_evidence(homdp, data, settings, warm, key)
    return from_counts(homdp, data, settings, _chains(warm), key)


def _chains(warm: Warm | Array | None) -> Warm | None:
    """The positions of NUTS, if the last fit was by NUTS."""
    return warm if isinstance(warm, Warm) else None


def updated(belief: Posterior, data: Data, key: Array | None) -> Posterior:
    """The posterior given its data together with further data."""
    before = belief.data
    if isinstance(before, Episodes):
        return refit(belief, before + as_episodes(belief.homdp, data), key)
    more, episodes = data_and_episodes(belief.homdp, data)
    both = more + before if isinstance(more, Evidence) else before + more
    after = refit(belief, both, key)
    if belief.parts is None or episodes is None:
        return after
    return replace(after, parts=(*belief.parts, episodes))


def as_episodes(homdp: HOMDP, data: Data) -> Episodes:
    """Validated episodes of a declaration with real-valued spaces."""
    if isinstance(data, Counts):
        raise no_tables(homdp.spaces, homdp.name, "counts")
    return Episodes.of(data, homdp).require_revealed(f"data for {homdp.name}")
