"""What the zoo's tables share: a world as it looks to someone who knows no structure."""

import numpy as np
import numpyro.distributions as dist

from homdp_ppl.declare import World, tabular


def flat_table(world: World) -> World:
    """The same truth with every row of T and O unknown under a flat Dirichlet prior; the start and the rewards stay known."""
    X, Y, A, H = world.spaces.sizes
    model = tabular(
        T=dist.Dirichlet(np.ones((X, A, X))),
        O=dist.Dirichlet(np.ones((X, Y))),
        initial=world.pomdp.initial,
        reward=world.pomdp.reward,
        horizon=H,
        states=world.spaces.states,
        observations=world.spaces.observations,
        actions=world.spaces.actions,
        name=f"{world.homdp.name}_table",
    )
    return model.at(T=world.pomdp.transition, O=world.pomdp.emission)
