"""A random HOMDP: tables drawn uniformly from the simplex.

What most benchmarks use, and where exploration hardly matters.

    x ──► x'   every row of T and O from a flat Dirichlet distribution
    │
    ▼
    y

Rows drawn this way mix fast, so every state is visited whatever one does: greedy learners do well
here. Use it to test planners and estimators, and `lock` or `screening` to tell exploration rules
apart.

Known: the initial distribution (uniform) and the rewards. Unknown: every row of T and O, under the
prior they are drawn from.
"""

import numpy as np
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import tabular
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of


def random_world(
    states: int = 3, observations: int = 3, actions: int = 2, horizon: int = 4, seed: int = 0
) -> World:
    """Random tables: rows drawn uniformly from the simplex, where exploration hardly matters.

    Parameters
    ----------
    states, observations, actions, horizon
        Sizes.
    seed
        Draws the tables and the rewards.
    """
    sizes = {"states": states, "observations": observations, "actions": actions}
    check_sizes_of("random", **sizes, horizon=horizon)
    check_counts("random", 0, seed=seed)
    generator = np.random.default_rng(seed)
    shapes = (states, actions, states), (states, observations)
    T, O = (generator.dirichlet(np.ones(shape[-1]), shape[:-1]) for shape in shapes)  # noqa: E741
    model = tabular(
        T=dist.Dirichlet(np.ones(shapes[0])),
        O=dist.Dirichlet(np.ones(shapes[1])),
        initial=np.full(states, 1 / states),
        reward=generator.uniform(size=(states, actions)),
        horizon=horizon,
        name="random",
    )
    return model.at(T=T, O=O)
