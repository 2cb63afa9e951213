"""The prior of a learner: as declared, or a prior without structure."""

from __future__ import annotations

from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.models.flat import flat_table


def learner(world: World, prior: str) -> HOMDP:
    """The declaration from which a learner starts.

    Parameters
    ----------
    world
        The true world.
    prior
        "declared" for the world's declaration; "flat" for independent Dirichlet(1, .., 1) rows of T
        and O; "sparse" for Dirichlet(1/n) rows on n outcomes, if few outcomes per row are expected.
        The initial distribution and the rewards remain known.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> learner(models.load("tiger", horizon=2), "sparse")
    HOMDP 'tiger_sparse': 2 states, 2 observations, 3 actions, horizon 2
      T: Dirichlet, conjugate; O: Dirichlet, conjugate; initial: known
    """
    if prior == "declared":
        return world.homdp
    X, Y, _, _ = world.spaces.sizes
    return flat_table(world, *((1.0, 1.0) if prior == "flat" else (1 / X, 1 / Y)), prior).homdp
