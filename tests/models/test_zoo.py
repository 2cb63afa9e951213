"""One contract for every model of the zoo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import POMDP, Episode, HOMDPError, Trajectory, models, rollout, uniform_policy, x64
from homdp_ppl.core.probabilities import pomdp_problems
from tests.chances import frequency_errors
from tests.worlds import drawn, random_policy, world

NAMES = tuple(models.MODELS)
FIRST = ("tiger", "tiger_table", "tiger_listen", "lock")
ZOO = [
    name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES
]  # each is compiled: all if there is time


@pytest.mark.parametrize("name", ZOO)
def test_tables_are_valid(name):
    for made in (world(name), drawn(name)):
        X, Y, A, H = made.spaces.sizes
        ranks = [(X,), (1, X, A, X), (1, 1, X, Y), (H, X, 1, A), (X,), (), ()]
        assert [t.shape for t in made.pomdp] == ranks
        kinds = [np.float64] * 4 + [np.bool_] + [np.float64] * 2
        assert [t.dtype for t in made.pomdp] == kinds
        assert pomdp_problems(made.pomdp, made.spaces) == []
        assert made.pomdp.reward.min() >= 0
        assert made.pomdp.reward.max() <= 1
        support = made.homdp.structure.support
        for table, possible in zip(made.pomdp.stationary()[:3], support, strict=True):
            assert not (table > 0)[~possible].any()


@pytest.mark.parametrize("name", ZOO)
def test_drawn_worlds_use_the_whole_support(name):
    """What the structure calls possible does happen at generic parameters.

    It is not simply everything.
    """
    made = drawn(name)
    for table, possible in zip(made.pomdp.stationary()[:3], made.homdp.structure.support, strict=True):
        assert np.array_equal(table > 0, possible)


@pytest.mark.parametrize("name", ZOO)
def test_program_density_equals_hand_density(name):
    made = drawn(name)
    model, tables = made.homdp, made.pomdp
    policy = random_policy(made.spaces, seed=1)
    episodes = rollout(jax.random.split(jax.random.key(2), 3), made, policy)
    with x64():
        parameters = {k: jnp.asarray(v) for k, v in made.parameters.items()}
        data = {
            "x": jnp.asarray(episodes.states[:, :-1].T),
            "y": jnp.asarray(episodes.observations.T),
            "a": jnp.asarray(episodes.actions.T),
            "x_last": jnp.asarray(episodes.states[:, -1]),
        }
        program = jax.jit(lambda p, d: log_density(model.program, (policy, 3), {}, {**p, **d})[0])
        prior = jax.jit(lambda p: log_density(model.function, (), {}, p)[0])
        found = float(program(parameters, data) - prior(parameters))
    assert found == pytest.approx(
        sum(hand_density(tables, policy, episodes, k) for k in range(3)), abs=1e-12, rel=1e-12
    )


def hand_density(tables: POMDP, policy, episodes: Episode, k: int) -> float:
    """Log of rho(x_1) prod_h O(y_h|x_h) pi(a_h|y_1:h, a_1:h-1) T(x_h+1|x_h, a_h), factor by factor."""
    x, y, a = episodes.states[k], episodes.observations[k], episodes.actions[k]
    total = np.log(tables.initial[x[0]])
    for h in range(tables.horizon):
        total += np.log(tables.shows(h)[x[h], y[h]])
        total += np.log(policy.act(y[: h + 1], a[:h])[a[h]])
        total += np.log(tables.moves(h)[x[h], a[h], x[h + 1]])
    return float(total)


@pytest.mark.parametrize("name", ZOO)
def test_simulated_frequencies_agree_with_the_tables(name):
    """False alarm: 1e-6 a model."""
    made = world(name)
    episodes = rollout(jax.random.split(jax.random.key(3), 2000), made, uniform_policy(made))
    assert frequency_errors(episodes, made.pomdp) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_simulated_frequencies_agree_with_the_tables_in_the_long_run(name):
    """The same with 20,000 outcomes a row, which sees errors of a few percent.

    False alarm: 1e-6 a model.
    """
    made = world(name)
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
def test_wrong_simulators_are_caught(name):
    """Planted bugs: another action's transition, an observation of the next state, a shifted
    trajectory.
    """
    made = world(name)
    episodes = rollout(jax.random.split(jax.random.key(3), 2000), made, uniform_policy(made))
    states, observations, actions = episodes.states, episodes.observations, episodes.actions
    A = len(made.spaces.actions)
    wrong_action = Episode(Trajectory(observations, (actions + 1) % A), states)
    late = Episode(Trajectory(np.roll(observations, 1, axis=1), actions), states)
    for planted in (wrong_action, late):
        assert frequency_errors(planted, made.pomdp) != []


@pytest.mark.parametrize("name", [*NAMES, *models.CONTINUOUS])
def test_the_story_is_told(name):
    made = {**models.MODELS, **models.CONTINUOUS}[name]
    story = made.__globals__["__doc__"]
    assert "Known" in story
    assert "Unknown" in story or "unknown" in story
    assert "──►" in story
    assert made.__doc__


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_table")])
def test_tables_and_programs_share_their_truth(name):
    for one, other in zip(world(name.removesuffix("_table")).pomdp, world(name).pomdp, strict=True):
        assert np.array_equal(one, other)


def test_an_unknown_name_lists_the_zoo():
    for find in (models.load, models.story):
        with pytest.raises(HOMDPError, match="tiger_listen"):
            find("lion")
