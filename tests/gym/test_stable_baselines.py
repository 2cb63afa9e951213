"""Stable-Baselines3 on environments of the model zoo, and its calls without the library."""

from copy import deepcopy
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from homdp_ppl import evaluate
from homdp_ppl.gym import HistoryObservation, HOMDPEnv
from homdp_ppl.planners import history_tree
from tests.worlds import world

WITH = pytest.mark.skipif(not find_spec("stable_baselines3"), reason="needs stable-baselines3")


def made_by_id(render_mode="rgb_array"):
    """``gymnasium.make`` as in ``maybe_make_env`` and ``make_vec_env``."""
    return gymnasium.make("homdp/Tiger-v0", render_mode=render_mode)


def steps_of_a_dummy_vector(envs, seed, actions):
    """The calls of ``make_vec_env`` and of ``DummyVecEnv``, in their order."""
    assert len({id(env.unwrapped) for env in envs}) == len(envs)
    shape, dtype = envs[0].observation_space.shape, envs[0].observation_space.dtype
    observations = np.zeros((len(envs), *shape), dtype=dtype)
    for k, env in enumerate(envs):
        env.action_space.seed(seed + k)
        observations[k], _ = env.reset(seed=seed + k)
    yield observations.copy(), None, None, None
    for chosen in actions:
        rewards, dones = np.zeros(len(envs), np.float32), np.zeros(len(envs), bool)
        infos = [{} for _ in envs]
        for k, env in enumerate(envs):
            seen, rewards[k], terminated, truncated, infos[k] = env.step(chosen[k])
            dones[k] = terminated or truncated
            infos[k]["TimeLimit.truncated"] = truncated and not terminated
            if dones[k]:
                infos[k]["terminal_observation"] = seen
                seen, _ = env.reset()
            observations[k] = seen
        yield observations.copy(), rewards, dones, deepcopy(infos)


@pytest.mark.parametrize("wrap", [lambda env: env, HistoryObservation], ids=["plain", "history"])
def test_the_calls_of_stable_baselines(wrap):
    """They give the episodes of single environments with the same seeds."""
    envs, alone = [wrap(made_by_id()) for _ in range(2)], [HOMDPEnv(world("tiger")) for _ in "ab"]
    actions = np.random.default_rng(0).integers(0, 3, (12, 2))
    found = list(steps_of_a_dummy_vector(envs, 7, actions))
    ends = [t for t, step in enumerate(found) if t and step[2].any()]
    assert ends == [4, 8, 12]  # a horizon of 4
    for k, env in enumerate(alone):
        env.reset(seed=7 + k)
        for t, chosen in enumerate(actions[:, k]):
            _, reward, over, _, info = env.step(chosen)
            assert found[t + 1][1][k] == np.float32(reward)
            assert found[t + 1][3][k]["TimeLimit.truncated"] is False
            if over:
                states = found[t + 1][3][k]["latent_states"]
                np.testing.assert_array_equal(states, info["latent_states"])
                env.reset()
    assert all(frame.ndim == 3 for frame in (env.render() for env in envs))
    assert envs[0].metadata["render_modes"] == ["ansi", "rgb_array"]
    assert envs[0].get_wrapper_attr("render_mode") == "rgb_array"


def test_the_checker_with_pictures():
    check_env(made_by_id("ansi").unwrapped)
    check_env(made_by_id().unwrapped)


@WITH
@pytest.mark.filterwarnings("ignore")
def test_the_checker_of_stable_baselines():
    from stable_baselines3.common.env_checker import check_env

    check_env(made_by_id(), skip_render_check=False)
    check_env(HistoryObservation(made_by_id()))


@WITH
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_stable_baselines_learns_tiger():
    """PPO by id, and on histories; the value is exact and has no step with a batch of one."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    PPO("MlpPolicy", "homdp/Tiger-v0", n_steps=64, device="cpu").learn(64)
    vector = make_vec_env(
        "homdp/Tiger-v0",
        n_envs=4,
        seed=0,
        env_kwargs={"per_step": True},
        wrapper_class=HistoryObservation,
    )
    model = PPO("MlpPolicy", vector, n_steps=64, gamma=1.0, ent_coef=0.01, seed=0, device="cpu")
    made = world("tiger")

    def chances(vectors):
        with torch.no_grad():
            found = model.policy.get_distribution(torch.as_tensor(vectors)).distribution
            return np.eye(3)[found.probs.numpy().argmax(1)]

    policy = HistoryObservation(HOMDPEnv(made)).policy(chances)
    before = evaluate(policy, made.pomdp)
    model.learn(8_192)
    after, best = evaluate(policy, made.pomdp), history_tree()(made.pomdp).value
    assert before < after <= best + 1e-9
    assert vector.render(mode="rgb_array").ndim == 3
