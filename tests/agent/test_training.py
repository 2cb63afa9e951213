"""Training in Gymnasium environments, and random rewards."""

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Discrete

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


class Other(gymnasium.Env):
    """An environment of another library: spaces start at 1 and 5, every info has the state."""

    observation_space, action_space = Discrete(2, start=5), Discrete(3, start=1)

    def __init__(self):
        self.played = []

    def reset(self, *, seed=None, options=None):
        """Start an episode of three steps."""
        super().reset(seed=seed)
        self.states, self.actions = [int(self.np_random.integers(2))], []
        self.played.append((self.states, self.actions))
        return self._seen(), {"state": self.states[-1]}

    def step(self, action):
        """Listening changes nothing; a new tiger comes when a door was opened."""
        self.actions.append(int(action) - 1)
        stays = self.actions[-1] == 0
        self.states.append(self.states[-1] if stays else int(self.np_random.integers(2)))
        return self._seen(), 0.0, False, len(self.actions) == 3, {"state": self.states[-1]}

    def _seen(self):
        right = self.np_random.random() < 0.85
        return 5 + (self.states[-1] if right else 1 - self.states[-1])


def test_environments_of_other_libraries():
    """States are found by a function of all infos; the agent learns what they show."""
    env, agent = Other(), Agent(tiger().homdp, explorers.posterior_sampling(), TREE)
    agent.train(env, 30, lambda infos: [info["state"] for info in infos], 3)
    np.testing.assert_array_equal(agent.episodes.states, [states for states, _ in env.played])
    np.testing.assert_array_equal(agent.episodes.actions, [done for _, done in env.played])
    accuracy = agent.posterior.parameters(jax.random.key(0), 500)["accuracy"]
    assert abs(accuracy.mean() - 0.85) < 0.15  # 90 observations: 4 standard errors


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
