"""`posterior`: compute the posterior of a declaration by the appropriate method."""

from __future__ import annotations

from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.spaces import no_tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, InferenceError, Problem, shown
from homdp_ppl.posteriors.belief import Data, Method, Posterior, Settings
from homdp_ppl.posteriors.data import as_counts
from homdp_ppl.posteriors.diagnostics import Gate
from homdp_ppl.posteriors.from_counts import from_counts
from homdp_ppl.posteriors.from_episodes import from_episodes
from homdp_ppl.posteriors.nuts import Sampling
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
    before there are data, then by NUTS on counts, which is compiled once per declaration. For
    real-valued spaces, there are closed forms for Gaussian emissions of finitely many states;
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
        It has ``.draws(key, n)``, ``.mean``, ``.variance``, ``.dataset`` and ``.update(more)``. Its
        ``repr`` shows the method that was chosen.

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
            "posterior", [Problem("homdp", f"a {type(homdp).__name__}", "a HOMDP", remedy)]
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
    if homdp.spaces.finite:
        return from_counts(homdp, as_counts(homdp, data), settings, None, key)
    return from_episodes(homdp, as_episodes(homdp, data), settings, None, key)


def refit(belief: Posterior, data: Counts | Episodes, key: Array | None) -> Posterior:
    """The posterior given a new set of all data; chains start from their current positions."""
    homdp, settings, warm = belief.homdp, belief.settings, belief.warm
    if isinstance(data, Counts):
        return from_counts(homdp, data, settings, warm, key)
    return from_episodes(homdp, data, settings, warm, key)


def joined(belief: Posterior, data: Data) -> Counts | Episodes:
    """The data of a posterior together with further data."""
    before = belief.data
    if isinstance(before, Counts):
        return before + as_counts(belief.homdp, data)
    return before + as_episodes(belief.homdp, data)


def as_episodes(homdp: HOMDP, data: Data) -> Episodes:
    """Validated episodes of a declaration with real-valued spaces."""
    if isinstance(data, Counts):
        raise no_tables(homdp.spaces, homdp.name, "counts")
    return Episodes.of(data, homdp).require_revealed(f"data for {homdp.name}")
