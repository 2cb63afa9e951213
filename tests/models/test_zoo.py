"""The contract of all models of the zoo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import POMDP, Episodes, HOMDPError, models, rollout, uniform_policy, x64
from homdp_ppl.core.probabilities import pomdp_problems
from homdp_ppl.models.flat import flat_table
from tests.chances import frequency_errors
from tests.raising import raises
from tests.richer import richer
from tests.worlds import drawn, random_policy, world

NAMES = tuple(models.MODELS)
FIRST = ("tiger", "tiger_table", "tiger_listen", "lock", "gaussian_tiger", "light_dark")
ZOO = [
    name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES
]  # each model is compiled, so most are marked slow


def finite(made):
    """The world, for tests of its tables."""
    if not made.spaces.finite:
        pytest.skip("real-valued spaces have no tables")
    return made


def short_tables(made):
    """The tables in the form of the declaration."""
    pomdp = made.pomdp
    return (pomdp.initial, *made.homdp.form.short(pomdp.transition, pomdp.emission))


@pytest.mark.parametrize("name", ZOO)
def test_rewards_are_in_their_range(name):
    made = world(name)
    keys = jax.random.split(jax.random.key(1), 20)
    returns = made.homdp.returns(rollout(keys, made, uniform_policy(made)))
    low, high = made.homdp.reward_range
    assert (returns >= low * made.spaces.horizon).all()
    assert (returns <= high * made.spaces.horizon).all()


@pytest.mark.parametrize("name", ZOO)
def test_tables_are_valid(name):
    for made in map(finite, (world(name), drawn(name))):
        X, Y, A, H = made.spaces.sizes
        previous = A + 1 if made.homdp.form.answers_action else 1
        ranks = [(X,), (1, X, A, X), (1, previous, X, Y), (H, X, 1, A), (X,), (), ()]
        assert [t.shape for t in made.pomdp] == ranks
        kinds = [np.float64] * 4 + [np.bool_] + [np.float64] * 2
        assert [t.dtype for t in made.pomdp] == kinds
        assert pomdp_problems(made.pomdp, made.spaces) == []
        assert made.pomdp.reward.min() >= 0
        assert made.pomdp.reward.max() <= 1
        for table, possible in zip(short_tables(made), made.homdp.structure.support, strict=True):
            assert not (table > 0)[~possible].any()


@pytest.mark.parametrize("name", ZOO)
def test_drawn_worlds_have_the_full_support(name):
    """At generic parameters, exactly the entries that the structure calls possible are positive.

    The sparse priors of flat tables also draw probabilities below 1e-15, which count as zero.
    """
    made = finite(drawn(name))
    sparse = name.endswith("_table")
    for table, possible in zip(short_tables(made), made.homdp.structure.support, strict=True):
        assert not (table > 0)[~possible].any()
        assert sparse or (table > 0)[possible].all()


@pytest.mark.parametrize("name", ZOO)
def test_program_density_equals_hand_density(name):
    made = drawn(name)
    model = made.homdp
    policy = random_policy(made.spaces, seed=1) if made.spaces.finite else uniform_policy(made)
    episodes = rollout(jax.random.split(jax.random.key(2), 3), made, policy)
    episodes = episodes.to_horizon(made.spaces, name)
    with x64():
        parameters = {k: jnp.asarray(v) for k, v in made.parameters.items()}
        data = {
            "x": jnp.asarray(episodes.states[:, :-1].swapaxes(0, 1)),
            "y": jnp.asarray(episodes.observations.swapaxes(0, 1)),
            "a": jnp.asarray(episodes.actions.T),
            "x_last": jnp.asarray(episodes.states[:, -1]),
        }
        given = policy if made.spaces.finite else None
        program = jax.jit(lambda p, d: log_density(model.program, (given, 3), {}, {**p, **d})[0])
        prior = jax.jit(lambda p: log_density(model.function, (), {}, p)[0])
        found = float(program(parameters, data) - prior(parameters))
    assert found == pytest.approx(
        sum(hand_density(made, policy, episodes, k) for k in range(3)), abs=1e-10, rel=1e-10
    )


def hand_density(made, policy, episodes: Episodes, k: int) -> float:
    """Log of rho(x_1) prod_h O(y_h|x_h) pi(a_h|y_1:h, a_1:h-1) T(x_h+1|x_h, a_h), by factors."""
    x, y, a = episodes.states[k], episodes.observations[k], episodes.actions[k]
    dynamics, numbers, A = made.dynamics, made.numbers, len(made.spaces.actions)
    with x64():
        total = float(dynamics.log_initial(numbers, x[0]))
        for h in range(made.spaces.horizon):
            total += float(dynamics.log_emission(numbers, x[h], a[h - 1] if h else A, h, y[h]))
            total += np.log(policy.act(y[: h + 1], a[:h])[a[h]])
            total += float(dynamics.log_transition(numbers, x[h], a[h], h, x[h + 1]))
    return total


@pytest.mark.parametrize("name", ZOO)
def test_simulated_frequencies_agree_with_the_tables(name):
    """False alarm: 1e-6 per model."""
    made = finite(world(name))
    episodes = rollout(jax.random.split(jax.random.key(3), 2000), made, uniform_policy(made))
    assert frequency_errors(episodes, made.pomdp) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_simulated_frequencies_agree_with_the_tables_in_the_long_run(name):
    """The same with 20,000 outcomes per row, which detects errors of a few percent.

    False alarm: 1e-6 per model.
    """
    made = finite(world(name))
    episodes = rollout(jax.random.split(jax.random.key(4), 200_000), made, uniform_policy(made))
    assert frequency_errors(episodes, made.pomdp, visits=20_000) == []
    slightly_wrong = POMDP(
        *(0.97 * table + 0.03 / table.shape[-1] for table in made.pomdp[:3]), *made.pomdp[3:]
    )
    assert frequency_errors(episodes, slightly_wrong, visits=20_000) != []


@pytest.mark.parametrize(
    "name",
    [
        "tiger",
        "lock",
        pytest.param("checkup", marks=pytest.mark.slow),
        pytest.param("random", marks=pytest.mark.slow),
    ],
)
def test_wrong_simulators_are_detected(name):
    """Planted bugs: another action's transition, an observation of the next state, a shifted
    trajectory.
    """
    made = world(name)
    episodes = rollout(jax.random.split(jax.random.key(3), 2000), made, uniform_policy(made))
    states, observations, actions = episodes.states, episodes.observations, episodes.actions
    A = len(made.spaces.actions)
    wrong_action = Episodes(observations, (actions + 1) % A, states)
    late = Episodes(np.roll(observations, 1, axis=1), actions, states)
    for planted in (wrong_action, late):
        assert frequency_errors(planted, made.pomdp) != []


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_tell_the_story(name):
    made = models.MODELS[name]
    story = made.__globals__["__doc__"]
    assert "Known" in story
    assert "Unknown" in story or "unknown" in story
    assert "──►" in story
    assert made.__doc__


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_table")])
def test_tables_and_programs_have_the_same_true_tables(name):
    for one, other in zip(world(name.removesuffix("_table")).pomdp, world(name).pomdp, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", ["answers", "steps", "ends", "bets", "limited"])
def test_flat_tables_keep_every_feature(name):
    """Only the prior differs: tables, ends, allowed actions and the optimum are the same."""
    made = richer(name)
    flat = flat_table(made)
    for one, other in zip(made.pomdp, flat.pomdp, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-15)
    assert flat.spaces == made.spaces
    assert flat.homdp.allowed is made.homdp.allowed
    assert set(flat.homdp.structure.conjugate.sites) == {"T", "O"}


def test_an_unknown_name_lists_the_zoo():
    for find in (models.load, models.story):
        with raises(HOMDPError, "model"):
            find("lion")
