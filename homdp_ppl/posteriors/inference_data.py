"""The groups of a posterior for ArviZ: draws, data, predictions and pointwise log likelihoods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.gaps import GapTree
from homdp_ppl.core.spaces import Space, shape_of
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, InferenceError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.posteriors.arviz_versions import grouped
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.data import data_and_episodes, plain
from homdp_ppl.posteriors.dataset import to_dataset
from homdp_ppl.posteriors.inference import as_episodes, posterior
from homdp_ppl.posteriors.pointwise import log_joint, log_likelihoods, replications
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    import xarray as xr

CHAINS, DRAWS = 4, 2000  # chains, and draws of all chains, of posteriors that are not sampled
COPIES = 3  # of the predictions in memory
NOISE = 1e-9  # relative to the log likelihood
POSTERIOR, PRIOR, REPLICATED, TIES = range(4)  # seeds


class Draws(NamedTuple):
    """Joint draws of all sites, chain after chain."""

    values: dict[str, Array]  # (n, ...)
    n: int
    chains: int

    def split(self, values: Array) -> Array:
        """Values of all draws, (n, ...), as (chains, draws, ...)."""
        return values.reshape(self.chains, -1, *values.shape[1:])


def draws_of(belief: Posterior, seed: int) -> Draws:
    """The chains of sampled sites, with independent draws of the other sites.

    Without unknown sites, all draws are equal, and there is one chain.
    """
    atoms = belief.atoms
    sampled = atoms is not None and atoms.weights is None
    chains, n = (atoms.chains, len(atoms)) if atoms and sampled else (CHAINS, DRAWS)
    values = belief.parameters(jax.random.key(seed), n)
    if atoms and sampled:
        values |= atoms.values
    return Draws(values, n, chains if values else 1)


def posterior_group(belief: Posterior) -> xr.Dataset:
    """Draws of all sites as a Dataset."""
    return _drawn(belief, draws_of(belief, POSTERIOR))


def to_arviz(belief: Posterior, episodes: Episodes | None) -> Any:
    """All groups, as the type of the installed version of ArviZ."""
    data = belief.episodes if episodes is None else _validated(belief, episodes)
    draws, prior = draws_of(belief, POSTERIOR), _prior(belief)
    groups = {
        "posterior": _drawn(belief, draws),
        "prior": _drawn(prior, draws_of(prior, PRIOR)),
        "sample_stats": _sample_stats(belief, draws),
    }
    if data is not None and len(data):
        groups |= _episode_groups(belief, draws, data)
    return grouped(groups)


def _drawn(belief: Posterior, draws: Draws) -> xr.Dataset:
    import xarray as xr

    samples = {name: draws.split(values) for name, values in draws.values.items()}
    if not samples:
        return xr.Dataset({}, _numbered(draws), _about(belief))
    return to_dataset(belief.homdp, samples, _about(belief))


def _about(belief: Posterior) -> dict[str, Any]:
    """The attributes of a group."""
    about = {
        "model": belief.homdp.name,
        "method": belief.method,
        "explanation": belief.explanation,
        "forced": int(belief.forced),
    }
    if belief.diagnostics is not None:
        about["divergences"] = belief.diagnostics.divergences
    return about


def _prior(belief: Posterior) -> Posterior:
    """The posterior given no data."""
    homdp, settings = belief.homdp, belief.settings
    nothing = Counts.zero(homdp) if homdp.spaces.finite else Episodes.of([], homdp)
    return posterior(
        homdp, nothing, sampling=settings.sampling, gate=settings.gate, force=settings.force
    )


def _sample_stats(belief: Posterior, draws: Draws) -> xr.Dataset:
    """The log density at every draw, and the statistics of the sampler if it made the draws."""
    import xarray as xr

    homdp, data = belief.homdp, belief.data
    about, coords = _about(belief), _numbered(draws)
    statistics: dict[str, Array] = {}
    if belief.atoms is not None and belief.atoms.weights is None:
        statistics |= belief.atoms.statistics
    if _complete(homdp):
        statistics = {"lp": _log_density(homdp, data, draws), **statistics}
    variables = {name: (("chain", "draw"), draws.split(v)) for name, v in statistics.items()}
    return xr.Dataset(variables, coords, about)


def _complete(homdp: HOMDP) -> bool:
    """Whether states and observations are all the data.

    Random rewards, labels and what was revealed may be data too.
    """
    form = homdp.hindsight_form
    return homdp.rewards.law is None and (form is None or not form.matters)


def _log_density(homdp: HOMDP, data: Counts | Evidence | Episodes, draws: Draws) -> Array:
    """The log density of sites and data at every draw."""
    numbers: tuple[Counts, GapTree | None] | None = None
    if isinstance(data, Evidence):
        numbers = data.data
    elif isinstance(data, Counts):
        numbers = plain(data), None
    log = log_joint(homdp, draws.values, draws.n, numbers)
    if isinstance(data, Episodes) and len(data):
        log = log + log_likelihoods(homdp, draws.values, draws.n, data).sum(-1)
    return log


def _episode_groups(belief: Posterior, draws: Draws, data: Episodes) -> dict[str, xr.Dataset]:
    """The groups that need episodes."""
    import xarray as xr

    homdp = belief.homdp
    _require_room(homdp, draws.n, data)
    axes = {
        "episode": _labels(data),
        "step": np.arange(1, data.horizon + 1),
        "step_or_end": np.arange(1, data.horizon + 2),
    }
    chained, about = _numbered(draws), _about(belief)
    recorded = _variables(homdp, data, data.observations, data.states, ())
    action = ("episode", "step"), _missing(data.actions, data.steps, ()), _names(homdp.actions)
    groups = {
        "observed_data": _dataset(recorded, axes, about),
        "constant_data": xr.Dataset(
            {"action": action}, {axis: axes[axis] for axis in ("episode", "step")}, about
        ),
    }
    if _complete(homdp):
        log = _without_ties(log_likelihoods(homdp, draws.values, draws.n, data))
        groups["log_likelihood"] = xr.Dataset(
            {"episodes": (("chain", "draw", "episode"), draws.split(log))},
            chained | {"episode": axes["episode"]},
            about,
        )
    if data.revealed[_reached(data)].all():
        made = replications(homdp, jax.random.key(REPLICATED), draws.values, draws.n, data)
        replicated = _variables(
            homdp, data, draws.split(made.observations), draws.split(made.states), ("chain", "draw")
        )
        groups["posterior_predictive"] = _dataset(replicated, chained | axes, about)
    return groups


def _reached(data: Episodes) -> Array:
    """Which states an episode has, revealed or not, (N, H + 1)."""
    reached: Array = np.arange(data.horizon + 1) <= data.length[:, None]
    return reached


def _without_ties(log: Array) -> Array:
    """Log likelihoods (n, episodes), with noise for episodes at which most draws are equal.

    This happens if an episode has only known steps, or if all sites are discrete. ArviZ fits a
    Pareto distribution to the tail of the importance ratios, and fails if its values are equal.
    """
    distinct = 1 + np.count_nonzero(np.diff(np.sort(log, axis=0), axis=0), axis=0)
    noise = NOISE * np.random.default_rng(TIES).uniform(-1, 1, log.shape)
    return np.where(2 * distinct < len(log), log + noise * np.maximum(1.0, np.abs(log)), log)


def _variables(
    homdp: HOMDP, data: Episodes, observations: Array, states: Array, lead: tuple[str, ...]
) -> dict[str, tuple[tuple[str, ...], Array, dict[str, Any]]]:
    """Observations and states as variables, after leading axes; missing entries are NaN."""
    parts = (
        ("observation", "step", observations, data.steps, homdp.spaces.observations),
        ("state", "step_or_end", states, data.revealed & _reached(data), homdp.spaces.states),
    )
    return {
        name: (
            (*lead, "episode", step, *[f"{name}_axis"] * len(shape_of(space))),
            _missing(values, known, shape_of(space)),
            _names(space),
        )
        for name, step, values, known, space in parts
    }


def _dataset(
    variables: Mapping[str, tuple[tuple[str, ...], Array, dict[str, Any]]],
    axes: Mapping[str, Any],
    about: Mapping[str, Any],
) -> xr.Dataset:
    """A Dataset with coordinates on every axis, also on those of vectors."""
    import xarray as xr

    sizes = {
        axis: size
        for dims, values, _ in variables.values()
        for axis, size in zip(dims, values.shape, strict=True)
    }
    coordinates = {axis: axes.get(axis, np.arange(size)) for axis, size in sizes.items()}
    return xr.Dataset(dict(variables), coordinates, dict(about))


def _missing(values: Array, known: Array, shape: tuple[int, ...]) -> Array:
    """The values, as real numbers with NaN where they are not known if there are such places."""
    if known.all():
        return values
    return np.where(known.reshape(*known.shape, *(1 for _ in shape)), values, np.nan)


def _names(space: Space) -> dict[str, Any]:
    """The attributes of a variable: the names of its values."""
    return {"names": list(space)} if isinstance(space, tuple) and not shape_of(space) else {}


def _numbered(draws: Draws) -> dict[str, Array]:
    return {"chain": np.arange(draws.chains), "draw": np.arange(draws.n // draws.chains)}


def _labels(data: Episodes) -> Array:
    """The ids of the episodes if all have different ones, else numbers from 1."""
    named = data.ids is not None and all(name is not None for name in data.ids)
    if data.ids is not None and named and len(set(data.ids)) == len(data):
        return np.array([str(name) for name in data.ids])
    return np.arange(1, len(data) + 1)


def _validated(belief: Posterior, episodes: Episodes) -> Episodes:
    """The episodes, if they can be among those that the posterior is conditioned on."""
    homdp, given, known = belief.homdp, belief.data, belief.episodes
    if isinstance(given, Episodes):
        valid = as_episodes(homdp, episodes)
        inside = not _rows(valid) - _rows(given)
    else:
        data, found = data_and_episodes(homdp, episodes)
        valid = episodes if found is None else found
        if known is not None:
            inside = not _rows(valid) - _rows(known)
        else:
            part, whole = (c.counts if isinstance(c, Evidence) else c for c in (data, given))
            inside = all(
                np.all(getattr(part, name) <= getattr(whole, name))
                for name in ("transition", "emission")
            )
    if not inside:
        expected = "episodes that the posterior is conditioned on"
        remedy = "Update the posterior first: posterior.update(episodes)."
        problem = Problem("episodes", "episodes that are not in its data", expected, remedy)
        raise DataError(f"posterior of {homdp.name}", [problem])
    return valid


def _rows(episodes: Episodes) -> Counter[bytes]:
    """How often each episode occurs, with its values as bytes."""
    parts = (episodes.states, episodes.revealed, episodes.observations, episodes.actions)
    return Counter(b"".join(part[k].tobytes() for part in parts) for k in range(len(episodes)))


def _require_room(homdp: HOMDP, n: int, data: Episodes) -> None:
    """Raise an error if the predictions do not fit in memory."""
    numbers = len(data) + data.states.size + data.observations.size
    got = f"{count(len(data))} episodes and {count(n)} draws"
    remedy = "Pass some of the episodes: posterior.to_arviz(episodes[:1000])."
    needed = COPIES * NUMBER * n * numbers
    require_memory(InferenceError, f"posterior of {homdp.name}", "episodes", got, needed, remedy)
