"""Simulation of policies in worlds: noise, information barrier and results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homdp_ppl import (
    DataError,
    Episode,
    Episodes,
    GraphPolicy,
    PolicyError,
    Trajectory,
    rollout,
    tabular,
    uniform_policy,
    x64,
)
from homdp_ppl.core.randomness import choose, noise
from homdp_ppl.core.rollout import play
from tests.raising import raises
from tests.worlds import Parity, Spy, random_policy, world

KEYS = jax.random.split(jax.random.key(0), 50)


def test_shapes_dtypes_and_single_keys():
    made = world("tiger_listen")
    many = rollout(KEYS, made, uniform_policy(made))
    assert many.states.shape == (50, 6)
    assert many.observations.shape == many.actions.shape == (50, 5)
    for part in (many.observations, many.actions, many.states):
        assert np.issubdtype(part.dtype, np.integer)
    assert isinstance(many, Episodes)
    assert many.complete
    one = rollout(KEYS[7], made, uniform_policy(made))
    assert isinstance(one, Episode)
    assert np.array_equal(one.states, many.states[7])
    assert made.homdp.returns(one) == made.homdp.returns(many)[7]
    assert np.array_equal(made.homdp.returns(iter(many)), made.homdp.returns(many))
    assert (
        rollout(KEYS[:0], made, uniform_policy(made)).states.shape
        == rollout(KEYS[:0], made, Parity(3)).states.shape
        == (0, 6)
    )
    old = rollout(jax.random.PRNGKey(3), made, uniform_policy(made))
    assert np.array_equal(old.states, rollout(jax.random.key(3), made, uniform_policy(made)).states)


def test_rollouts_do_not_depend_on_the_precision_of_the_caller():
    made = world("tiger")
    outside = rollout(KEYS, made, uniform_policy(made))
    with x64():
        inside = rollout(KEYS, made, uniform_policy(made))
    assert outside.same_as(inside)


@pytest.mark.parametrize("name", ["tiger", "lock"])
def test_compiled_and_step_by_step_simulations_agree(name):
    made = world(name)
    policy = Parity(len(made.spaces.actions))
    asked = rollout(KEYS, made, policy)
    compiled = rollout(KEYS, made, GraphPolicy.from_policy(policy, made))
    assert asked.same_as(compiled)


def test_policies_with_the_same_key_use_common_random_numbers():
    """As long as two policies take the same actions, the states are the same."""
    made = world("lock")
    one, other = (rollout(KEYS, made, random_policy(made.spaces, seed)) for seed in (0, 1))
    assert np.array_equal(one.states[:, 0], other.states[:, 0])
    same = np.cumprod(one.actions == other.actions, axis=1).astype(bool)
    assert 0 < same.mean() < 1
    assert np.array_equal(one.states[:, 1:][same], other.states[:, 1:][same])


def models_with_equal_observations(seed):
    """Two models whose observations ignore the state, with different latent dynamics."""
    generator = np.random.default_rng(seed)
    signal = np.repeat(generator.dirichlet(np.ones(3), 1), 4, axis=0)
    return [
        tabular(
            T=generator.dirichlet(np.ones(4), (4, 2)),
            O=signal,
            initial=generator.dirichlet(np.ones(4)),
            reward=np.zeros((4, 2)),
            horizon=6,
        )
        .at()
        .pomdp
        for _ in range(2)
    ]


def interference(step) -> tuple[int, int]:
    """Of 1,000 pairs of episodes with equal observations, how many differ in states and actions."""
    differ_states = differ_actions = 0
    for seed in range(4):
        one, other = models_with_equal_observations(seed)
        spaces = one.spaces
        policy = jax.tree.map(jnp.asarray, random_policy(spaces, seed))
        with x64():
            drawn = jax.vmap(lambda k: noise(k, jax.random.fold_in(k, 9), 6))(
                jax.random.split(jax.random.key(seed), 250)
            )
            run = jax.jit(
                lambda tables, drawn, policy=policy: jax.vmap(lambda u: step(tables, policy, u))(
                    drawn
                )
            )
            first, second = run(one, drawn), run(other, drawn)
        assert np.array_equal(first.observations, second.observations)
        differ_states += int((first.states != second.states).any(1).sum())
        differ_actions += int((first.actions != second.actions).any(1).sum())
    return differ_states, differ_actions


def test_latent_states_do_not_interfere():
    states, actions = interference(play)
    assert states > 900
    assert actions == 0


def test_a_leak_of_the_latent_state_is_caught():
    """Planted bug: the noise of actions depends slightly on the first latent state."""

    def leaky(tables, policy, noise):
        hint = choose(tables.initial, noise.state[0]) * 0.05
        return play(tables, policy, noise._replace(action=(noise.action + hint) % 1.0))

    assert interference(leaky)[1] > 10


def test_policies_receive_only_copies_of_the_history():
    made = world("tiger")
    spy = Spy([1.0, 0.0, 0.0])
    episode = rollout(KEYS[0], made, spy)
    assert [[a.shape for a in args] for args in spy.handed] == [
        [(h,), (h - 1,)] for h in range(1, 5)
    ]
    for h, (observations, actions) in enumerate(spy.handed, 1):
        assert np.array_equal(observations, episode.observations[:h])
        assert np.array_equal(actions, episode.actions[: h - 1])
    assert not hasattr(Trajectory(*spy.handed[-1]), "states")


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda w: sum(w) > 1e-3),
    st.floats(0, 1, exclude_max=True),
)
def test_choice_is_the_inverse_distribution_function(weights, u):
    row = np.array(weights) / sum(weights)
    with x64():
        k = int(choose(jnp.asarray(row), u))
    assert row[k] > 0
    below = np.cumsum(row)[k] - row[k]
    assert below - 1e-12 <= u <= below + row[k] + 1e-12


def test_outcomes_of_probability_zero_are_never_chosen():
    with x64():
        row = jnp.array([0.0, 0.1, 0.2, 0.7 - 1e-12, 0.0])  # sums to slightly less than one
        assert int(choose(row, 1 - 1e-16)) == 3
        assert int(choose(row, 0.0)) == 1


def test_long_horizons_and_horizon_one():
    for horizon in (1, 500):
        made = tabular(
            T=np.full((2, 2, 2), 0.5),
            O=np.eye(2),
            initial=[1, 0],
            reward=np.eye(2),
            horizon=horizon,
        ).at()
        episode = rollout(KEYS[:3], made, uniform_policy(made))
        assert episode.states.shape == (3, horizon + 1)
        assert np.array_equal(episode.observations, episode.states[:, :-1])
        assert made.homdp.returns(episode) == pytest.approx(
            (episode.states[:, :-1] == episode.actions).sum(1)
        )


def test_invalid_keys_and_policies_raise():
    made = world("tiger")
    with raises(DataError, "key"):
        rollout(0, made, uniform_policy(made))
    with pytest.raises(DataError) as error:
        rollout(KEYS.reshape(5, 10), made, uniform_policy(made))
    assert error.value.problems[0][:2] == ("key", "keys of shape (5, 10)")
    with raises(PolicyError, "policy"):
        rollout(KEYS, made, uniform_policy(world("lock")))

    class Wrong:
        def act(self, observations, actions):
            return np.array([0.5, 0.6, 0.0])

    with raises(PolicyError, "act"):
        rollout(KEYS[0], made, Wrong())


def test_common_mistakes_raise():
    made = world("tiger")
    with raises(DataError, "world"):
        rollout(KEYS, made.homdp, uniform_policy(made))
    for nothing in (Parity, lambda observations, actions: 0, "listen"):
        with raises(PolicyError, "policy"):
            rollout(KEYS, made, nothing)
