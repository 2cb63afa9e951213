"""Worlds as Gymnasium environments: distributions, outputs and errors."""

import pickle
import warnings
from collections import Counter
from itertools import pairwise, product

import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import PassiveEnvChecker
from scipy.stats import kstest

from homdp_ppl import DataError, HOMDPError, rollout, tabular, uniform_policy
from homdp_ppl.core.randomness import Noise
from homdp_ppl.core.rollout import play_by_asking
from homdp_ppl.gym import HOMDPEnv, episodes_from
from homdp_ppl.gym.draws import TableDraws
from tests.continuous.programs import hearing, plane, walk
from tests.encodings import ending_pomdp, world_of
from tests.raising import raises
from tests.worlds import Parity, awkward, world


class Scripted:
    """Replaces a NumPy generator and returns given numbers."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def random(self):
        """The next number."""
        return next(self.numbers)


def play(env, choose_action, seed=None):
    """Play one episode.

    Returns observations (y_1 to y_H and the trailing one), actions, rewards, and infos of reset and
    steps.
    """
    observation, info = env.reset(seed=seed)
    observations, actions, rewards, infos = [observation], [], [], [info]
    over = False
    while not over:
        actions.append(choose_action(observations, actions))
        observation, reward, over, truncated, info = env.step(actions[-1])
        assert not truncated
        observations.append(observation)
        rewards.append(reward)
        infos.append(info)
    return observations, actions, rewards, infos


QUARTERS = {
    "T": np.array([[[1, 3], [4, 0]], [[2, 2], [0, 4]]]) / 4,
    "O": np.array([[3, 0, 1], [1, 2, 1]]) / 4,
    "initial": np.array([1, 3]) / 4,
    "reward": np.array(
        [[[0.0, 0.25], [0.5, 1.0]], [[1.0, 0.0], [0.25, 0.75]]]
    ),  # a different table at each of the two steps
    "horizon": 2,
}


def law(env, actions):
    """How many of the 4^5 equally likely inputs lead to each (x_1, y_1, x_2, y_2, x_3).

    The actions are fixed.
    """
    found = Counter()
    for numbers in product((np.arange(4) + 0.5) / 4, repeat=5):
        env.np_random = Scripted(numbers)
        observations, _, _, infos = play(env, lambda _, done: actions[len(done)])
        x = infos[-1]["latent_states"]
        found[x[0], observations[0], x[1], observations[1], x[2]] += 1
    return found


def wrong_entries(env):
    """Outcomes with the wrong probability.

    It must be rho(x_1) O(y_1|x_1) T(x_2|x_1,a_1) O(y_2|x_2) T(x_3|x_2,a_2).
    """
    T, O, rho = QUARTERS["T"], QUARTERS["O"], QUARTERS["initial"]  # noqa: E741
    wrong = []
    for a in ((0, 1), (1, 0)):  # every row of T at either step
        found = law(env, a)
        for x1, y1, x2, y2, x3 in product(range(2), range(3), range(2), range(3), range(2)):
            chance = rho[x1] * O[x1, y1] * T[x1, a[0], x2] * O[x2, y2] * T[x2, a[1], x3]
            if found[x1, y1, x2, y2, x3] != chance * 4**5:
                wrong.append((a, x1, y1, x2, y2, x3))
    return wrong


def test_the_distribution_of_an_episode_is_exact():
    """Probabilities in quarters, so that all random inputs can be enumerated.

    Five draws in two steps.
    """
    assert wrong_entries(HOMDPEnv(tabular(**QUARTERS).at())) == []


def test_a_wrong_distribution_is_caught():
    """Planted bugs: observations of the previous state, and emissions from the first row."""
    made = tabular(**QUARTERS).at()

    class Late:
        def __init__(self, draws):
            self.draws, self.before = draws, None

        def observe(self, generator, state, action, step):
            shown, self.before = state if self.before is None else self.before, state
            return self.draws.observe(generator, shown, action, step)

        def first(self, generator):
            self.before = None
            return self.draws.first(generator)

        def __getattr__(self, name):
            return getattr(self.draws, name)

    late = HOMDPEnv(made)
    late._draws = Late(TableDraws(made))
    slightly = made.pomdp.shows(0).copy()
    slightly[0] = [0.5, 0.25, 0.25]
    for planted in (late, HOMDPEnv(tabular(**{**QUARTERS, "O": slightly}).at())):
        assert wrong_entries(planted) != []


@pytest.mark.parametrize(
    "make", [lambda: world("tiger"), lambda: awkward(6)], ids=["tiger", "awkward"]
)
def test_the_same_random_numbers_give_the_episode_of_rollout(make):
    made = make()
    H, A = made.spaces.horizon, len(made.spaces.actions)
    policy = Parity(A)
    generator = np.random.default_rng(0)
    env = HOMDPEnv(made)
    for k in range(200):
        noise = Noise(generator.random(H + 1), generator.random(H), generator.random(H))
        if k < 20:  # the edges of the unit interval
            noise = Noise(*(np.round(u) * (1 - 2**-53) for u in noise))
        expected = play_by_asking(made.pomdp, policy, noise, made.spaces)
        env.np_random = Scripted(
            np.append(
                np.stack([noise.state[:-1], noise.observation], axis=1).ravel(), noise.state[-1]
            )
        )
        observations, actions, rewards, infos = play(
            env,
            lambda seen, done: int(policy.act(np.array(seen), np.array(done, dtype=int)).argmax()),
        )
        assert np.array_equal(infos[-1]["latent_states"], expected.states)
        assert np.array_equal(observations[:-1], expected.observations)
        assert np.array_equal(actions, expected.actions)
        assert rewards[-1] == made.homdp.returns(expected)


def replayed(made, tables, trials=200):
    """Episodes of an environment and of the reference simulation with the same random numbers.

    Returns how many agree in everything, including the rewards of ``tables``, in user's units.
    """
    H, A = made.spaces.horizon, len(made.spaces.actions)
    policy, generator, env = Parity(A), np.random.default_rng(0), HOMDPEnv(made, per_step=True)
    agree = 0
    for _ in range(trials):
        noise = Noise(generator.random(H + 1), generator.random(H), generator.random(H))
        expected = play_by_asking(tables, policy, noise, made.spaces)
        L = len(expected.actions)
        script = np.stack([noise.state[:-1], noise.observation], axis=1).ravel()
        env.np_random = Scripted(np.append(script, noise.state[-1]))
        observations, actions, rewards, infos = play(
            env,
            lambda seen, done: int(policy.act(np.array(seen), np.array(done, dtype=int)).argmax()),
        )
        y = expected.observations if tables.rewards_by_observation else 0
        earned = tables.reward[np.arange(L), expected.states[:L], y, expected.actions]
        agree += (
            infos[-1]["latent_states"].tolist() == expected.states.tolist()
            and observations[:-1] == expected.observations.tolist()
            and observations[-1] == observations[-2]
            and actions == expected.actions.tolist()
            and np.allclose(rewards, tables.scale * earned + tables.shift, atol=1e-12)
        )
        with raises(HOMDPError, "step"):
            env.step(0)
    return agree


PLANTED = {
    "emissions of another action": lambda m: m._replace(emission=np.roll(m.emission, 1, axis=1)),
    "emissions one step late": lambda m: m._replace(emission=np.roll(m.emission, 1, axis=0)),
    "transitions one step late": lambda m: m._replace(transition=np.roll(m.transition, 1, axis=0)),
    "rewards of another observation": lambda m: m._replace(reward=np.roll(m.reward, 1, axis=2)),
    "no terminal states": lambda m: m._replace(terminal=np.zeros_like(m.terminal)),
    "other units": lambda m: m._replace(shift=np.array(0.0)),
}


@pytest.mark.parametrize("kinds", ["", "ta", "toy"])
def test_environments_of_full_ranks(kinds):
    """Steps, previous actions, observations, ends and units as in the reference simulation."""
    for seed in range(2):
        pomdp = ending_pomdp(seed, X=3, H=4, kinds=kinds)
        pomdp = pomdp._replace(scale=np.array(5.0), shift=np.array(-2.0))
        assert replayed(world_of(pomdp), pomdp) == 200


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_planted_bugs_are_caught(planted):
    pomdp = ending_pomdp(0, X=3, H=4, kinds="toy")
    pomdp = pomdp._replace(scale=np.array(5.0), shift=np.array(-2.0))
    assert replayed(world_of(planted(pomdp)), pomdp) < 190


def test_the_return_is_the_sum_of_the_rewards_before_the_end():
    pomdp = ending_pomdp(0, H=4)
    pomdp = pomdp._replace(scale=np.array(5.0), shift=np.array(-2.0))
    sparse, dense = (HOMDPEnv(world_of(pomdp), per_step=per_step) for per_step in (False, True))
    lengths = set()
    for seed in range(50):
        (_, _, total, _), (_, done, rewards, _) = (
            play(env, lambda _, done: len(done) % 2, seed) for env in (sparse, dense)
        )
        lengths.add(len(done))
        assert not any(total[:-1])
        assert total[-1] == pytest.approx(sum(rewards), abs=1e-12)
    assert len(lengths) > 2
    env = HOMDPEnv(world_of(pomdp), render_mode="ansi")
    ended = next(seed for seed in range(50) if len(play(env, lambda *_: 0, seed)[1]) == 2)
    play(env, lambda *_: 0, ended)
    lines = env.render().splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("latent states: ")
    assert lines[-1].split(";")[0].endswith(", x2")
    check_env(env, skip_render_check=True)


def test_rewards_states_and_the_trailing_observation():
    """Rewards differ between steps; the expected values are read from the table by hand."""
    made = tabular(**QUARTERS).at()
    sparse, dense = HOMDPEnv(made), HOMDPEnv(made, per_step=True)
    for seed in range(30):
        acts = [seed % 2, seed // 2 % 2]
        observations, _, rewards, infos = play(
            sparse, lambda _, done, acts=acts: acts[len(done)], seed
        )
        x = infos[-1]["latent_states"]
        by_hand = [QUARTERS["reward"][0][x[0]][acts[0]], QUARTERS["reward"][1][x[1]][acts[1]]]
        assert rewards == [0.0, sum(by_hand)]
        assert infos[:-1] == [{}, {}]
        assert x.shape == (3,)
        assert x.dtype == np.int64
        assert observations[2] == observations[1]
        again = play(dense, lambda _, done, acts=acts: acts[len(done)], seed)
        assert again[2] == by_hand
        assert np.array_equal(again[3][-1]["latent_states"], x)
        assert again[0] == observations


def test_gymnasium_reports_no_problems():
    for per_step in (False, True):
        for horizon in (1, 3):
            env = HOMDPEnv(
                world("tiger").with_horizon(horizon), per_step=per_step, render_mode="ansi"
            )
            check_env(
                env, skip_render_check=True
            )  # the other modes are tested in tests/models/test_environments.py
            PassiveEnvChecker(env).reset()
            PassiveEnvChecker(env).render()


def test_seeds_and_pickles():
    env = HOMDPEnv(awkward(5))
    first = play(env, lambda *_: 0, seed=3)
    assert first[:2] == play(env, lambda *_: 0, seed=3)[:2]
    others = [tuple(play(env, lambda *_: 0)[3][-1]["latent_states"]) for _ in range(20)]
    assert len(set(others)) > 1
    env.reset(seed=5)
    env.step(0)
    loaded = pickle.loads(pickle.dumps(env))
    for _ in range(4):
        here, there = env.step(1), loaded.step(1)
        assert here[:4] == there[:4]
    assert np.array_equal(here[4]["latent_states"], there[4]["latent_states"])


def test_rendering_uses_names():
    env = HOMDPEnv(world("tiger").with_horizon(2), render_mode="ansi")
    env.np_random = Scripted(
        [0.1, 0.1, 0.1, 0.9, 0.9]
    )  # left, growl left; left, growl right; right
    env.reset()
    assert env.render() == "1. growl left"
    env.step(0)
    assert env.render() == "1. growl left: listen\n2. growl right"
    env.step(2)
    assert env.render() == (
        "1. growl left: listen\n2. growl right: open right\nlatent states: left, left, "
        "right; return 1.9"
    )
    assert HOMDPEnv(world("tiger")).render() is None


def test_pictures_show_the_episode():
    """The size of a picture is the same at every step; the text changes it."""
    env = HOMDPEnv(world("tiger"), render_mode="rgb_array")
    env.reset(seed=0)
    frames = [env.render()]
    for _ in range(4):
        env.step(0)
        frames.append(env.render())
    assert {(frame.shape, str(frame.dtype)) for frame in frames} == {((216, 640, 3), "uint8")}
    dark = [int((frame < 128).sum()) for frame in frames]
    assert all(more > before for before, more in pairwise(dark))
    long = HOMDPEnv(world("tiger").with_horizon(200), render_mode="rgb_array")
    long.reset(seed=0)
    for _ in range(199):
        long.step(0)
    before = long.render()
    long.step(0)
    assert before.shape == (504, 640, 3)
    assert (before != long.render()).any()  # the last lines are shown


def test_invalid_calls_raise():
    env = HOMDPEnv(world("tiger"))
    with raises(HOMDPError, "step"):
        env.step(0)
    env.reset(seed=0)
    for action in (-1, 3, 0.0, "listen", np.array([0, 1])):
        with raises(HOMDPError, "action"):
            env.step(action)
    for action in (np.int32(0), np.array(1), np.int64(2), True):
        env.step(action)
    with raises(HOMDPError, "step"):
        env.step(0)
    with raises(DataError, "world", "render_mode") as found:
        HOMDPEnv(world("tiger").homdp, render_mode="human")
    assert len(found.value.problems) == 2


# Continuous worlds


def test_continuous_worlds_are_environments():
    """States and observations have the shapes of rollouts; Gymnasium's checker passes.

    The same seed gives the same episode.
    """
    for model in (walk(), plane(), hearing("precisions")):
        made = model.draw(jax.random.key(3))
        env, again = HOMDPEnv(made), HOMDPEnv(made, per_step=True)
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", ".*Box observation space (minimum|maximum) value is.*infinity.*"
            )
            check_env(env, skip_render_check=True)
        expected = rollout(jax.random.split(jax.random.key(0), 5), made, uniform_policy(made))
        episodes = episodes_from(env, "uniform", 5, seed=1, model=made)
        assert episodes.observations.shape == expected.observations.shape
        assert episodes.actions.shape == expected.actions.shape
        played = episodes_from(again, "uniform", 5, seed=1, model=model)
        np.testing.assert_array_equal(played.states, episodes.states)
        np.testing.assert_array_equal(played.observations, episodes.observations)


def test_a_continuous_environment_draws_from_the_program():
    """Standardised draws of the walk are standard normal: Kolmogorov's test at 1e-6.

    A wrong scale is caught.
    """
    made = walk().at(noise=0.9)
    episodes = episodes_from(HOMDPEnv(made), "uniform", 1000, seed=5, model=made)
    errors = (episodes.observations - episodes.states[:, :-1]).ravel()
    steps = (np.diff(episodes.states) - np.array([-1.0, 1.0])[episodes.actions]).ravel()
    assert kstest(errors / 1.0, "norm").pvalue > 1e-6
    assert kstest(steps / 0.3, "norm").pvalue > 1e-6
    assert kstest(episodes.states[:, 0], "norm").pvalue > 1e-6
    assert kstest(errors / 1.2, "norm").pvalue < 1e-6
