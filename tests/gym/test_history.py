"""Observations with the whole history, and policies on them."""

import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env

from homdp_ppl import BatchPolicy, DataError, PolicyError, evaluate
from homdp_ppl.gym import HistoryObservation, HOMDPEnv
from tests.continuous.programs import plane
from tests.encodings import ending_pomdp, world_of
from tests.raising import raises
from tests.sensors import worlds
from tests.worlds import Parity, world


def played(made, policy, seed, **options):
    """Episodes of a wrapped environment, next to the observations of a plain one."""
    plain, env = HOMDPEnv(made, **options), HistoryObservation(HOMDPEnv(made, **options))
    (y, _), (v, _) = plain.reset(seed=seed), env.reset(seed=seed)
    seen, done = [y], []
    while True:
        yield seen, done, v, env
        done = [*done, policy(len(done))]
        y, _, over, _, _ = plain.step(done[-1])
        v, _, ended, truncated, info = env.step(done[-1])
        assert (over, truncated) == (ended, False)
        if over:
            assert "latent_states" in info
            before = vector_of(env, seen, done[:-1])
            np.testing.assert_array_equal(v, before)  # the repeated observation is left out
            return
        seen = [*seen, y]


def vector_of(env, seen, done):
    """The expected vector, written out; Gymnasium orders sensors by name."""
    spaces = env.unwrapped.spaces
    H, A = spaces.horizon, len(spaces.actions)
    if isinstance(seen[0], dict):
        rows = [
            np.concatenate([np.eye(len(spaces.sensors[name]))[y[name]] for name in sorted(y)])
            for y in seen
        ]
    else:
        rows = [np.eye(len(spaces.observations))[y] for y in seen]
    rows += [np.zeros(len(rows[0]))] * (H - len(rows))
    taken = [np.eye(A)[a] for a in done] + [np.zeros(A)] * (H - 1 - len(done))
    return np.concatenate([*rows, *taken])


@pytest.mark.parametrize("case", ["one sensor", "joint", "sensors"])
def test_vectors_contain_the_history_so_far(case):
    made = world("tiger") if case == "one sensor" else worlds("plain")[0]
    for seed in range(5):
        for seen, done, v, env in played(made, lambda h: h % 2, seed, sensors=case == "sensors"):
            np.testing.assert_array_equal(v, vector_of(env, seen, done))
            assert env.observation_space.contains(v)


def test_policies_of_several_sensors():
    """The vectors of a policy are those of the environment."""
    asked = []

    def record(vectors):
        asked.extend(vectors)
        return np.full((len(vectors), 2), 0.5)

    env = HistoryObservation(HOMDPEnv(worlds("plain")[0], sensors=True))
    evaluate(env.policy(record), worlds("plain")[0].pomdp)
    known = {tuple(v) for v in asked}
    for seed in range(5):
        for _, _, v, _ in played(worlds("plain")[0], lambda h: h % 2, seed, sensors=True):
            assert tuple(v) in known


