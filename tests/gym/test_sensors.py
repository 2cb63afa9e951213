"""Environments and tables of worlds with several sensors."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete
from gymnasium.utils.env_checker import check_env

from homdp_ppl import posterior, read_pomdp, write_pomdp
from homdp_ppl.errors import DataError
from homdp_ppl.gym import HOMDPEnv, episodes_from
from homdp_ppl.report.tables import revealed_table, seen_table
from tests.raising import raises
from tests.sensors import SENSORS, data, declared, worlds


@pytest.mark.parametrize("kind", ["plain", "ended"])
def test_observations_are_joint_indices_or_dicts(kind):
    world = worlds(kind)[0]
    joint, apart = HOMDPEnv(world), HOMDPEnv(world, sensors=True)
    assert joint.observation_space == Discrete(len(world.spaces.observations))
    assert apart.observation_space == Dict({"ear": Discrete(2), "eye": Discrete(3)})
    assert joint.metadata["sensors"] == apart.metadata["sensors"] == SENSORS
    assert "sensors" not in HOMDPEnv(worlds(kind)[1]).metadata
    check_env(apart, skip_render_check=True)
    one, other = (episodes_from(env, "uniform", 20, seed=3, model=world) for env in (joint, apart))
    assert one.same_as(other)


def test_environments_of_other_sensors_are_errors():
    world = worlds("plain")[0]

    class Other(gymnasium.Wrapper):
        observation_space = Dict({"ear": Discrete(2), "nose": Discrete(3)})

    with raises(DataError, "env.observation_space"):
        episodes_from(Other(HOMDPEnv(world)), "uniform", 1, model=world)
    with raises(DataError, "sensors"):
        HOMDPEnv(worlds("plain")[1], sensors=True)


def test_tables_have_one_column_per_sensor():
    model, episode = declared("ended"), data("ended")[0]
    seen, revealed = seen_table(model, episode), revealed_table(model, episode)
    assert [column.header for column in seen.columns] == ["step", "ear", "eye", "action"]
    names = [column.header for column in revealed.columns]
    assert names == ["step", "latent state", "ear", "eye", "action", "reward"]
    first = [next(iter(column.cells)) for column in seen.columns][1:3]
    assert first == list(model.spaces.observations.split(int(episode.observations[0])).values())


def test_datasets_have_an_axis_for_each_sensor():
    found = posterior(declared("plain"), data("plain")).dataset
    assert found["ear"].dims == ("chain", "draw", "state", "ear_")
    assert found["eye_"].values.tolist() == list(SENSORS["eye"])


def test_files_have_joint_names(tmp_path):
    world = worlds("plain")[0]
    write_pomdp(world, tmp_path / "two.POMDP", discount=0.9)
    read = read_pomdp(tmp_path / "two.POMDP", horizon=3)
    assert tuple(read.spaces.observations) == tuple(world.spaces.observations)
    assert np.allclose(read.pomdp.shows(0), world.pomdp.shows(0))


def test_draws_differ_between_seeds():
    env = HOMDPEnv(worlds("plain")[0], sensors=True)
    seen = {tuple(env.reset(seed=k)[0].values()) for k in range(40)}
    assert len(seen) > 3
    assert jax.tree.leaves(env.reset(seed=0)[0])[0] in (0, 1)
