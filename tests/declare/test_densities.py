"""Declarations with continuous spaces: their repr, their errors, and that program, dynamics and
rollouts agree.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from scipy import stats

from homdp_ppl import (
    BlindPolicy,
    DataError,
    DeclarationError,
    Episode,
    GraphPolicy,
    HOMDPError,
    Kernels,
    ParameterError,
    PolicyError,
    Real,
    Trajectory,
    homdp,
    models,
    rollout,
    uniform_policy,
    x64,
)
from tests.continuous.programs import hearing, plane, raw_log_likelihood, walk
from tests.raising import raises
from tests.worlds import Spy

KEYS = jax.random.split(jax.random.key(0), 40)


def test_repr_has_spaces_and_unknown_sites():
    assert repr(walk()) == (
        "HOMDP 'steered_walk': states in R, observations in R, 2 actions, horizon 3\n  "
        "unknown: noise"
    )
    assert "states in R^2" in repr(plane())
    assert "3 states, observations in R" in repr(hearing())
    assert repr(walk().at(noise=0.5)) == "World 'steered_walk' at noise=0.5"


@pytest.mark.parametrize(
    "model",
    [walk, pytest.param(plane, marks=pytest.mark.slow), hearing],
    ids=["walk", "plane", "hearing"],
)
def test_program_and_dynamics_have_the_same_density(model):
    """The log density of the NumPyro program, conditioned on hindsight, is the sum of the kernels'
    log densities, plus those of the policy and the prior.
    """
    model = model()
    world = model.draw(jax.random.key(1))
    episodes = rollout(KEYS[:7], world, uniform_policy(world))
    A, H = len(model.spaces.actions), model.horizon
    with x64():
        parameters = model.sample_prior(jax.random.key(2))
        ours = raw_log_likelihood(model, parameters, episodes)
        prior = jax.jit(lambda p: log_density(model.function, (), {}, p)[0])(parameters)
        theirs = jax.jit(lambda p: log_density(model.hindsight(episodes), (), {}, p)[0])(parameters)
        np.testing.assert_allclose(theirs, ours + prior + 7 * H * np.log(1 / A), rtol=1e-10)


def test_the_density_by_hand():
    model = walk()
    states, seen, actions = (
        np.array([0.2, 1.1, 0.3, -0.5]),
        np.array([0.0, 1.0, 0.5]),
        np.array([1, 0, 0]),
    )
    with x64():
        ours = float(
            model.dynamics.log_likelihood({"noise": jnp.asarray(0.4)}, states, seen, actions)
        )
    steps = np.array([1.0, -1.0, -1.0])
    by_hand = stats.norm.logpdf(0.2) + stats.norm.logpdf(states[1:], states[:-1] + steps, 0.3).sum()
    by_hand += stats.norm.logpdf(seen, states[:-1], 0.5).sum()
    assert ours == pytest.approx(by_hand, rel=1e-12)


def test_rollouts_have_the_shapes_and_law_of_the_program():
    """After the action "right" twice, x_3 has mean 2 and variance 1 + 2 * 0.09.

    4,000 episodes, thresholds at 5 standard errors (false alarm: 1e-6).
    """
    world = walk().at(noise=0.4)
    right = BlindPolicy(np.tile([0.0, 1.0], (3, 1)))
    episodes = rollout(jax.random.split(jax.random.key(3), 4000), world, right)
    assert episodes.states.shape == (4000, 4)
    assert episodes.observations.shape == (4000, 3)
    assert (episodes.actions == 1).all()
    variance = 1 + 2 * 0.09
    assert abs(episodes.states[:, 2].mean() - 2) < 5 * np.sqrt(variance / 4000)
    assert abs(episodes.states[:, 2].var() / variance - 1) < 5 * np.sqrt(2 / 4000)
    heard = episodes.observations - episodes.states[:, :-1]
    assert abs(heard.var() / 0.25 - 1) < 5 * np.sqrt(2 / 12000)
    assert abs(heard.var() / 0.16 - 1) > 5 * np.sqrt(
        2 / 12000
    )  # noise instead of 0.1 + noise would be detected
    one = rollout(jax.random.key(3), world, right)
    assert one.states.shape == (4,)
    np.testing.assert_array_equal(walk().returns(one), np.exp(-(one.states[:-1] ** 2)).sum())
    vectors = rollout(KEYS[:5], plane().draw(jax.random.key(0)), uniform_policy(plane()))
    assert vectors.states.shape == (5, 5, 2)
    assert vectors[0].observations.shape == (4, 2)


def test_keys_and_episodes_in_any_number():
    world = walk().at(noise=0.4)
    flat = rollout(KEYS[:6], world, uniform_policy(world))
    assert walk().returns(flat[2]) == walk().returns(flat)[2]
    np.testing.assert_array_equal(walk().returns(list(flat)), walk().returns(flat))
    assert (
        walk().returns(flat[:0]).shape
        == rollout(KEYS[:0], world, uniform_policy(world)).states[:, 0].shape
        == (0,)
    )


def test_another_horizon():
    assert walk().with_horizon(np.int64(2)).horizon == 2
    with raises(DeclarationError, "horizon"):
        walk().with_horizon(0)
    for wrong_type in (2.5, True):
        with raises(HOMDPError, "horizon"):
            walk().with_horizon(wrong_type)


def test_predictive_simulates_the_program():
    with x64():
        drawn = Predictive(plane().program, num_samples=3)(jax.random.key(0), episodes=2)
    assert drawn["x"].shape == (3, 4, 2, 2)
    assert drawn["x_last"].shape == (3, 2, 2)
    assert drawn["push"].shape == (3, 3, 2)


def test_same_key_same_episode_and_policies_see_no_states():
    world, spy = walk().at(noise=0.4), Spy([0.5, 0.5])
    first, again = (rollout(KEYS[:2], world, spy) for _ in range(2))
    np.testing.assert_array_equal(first.states, again.states)
    assert [[part.shape for part in handed] for handed in spy.handed[:6]] == [
        [(h,), (h - 1,)] for h in (1, 1, 2, 2, 3, 3)
    ]
    for handed, episode in zip(spy.handed[4:6], first, strict=True):
        np.testing.assert_array_equal(handed[0], episode.observations)
        np.testing.assert_array_equal(handed[1], episode.actions[:-1])


def declared(**changes):
    """A declaration with one thing changed."""
    kernels = {
        "initial": dist.Normal(0.0, 1.0),
        "transition": lambda x, a: dist.Normal(x, 1.0),
        "emission": lambda x: dist.Normal(x, 1.0),
    } | {k: v for k, v in changes.items() if k in Kernels._fields and k != "reward"}
    spaces = {
        "states": Real(1),
        "observations": Real(1),
        "actions": 2,
        "horizon": 2,
        "reward": lambda x, a: jnp.exp(-(x**2)),
    }
    spaces |= {k: v for k, v in changes.items() if k not in Kernels._fields or k == "reward"}
    return homdp(**spaces)(lambda: Kernels(**kernels))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"horizon": 0}, "an integer of at least 1"),
        ({"reward": np.zeros((2, 2))}, "a function of x and a"),
        ({"reward": lambda x, a: x}, "Clip an unbounded reward"),
        ({"reward": lambda x, a: jnp.stack([x, x])}, "one number"),
        (
            {"initial": dist.ImproperUniform(dist.constraints.real, (), ())},
            "a proper distribution with a density",
        ),
        ({"emission": lambda x: dist.Normal(jnp.stack([x, x]), 1.0)}, "one value of shape ()"),
        ({"emission": lambda x: dist.Poisson(jnp.exp(x))}, "which is discrete"),
        ({"emission": lambda x: x + 1.0}, "Return a distribution"),
        (
            {"emission": lambda x: dist.Normal(x, jnp.where(x > 0, 1.0, jnp.nan))},
            "a draw that is not finite",
        ),
        (
            {"transition": lambda x, a: dist.Normal(x * 1e200, 1.0), "horizon": 4},
            "dynamics that diverge",
        ),
        (
            {"transition": lambda x, a: dist.Normal(x if x > 0 else -x, 1.0)},
            "a Python `if` on a traced value",
        ),
        ({"states": 3}, "a distribution with finite support"),
        ({"transition": lambda x, b, c: dist.Normal(x, 1.0)}, "a function of (x, a)"),
        ({"emission": lambda x, a: dist.Normal(x, 1.0)}, "Add first_emission=lambda x: ..."),
        ({"initial": lambda: dist.Normal(0.0, 1.0)}, "without lambda"),
        ({"transition": np.eye(2)}, "Tables need finitely many states, but these are in R"),
        ({"reward": lambda state: 0.5}, "a function of (x, a)"),
        (
            {"reward": lambda x, a: 1.0 if x > 0 else 0.0},
            "reward; a Python `if` on a traced value",
        ),
        ({"reward": dist.Beta(1.0, 1.0)}, "a function of x and a"),
        ({"observations": 2, "emission": lambda x: dist.Binomial(5, 0.5)}, "the support 0..1"),
        (
            {
                "observations": 2,
                "emission": lambda x: dist.Categorical(probs=jnp.array([0.5, 0.4])),
            },
            "a row that sums to 0.9",
        ),
    ],
)
def test_invalid_declarations(changes, words):
    with pytest.raises(DeclarationError) as error:
        declared(**changes)
    assert any(words in "; ".join(problem) for problem in error.value.problems)


HIDDEN = {
    "states": ("a", "b"),
    "initial": [0.5, 0.5],
    "transition": np.full((2, 2, 2), 0.5),
    "reward": np.eye(2),
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"initial": [0.2, 0.3, 0.5]}, "initial; an array of shape (3,); shape (2,)"),
        ({"initial": [0.2, 0.7]}, "initial; a row that sums to 0.9"),
        (
            {"transition": np.full((2, 1, 2), 0.5)},
            "transition; an array of shape (2, 1, 2); shape (2, 2, 2)",
        ),
        ({"transition": np.full((2, 2, 2), 0.45)}, "transition; a row that sums to 0.9"),
        (
            {"transition": lambda x, a: dist.Bernoulli(1.5 * x)},
            "transition; a row with nan",
        ),
        ({"transition": lambda x, a: dist.Binomial(5, 0.5)}, "the support 0..1"),
        (
            {"reward": [[0.0, np.inf], [1.0, 1.0]]},
            "reward; inf; a finite number; ; a, a1",
        ),
        ({"reward": np.zeros((2, 3, 2))}, "shape (2, 2) or (2, 2, 2)"),
    ],
)
def test_finite_states_are_checked_as_in_finite_declarations(changes, words):
    """Without the check, JAX would silently read beyond the end of a table of another shape, and
    divide rows by their sums.
    """
    with pytest.raises(DeclarationError) as error:
        declared(**HIDDEN | changes)
    assert any(words in "; ".join(problem) for problem in error.value.problems)


def test_a_reward_is_reported_once_per_state_and_action():
    with pytest.raises(DeclarationError) as error:
        declared(**HIDDEN | {"reward": lambda x, a: 2.0 * a})
    assert sorted(problem.at for problem in error.value.problems) == ["a, a1", "b, a1"]


def test_invalid_data_and_parameters():
    model, world = walk(), walk().at(noise=0.4)
    with raises(ParameterError, "site 'noise'"):
        model.at(noise=-1.0)
    with raises(ParameterError, "site 'nois'", "site 'noise'"):
        model.at(nois=1.0)
    with raises(ParameterError, "parameters"):
        jax.jit(lambda noise: model.at(noise=noise).parameters["noise"])(0.5)
    with raises(DataError, "key"):
        model.draw(KEYS[:2])
    bad = Episode(Trajectory(np.array([0.0, np.nan, 0.0]), np.zeros(3, int)), np.zeros(4))
    with raises(DataError, "observations"):
        model.hindsight(bad)
    endless = replace(bad, trajectory=Trajectory(np.full(3, np.inf), np.zeros(3, int)))
    with raises(DataError, "observations"):
        model.hindsight(endless)
    with raises(DataError, "episode"):
        model.hindsight(Episode(Trajectory(np.zeros(3), np.zeros(3, int)), np.zeros(3)))
    with raises(DataError, "actions"):
        model.hindsight(Episode(Trajectory(np.zeros(3), np.full(3, 2)), np.zeros(4)))
    with raises(PolicyError, "policy"):
        rollout(KEYS[0], world, uniform_policy(models.load("tiger")))
    with raises(PolicyError, "act"):
        rollout(KEYS[0], world, BlindPolicy(np.full((3, 3), 1 / 3)))
    unbounded = declared(reward=lambda x, a: jnp.where(jnp.abs(x) < 50, 0.5, x))
    with raises(DataError, "reward"):
        unbounded.returns(Episode(Trajectory(np.zeros(2), np.zeros(2, int)), np.full(3, 99.0)))


def test_continuous_states_accept_graph_policies_if_observations_are_finite():
    """Continuous states with two signals: any graph policy for two observations can act."""
    model = declared(observations=("dim", "bright"), emission=lambda x: dist.Bernoulli(logits=x))
    graph = GraphPolicy(
        np.array([0, 0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones((2, 1, 2), int)
    )
    episodes = rollout(KEYS[:3], model.at(), graph)
    assert episodes.observations.dtype.kind == "i"
    assert (episodes.actions == [0, 1]).all()
