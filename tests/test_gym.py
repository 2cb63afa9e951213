"""Worlds as Gymnasium environments, and episodes from environments that others wrote."""

import pickle
import warnings
from collections import Counter
from functools import cache
from itertools import product

import gymnasium
import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from scipy.stats import binom, kstest

from homdp_ppl import Counts, DataError, HOMDPError, PolicyError, explorers, posterior, rollout, tabular, uniform_policy
from homdp_ppl.episode import Noise, play_by_asking
from homdp_ppl.gym import HOMDPEnv, episodes_from
from homdp_ppl.gym.dynamics import TableDynamics
from homdp_ppl.planners import history_tree
from tests.continuous.programs import hearing, plane, walk
from tests.statistics import LEVEL, frequency_errors
from tests.worlds import Parity, random_policy, world


class Scripted:
    """Stands for a NumPy generator, and gives numbers that were chosen beforehand."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def random(self):
        """The next of them."""
        return next(self.numbers)


def play(env, choose_action, seed=None):
    """One episode by hand: observations y_1 .. y_H and the trailing one, actions, rewards, infos of reset and steps."""
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
    "reward": np.array([[[0.0, 0.25], [0.5, 1.0]], [[1.0, 0.0], [0.25, 0.75]]]),  # another table at each of the two steps
    "horizon": 2,
}


def law(env, actions):
    """How many of the 4^5 equally likely inputs lead to each (x_1, y_1, x_2, y_2, x_3), the actions being fixed."""
    found = Counter()
    for numbers in product((np.arange(4) + 0.5) / 4, repeat=5):
        env.np_random = Scripted(numbers)
        observations, _, _, infos = play(env, lambda _, done: actions[len(done)])
        x = infos[-1]["latent_states"]
        found[x[0], observations[0], x[1], observations[1], x[2]] += 1
    return found


def wrong_entries(env):
    """Outcomes whose chance is not rho(x_1) O(y_1|x_1) T(x_2|x_1,a_1) O(y_2|x_2) T(x_3|x_2,a_2), multiplied out here."""
    T, O, rho = QUARTERS["T"], QUARTERS["O"], QUARTERS["initial"]  # noqa: E741
    wrong = []
    for a in ((0, 1), (1, 0)):  # every row of T at either step
        found = law(env, a)
        for x1, y1, x2, y2, x3 in product(range(2), range(3), range(2), range(3), range(2)):
            chance = rho[x1] * O[x1, y1] * T[x1, a[0], x2] * O[x2, y2] * T[x2, a[1], x3]
            if found[x1, y1, x2, y2, x3] != chance * 4**5:
                wrong.append((a, x1, y1, x2, y2, x3))
    return wrong


def test_the_law_of_an_episode_is_exact():
    """Probabilities in quarters, so that all random inputs can be enumerated: five draws in two steps."""
    assert wrong_entries(HOMDPEnv(tabular(**QUARTERS).at())) == []


def test_a_wrong_law_is_caught():
    """Planted bugs: observations of the state before, and emissions that take the first state's row."""
    made = tabular(**QUARTERS).at()

    class Late(TableDynamics):
        def observe(self, generator, state):
            self.before, state = state, getattr(self, "before", state)
            return super().observe(generator, state)

        def first(self, generator):
            self.__dict__.pop("before", None)
            return super().first(generator)

    late = HOMDPEnv(made)
    late._dynamics = Late(made)
    slightly = made.pomdp.emission.copy()
    slightly[0] = [0.5, 0.25, 0.25]
    for planted in (late, HOMDPEnv(tabular(**{**QUARTERS, "O": slightly}).at())):
        assert wrong_entries(planted) != []


def awkward(horizon):
    """Thirds, sevenths, impossible outcomes at either end, and rows that sum to a little less than one."""
    T = np.array([[[1, 2, 0], [0, 3, 0]], [[0, 1, 2], [3, 0, 0]], [[1, 1, 1], [0, 0, 3]]]) / 3
    O = np.array([[1, 6, 0, 0], [0, 2, 5, 0], [3, 1, 1, 2]]) / 7 * (1 - 1e-10)  # noqa: E741
    return tabular(T=T, O=O, initial=[0, 0.9, 0.1], reward=np.eye(3)[:, :2], horizon=horizon).at()


