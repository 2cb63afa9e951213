"""What the zoo's tables share: a world as it looks to someone who knows no structure."""

import numpy as np
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import tabular
from homdp_ppl.declare.model import World


def flat_table(
    world: World, transition: float = 1.0, emission: float = 1.0, kind: str = "table"
) -> World:
    """The same truth with every row of T and O unknown under symmetric Dirichlet priors.

    Start and rewards stay known.

    Parameters
    ----------
    world
        The truth.
    transition, emission
        The concentrations; 1 is flat.
    kind
        What follows the world's name in that of the table.
    """
    X, Y, A, H = world.spaces.sizes
    model = tabular(
        T=dist.Dirichlet(np.full((X, A, X), transition)),
        O=dist.Dirichlet(np.full((X, Y), emission)),
        initial=world.pomdp.initial,
        reward=world.homdp.reward_table,
        horizon=H,
        states=world.spaces.names[0],
        observations=world.spaces.names[1],
        actions=world.spaces.actions,
        name=f"{world.homdp.name}_{kind}",
    )
    return model.at(T=world.pomdp.moves(0), O=world.pomdp.shows(0))
