"""Delays that depend on the outcome: confidence sets cover, if the rule uses the prefix only."""

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import binom

from homdp_ppl import Agent, explorers, tabular
from homdp_ppl.confidence import weissman_radii
from tests.runs import TREE

SUCCESS = 0.5
EPISODES, LATE = 80, 50  # failures are revealed this many episodes later
DELTA = 0.1
TREATMENT = tabular(
    T=dist.Dirichlet(np.ones((3, 1, 3))),
    O=np.ones((3, 1)),
    initial=[1, 0, 0],
    reward=np.array([[0.0], [1.0], [0.0]]),
    horizon=1,
    states=("treated", "cured", "ill"),
)
TRUTH = np.array([0.0, SUCCESS, 1 - SUCCESS])


def misses(seed, **options):
    """Whether the true row ever leaves its confidence set, in a run with late failures."""
    agent = Agent(TREATMENT, explorers.tight(delta=DELTA), TREE, episodes=EPISODES, **options)
    generator, waiting = np.random.default_rng(seed), {}
    keeper, missed = agent._keeper, False
    for k in range(EPISODES):
        for name in [name for name, due in waiting.items() if due <= k]:
            agent.reveal(name, ["treated", "ill"])
            del waiting[name]
        episode = agent.begin(f"e{k}")
        episode.act(0)
        if generator.random() < SUCCESS:
            agent.reveal(f"e{k}", ["treated", "cured"])
        else:
            waiting[f"e{k}"] = k + LATE
        counts = keeper.actor.knowledge.state(keeper.ledger).counts
        row = counts.transition[0, 0]
        if row.sum():
            radius = weissman_radii(TREATMENT, counts, EPISODES, DELTA).transition[0, 0]
            missed |= bool(np.abs(row / row.sum() - TRUTH).sum() > radius)
    return missed


def covers(runs):
    """The share of misses is at most delta; the test fails by chance with probability 1e-4."""
    missed = sum(misses(seed) for seed in range(runs))
    assert missed <= binom.ppf(1 - 1e-4, runs, DELTA)
    # planted bug: the rule uses everything that is revealed, as if delays were independent
    wrong = sum(misses(seed, delay="independent") for seed in range(runs))
    assert wrong > binom.ppf(1 - 1e-4, runs, DELTA)
    assert wrong > runs / 2


@pytest.mark.slow
def test_late_failures():
    covers(30)


@pytest.mark.long
@pytest.mark.slow
def test_late_failures_in_many_runs():
    covers(200)
