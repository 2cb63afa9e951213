"""What a continuous declaration leaves unknown.

Which of its laws change with its sites, found by running it at draws of them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.declare.densities import ContinuousHOMDP
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.mechanics import Parameters
from homdp_ppl.declare.playing import simulate
from homdp_ppl.errors import DeclarationError, Problem
from homdp_ppl.precision import Array, in_x64, to_numpy

DRAWS = 16  # of the sites


class Known(NamedTuple):
    """Rows that depend on no unknown site, for finitely many states.

    And where transitions may lead.
    """

    transition: Array  # (X, A)
    emission: Array  # (X,)
    support: Array  # (X, A, X)


@in_x64
def known_rows(homdp: ContinuousHOMDP) -> Known:
    """What is known of a declaration with finitely many states.

    What is the same at all draws of its sites.

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
    if "known rows" not in homdp.compiled:
        worlds = [homdp.draw(jax.random.key(k)) for k in range(DRAWS)]
        moves = np.stack([latent_tables(world)[1] for world in worlds])
        states = jnp.arange(moves.shape[1])

        def densities(parameters: Parameters, seen: Array) -> Array:
            each = jax.vmap(homdp.mechanics.log_emission, in_axes=(None, None, 0))
            return jax.vmap(each, in_axes=(None, 0, None))(parameters, states, seen)

        drawn = jax.jit(jax.vmap(lambda p, k: simulate(homdp.mechanics, p, k).observations))
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
        homdp.compiled["known rows"] = Known(
            same, (shown == shown[0]).all((0, 2)), (moves > 0).any(0)
        )
    found: Known = homdp.compiled["known rows"]
    return found


@in_x64
def refuse_unknown_start(homdp: ContinuousHOMDP) -> None:
    """Refuse declarations whose initial distribution depends on an unknown site.

    Learners take it as known.
    """
    if not homdp.sites:
        return
    if "known start" not in homdp.compiled:

        def density(key: Array, place: Array) -> Array:
            return homdp.mechanics.laws(homdp.sample_prior(key)).initial().log_prob(place)

        @jax.jit
        def densities(keys: Array) -> Array:
            places = jax.vmap(lambda key: homdp.mechanics.draw_first(homdp.sample_prior(key), key))(
                keys
            )
            return jax.vmap(jax.vmap(density, in_axes=(None, 0)), in_axes=(0, None))(keys, places)

        found = np.asarray(densities(jax.random.split(jax.random.key(0), DRAWS)))
        homdp.compiled["known start"] = bool((found == found[0]).all())
    if not homdp.compiled["known start"]:
        remedy = "Learners take rho as known: give it numbers."
        raise DeclarationError(
            homdp.name,
            [Problem("initial", "a distribution with unknown parameters", "a known one", remedy)],
        )
