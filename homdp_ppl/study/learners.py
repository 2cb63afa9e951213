"""What a learner believes before the first episode: as declared, or as someone who knows no structure."""

from __future__ import annotations

import numpy as np
import numpyro.distributions as dist

from homdp_ppl.declare import HOMDP, World, tabular


def learner(world: World, prior: str) -> HOMDP:
    """The learner's declaration in a world.

    Parameters
    ----------
    world
        The truth.
    prior
        "declared" for the world's own; "flat" for independent Dirichlet(1, .., 1) rows of T and O, "sparse" for Dirichlet(1/n)
        rows on n outcomes, of which few are expected to happen. Start and rewards stay known.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> learner(models.load("tiger", horizon=2), "sparse")
    HOMDP 'tiger_sparse': 2 states, 2 observations, 3 actions, horizon 2
      T: 6 rows under Dirichlet priors, conjugate; O: 2 rows under Dirichlet priors, conjugate; initial: known
    """
    if prior == "declared":
        return world.homdp
    X, Y, A, H = world.spaces.sizes
    T, O = (1.0, 1.0) if prior == "flat" else (1 / X, 1 / Y)  # noqa: E741
    return tabular(
        T=dist.Dirichlet(np.full((X, A, X), T)),
        O=dist.Dirichlet(np.full((X, Y), O)),
        initial=world.pomdp.initial,
        reward=world.pomdp.reward,
        horizon=H,
        states=world.spaces.states,
        observations=world.spaces.observations,
        actions=world.spaces.actions,
        name=f"{world.homdp.name}_{prior}",
    )
