"""Training in Gymnasium environments, and random rewards."""

import numpy as np

from homdp_ppl import Agent, DataError, explorers, models
from homdp_ppl.gym import HOMDPEnv
from tests.agent.processes import agent_of, follow, run_of, tiger
from tests.raising import raises
from tests.random_rewards import CHANCES, native
from tests.runs import TREE


def test_training_in_an_environment():
    agent = Agent(tiger().homdp, explorers.posterior_sampling(), TREE)
    agent.train(HOMDPEnv(tiger()), 5, seed=1)
    assert (agent.status.revealed, agent.pending) == (5, ())
    again = Agent(tiger().homdp, explorers.posterior_sampling(), TREE)
    again.train(HOMDPEnv(tiger()), 5, seed=1)
    np.testing.assert_array_equal(agent.episodes.states, again.episodes.states)
    np.testing.assert_array_equal(agent.episodes.actions, again.episodes.actions)
    by_function = Agent(tiger().homdp, explorers.posterior_sampling(), TREE)
    by_function.train(HOMDPEnv(tiger()), 5, lambda infos: infos[-1]["latent_states"], 1)
    np.testing.assert_array_equal(agent.episodes.states, by_function.episodes.states)


def test_an_environment_that_reveals_nothing():
    """The episode is abandoned, and the error says what is missing."""
    agent = Agent(tiger().homdp, explorers.posterior_sampling(), TREE)
    with raises(DataError, "latent"):
        agent.train(HOMDPEnv(tiger()), 2, "secret", seed=1)
    assert (agent.status.open, agent.status.pending, agent.status.abandoned) == ((), (), 1)
    with raises(DataError, "episodes"):
        agent.train(HOMDPEnv(tiger()), 0)
    with raises(DataError):
        agent.train(HOMDPEnv(models.load("lock")), 1)


def test_random_rewards_are_revealed_with_the_states():
    """The agent takes the decisions of ``learn``; rewards may be corrected."""
    world = native().at(p=CHANCES, accuracy=0.9)
    case = world, explorers.posterior_sampling(), TREE
    run = run_of(case, 8, seed=3)
    agent = agent_of(case, seed=3)
    np.testing.assert_array_equal(follow(agent, run), run.record.actions)
    np.testing.assert_array_equal(agent.posterior.closed, run.posterior.closed)
    np.testing.assert_array_equal(agent.episodes.rewards, run.record.rewards)
    agent.reveal("e0", {}, rewards=1 - run.record.rewards[0])
    assert (agent.posterior.closed != run.posterior.closed).any()
    agent.reveal("e0", {}, rewards=run.record.rewards[0])
    np.testing.assert_array_equal(agent.posterior.closed, run.posterior.closed)
    other = agent_of(case, seed=3)
    other.add(agent.episodes)
    np.testing.assert_array_equal(agent.posterior.closed, other.posterior.closed)
    follow(other, run, 8, 8)
    episode = other.begin("without")
    for _ in range(3):
        episode.act(0)
    states = run.record.states[0]
    with raises(DataError, "rewards"):
        other.reveal("without", [0, 0, 0, 0])
    with raises(DataError, "rewards"):
        other.reveal("without", [0, 0, 0, 0], rewards=[0.5, 0.5, 0.5])
    other.reveal("without", {1: int(states[0])})
    assert other.pending == ("without",)
    other.reveal("without", [0, 0, 0, 0], rewards=[0, 1, 0])
    assert other.status.revealed == 9
