"""With reveals before the next episode, an agent takes the decisions of ``learn``."""

import jax
import numpy as np
import pytest

from homdp_ppl import explorers, models
from homdp_ppl.explorers import EXPLORERS
from homdp_ppl.planners import particle_tree
from tests.agent.processes import (
    DENSITIES,
    agent_of,
    density_case,
    finite_case,
    follow,
    run_of,
)
from tests.explorers.plain import sensor
from tests.richer import RICHER
from tests.runs import TREE


def same(case, episodes, seed):
    """Whether the agent takes all actions of a run, in every episode."""
    run = run_of(case, episodes, seed)
    agent = agent_of(case, episodes, seed=seed)
    taken = follow(agent, run)
    np.testing.assert_array_equal(taken, run.record.actions)
    assert agent.status.used == len(run.played)
    assert agent.status.decisions == run.record.planned.sum()
    return agent, run


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_rule_takes_the_actions_of_learn(name):
    agent, run = same(finite_case(name), 12, seed=5)
    np.testing.assert_allclose(agent.posterior.mean.transition, run.posterior.mean.transition)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "posterior_sampling"))
        for name in DENSITIES
    ],
)
def test_rules_with_real_observations_take_the_actions_of_learn(name):
    same(density_case(name), 8, seed=2)


def test_programs_without_a_closed_form():
    """Inference by sampling uses the same random numbers."""
    world = sensor().at(ear=2.0, drift=-1.0)
    case = world, explorers.posterior_sampling(), TREE
    agent, run = same(case, 6, seed=1)
    ours, theirs = agent.posterior.atoms, run.posterior.atoms
    np.testing.assert_array_equal(ours.probabilities, theirs.probabilities)


@pytest.mark.slow
def test_policies_that_plan_online():
    """They cannot be saved and are planned again when the agent is opened."""
    world = models.load("light_dark", horizon=2)
    case = world, explorers.posterior_sampling(), particle_tree(simulations=20, particles=50)
    same(case, 2, seed=0)


@pytest.mark.parametrize(
    "name", ["answers", *(pytest.param(n, marks=pytest.mark.slow) for n in ("steps", "start"))]
)
def test_tables_that_depend_on_the_step_or_the_action(name):
    case = RICHER[name].draw(jax.random.key(3)), explorers.tight(), TREE
    same(case, 10, seed=0)


def test_a_wrong_seed_is_noticed():
    """The test above can fail: another seed takes other actions."""
    case = finite_case("uniform")
    run = run_of(case, 12, seed=5)
    taken = follow(agent_of(case, 12, seed=6), run)
    assert (taken != run.record.actions).any()
