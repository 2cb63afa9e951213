"""The exact coverage of ``value_quantile``, end to end, if states are missing."""

from dataclasses import replace

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import Episodes, explorers, tabular
from homdp_ppl.core.evidence import Evidence
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
DRAWS, REPLICAS, EPISODES = 4, 120, 6
RULE = explorers.value_quantile(0.5, DRAWS)


def followed(learner, episodes):
    """The state of the learner after the episodes, one by one."""
    state = learner.init()
    for episode in episodes:
        state = learner.update(state, episode, simulated=True)
    return state


def counted_often(learner, episodes):
    """As above, with every episode counted 30 times: a bug to plant."""
    state, often = learner.init(), Episodes.concatenate([episodes] * 30)
    key = jax.random.key(learner.seed)
    return replace(state, memory=state.memory.update(Evidence.of(often, MODEL), key))


def ranks(follow):
    """How many drawn values are below the optimum of the true world, in each of many worlds.

    The world is drawn from the prior, and a learner follows episodes with 40% of the states
    revealed.
    """
    found = []
    for r in range(REPLICAS):
        world = MODEL.draw(jax.random.key(r))
        learner = Learner(MODEL, RULE, TREE, seed=r, hindsight="coin")
        state = follow(learner, with_gaps(world, EPISODES, 0.4, seed=r))
        models = learner.propose(EPISODES, state).models
        drawn = [
            TREE(jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], models)).value
            for k in range(DRAWS)
        ]
        found.append(np.sum(np.array(drawn) < TREE(world.pomdp).value))
    return np.array(found)


def exact(below):
    """Whether the k-th smallest value is at least the optimum with probability k / (S + 1)."""
    return all(believable(below < k, k / (DRAWS + 1)) for k in range(1, DRAWS + 1))


@pytest.mark.slow
def test_the_coverage_is_exact():
    """For every order statistic; false-alarm rate 4e-6 in total."""
    assert exact(ranks(followed))
    assert not exact(ranks(counted_often))
