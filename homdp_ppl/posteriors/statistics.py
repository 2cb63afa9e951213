"""Statistics of episodes that the likelihood of a continuous model needs.

Finite transitions are counted, and Gaussian emissions of finite states are summarised by their
moments: their size does not grow with the number of episodes. Other data are kept and padded to the
next power of two, so that growing data cause only logarithmically many compilations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.spaces import Real, Spaces
from homdp_ppl.declare.conditional import Laws, laws
from homdp_ppl.declare.distributions import unwrap
from homdp_ppl.declare.kernels import Context, Kernels
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.density import SiteDensity
from homdp_ppl.precision import Array, x64

STATIONARY = Context()
SMALLEST = 64  # minimal number of rows of padded data


class Rows(NamedTuple):
    """Weighted points: one row per point in each array; weight zero marks padding."""

    values: tuple[Array, ...]
    weight: Array  # (n,)


class Moments(NamedTuple):
    """Moments of the observations in each state, (X,)."""

    number: Array
    total: Array
    squares: Array  # sum of squared distances from the mean

    @property
    def mean(self) -> Array:
        """The mean in each state; 0 for states without observations."""
        return self.total / np.maximum(self.number, 1)


class Statistics(NamedTuple):
    """The data of a likelihood."""

    starts: Rows  # (x_1,)
    moves: Rows  # (x, a, x'), and the step if transitions depend on it
    sights: Rows | Moments  # (x, y), and previous action and step if emissions depend on them


def gaussian_emissions(homdp: HOMDP) -> bool:
    """Whether emissions are scalar and normal in every state, so that moments are sufficient."""
    X, Y = homdp.spaces[:2]
    if homdp.context.shows or isinstance(X, Real) or not isinstance(Y, Real) or Y.shape:
        return False
    found: list[bool] = []

    def run(key: Array) -> None:
        parameters = homdp.sample_prior(key)
        found.append(
            isinstance(
                unwrap(homdp.dynamics.laws(parameters).emission(jnp.zeros((), dtype=int), 0, 0)),
                dist.Normal,
            )
        )

    with x64():
        jax.eval_shape(run, jax.random.key(0))
    return found[0]


def statistics(
    episodes: Episodes, domain: Spaces, gaussian: bool, context: Context = STATIONARY
) -> Statistics:
    """The statistics of validated episodes, up to the end of each."""
    X, _, A, H, _ = domain
    taken, before, after = episodes.steps, episodes.states[:, :-1], episodes.states[:, 1:]
    parts = (before, after, episodes.observations, episodes.actions)
    x, z, y, a = (part[taken] for part in parts)
    first = episodes.states[:, 0]
    steps = np.broadcast_to(np.arange(H), taken.shape)[taken]
    when = (steps,) if context.moves else ()
    if isinstance(X, Real):
        starts, moves = _padded(first), _padded(x, a, z, *when)
    else:
        starts = _counted((len(X),), first)
        moves = _counted((len(X), len(A), len(X), *(H for _ in when)), x, a, z, *when)
    if gaussian:
        return Statistics(starts, moves, moments(x, y, len(X)))
    if context.shows:
        none = np.full((len(episodes), 1), len(A))
        previous = np.concatenate([none, episodes.actions[:, :-1]], axis=1)[taken]
        return Statistics(starts, moves, _padded(x, y, previous, steps))
    return Statistics(starts, moves, _padded(x, y))


def moments(x: Array, y: Array, states: int) -> Moments:
    """Number, sum and centred squares of the observations in each state."""
    number = np.bincount(x, minlength=states).astype(np.float64)
    total = np.bincount(x, weights=y, minlength=states)
    centre = total / np.maximum(number, 1)
    return Moments(number, total, np.bincount(x, weights=(y - centre[x]) ** 2, minlength=states))


def _counted(sizes: tuple[int, ...], *values: Array) -> Rows:
    """Every combination of indices, weighted by its count."""
    table = np.zeros(sizes)
    np.add.at(table, values, 1.0)
    grid = np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")
    return Rows(tuple(axis.ravel() for axis in grid), table.ravel())


def _padded(*values: Array) -> Rows:
    """The points, padded with copies of the first point, at which the density is defined."""
    n = len(values[0])
    size = max(SMALLEST, 1 << max(n - 1, 0).bit_length())
    index = np.where(np.arange(size) < n, np.arange(size), 0)
    padded = tuple(v[index] if n else np.zeros((size, *v.shape[1:]), dtype=v.dtype) for v in values)
    return Rows(padded, (np.arange(size) < n).astype(np.float64))


def log_likelihood(rules: Laws, data: Statistics) -> Array:
    """Log density of the data under a program's kernels; can be traced."""
    starts = _weighed(lambda x: rules.initial().log_prob(x), data.starts)
    moves = _weighed(lambda x, a, z, h=0: rules.transition(x, a, h).log_prob(z), data.moves)
    if isinstance(data.sights, Rows):
        return (
            starts
            + moves
            + _weighed(lambda x, y, a=0, h=0: rules.emission(x, a, h).log_prob(y), data.sights)
        )
    return starts + moves + _of_moments(rules, data.sights)


def _weighed(log_density: Callable[..., Array], rows: Rows) -> Array:
    seen = rows.weight > 0
    logs = jax.vmap(log_density)(*rows.values)
    return jnp.sum(jnp.where(seen, rows.weight * jnp.where(seen, logs, 0.0), 0.0))


def _of_moments(rules: Laws, data: Moments) -> Array:
    """The log-likelihood of normal observations from their moments."""

    def parameters(x: Array) -> tuple[Array, Array]:
        law = unwrap(rules.emission(x, 0, 0))
        return jnp.broadcast_to(law.loc, ()), jnp.broadcast_to(law.scale, ())

    location, scale = jax.vmap(parameters)(jnp.arange(len(data.number)))
    squares = (
        data.squares + data.number * (data.total / jnp.maximum(data.number, 1) - location) ** 2
    )
    each = -data.number * (jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi)) - squares / (2 * scale**2)
    return jnp.sum(jnp.where(data.number > 0, each, 0.0))


class EpisodeDensity(SiteDensity):
    """The density of a continuous declaration's sites given the statistics of episodes."""

    def __init__(self, homdp: HOMDP) -> None:
        super().__init__(homdp, ())
        self._domain = homdp.spaces

    def weigh(self, kernels: Kernels, data: Statistics) -> None:
        """Add the likelihood as one factor."""
        numpyro.factor(
            "likelihood of the episodes", log_likelihood(laws(kernels, self._domain), data)
        )
