"""Expected gaps and explanations, compared with enumeration."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Agent, DataError, Kernels, ParameterError, evaluate, explain, explorers, homdp
from tests.agent.processes import tiger
from tests.raising import raises
from tests.runs import TREE

LEVELS = (0.6, 0.9)


@homdp(
    states=("left", "right"),
    observations=("growl left", "growl right"),
    actions=("listen", "open left", "open right"),
    horizon=3,
    reward=np.asarray(tiger().homdp.reward)[0],
)
def two_ears():
    """The tiger problem with one of two accuracies."""
    which = numpyro.sample("which", dist.Bernoulli(0.5))
    p = jnp.where(which == 1, LEVELS[1], LEVELS[0])
    shows = jnp.array([[p, 1 - p], [1 - p, p]])
    return Kernels([0.5, 0.5], np.asarray(tiger().pomdp.moves(0)), shows)


def agent_with_data():
    """An agent that has heard a correct growl and a wrong one."""
    agent = Agent(two_ears, explorers.greedy(), TREE, seed=1)
    episode = agent.begin("past")
    for y in (0, 1, 0):
        episode.act(y)
    actions = episode.trajectory.actions
    assert (actions == 0).all()
    agent.reveal("past", [0, 0, 0, 0])
    return agent


def chance_of_good_ears():
    odds = np.prod([[p, 1 - p, p] for p in LEVELS], axis=1)
    return odds[1] / odds.sum()


def test_the_expected_gap():
    """Against the sum over both worlds; 4 standard errors, false alarms below 1e-4."""
    agent, good = agent_with_data(), chance_of_good_ears()
    worlds = [two_ears.at(which=k).pomdp for k in (0, 1)]
    gaps = [TREE(world).upper - evaluate(agent.policy, world) for world in worlds]
    exact = (1 - good) * gaps[0] + good * gaps[1]
    found = agent.expected_gap(400)
    assert exact > 0.001
    assert abs(found.mean - exact) < 4 * found.error
    with raises(ParameterError, "draws"):
        agent.expected_gap(0)


def by_hand(policy, world, seen, done, a):
    """The value of an action by recursion over all futures, with unnormalised beliefs."""
    pomdp = world.pomdp
    alpha = pomdp.initial * pomdp.shows(0)[:, seen[0]]
    for h, (action, y) in enumerate(zip(done, seen[1:], strict=True)):
        alpha = (alpha @ pomdp.moves(h)[:, action]) * pomdp.shows(h + 1)[:, y]

    def value(alpha, seen, done, forced=None):
        h = len(done)
        if h == pomdp.horizon:
            return 0.0
        chances = policy.act(seen, done) if forced is None else np.eye(3)[forced]
        total = 0.0
        for action in np.flatnonzero(chances):
            reward = alpha @ pomdp.reward[h, :, 0, action]
            after = alpha @ pomdp.moves(h)[:, action]
            later = sum(
                value(after * pomdp.shows(0)[:, y], [*seen, y], [*done, action])
                for y in (0, 1)
                if h + 1 < pomdp.horizon
            )
            total += chances[action] * (reward + later)
        return total

    return alpha, value(alpha, list(seen), list(done), a) / alpha.sum()


@pytest.mark.parametrize(("seen", "done"), [([0], []), ([0, 1], [0]), ([1, 1, 0], [0, 2])])
def test_explanations_in_a_world(seen, done):
    world = tiger()
    policy = TREE(world.pomdp).policy
    found = explain(policy, world, seen, done)
    for a, name in enumerate(world.spaces.actions):
        alpha, value = by_hand(policy, world, seen, done, a)
        assert found.values[name].value == pytest.approx(value, abs=1e-12)
        assert found.values[name].spread == 0
    np.testing.assert_allclose(list(found.belief.values()), alpha / alpha.sum(), atol=1e-12)
    if done == []:  # an action of the optimal policy has the largest value
        best = max(found.values.items(), key=lambda item: item[1].value)[0]
        assert found.values[best].probability == 1


def test_explanations_of_an_agent():
    """The spread is that of two worlds, and the history in progress is evidence, too."""
    agent, good = agent_with_data(), chance_of_good_ears()
    episode = agent.begin("now")
    episode.act("growl left")
    found = agent.explain("now", 400)
    policy = agent._keeper.actor.policy(agent._keeper.ledger, agent._keeper.ledger["now"])
    worlds = [two_ears.at(which=k) for k in (0, 1)]
    values = [by_hand(policy, world, [0], [], 2)[1] for world in worlds]
    mean = (1 - good) * values[0] + good * values[1]
    spread = abs(values[1] - values[0]) * np.sqrt(good * (1 - good))
    opening = found.values["open right"]
    assert spread > 0.05
    assert opening.value == pytest.approx(mean, abs=4 * spread / 20)
    assert opening.spread == pytest.approx(spread, rel=0.2)
    assert "growl left" in str(found)
    with raises(DataError, "id"):
        agent.explain("unknown")
    agent.begin("silent")
    with raises(DataError, "id"):
        agent.explain("silent")
    with raises(DataError, "history"):
        explain(policy, worlds[0], [0], [0])
    with raises(DataError, "observations"):
        explain(policy, worlds[0], ["roar"], [])
