"""Low rank: many places in few regions, and what is unknown is about regions alone.

    place x ──► features phi(x, a), a distribution on regions ──► region z ──► place x' ~ psi_z,
       │                                                                       uniform in region z
       ▼
    y ~ Normal(number of its region, scale)

The structure of the paper's section on function approximation, T(x' | x, a) = phi(x, a) . psi(x')
with as many features as there are regions, whatever the number of places; the story is ours. A
harvester drives through fields that lie in a row. "on" and "back" lead to the next region and to
the one before, "harvest" pays 1 in the last region, and elsewhere it wastes a step and leads back
to the first. It starts in any region alike. Each action works with a rate that depends on the
region, and otherwise the region stays. A place late in its region is partly like the next one:
there phi mixes the rows of both. The receiver tells the region, with noise.

Known: the map (regions, psi, how places mix), what is meant by each action, the rewards, the start.
Unknown: the `rate` of each action in each region, Beta, and the receiver's `scale`. None of it
depends on the number of places: `family` is the same class of parameters for ten places and for a
thousand, so that what it takes to learn can be compared.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpy.typing import ArrayLike

from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of
from homdp_ppl.errors import DeclarationError, Problem
from homdp_ppl.precision import Array

ACTIONS = ("back", "on", "harvest")
RATE, SCALE = (2.0, 2.0), (4.0, 8.0)  # of the Beta and the Gamma priors
MIXED = 0.5  # how much the last place of a region is like the next region


def structured(
    states: int = 10,
    blocks: int = 3,
    horizon: int = 4,
    rate: ArrayLike | None = None,
    scale: float = 0.5,
) -> World:
    """The fields of someone who has the map, but has not driven there.

    Parameters
    ----------
    states
        Number of places.
    blocks
        Number of regions: the rank.
    horizon
        Number of actions in an episode.
    rate
        How often each action works in each region, (blocks, 3); by default from 0.9 in the first to
        0.6 in the last.
    scale
        Standard deviation of what the receiver tells.
    """
    check_counts("low_rank", 2, states=states, blocks=blocks)
    check_sizes_of("low_rank", states=states, actions=len(ACTIONS), horizon=horizon)
    if blocks > states:
        raise DeclarationError(
            "low_rank",
            [Problem("blocks", f"{blocks} of {states} places", "from 2 to the number of states")],
        )
    region, psi, mixing = regions(states, blocks)
    meant = _meant(blocks)
    reward = np.zeros((states, len(ACTIONS)))
    reward[region == blocks - 1, 2] = 1.0

    @homdp(states=states, observations=Real(1), actions=ACTIONS, horizon=horizon, reward=reward)
    def low_rank() -> Kernels:
        rate = numpyro.sample("rate", dist.Beta(*RATE).expand([blocks, len(ACTIONS)]).to_event(2))
        scale = numpyro.sample("scale", dist.Gamma(*SCALE))
        rows = (
            rate[..., None] * meant + (1 - rate[..., None]) * np.eye(blocks)[:, None]
        )  # (blocks, A, blocks)
        return Kernels(
            initial=psi.mean(0),
            transition=lambda x, a: dist.Categorical(
                probs=jnp.asarray(mixing)[x] @ rows[:, a] @ psi
            ),
            emission=lambda x: dist.Normal(jnp.asarray(region)[x], scale),
        )

    default = np.repeat(np.linspace(0.9, 0.6, blocks)[:, None], len(ACTIONS), axis=1)
    return low_rank.at(rate=default if rate is None else rate, scale=scale)


def family(
    n: int, seed: int = 0, states: int = 10, blocks: int = 3, horizon: int = 4
) -> list[World]:
    """A class of n worlds of which the last is the default truth.

    The others are drawn, alike for every number of states.

    Parameters
    ----------
    n
        How many.
    seed
        Of the draws.
    states, blocks, horizon
        As in :func:`structured`.

    Examples
    --------
    >>> [round(float(world.parameters["scale"]), 3) for world in family(2, states=4, horizon=2)]
    [0.319, 0.5]
    """
    truth = structured(states, blocks, horizon)
    check_counts("low_rank", n=n)
    generator = np.random.default_rng(seed)
    shape = (blocks, len(ACTIONS))
    others = [
        truth.homdp.at(
            rate=generator.beta(*RATE, shape), scale=generator.gamma(SCALE[0], 1 / SCALE[1])
        )
        for _ in range(n - 1)
    ]
    return [*others, truth]


def regions(states: int, blocks: int) -> tuple[Array, Array, Array]:
    """The region of each place (X,), psi (blocks, X), and how much of each region is in each place
    (X, blocks).
    """
    region = np.arange(states) * blocks // states
    inside = region == np.arange(blocks)[:, None]
    late = np.arange(states) * blocks / states - region  # in [0, 1)
    own, following = np.eye(blocks)[region], np.eye(blocks)[np.minimum(region + 1, blocks - 1)]
    return (
        region,
        inside / inside.sum(1, keepdims=True),
        own + (MIXED * late)[:, None] * (following - own),
    )


def _meant(blocks: int) -> Array:
    """Where each action leads when it works, (blocks, A, blocks)."""
    meant = np.zeros((blocks, len(ACTIONS), blocks))
    for z in range(blocks):
        meant[z, 0, max(z - 1, 0)] = meant[z, 1, min(z + 1, blocks - 1)] = 1.0
        meant[z, 2, z if z == blocks - 1 else 0] = 1.0
    return meant
