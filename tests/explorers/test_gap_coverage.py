"""The exact coverage of ``value_quantile``, end to end, if states are missing."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import explorers, tabular
from homdp_ppl.learning.learner import Learner
from tests.chances import believable
from tests.gaps import with_gaps
from tests.runs import TREE

MODEL = tabular(
    T=dist.Dirichlet(np.ones((2, 2, 2))),
    O=dist.Dirichlet(np.array([[4.0, 1.0], [1.0, 4.0]])),
    initial=np.array([0.5, 0.5]),
    reward=np.array([[1.0, 0.3], [0.0, 0.8]]),
    horizon=2,
)
DRAWS, REPLICAS, EPISODES = 4, 250, 8
RULE = explorers.value_quantile(0.5, DRAWS)


def ranks(copies=1):
    """How many drawn values are below the optimum of the true world, in each of many worlds.

    The world is drawn from the prior, and a learner follows episodes with 40% of the states
    revealed. Every episode is learned ``copies`` times: more than once is a planted bug.
    """
    found = []
    for r in range(REPLICAS):
        world = MODEL.draw(jax.random.key(r))
        learner = Learner(MODEL, RULE, TREE, seed=r, hindsight="coin")
        state = learner.init()
        for episode in with_gaps(world, EPISODES, 0.4, seed=r):
            for _ in range(copies):
                state = learner.update(state, episode, simulated=True)
        models = learner.propose(EPISODES, state).models
        drawn = [TREE(jax.tree.map(lambda leaf: leaf[k], models)).value for k in range(DRAWS)]  # noqa: B023
        found.append(np.sum(np.array(drawn) < TREE(world.pomdp).value))
    return np.array(found)


@pytest.mark.slow
def test_the_coverage_is_exact():
    """P(the k-th smallest value is at least the optimum) = k / (S + 1) for every k.

    False-alarm rate 4e-6 in total. Data that are used four times are caught.
    """
    below = ranks()
    for k in range(1, DRAWS + 1):
        assert believable(below < k, k / (DRAWS + 1))
    wrong = ranks(copies=4)
    assert not all(believable(wrong < k, k / (DRAWS + 1)) for k in range(1, DRAWS + 1))
