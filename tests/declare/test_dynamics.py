"""Dynamics: the same interface for tables and programs."""

import jax
import numpy as np
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import SpacesError, posterior, rollout, uniform_policy, x64
from homdp_ppl.declare.dynamics import table_dynamics
from tests.continuous.programs import hearing, walk
from tests.worlds import world


def test_tables_have_the_densities_of_the_program():
    """Log densities are those of the NumPyro program conditioned in hindsight."""
    made = world("tiger_listen")
    episodes = rollout(jax.random.split(jax.random.key(0), 6), made, uniform_policy(made))
    A, H = len(made.spaces.actions), made.spaces.horizon
    with x64():
        each = jax.vmap(made.dynamics.log_likelihood, in_axes=(None, 0, 0, 0))
        ours = each(made.numbers, episodes.states, episodes.observations, episodes.actions).sum()
        prior = log_density(made.homdp.function, (), {}, dict(made.parameters))[0]
        program = made.homdp.hindsight(episodes)
        theirs = log_density(program, (), {}, dict(made.parameters))[0]
    assert theirs == pytest.approx(float(ours + prior) - 6 * H * np.log(A), rel=1e-12)


def test_draws_from_tables_have_their_probabilities():
    """5,000 draws each, within 6 standard errors: false-alarm rate below 1e-7."""
    made = world("lock")
    numbers, dynamics = made.numbers, made.dynamics
    x = int(made.pomdp.initial.argmax())
    with x64():
        keys = jax.random.split(jax.random.key(1), 5000)
        draws = {
            "initial": jax.vmap(lambda k: dynamics.first(numbers, k))(keys),
            "transition": jax.vmap(lambda k: dynamics.following(numbers, k, x, 0, 0))(keys),
            "emission": jax.vmap(lambda k: dynamics.observe(numbers, k, x, 3, 0))(keys),
        }
    rows = made.pomdp.initial, made.pomdp.moves(0)[x, 0], made.pomdp.shows(0)[x]
    for drawn, row in zip(draws.values(), rows, strict=True):
        share = np.bincount(np.asarray(drawn), minlength=len(row)) / 5000
        assert (share[row == 0] == 0).all()
        errors = np.abs(share - row) / np.sqrt(np.maximum(row * (1 - row), 1e-12) / 5000)
        assert errors[row > 0].max() < 6
    assert float(dynamics.reward(numbers, 1, x, 0, 0)) == made.pomdp.reward[1, x, 0, 0]


def test_finite_models_of_the_same_sizes_share_their_dynamics():
    tiger, table = world("tiger"), world("tiger_table")
    assert tiger.dynamics is table.dynamics is table_dynamics(*tiger.spaces.sizes)
    assert tiger.dynamics is not tiger.with_horizon(7).dynamics
    assert walk().dynamics is walk().dynamics


@pytest.mark.parametrize(
    "ask",
    [
        lambda world: world.pomdp,
        lambda world: world.homdp.structure,
        lambda world: world.homdp.tables(world.parameters),
        lambda world: world.homdp.counts([]),
        lambda world: world.homdp.unrolled,
        lambda world: world.spaces.sizes,
        lambda world: world.spaces.names,
        lambda world: posterior(world.homdp, []).draws(jax.random.key(0), 1),
        lambda world: posterior(world.homdp, []).mean,
        lambda world: posterior(world.homdp, []).variance,
        lambda world: posterior(world.homdp, []).counts,
        lambda world: world.homdp.program(policy=uniform_policy(world)),
    ],
)
def test_members_that_need_tables_raise_one_error(ask):
    with pytest.raises(SpacesError) as error:
        ask(hearing("means").draw(jax.random.key(0)))
    (problem,) = error.value.problems
    assert "planners.quantised()" in problem.remedy or "rollout" in problem.remedy
