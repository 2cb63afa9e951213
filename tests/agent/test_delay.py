"""Delays that depend on the outcome: sets and certificates cover, if they use the prefix only."""

import warnings

import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.stats import binom

from homdp_ppl import Agent, HindsightWarning, explorers, tabular
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
# the same with the reward of the state after the treatment
FOLLOWED = tabular(
    T=dist.Dirichlet(np.ones((3, 1, 3))),
    O=np.ones((3, 1)),
    initial=[1, 0, 0],
    reward=np.array([[0.0], [1.0], [0.0]]),
    horizon=2,
    states=("treated", "cured", "ill"),
)


def late_failures(agent, seed, look):
    """Play with late failures and call ``look`` after every episode; returns what it found, and
    whether there was a warning about the delays.
    """
    generator, waiting, found = np.random.default_rng(seed), {}, []
    more = agent.homdp.horizon - 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(EPISODES):
            for name in [name for name, due in waiting.items() if due <= k]:
                agent.reveal(name, ["treated", *["ill"] * (1 + more)])
                del waiting[name]
            episode = agent.begin(f"e{k}")
            for _ in range(1 + more):
                episode.act(0)
            if generator.random() < SUCCESS:
                agent.reveal(f"e{k}", ["treated", *["cured"] * (1 + more)])
            else:
                waiting[f"e{k}"] = k + LATE
            found.append(look(agent, k))
    return any(found), any(w.category is HindsightWarning for w in caught)


def outside_radius(agent, k):
    """Whether the true row is outside its confidence set."""
    keeper = agent._keeper
    counts = keeper.actor.knowledge.state(keeper.ledger).counts
    row = counts.transition[0, 0]
    if not row.sum():
        return False
    radius = weissman_radii(TREATMENT, counts, EPISODES, DELTA).transition[0, 0]
    return bool(np.abs(row / row.sum() - TRUTH).sum() > radius)


def outside_certificate(agent, k):
    """Whether the value of the only policy is outside its certificate."""
    if k % 10 != 9:
        return False
    found = agent.certificate(DELTA)
    return not found.lower <= SUCCESS <= found.upper


def misses(seed, **options):
    rule = explorers.tight(delta=DELTA)
    agent = Agent(TREATMENT, rule, TREE, episodes=EPISODES, **options)
    return late_failures(agent, seed, outside_radius)


def certificate_misses(seed, **options):
    return late_failures(
        Agent(FOLLOWED, explorers.uniform(), TREE, **options), seed, outside_certificate
    )


def covers(miss, runs):
    """The share of misses is at most delta; the test fails by chance with probability 1e-4."""
    found = np.array([miss(seed) for seed in range(runs)])
    assert found[:, 0].sum() <= binom.ppf(1 - 1e-4, runs, DELTA)
    assert found[:, 1].mean() > 0.5  # most runs are warned about the delays
    # planted bug: everything that is revealed is used, as if delays were independent
    wrong = sum(miss(seed, delay="independent")[0] for seed in range(runs))
    assert wrong > binom.ppf(1 - 1e-4, runs, DELTA)
    assert wrong > runs / 2


@pytest.mark.slow
@pytest.mark.parametrize("miss", [misses, certificate_misses])
def test_late_failures(miss):
    covers(miss, 20)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("miss", [misses, certificate_misses])
def test_late_failures_in_many_runs(miss):
    covers(miss, 200)
