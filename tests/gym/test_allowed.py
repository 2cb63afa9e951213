"""Environments of declarations that restrict the actions."""

import pickle

import numpy as np
import pytest

from homdp_ppl import HOMDPError, uniform_policy
from homdp_ppl.gym import HistoryObservation, HOMDPEnv, episodes_from
from tests.raising import raises
from tests.richer import once, richer


def test_masks_show_the_allowed_actions():
    env = HistoryObservation(HOMDPEnv(richer("limited")))
    env.action_space.seed(0)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        done = []
        for _ in range(3):
            assert info["action_mask"].dtype == np.int8
            assert info["action_mask"].tolist() == [1, int(1 not in done)]
            done.append(int(env.action_space.sample(info["action_mask"])))
            *_, over, _, info = env.step(done[-1])
        assert over
        assert "action_mask" not in info


def test_forbidden_actions_raise():
    env = HOMDPEnv(richer("limited"))
    env.reset(seed=0)
    env.step(1)
    with raises(HOMDPError, "action") as caught:
        env.step(1)
    assert caught.value.problems[0].expected == "one of a0"
    assert env.step(0)[4]["action_mask"].tolist() == [1, 0]  # the wrong call changed nothing
    env.reset()
    env.step(1)


def test_uniform_actions_are_allowed_ones():
    """The same episodes as of the uniform policy over allowed actions."""
    world = richer("limited")
    env = HOMDPEnv(world)
    played = episodes_from(env, "uniform", 50, model=world)
    policy = uniform_policy(world, world.homdp.allowed)
    assert played.same_as(episodes_from(env, policy, 50, model=world))
    assert set((played.actions == 1).sum(1)) == {0, 1}
    with pytest.raises(HOMDPError):  # planted: all actions
        episodes_from(env, uniform_policy(world), 50, model=world)


def test_environments_can_be_pickled_if_the_rule_can():
    env = HOMDPEnv(richer("limited"))
    env.reset(seed=0)
    env.step(1)
    loaded = pickle.loads(pickle.dumps(env))
    assert loaded._allowed is once
    with raises(HOMDPError, "action"):
        loaded.step(1)


def test_environments_without_restriction_have_no_mask():
    env = HOMDPEnv(richer("answers"))
    assert env.reset(seed=0)[1] == {}
    assert env.step(1)[4] == {}
