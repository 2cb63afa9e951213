"""Certificates of agents: they hold, use sound data only, and notice refuted optimism."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Agent,
    OptimismWarning,
    ParameterError,
    PolicyError,
    SpacesError,
    evaluate,
    explorers,
    models,
    rollout,
    tabular,
    uniform_policy,
)
from homdp_ppl.confidence import interval
from homdp_ppl.planners import particle_tree
from tests.agent import wrong
from tests.agent.processes import follow, play, run_of, tiger
from tests.raising import raises
from tests.runs import TREE

WORLD = tiger()
TABLES = wrong.tables_of(WORLD)


def test_certificates_are_those_of_runs():
    """With reveals before the next episode: the bounds of ``run.certificate`` for the same rule."""
    rule = explorers.anytime(delta=0.2)
    run = run_of((WORLD, rule, TREE), 11)
    agent = Agent(WORLD.homdp, rule, TREE)
    follow(agent, run, last=10)
    found = agent.certificate(delta=0.2)
    low, _ = interval(WORLD.homdp, agent.episodes, agent.policy, delta=0.2)
    assert found.lower == pytest.approx(float(low), abs=1e-12)
    assert found.optimistic == pytest.approx(
        found.upper
    )  # the optimistic value of this rule is the same bound
    assert (found.episodes, found.unused, found.delta) == (10, 0, 0.2)
    k = list(run.certificate.rounds).index(10)
    assert found.upper >= run.certificate.upper[k] - 1e-9
    assert found.lower <= evaluate(agent.policy, WORLD.pomdp) <= TREE(WORLD.pomdp).value
    assert TREE(WORLD.pomdp).value <= found.upper
    assert found.gap == found.upper - found.lower


def test_certificates_shrink_and_hold():
    agent = wrong.agent_of(WORLD.homdp, 0)
    gaps = []
    for _ in range(3):
        wrong.live(agent, TABLES, 20, len(gaps))
        found = agent.certificate()
        gaps.append(found.gap)
        assert found.lower <= evaluate(agent.policy, WORLD.pomdp) + 1e-9
        assert found.upper >= TREE(WORLD.pomdp).value - 1e-9
    assert gaps == sorted(gaps, reverse=True)
    assert agent.certificate(delta=0.5).gap < gaps[-1]
    assert agent.certificate(known=False).gap > gaps[-1]


def test_only_the_revealed_prefix_is_used():
    """Also for a Bayesian rule, whose policy uses everything."""
    for delay, used in (("any", 2), ("independent", 4)):
        agent = Agent(WORLD.homdp, wrong.RULE, TREE, delay=delay)
        states = dict(play(agent, WORLD, jax.random.key(k), f"e{k}") for k in range(5))
        for name in ("e4", "e0", "e3", "e1"):
            agent.reveal(name, states[name])
        found = agent.certificate()
        assert (found.episodes, found.unused) == (used, 4 - used)
        expected, _ = interval(WORLD.homdp, agent.episodes[:used], agent.policy)
        assert found.lower == pytest.approx(float(expected))


def test_an_optimistic_value_below_the_certificate():
    """A prior that is certain of failure expects less than the data prove."""
    homdp = tabular(
        T=dist.Dirichlet(np.array([[[1.0, 10.0, 9000.0]]] * 3)),
        O=np.ones((3, 1)),
        initial=[1, 0, 0],
        reward=[[0.0], [1.0], [0.0]],
        horizon=2,
    )
    agent = Agent(homdp, explorers.posterior_sampling(), TREE)
    world = homdp.at(T=[[[0.0, 0.9, 0.1]]] * 3)
    agent.add(rollout(jax.random.split(jax.random.key(0), 100), world, uniform_policy(world)))
    with pytest.warns(OptimismWarning, match="posterior_sampling"):
        found = agent.certificate()
    assert found.refutes_optimism
    assert found.optimistic < 0.1 < 0.7 < found.lower
    assert not found._replace(optimistic=None).refutes_optimism
    assert not found._replace(optimistic=found.lower).refutes_optimism


def test_refusals():
    """For real-valued spaces and for policies that plan online, with the reason."""
    gaussian = models.load("gaussian_tiger", horizon=2)
    agent = Agent(gaussian.homdp, explorers.uniform(), particle_tree())
    with raises(SpacesError, "counts of states and observations"):
        agent.certificate()
    with raises(SpacesError, "check"):
        agent.check()
    agent = Agent(WORLD.homdp, explorers.greedy(), particle_tree(simulations=20, particles=20))
    with raises(PolicyError, "policy") as caught:
        agent.certificate()
    assert "bounded_search" in caught.value.problems[0].remedy
    agent = Agent(WORLD.homdp, explorers.greedy(), TREE)
    with raises(ParameterError, "delta"):
        agent.certificate(delta=0.0)
    with raises(ParameterError, "mixture"):
        agent.certificate(mixture="wrong")
