"""The test of association between missing states and what was seen or done."""

from functools import cache

import jax
import numpy as np
import pytest

from homdp_ppl import Episodes, HindsightWarning, models, rollout, uniform_policy
from homdp_ppl.core.missingness import association, warn_of_association

REPLICAS, EPISODES = 300, 60


@cache
def played():
    world = models.load("tiger")
    keys = jax.random.split(jax.random.key(1), REPLICAS * EPISODES)
    return world.homdp.spaces, rollout(keys, world, uniform_policy(world))


def replica(k, reveal):
    """One data set whose reveal pattern is a function of a generator and the episodes."""
    episodes = played()[1][k * EPISODES : (k + 1) * EPISODES]
    known = reveal(np.random.default_rng(k), episodes)
    return Episodes(episodes.observations, episodes.actions, episodes.states, revealed=known)


def per_step(generator, episodes):
    return generator.random(episodes.states.shape) < 0.4


def per_episode(generator, episodes):
    coins = generator.random((len(episodes), 1)) < 0.4
    return np.broadcast_to(coins, episodes.states.shape)


def by_observation(generator, episodes):
    chance = np.where(episodes.observations == 0, 0.7, 0.2)
    return _with_last(generator.random(chance.shape) < chance)


def by_action(generator, episodes):
    chance = np.where(episodes.actions == 0, 0.7, 0.2)
    return _with_last(generator.random(chance.shape) < chance)


def _with_last(known):
    return np.concatenate([known, np.ones((len(known), 1), dtype=bool)], axis=1)


@pytest.mark.parametrize("coin", [per_step, per_episode])
def test_coins_are_not_reported(coin):
    """The share below 0.05 exceeds 0.1 with probability below 1e-3 if the test is exact."""
    spaces, _ = played()
    values = [association(replica(k, coin), spaces).p_value for k in range(REPLICAS)]
    assert np.mean(np.array(values) < 0.05) < 0.1
    assert 0.35 < np.mean(values) < 0.65


@pytest.mark.parametrize(
    ("reveal", "outcome"), [(by_observation, "observation"), (by_action, "action")]
)
def test_dependence_is_reported(reveal, outcome):
    spaces, _ = played()
    found = association(replica(0, reveal), spaces)
    assert found.p_value < 1e-6
    assert outcome in found.outcome
    assert abs(found.share - found.otherwise) > 0.3
    with pytest.warns(HindsightWarning):
        warn_of_association(replica(0, reveal), spaces)


def test_too_few_data_are_not_tested():
    spaces, episodes = played()
    few = episodes[:10]
    known = by_observation(np.random.default_rng(0), few)
    few = Episodes(few.observations, few.actions, few.states, revealed=known)
    assert association(few, spaces) is None
