"""Episodes from environments that reveal their states at the end."""

from functools import cache

import gymnasium
import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from homdp_ppl import (
    POMDP,
    Counts,
    DataError,
    Episodes,
    PolicyError,
    explorers,
    posterior,
    tabular,
    uniform_policy,
)
from homdp_ppl.core.randomness import choose
from homdp_ppl.gym import HOMDPEnv, episodes_from
from homdp_ppl.planners import history_tree
from tests.chances import ALARM, believable, frequency_errors
from tests.continuous.programs import plane, walk
from tests.encodings import ending_pomdp, world_of
from tests.planners.exact import full
from tests.raising import raises
from tests.worlds import Parity, Spy, awkward, random_policy, world


class Machine(gymnasium.Env):
    """A machine with hidden wear until it is repaired; the wear is revealed after the episode.

    Observations and actions are not numbered from 0. The environment keeps its own counts.
    """

    observation_space = Discrete(2, start=10)  # 10: hum, 11: rattle
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
        """The sound of the machine; the sound after the last action is not counted."""
        rattles = int(self.np_random.random() < (0.1, 0.4, 0.9)[self.wear])
        self.sounds[self.wear, rattles] += len(self.log) <= self.STEPS
        return 10 + rattles

    def step(self, action):
        """Run or repair; the last step reveals the states."""
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
    """A declaration of the machine; everything but the initial distribution is unknown."""
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


def test_a_posterior_from_a_custom_environment():
    """The posterior equals that of the environment's own counts.

    Its means are (1 + n) / (size + n).
    """
    env, model = Machine(), machine()
    episodes = episodes_from(env, "uniform", 40, seed=7, model=model, latent="truth")
    assert [leaf.shape for leaf in (episodes.observations, episodes.actions, episodes.states)] == [
        (40, 5),
        (40, 5),
        (40, 6),
    ]
    counts = model.counts(episodes)
    assert np.array_equal(counts.transition, env.moves)
    assert np.array_equal(counts.emission, env.sounds)
    found, expected = (
        posterior(model, episodes).mean,
        posterior(model, Counts(env.moves, env.sounds)).mean,
    )
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert found.moves(0) == pytest.approx((1 + env.moves) / (3 + env.moves.sum(-1, keepdims=True)))
    assert found.shows(0) == pytest.approx(
        (1 + env.sounds) / (2 + env.sounds.sum(-1, keepdims=True))
    )


def test_a_rule_learns_in_a_custom_environment():
    """Propose, plan, deploy, reveal and update with a Gymnasium environment as the world."""
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


def test_ways_to_specify_latent_states():
    by_key = episodes_from(Machine(), "uniform", 5, latent="truth")
    by_function = episodes_from(
        Machine(), "uniform", 5, latent=lambda infos: [info["wear"] for info in infos]
    )
    assert np.array_equal(by_key.states, by_function.states)
    assert by_key.states.dtype == np.int64


class Frugal(Machine):
    """Reuses one dictionary and one array."""

    def __init__(self):
        super().__init__()
        self.info = {"truth": np.zeros(6, dtype=np.int32)}

    def step(self, action):
        """Return the same outcome in the reused objects."""
        observation, reward, over, truncated, info = super().step(action)
        self.info["truth"][: len(self.log)] = self.log
        self.info["wear"] = info["wear"]
        return observation, reward, over, truncated, self.info


def test_infos_are_copied_before_the_environment_overwrites_them():
    for latent in ("truth", lambda infos: [0, *(info["wear"] for info in infos[1:])]):
        plain, frugal = (
            episodes_from(env, "uniform", 5, latent=latent) for env in (Machine(), Frugal())
        )
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
    """First observations after which the first actions do not follow the policy.

    False-alarm rate ALARM in total.
    """
    errors = []
    for y in range(len(policy.start)):
        taken = episodes.actions[episodes.observations[:, 0] == y, 0]
        chances = policy.act([y], [])
        for a, chance in enumerate(chances):
            if not believable(taken == a, chance, ALARM / (len(chances) * len(policy.start))):
                errors.append((y, a, (taken == a).sum(), chance))
    return errors


def test_collected_episodes_follow_the_world_and_the_policy():
    """False-alarm rate 1e-6 for the world and 1e-6 for the policy.

    Planted: another policy, and an environment that observes late.
    """
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


