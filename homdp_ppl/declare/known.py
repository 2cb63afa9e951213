"""The known rows of declarations without tables.

A row is known if it is the same at all draws of the sites.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.declare.dynamics import Parameters
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.playing import simulate
from homdp_ppl.errors import DeclarationError, Problem
from homdp_ppl.precision import Array, in_x64, to_numpy

DRAWS = 16  # of the sites


class Known(NamedTuple):
    """Rows that depend on no site, and the possible transitions, for finitely many states."""

    transition: Array  # (X, A)
    emission: Array  # (X,)
    support: Array  # (X, A, X)


@in_x64
def known_rows(homdp: HOMDP) -> Known:
    """The known rows of a declaration with finitely many states.

    These are the rows that are the same at all draws of the sites.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp
    >>> @homdp(
    ...     states=("a", "b"),
    ...     observations=Real(1),
    ...     actions=("stay",),
    ...     horizon=3,
    ...     reward=[[0.0], [1.0]],
    ... )
    ... def model():
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    ...     return Kernels(
    ...         [0.5, 0.5], [[[0.9, 0.1]], [[0.0, 1.0]]], lambda x: dist.Normal(mean * x, 1.0)
    ...     )
    >>> known_rows(model)
    Known(transition=array([[ True],
           [ True]]), emission=array([ True, False]), support=array([[[ True,  True]],
    <BLANKLINE>
           [[False,  True]]]))
    """
    return homdp.cache.get("known rows", lambda: _known_rows(homdp))


def _known_rows(homdp: HOMDP) -> Known:
    worlds = [homdp.draw(jax.random.key(k)) for k in range(DRAWS)]
    moves = np.stack([latent_tables(world)[1] for world in worlds])
    states = jnp.arange(moves.shape[1])

    def densities(parameters: Parameters, seen: Array) -> Array:
        def at(x: Array, y: Array) -> Array:
            return homdp.dynamics.log_emission(parameters, x, 0, 0, y)

        each = jax.vmap(at, in_axes=(None, 0))
        return jax.vmap(each, in_axes=(0, None))(states, seen)

    drawn = jax.jit(jax.vmap(lambda p, k: simulate(homdp.dynamics, p, k).observations))
    stacked = {
        site.name: np.stack([world.parameters[site.name] for world in worlds])
        for site in homdp.sites
    }
    if stacked:
        seen = drawn(stacked, jax.random.split(jax.random.key(0), DRAWS)).reshape(-1)
        shown = to_numpy(jax.jit(jax.vmap(densities, in_axes=(0, None)))(stacked, seen))
    else:
        shown = np.zeros((1, moves.shape[1], 1))
    same = (moves == moves[0]).all((0, 3))
    return Known(same, (shown == shown[0]).all((0, 2)), np.any(moves > 0, axis=0))


@in_x64
def refuse_unknown_start(homdp: HOMDP) -> None:
    """Raise :class:`DeclarationError` if the initial distribution depends on a site.

    Rules with classes of densities need a known initial distribution.
    """
    if homdp.sites and not homdp.cache.get("known start", lambda: _start_is_known(homdp)):
        remedy = (
            "Rules with classes of densities need a known initial distribution. Use "
            "posterior_sampling, or numbers instead of sites."
        )
        raise DeclarationError(
            homdp.name,
            [Problem("initial", "a distribution with unknown parameters", "a known one", remedy)],
        )


def _start_is_known(homdp: HOMDP) -> bool:
    @jax.jit
    def densities(keys: Array) -> Array:
        drawn = jax.vmap(homdp.sample_prior)(keys)
        places = jax.vmap(homdp.dynamics.first)(drawn, keys)
        each = jax.vmap(homdp.dynamics.log_initial, in_axes=(None, 0))
        return jax.vmap(each, in_axes=(0, None))(drawn, places)

    found = np.asarray(densities(jax.random.split(jax.random.key(0), DRAWS)))
    return bool((found == found[0]).all())