def check_wrapped(env):
    """Gymnasium's checks, which warn about every wrapper."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*different from the unwrapped version.*")
        check_env(env, skip_render_check=True)


def test_early_ends():
    made = world_of(ending_pomdp(0, H=4))
    lengths = {len(list(played(made, lambda h, seed=seed: seed % 2, seed))) for seed in range(30)}
    assert len(lengths) > 2


@pytest.mark.filterwarnings("ignore:.*Box observation space.*infinity")
def test_real_observations_are_copied():
    made = plane().draw(jax.random.key(3))
    env, plain = HistoryObservation(HOMDPEnv(made)), HOMDPEnv(made)
    v, y = env.reset(seed=1)[0], plain.reset(seed=1)[0]
    np.testing.assert_allclose(v[: len(y)], y, rtol=1e-6)
    v, y = env.step(1)[0], plain.step(1)[0]
    np.testing.assert_allclose(v[len(y) : 2 * len(y)], y, rtol=1e-6)
    check_wrapped(env)
    with raises(DataError, "env"):
        env.policy(lambda vectors: vectors)


def test_gymnasium_reports_no_problems():
    for horizon in (1, 3):
        env = HistoryObservation(HOMDPEnv(world("tiger").with_horizon(horizon)))
        check_wrapped(env)


def test_policies_on_vectors_have_the_value_of_the_same_rule():
    """A rule that reads the last observation from the vector, against one that is given it."""
    made = world("tiger")
    env = HistoryObservation(HOMDPEnv(made))
    H, Y, A = made.spaces.horizon, 2, 3
    calls = []

    def parity(vectors):
        calls.append(len(vectors))
        seen = vectors[:, : H * Y].reshape(-1, H, Y)
        done = vectors[:, H * Y :].reshape(-1, H - 1, A)
        total = (seen @ np.arange(Y)).sum(1) + (done @ np.arange(A)).sum(1)
        return np.eye(A)[total.astype(int) % A]

    class Sum:
        def act(self, observations, actions):
            return np.eye(A)[(np.sum(observations) + np.sum(actions)).astype(int) % A]

    policy = env.policy(parity)
    assert isinstance(policy, BatchPolicy)
    assert evaluate(policy, made.pomdp) == evaluate(Sum(), made.pomdp)
    assert [n for n in calls if n > 1] == [2**h for h in range(1, H + 1)]  # once per step
    assert not isinstance(Parity(2), BatchPolicy)


class Batch:
    """A policy whose answers in a batch are given by a function."""

    def __init__(self, answer):
        self.answer = answer

    def act(self, observations, actions):
        """Always the first action."""
        return np.array([1.0, 0.0, 0.0])

    def act_batch(self, observations, actions):
        """The answers of the function."""
        return self.answer(len(observations))


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: None,
        lambda n: "left",
        lambda n: np.eye(3)[0],
        lambda n: np.full((n, 2), 0.5),
        lambda n: np.full((n, 3), 0.5),
        lambda n: np.full((n, 3), np.nan),
        lambda n: np.tile([1.5, -0.5, 0.0], (n, 1)),
        lambda n: np.eye(3)[np.arange(n) % 3],  # not the answer of act
    ],
)
def test_invalid_answers_in_batches(answer):
    with raises(PolicyError) as found:
        evaluate(Batch(answer), world("tiger").pomdp)
    assert found.value.problems[0].where in ("act", "act_batch")


def test_rounding_in_batches_is_accepted():
    def rounded(n):
        return np.tile([1 - 3e-7, 3e-7, 0.0], (n, 1))

    first, pomdp = Batch(lambda n: np.eye(3)[[0] * n]), world("tiger").pomdp
    assert evaluate(Batch(rounded), pomdp) == pytest.approx(evaluate(first, pomdp), abs=1e-4)


class Walk(gymnasium.Env):
    """An environment of another library, whose actions start at 1."""

    observation_space, action_space = Discrete(3, start=2), Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        """The first observation is 2."""
        super().reset(seed=seed)
        self.steps = 0
        return 2, {}

    def step(self, action):
        """The second is 3."""
        self.steps += 1
        return 2 + self.steps % 3, 0.0, self.steps == 3, False, {}


def test_environments_of_others():
    env = HistoryObservation(Walk(), horizon=3)
    assert env.reset()[0].tolist() == [1, 0, 0, *[0] * 6, *[0] * 4]
    assert env.step(2)[0].tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0]
    assert env.step(1)[0].tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0]
    last = env.step(1)
    assert last[0].tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0]
    assert last[2]
    with raises(DataError, "horizon"):
        HistoryObservation(Walk())
    short = HistoryObservation(Walk(), horizon=2)
    short.reset()
    short.step(1)
    with raises(DataError, "horizon"):
        short.step(1)
    with raises(DataError, "env"):
        short.policy(lambda vectors: vectors)
    with raises(DataError, "env"):
        HistoryObservation("homdp/Tiger-v0")
    wrong = Walk()
    wrong.action_space = Box(0, 1, (1,))
    with raises(DataError, "horizon"):  # found by fuzzing: a ValueError of NumPy
        HistoryObservation(Walk(), horizon=10**18)
    with raises(DataError, "env.action_space", "horizon"):
        HistoryObservation(wrong, horizon=0)
    env = HistoryObservation(HOMDPEnv(world("tiger")))
    with raises(DataError, "chances"):
        env.policy(3)
    with raises(PolicyError, "history"):
        env.policy(lambda vectors: vectors).act([0] * 9, [0] * 8)