def test_the_policy_has_its_own_random_numbers(monkeypatch):
    """The environment draws none of the numbers that choose actions.

    Planted: one stream for both.
    """
    fresh, chosen = np.random.default_rng, []
    drawn = fresh(3).random(1000)  # in 50 episodes the environment needs half of them

    def overheard(chances, number):
        chosen.append(number)
        return choose(chances, number)

    def shared():
        """How many of the numbers that chose an action the environment draws as well."""
        chosen.clear()
        env = HOMDPEnv(world("tiger"))
        episodes_from(env, "uniform", 50, seed=3)
        assert len(chosen) == 200
        assert env.np_random.random() in drawn
        return np.isin(chosen, drawn).sum()

    monkeypatch.setattr("homdp_ppl.gym.episodes.choose", overheard)
    assert shared() == 0
    monkeypatch.setattr("numpy.random.default_rng", lambda seed: fresh(seed[0]))
    assert shared() == 200


def test_a_policy_sees_observations_and_actions_only():
    spy = Spy([0.25, 0.75])
    episodes = episodes_from(Machine(), spy, 1, latent="truth")
    assert [[a.shape for a in args] for args in spy.handed] == [
        [(h,), (h - 1,)] for h in range(1, 6)
    ]
    assert np.array_equal(spy.handed[-1][0], episodes.observations[0])
    assert np.array_equal(spy.handed[-1][1], episodes.actions[0, :-1])


class Early(Machine):
    """Ends when the machine breaks."""

    def step(self, action):
        """Run until the machine breaks."""
        observation, reward, over, truncated, info = super().step(action)
        over = over or self.wear == 2
        return observation, reward, over, truncated, {**info, "truth": list(self.log)}


@cache
def fragile():
    """A world of the machine in which being broken is a terminal state."""
    wear = [[[0.5, 0.5, 0], [1, 0, 0]], [[0, 0.5, 0.5], [1, 0, 0]], [[0, 0, 1], [0, 0, 1]]]
    return world_of(
        POMDP.of(
            [1, 0, 0],
            wear,
            [[0.9, 0.1, 0], [0.6, 0.4, 0], [0, 0, 1]],
            reward=[[1, 1], [1, 1], [0, 0]],
            horizon=5,
            terminal=[False, False, True],
        )
    )


def test_episodes_end_in_terminal_states():
    """The environment does not have the observation that stands for the end."""
    for model in (fragile(), fragile().homdp, fragile().pomdp, fragile().spaces):
        episodes = episodes_from(Early(), "uniform", 200, seed=1, model=model, latent="truth")
        assert set(zip(episodes.ended.tolist(), episodes.length.tolist(), strict=True)) == {
            ("horizon", 5),
            ("terminal", 5),
            ("terminal", 4),
            ("terminal", 3),
            ("terminal", 2),
        }
        for episode in episodes:
            assert (episode.states[:-1] < 2).all()
            assert (episode.states[-1] == 2) == (episode.ended == "terminal")


def test_both_directions_with_terminal_states():
    """Frequencies of collected episodes agree with the model; planted: other emissions."""
    pomdp = ending_pomdp(2, H=4, kinds="a")
    made = world_of(pomdp)
    episodes = episodes_from(HOMDPEnv(made), "uniform", 3000, model=made)
    assert (episodes.ended == "terminal").any()
    assert Episodes.of(list(episodes), made).same_as(episodes)

    def errors(model):
        T, O, _ = full(model)  # noqa: E741
        pairs = {}
        for episode in episodes:
            before = model.sizes[2]
            columns = episode.states[:-1], episode.observations, episode.actions, episode.states[1:]
            for x, y, a, z in zip(*columns, strict=True):
                pairs.setdefault(("O", before, x), []).append(y)
                pairs.setdefault(("T", x, a), []).append(z)
                before = a
        wrong = []
        for (table, *place), values in pairs.items():
            row = O[0][tuple(place)] if table == "O" else T[0][tuple(place)]
            for k, chance in enumerate(row):
                if not believable(np.array(values) == k, chance, ALARM / (len(pairs) * len(row))):
                    wrong.append((table, *place, k))
        return wrong

    assert errors(pomdp) == []
    assert errors(pomdp._replace(emission=np.roll(pomdp.emission, 1, axis=1))) != []


class Endless(Machine):
    """Never ends."""

    STEPS = 10**9


