"""The Gymnasium ids of the model zoo."""

import inspect
from importlib.metadata import entry_points

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.utils.env_checker import check_env

from homdp_ppl import HOMDPError, Real, models
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.models.environments import ZooEnv, environment_id, register
from tests.raising import raises
from tests.worlds import world

IDS = {name: environment_id(name) for name in models.MODELS}


def test_every_model_has_an_id():
    assert IDS["tiger"] == "homdp/Tiger-v0"
    assert IDS["tiger_table"] == "homdp/TigerTable-v0"
    assert len(set(IDS.values())) == len(models.MODELS)
    specs = {spec.id: spec for spec in gymnasium.registry.values() if spec.namespace == "homdp"}
    assert {name: specs[id_].kwargs["name"] for name, id_ in IDS.items()} == {
        name: name for name in models.MODELS
    }
    assert len(specs) == len(models.MODELS)


def check_id(name):
    """The environment of an id passes Gymnasium's checks in every render mode, and plays like the
    world of that name.
    """
    env = gymnasium.make(IDS[name])
    made = world(name)
    assert env.unwrapped.spaces == made.spaces
    assert env.action_space.n == len(made.spaces.actions)
    assert isinstance(env.observation_space, Box) == isinstance(made.spaces.observations, Real)
    if made.homdp.allowed is None:  # the checks take random actions, without masks
        check_env(env.unwrapped)
    direct = HOMDPEnv(made)
    (first, info), (other, _) = env.reset(seed=1), direct.reset(seed=1)
    assert np.array_equal(first, other)
    for _ in range(made.spaces.horizon):
        action = int(np.argmax(info.get("action_mask", 1)))
        step, same = env.step(action), direct.step(action)
        info = step[4]
        assert np.array_equal(step[0], same[0])
        assert step[1:4] == same[1:4]
    assert np.array_equal(step[4]["latent_states"], same[4]["latent_states"])


def test_tiger_passes_the_checks():
    check_id("tiger")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*Box observation space.*infinity")
@pytest.mark.parametrize("name", models.MODELS)
def test_every_id_passes_the_checks(name):
    check_id(name)


def test_options_reach_the_model_and_the_environment():
    env = gymnasium.make(
        "homdp/Tiger-v0", horizon=6, accuracy=0.7, per_step=True, render_mode="ansi_list"
    )
    assert gymnasium.make("homdp_ppl.gym:homdp/Tiger-v0").spec.kwargs == {"name": "tiger"}
    env.reset(seed=0)
    rewards = [env.step(0)[1] for _ in range(6)]
    assert rewards == [0.9] * 6
    assert env.render()[-1].startswith("1. growl")
    with raises(HOMDPError, "option"):
        gymnasium.make("homdp/Tiger-v0", horizn=6)
    with raises(HOMDPError, "model"):
        ZooEnv("lion")
    taken = {"name", "per_step", "render_mode", "self"}
    assert all(
        not taken & inspect.signature(function).parameters.keys()
        for function in models.MODELS.values()
    )


def test_a_world_is_declared_once_per_vector(monkeypatch):
    declared = []

    def counted(size=0):
        declared.append(size)
        return world("tiger")

    monkeypatch.setitem(models.MODELS, "tiger", counted)
    gymnasium.make_vec("homdp/Tiger-v0", num_envs=5, size=-1).close()
    assert declared == [-1]
    ZooEnv("tiger", size=[-2])  # a list cannot be a key
    assert declared == [-1, [-2]]


def test_the_entry_point_registers_in_its_namespace():
    """Gymnasium 1.0 and later do not read the entry point. It still works, and can be called
    repeatedly.
    """
    (point,) = entry_points(group="gymnasium.envs", name="homdp")
    assert point.load() is register
    before = dict(gymnasium.registry)
    with gymnasium.envs.registration.namespace(point.name):
        register()
        assert dict(gymnasium.registry) == before
        del gymnasium.registry["homdp/Tiger-v0"]
        register()
    assert gymnasium.registry == before


MODES = [gymnasium.vector.AutoresetMode.NEXT_STEP, gymnasium.vector.AutoresetMode.SAME_STEP]


def check_vector(vector, alone, mode):
    """Three episodes in a vector equal those of the single environments, and end with their latent
    states.
    """
    H = alone[0].spaces.horizon
    generator = np.random.default_rng(1)
    observations, infos = vector.reset(seed=11)
    assert infos == {}
    for k, env in enumerate(alone):
        assert env.reset(seed=11 + k)[0] == observations[k]
    for _ in range(3):
        for h in range(1, H + 1):
            actions = generator.integers(0, alone[0].action_space.n, len(alone))
            observations, rewards, over, truncated, infos = vector.step(actions)
            steps = [env.step(a) for env, a in zip(alone, actions, strict=True)]
            assert list(rewards) == [step[1] for step in steps]
            assert list(over) == [h == H] * len(alone)
            assert not truncated.any()
            if h < H:
                assert infos == {}
                assert list(observations) == [step[0] for step in steps]
        final = infos if mode == MODES[0] else infos["final_info"]
        assert final["_latent_states"].all()
        assert np.array_equal(final["latent_states"], [step[4]["latent_states"] for step in steps])
        trailing = observations if mode == MODES[0] else infos["final_obs"]
        assert list(trailing) == [step[0] for step in steps]
        if mode == MODES[0]:
            observations, rewards, _, _, infos = vector.step(actions)  # only resets
            assert not rewards.any()
            assert infos == {}
        assert [env.reset()[0] for env in alone] == list(observations)
    vector.close()


@pytest.mark.parametrize("mode", MODES)
def test_vectors_made_by_id(mode):
    vector = gymnasium.make_vec(
        "homdp/Tiger-v0", num_envs=3, vector_kwargs={"autoreset_mode": mode}, horizon=3
    )
    check_vector(vector, [HOMDPEnv(world("tiger").with_horizon(3)) for _ in range(3)], mode)


@pytest.mark.slow
def test_vectors_in_separate_processes():
    """Processes are spawned, not forked, because JAX has threads."""
    kwargs = {"context": "spawn", "autoreset_mode": MODES[1]}
    vector = gymnasium.make_vec(
        "homdp/Tiger-v0", num_envs=1, vectorization_mode="async", vector_kwargs=kwargs
    )
    check_vector(vector, [HOMDPEnv(world("tiger"))], MODES[1])
