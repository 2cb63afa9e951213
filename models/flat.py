"""The same world without structure: all rows unknown under Dirichlet priors."""

import numpy as np
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import tabular
from homdp_ppl.declare.model import World


def flat_table(
    world: World, transition: float = 1.0, emission: float = 1.0, kind: str = "table"
) -> World:
    """The same world with every row of T and O unknown under symmetric Dirichlet priors.

    The initial distribution and the rewards stay known.

    Parameters
    ----------
    world
        The true world.
    transition, emission
        The concentrations of the priors; 1 is flat.
    kind
        Suffix for the name of the declaration.
    """
    X, Y, A, H = world.spaces.sizes
    model = tabular(
        T=dist.Dirichlet(np.full((X, A, X), transition)),
        O=dist.Dirichlet(np.full((X, Y), emission)),
        initial=world.pomdp.initial,
        reward=world.homdp.reward,
        reward_range=world.homdp.reward_range,
        horizon=H,
        states=world.spaces.names[0],
        observations=world.spaces.names[1],
        actions=world.spaces.actions,
        name=f"{world.homdp.name}_{kind}",
    )
    return model.at(T=world.pomdp.moves(0), O=world.pomdp.shows(0))