def broken(**changes):
    """A machine with one invalid part."""
    return type("Broken", (Machine,), changes)()


@pytest.mark.parametrize(
    ("env", "options", "words"),
    [
        (
            Early(),
            {},
            "length[episode 2]",
        ),
        (
            Early(),
            {"horizon": 5},
            "length[episode 2]",
        ),
        (
            Endless(),
            {"horizon": 5},
            "length",
        ),
        (Machine(), {"horizon": 4}, "length"),
        (Machine(), {"horizon": 6}, "length"),
        (
            TimeLimit(Machine(), 3),
            {},
            "latent[episode 0]",
        ),
        (
            Machine(),
            {"latent": lambda infos: [info["wear"] for info in infos[1:]]},
            "latent states",
        ),
        (
            Machine(),
            {"latent": lambda infos: [info["wear"] / 2 for info in infos]},
            "latent states",
        ),
        (
            Machine(),
            {"latent": lambda infos: [info["wear"] - 1 for info in infos]},
            "latent states",
        ),
        (Machine(), {"latent": lambda infos: 0}, "latent states"),
        (
            Machine(),
            {"latent": lambda infos: [7 for _ in infos], "horizon": 5},
            "states",
        ),
        (
            broken(action_space=Discrete(3)),
            {"horizon": 5},
            "env.action_space",
        ),
        (
            broken(listen=lambda self: 12),
            {},
            "observation[episode 0, step 1]",
        ),
        (
            broken(observation_space=Box(0, 1)),
            {},
            "env.observation_space",
        ),
        (
            Machine(),
            {"n": 0, "seed": -1},
            "n",
        ),
        (gymnasium.vector.SyncVectorEnv([Machine]), {}, "env"),
        ("homdp/Tiger-v0", {}, "env"),
    ],
)
def test_invalid_environments_raise(env, options, words):
    given = {"n": 30, "latent": "truth", **options}
    horizon = given.pop("horizon", None)
    with raises(DataError, words):
        episodes_from(
            env, "uniform", model=machine().with_horizon(horizon) if horizon else None, **given
        )


class Unstoppable(Early):
    """Continues after the machine breaks."""

    def step(self, action):
        """Run for five steps, without repair."""
        observation, reward, _, truncated, info = super().step(-1)
        return observation, reward, len(self.log) > self.STEPS, truncated, info


class Impatient(Early):
    """Ends after three steps."""

    def step(self, action):
        """Run for three steps."""
        observation, reward, over, truncated, info = super().step(action)
        return observation, reward, over or len(self.log) > 3, truncated, info


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (Unstoppable(), "states"),
        (Impatient(), "ended"),
        (TimeLimit(Early(), 3), "length"),
        (Endless(), "length"),
    ],
)
def test_ends_that_contradict_the_terminal_states_raise(env, words):
    with raises(DataError, words):
        episodes_from(env, "uniform", 30, model=fragile(), latent="truth")


def test_an_endless_environment_without_a_model_raises(monkeypatch):
    monkeypatch.setattr("homdp_ppl.gym.episodes.LONGEST", 50)
    with raises(DataError, "length"):
        episodes_from(Endless(), "uniform", 1, latent="truth")


def test_invalid_policies_and_models_raise():
    for nothing in ("random", Parity):
        with raises(PolicyError, "policy"):
            episodes_from(Machine(), nothing, 1, latent="truth")
    with raises(PolicyError, "policy"):
        episodes_from(Machine(), uniform_policy(world("tiger")), 1, latent="truth")
    with raises(DataError, "model"):
        episodes_from(Machine(), "uniform", 1, model="machine")


def test_boxes_of_the_wrong_shape_raise():
    made = walk().at(noise=0.9)
    env = HOMDPEnv(plane().draw(jax.random.key(0)))
    with raises(DataError, "env.observation_space", "env.action_space"):
        episodes_from(env, "uniform", 1, model=made)
    with raises(DataError, "env.observation_space"):
        episodes_from(HOMDPEnv(made), "uniform", 1)
    with raises(DataError, "latent states"):
        episodes_from(HOMDPEnv(made), "uniform", 1, model=made, latent=lambda infos: np.zeros(2))
    with raises(DataError, "latent states"):
        episodes_from(HOMDPEnv(made), "uniform", 1, model=made, latent=lambda infos: None)