@pytest.mark.parametrize("make", [lambda: world("tiger"), lambda: awkward(6)], ids=["tiger", "awkward"])
def test_the_same_luck_gives_the_episode_of_rollout(make):
    made = make()
    H, A = made.spaces.horizon, len(made.spaces.actions)
    policy = Parity(A)
    generator = np.random.default_rng(0)
    env = HOMDPEnv(made)
    for k in range(200):
        luck = Noise(generator.random(H + 1), generator.random(H), generator.random(H))
        if k < 20:  # the edges of the unit interval
            luck = Noise(*(np.round(u) * (1 - 2**-53) for u in luck))
        expected = play_by_asking(made.pomdp, policy, luck, made.spaces)
        env.np_random = Scripted(np.append(np.stack([luck.state[:-1], luck.observation], axis=1).ravel(), luck.state[-1]))
        observations, actions, rewards, infos = play(
            env, lambda seen, done: int(policy.act(np.array(seen), np.array(done, dtype=int)).argmax())
        )
        assert np.array_equal(infos[-1]["latent_states"], expected.states)
        assert np.array_equal(observations[:-1], expected.observations)
        assert np.array_equal(actions, expected.actions)
        assert rewards[-1] == made.homdp.returns(expected)


def test_rewards_states_and_the_trailing_observation():
    """Rewards that differ from step to step; the golden values are read off the table by hand."""
    made = tabular(**QUARTERS).at()
    sparse, dense = HOMDPEnv(made), HOMDPEnv(made, per_step=True)
    for seed in range(30):
        acts = [seed % 2, seed // 2 % 2]
        observations, _, rewards, infos = play(sparse, lambda _, done, acts=acts: acts[len(done)], seed)
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


def test_gymnasium_finds_nothing_to_complain_about():
    for per_step in (False, True):
        for horizon in (1, 3):
            env = HOMDPEnv(world("tiger").with_horizon(horizon), per_step=per_step, render_mode="ansi")
            check_env(env, skip_render_check=True)  # the other modes are rendered in tests/models/test_environments.py
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
    twin = pickle.loads(pickle.dumps(env))
    for _ in range(4):
        here, there = env.step(1), twin.step(1)
        assert here[:4] == there[:4]
    assert np.array_equal(here[4]["latent_states"], there[4]["latent_states"])


def test_rendering_tells_the_episode_in_names():
    env = HOMDPEnv(world("tiger").with_horizon(2), render_mode="ansi")
    env.np_random = Scripted([0.1, 0.1, 0.1, 0.9, 0.9])  # left, growl left; left, growl right; right
    env.reset()
    assert env.render() == "1. growl left"
    env.step(0)
    assert env.render() == "1. growl left: listen\n2. growl right"
    env.step(2)
    assert env.render() == "1. growl left: listen\n2. growl right: open right\nlatent states: left, left, right; return 1.9"
    assert HOMDPEnv(world("tiger")).render() is None


def test_mistakes_are_answered():
    env = HOMDPEnv(world("tiger"))
    with pytest.raises(HOMDPError, match=r"before the first reset.*Call reset\(\)"):
        env.step(0)
    env.reset(seed=0)
    for action in (-1, 3, 0.0, "listen", np.array([0, 1])):
        with pytest.raises(HOMDPError, match=r"an integer in 0\.\.2"):
            env.step(action)
    for action in (np.int32(0), np.array(1), np.int64(2), True):
        env.step(action)
    with pytest.raises(HOMDPError, match=r"after the last, number 4.*Call reset\(\)"):
        env.step(0)
    with pytest.raises(DataError, match=r"\.at\(\.\.\.\)") as found:
        HOMDPEnv(world("tiger").homdp, render_mode="human")
    assert len(found.value.problems) == 2


# The opposite direction: an environment that knows nothing of this toolkit.


class Machine(gymnasium.Env):
    """A machine that wears out unseen, until it is repaired; the workshop tells afterwards how worn it was.

    Observations and actions are numbered from elsewhere than 0. It keeps its own tallies.
    """

    observation_space = Discrete(2, start=10)  # 10: it hums, 11: it rattles
    action_space = Discrete(2, start=-1)  # -1: run, 0: repair
    STEPS = 5

    def __init__(self):
        self.moves = np.zeros((3, 2, 3), dtype=int)
        self.sounds = np.zeros((3, 2), dtype=int)

    def reset(self, *, seed=None, options=None):
        """A new machine."""
        super().reset(seed=seed)
        self.wear = 0
        self.log = [0]
        return self.listen(), {"wear": 0}

    def listen(self):
        """What it sounds like; the sound after the last action is not tallied."""
        rattles = int(self.np_random.random() < (0.1, 0.4, 0.9)[self.wear])
        self.sounds[self.wear, rattles] += len(self.log) <= self.STEPS
        return 10 + rattles

    def step(self, action):
        """Run or repair; the last step tells the truth."""
        assert self.action_space.contains(action)
        before = self.wear
        self.wear = 0 if action == 0 else min(2, before + int(self.np_random.random() < 0.5))
        self.moves[before, action + 1, self.wear] += 1
        self.log.append(self.wear)
        over = len(self.log) > self.STEPS
        info = {"truth": list(self.log)} if over else {}
        return self.listen(), float(before < 2), over, False, {"wear": self.wear, **info}


@cache
def machine():
    """A declaration of the machine, with everything unknown but how it starts."""
    return tabular(
        T=dist.Dirichlet(np.ones((3, 2, 3))),
        O=dist.Dirichlet(np.ones((3, 2))),
        initial=[1, 0, 0],
        reward=[[1, 1], [1, 1], [0, 0]],
        horizon=5,
        states=("new", "worn", "broken"),
        observations=("hums", "rattles"),
        actions=("run", "repair"),
        name="machine",
    )


def test_a_foreign_environment_feeds_the_posterior():
    """The posterior is that of the environment's own tallies, and its means are (1 + n) / (size + n), written out."""
    env, model = Machine(), machine()
    episodes = episodes_from(env, "uniform", 40, seed=7, model=model, latent="truth")
    assert [leaf.shape for leaf in (episodes.observations, episodes.actions, episodes.states)] == [(40, 5), (40, 5), (40, 6)]
    counts = model.counts(episodes)
    assert np.array_equal(counts.transition, env.moves)
    assert np.array_equal(counts.emission, env.sounds)
    found, expected = posterior(model, episodes).mean, posterior(model, Counts(env.moves, env.sounds)).mean
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert found.transition == pytest.approx((1 + env.moves) / (3 + env.moves.sum(-1, keepdims=True)))
    assert found.emission == pytest.approx((1 + env.sounds) / (2 + env.sounds.sum(-1, keepdims=True)))


def test_a_rule_learns_in_a_foreign_environment():
    """Propose, plan, deploy, reveal, update, with a Gymnasium environment where the world stands otherwise."""
    env, model, rule, planner = Machine(), machine(), explorers.greedy(), history_tree()
    state = rule.init(model, 3)
    for k in range(3):
        proposal = rule.propose(None, state)
        plan = planner(type(proposal.models)(*(table[0] for table in proposal.models)))
        (episode,) = episodes_from(env, plan.policy, 1, seed=k, model=model, latent="truth")
        state = rule.update(state, episode)
    assert np.array_equal(state.counts.transition, env.moves)
    assert np.array_equal(state.counts.emission, env.sounds)
    assert state.played == 3


def test_latent_states_are_found_in_many_ways():
    by_key = episodes_from(Machine(), "uniform", 5, latent="truth")
    by_function = episodes_from(Machine(), "uniform", 5, latent=lambda infos: [info["wear"] for info in infos])
    assert np.array_equal(by_key.states, by_function.states)
    assert by_key.states.dtype == np.int64


class Frugal(Machine):
    """Uses one dictionary and one array again and again."""

    def __init__(self):
        super().__init__()
        self.info = {"truth": np.zeros(6, dtype=np.int32)}

    def step(self, action):
        """The same outcome in the same places."""
        observation, reward, over, truncated, info = super().step(action)
        self.info["truth"][: len(self.log)] = self.log
        self.info["wear"] = info["wear"]
        return observation, reward, over, truncated, self.info


def test_what_an_environment_overwrites_is_copied_in_time():
    for latent in ("truth", lambda infos: [0, *(info["wear"] for info in infos[1:])]):
        plain, frugal = (episodes_from(env, "uniform", 5, latent=latent) for env in (Machine(), Frugal()))
        assert np.array_equal(plain.states, frugal.states)
        assert frugal.states.dtype == np.int64


def test_wrappers_and_undeclared_models_change_nothing():
    made = world("tiger")
    plain = episodes_from(HOMDPEnv(made), random_policy(made.spaces, 0), 20, seed=4, model=made)
    wrapped = TimeLimit(OrderEnforcing(PassiveEnvChecker(HOMDPEnv(made))), 4)
    for again in (
        episodes_from(wrapped, random_policy(made.spaces, 0), 20, seed=4),
        episodes_from(HOMDPEnv(made), random_policy(made.spaces, 0), 20, seed=4, model=made.spaces),
    ):
        assert np.array_equal(plain.states, again.states)
        assert np.array_equal(plain.observations, again.observations)
        assert np.array_equal(plain.actions, again.actions)
    other = episodes_from(HOMDPEnv(made), random_policy(made.spaces, 0), 20, seed=5)
    assert not np.array_equal(plain.states, other.states)


def policy_errors(episodes, policy):
    """First observations after which the first actions are not those of the policy; each tail at LEVEL / 2 of all tests."""
    errors = []
    for y in range(len(policy.start)):
        taken = episodes.actions[episodes.observations[:, 0] == y, 0]
        chances = policy.act([y], [])
        for a, chance in enumerate(chances):
            count = (taken == a).sum()
            tail = min(binom.cdf(count, len(taken), chance), binom.sf(count - 1, len(taken), chance))
            if tail < LEVEL / (2 * len(chances) * len(policy.start)):
                errors.append((y, a, count, chance))
    return errors


def test_collected_episodes_follow_the_world_and_the_policy():
    """False alarm: 1e-6 for the world, 1e-6 for the policy. Planted: another policy, and an environment that observes late."""
    made = awkward(4)
    policy, another = random_policy(made.spaces, 0), random_policy(made.spaces, 1)
    episodes = episodes_from(HOMDPEnv(made), policy, 600, model=made)
    assert frequency_errors(episodes, made.pomdp) == []
    assert policy_errors(episodes, policy) == []
    assert policy_errors(episodes, another) != []

    class Late(HOMDPEnv):
        def step(self, action):
            observation, *rest = super().step(action)
            self.last, observation = observation, getattr(self, "last", observation)
            return observation, *rest

    assert frequency_errors(episodes_from(Late(made), policy, 600), made.pomdp) != []


def test_the_policy_has_luck_of_its_own():
    """The numbers that choose actions are none of those that the environment draws from the same seed."""
    drawn = []

    class Overheard(TableDynamics):
        def first(self, generator):
            drawn.append(generator.bit_generator.state["state"]["state"])
            return super().first(generator)

        def observe(self, generator, state):
            drawn.append(generator.bit_generator.state["state"]["state"])
            return super().observe(generator, state)

        def move(self, generator, state, action):
            drawn.append(generator.bit_generator.state["state"]["state"])
            return super().move(generator, state, action)

    env = HOMDPEnv(world("tiger"))
    env._dynamics = Overheard(world("tiger"))
    episodes_from(env, "uniform", 50, seed=3)
    policy = np.random.default_rng([3, 1])
    assert policy.bit_generator.state["state"]["state"] not in drawn
    assert np.random.default_rng(3).bit_generator.state["state"]["state"] == drawn[0]


def test_a_policy_sees_observations_and_actions_only():
    handed = []

    class Spy:
        def act(self, *args, **kwargs):
            assert not kwargs
            handed.append([np.array(a) for a in args])
            for array in args:
                array[...] = 1
            return np.array([0.25, 0.75])

    episodes = episodes_from(Machine(), Spy(), 1, latent="truth")
    assert [[a.shape for a in args] for args in handed] == [[(h,), (h - 1,)] for h in range(1, 6)]
    assert np.array_equal(handed[-1][0], episodes.observations[0])
    assert np.array_equal(handed[-1][1], episodes.actions[0, :-1])


class Early(Machine):
    """Ends when it is broken."""

    def step(self, action):
        """As before, until it is broken."""
        observation, reward, over, truncated, info = super().step(action)
        over = over or self.wear == 2
        return observation, reward, over, truncated, {**info, "truth": list(self.log)}


class Endless(Machine):
    """Never ends by itself."""

    STEPS = 10**9


def broken(**changes):
    """A machine of which something is different from what it should be."""
    return type("Broken", (Machine,), changes)()


@pytest.mark.parametrize(
    ("env", "options", "words"),
    [
        (Early(), {}, r"length\[episode \d+\]: got \d steps; expected \d steps, as in episode 0.*'over'"),
        (Early(), {"horizon": 5}, r"length\[episode \d+\]: got \d steps; expected 5 steps, as declared"),
        (Endless(), {"horizon": 5}, r"no end after 5 steps; expected 5 steps, as declared.*TimeLimit"),
        (Machine(), {"horizon": 4}, "no end after 4 steps"),
        (Machine(), {"horizon": 6}, "got 5 steps; expected 6 steps"),
        (TimeLimit(Machine(), 3), {}, r"latent\[episode 0\]: got an info with 'wear'; expected 'truth' in the last info"),
        (Machine(), {"latent": lambda infos: [info["wear"] for info in infos[1:]]}, "got 5 states.*after the last action"),
        (Machine(), {"latent": lambda infos: [info["wear"] / 2 for info in infos]}, "type float64.*Number the states"),
        (Machine(), {"latent": lambda infos: [info["wear"] - 1 for info in infos]}, "from -1 on; expected 6 integers"),
        (Machine(), {"latent": lambda infos: 0}, r"shape \(\)"),
        (Machine(), {"latent": lambda infos: [7 for _ in infos], "horizon": 5}, r"expected an index in 0\.\.2"),
        (broken(action_space=Discrete(3)), {"horizon": 5}, "env.action_space: got 3 actions; expected 2: run, repair"),
        (broken(listen=lambda self: 12), {}, r"observation\[episode 0, step 1\]: got 12; expected Discrete\(2, start=10\)"),
        (broken(observation_space=Box(0, 1)), {}, r"env.observation_space: got Box.*TransformObservation"),
        (Machine(), {"n": 0, "seed": -1}, "(?s)n: got 0; expected a whole number, at least 1.*seed: got -1"),
        (gymnasium.vector.SyncVectorEnv([Machine]), {}, "not a vector"),
        ("homdp/Tiger-v0", {}, "not its id"),
    ],
)
def test_what_makes_no_episodes_is_refused(env, options, words):
    given = {"n": 30, "latent": "truth", **options}
    horizon = given.pop("horizon", None)
    with pytest.raises(DataError, match=words):
        episodes_from(env, "uniform", model=machine().with_horizon(horizon) if horizon else None, **given)


def test_an_endless_environment_without_a_model_is_given_up(monkeypatch):
    monkeypatch.setattr("homdp_ppl.gym.episodes.LONGEST", 50)
    with pytest.raises(DataError, match="no end after 50 steps"):
        episodes_from(Endless(), "uniform", 1, latent="truth")


def test_policies_and_models_that_are_none_are_refused():
    for nothing in ("random", Parity):
        with pytest.raises(PolicyError, match="pass an instance"):
            episodes_from(Machine(), nothing, 1, latent="truth")
    with pytest.raises(PolicyError, match="2 observations"):
        episodes_from(Machine(), uniform_policy(world("tiger")), 1, latent="truth")
    with pytest.raises(DataError, match="model: got a str; expected a HOMDP, a World, or Spaces"):
        episodes_from(Machine(), "uniform", 1, model="machine")


def test_continuous_worlds_are_environments():
    """States and observations as rollouts have them; the checker of Gymnasium passes; the same seed gives the same episode."""
    for model in (walk(), plane(), hearing("precisions")):
        made = model.draw(jax.random.key(3))
        env, again = HOMDPEnv(made), HOMDPEnv(made, per_step=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*Box observation space (minimum|maximum) value is.*infinity.*")
            check_env(env, skip_render_check=True)
        expected = rollout(jax.random.split(jax.random.key(0), 5), made, uniform_policy(made)).trajectory
        episodes = episodes_from(env, "uniform", 5, seed=1, model=made)
        assert [part.shape for part in episodes.trajectory] == [part.shape for part in expected]
        played = episodes_from(again, "uniform", 5, seed=1, model=model)
        np.testing.assert_array_equal(played.states, episodes.states)
        np.testing.assert_array_equal(played.observations, episodes.observations)


def test_a_continuous_environment_draws_from_the_program():
    """What the walk draws, standardised by its laws, is standard normal: Kolmogorov's test at 1e-6; a wrong scale is caught."""
    made = walk().at(noise=0.9)
    episodes = episodes_from(HOMDPEnv(made), "uniform", 1000, seed=5, model=made)
    errors = (episodes.observations - episodes.states[:, :-1]).ravel()
    steps = (np.diff(episodes.states) - np.array([-1.0, 1.0])[episodes.actions]).ravel()
    assert kstest(errors / 1.0, "norm").pvalue > 1e-6
    assert kstest(steps / 0.3, "norm").pvalue > 1e-6
    assert kstest(episodes.states[:, 0], "norm").pvalue > 1e-6
    assert kstest(errors / 1.2, "norm").pvalue < 1e-6


def test_boxes_that_do_not_fit_are_refused():
    made = walk().at(noise=0.9)
    env = HOMDPEnv(plane().draw(jax.random.key(0)))
    with pytest.raises(DataError, match=r"a Box of shape \(1,\)"):
        episodes_from(env, "uniform", 1, model=made)
    with pytest.raises(DataError, match="a Discrete space"):
        episodes_from(HOMDPEnv(made), "uniform", 1)
    with pytest.raises(DataError, match="latent states"):
        episodes_from(HOMDPEnv(made), "uniform", 1, model=made, latent=lambda infos: np.zeros(2))
