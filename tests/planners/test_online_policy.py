"""Policies of the particle planner: reproducible actions, impossible observations, and errors."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Kernels,
    ParameterError,
    PlanningError,
    PolicyError,
    Real,
    evaluate,
    homdp,
    models,
    uniform_policy,
)
from homdp_ppl.declare.paired import paired
from homdp_ppl.planners import _online_policy as online_policy
from homdp_ppl.planners import particle_tree
from tests.planners.particles import BLUR, DONE, ENOUGH, RANDOM, SEEN, spot, walk
from tests.raising import raises


def test_actions_depend_on_seed_and_history_only():
    world = walk.at(blur=BLUR)
    step_by_step, at_once, other = (
        particle_tree(**ENOUGH, seed=seed)(world).policy for seed in (1, 1, 2)
    )
    for h in range(1, 5):
        step_by_step.act(SEEN[:h], DONE[: h - 1])
    first, again, third = (policy.search(SEEN, DONE) for policy in (step_by_step, at_once, other))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.particles, third.particles)
    assert np.array_equal(step_by_step.act(SEEN, DONE), at_once.act(SEEN, DONE))
    assert step_by_step.statistics["simulations"] == 5 * 400
    assert step_by_step._machine.search.run._cache_size() == 1  # compiled once


def test_the_last_action_is_the_best_for_the_belief():
    policy = particle_tree(**ENOUGH)(RANDOM).policy
    belief = policy.belief([0, 1, 2], [0, 1])
    assert (
        policy.act([0, 1, 2], [0, 1]).argmax()
        == (belief.weights @ RANDOM.reward[2, belief.particles, 0]).argmax()
    )
    assert policy.statistics["searches"] == 0


@pytest.mark.slow
def test_impossible_observations_are_counted_and_leave_the_predicted_belief():
    """Frequencies of 4000 particles are within 0.05, more than six standard deviations."""
    impossible = np.concatenate(
        [RANDOM.shows(0)[:, :2] + RANDOM.shows(0)[:, 2:] / 2, np.zeros((3, 1))], axis=1
    )
    model = RANDOM.with_tables(emission=impossible)
    policy = particle_tree(**ENOUGH)(model).policy
    before = model.initial * impossible[:, 0]
    belief = policy.belief([0, 2], [1])
    frequencies = np.bincount(belief.particles, belief.weights, minlength=3)
    assert frequencies == pytest.approx(before @ model.moves(0)[:, 1] / before.sum(), abs=0.05)
    assert belief.depleted
    assert policy.statistics["depletions"] == 1
    assert policy.act([0, 2, 0], [1, 0]).sum() == 1
    assert policy.statistics["depletions"] == 1
    for seen in np.ndindex(3, 3, 3):
        assert policy.act(seen, [0, 0]).sum() == 1
    assert policy.act([2], []).sum() == 1


@pytest.mark.slow
def test_observations_with_density_zero():
    policy = particle_tree(**ENOUGH)(spot.at()).policy
    assert policy.act([[1e6, 1e6]], []).sum() == 1
    assert policy.statistics["depletions"] == 1
    tree = policy.search([[1e6, 1e6], [0.5, 1.0]], [1])
    assert all(np.isfinite(part).all() for part in tree)
    assert policy.statistics["depletions"] == 1
    assert policy.statistics["effective particles"] < 4000


def test_depletions_are_counted_once_per_history(monkeypatch):
    """Also if beliefs leave the cache and are computed again, which gives the same beliefs."""
    monkeypatch.setattr(online_policy, "BELIEFS", 1)
    forgetful = particle_tree(**ENOUGH)(spot.at()).policy
    first = forgetful.belief([[1e6, 0.0], [0.5, 1.0]], [1])
    for y in range(4):
        forgetful.belief([[float(y), 0.0]], [])
    again = forgetful.belief([[1e6, 0.0], [0.5, 1.0]], [1])
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert forgetful.statistics["depletions"] == 1
    forgetful.belief([[2e6, 0.0]], [])
    assert forgetful.statistics["depletions"] == 2


def pushed(push, reward=lambda x, a: jnp.exp(-(x**2)), beyond=0.0):
    """A world that is invalid for states above 50, which pushes from the prior do not reach."""

    @homdp(states=Real(1), observations=Real(1), actions=2, horizon=3, reward=reward)
    def cliff():
        push = numpyro.sample("push", dist.HalfNormal(1.0))
        return Kernels(
            initial=dist.Normal(0.0, 1.0),
            transition=lambda x, a: dist.Normal(x + a * push + jnp.where(x < 50, 0.0, beyond), 1.0),
            emission=lambda x: dist.Normal(x, 1.0),
        )

    return cliff.at(push=push)


def unbounded(x, a):
    return jnp.where(x < 50, 0.5, x / 50)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "seen", "done"),
    [
        (pushed(60.0, unbounded), [0.0], []),
        (pushed(30.0, unbounded), [0.0, 30.0, 60.0], [1, 1]),
        (pushed(60.0, beyond=math.nan), [0.0], []),
    ],
    ids=["a reward above 1", "at the last step", "a state that is not a number"],
)
def test_rewards_outside_the_unit_interval_raise_errors_in_the_search(world, seen, done):
    """The declaration is checked at parameters from its prior, which does not find them."""
    with raises(PolicyError, f"world[step {len(seen)}]"):
        particle_tree(**ENOUGH)(world).policy.act(seen, done)


@pytest.mark.slow
def test_worlds_of_one_declaration_share_compiled_functions():
    """Python calls the kernels only for compilation: once for worlds, and once for pairs."""
    traced = []

    @homdp(
        states=Real(1),
        observations=Real(1),
        actions=2,
        horizon=3,
        reward=lambda x, a: jnp.exp(-(x**2)),
    )
    def steps():
        push, blur = (
            numpyro.sample("push", dist.LogNormal(0.0, 1.0)),
            numpyro.sample("blur", dist.LogNormal(0.0, 1.0)),
        )

        def emission(x):
            traced.append(None)
            return dist.Normal(x, blur)

        return Kernels(
            dist.Normal(0.0, 1.0), lambda x, a: dist.Normal(x + (2 * a - 1) * push, 0.1), emission
        )

    def new_traces(world):
        before = len(traced)
        actions = [
            int(policy.act([0.5], []).argmax())
            for policy in (particle_tree(**ENOUGH, seed=k)(world).policy for k in (0, 1))
        ]
        assert all(action in (0, 1) for action in actions)
        return len(traced) - before

    worlds = [
        steps.at(push=1.0, blur=0.5),
        steps.at(push=2, blur=np.float32(0.7)),
        steps.draw(jax.random.key(0)),
    ]
    assert new_traces(worlds[0]) > 0
    assert [new_traces(world) for world in worlds[1:]] == [0, 0]
    assert new_traces(paired(worlds[0], worlds[1])) > 0  # for pairs
    assert [
        new_traces(paired(*pair)) for pair in ((worlds[1], worlds[0]), (worlds[2], worlds[1]))
    ] == [0, 0]


@pytest.mark.slow
def test_pairs_act_like_the_equivalent_world():
    """A pair has the transitions of one world and the emissions of another. Only emissions have a
    parameter here, so the pair is equivalent to the second world.
    """
    blurred, sharp = walk.at(blur=2.0), walk.at(blur=BLUR)
    pair, whole = (
        particle_tree(**ENOUGH)(world).policy for world in (paired(blurred, sharp), sharp)
    )
    assert all(
        np.array_equal(a, b)
        for a, b in zip(
            pair.search(SEEN[:2], DONE[:1]), whole.search(SEEN[:2], DONE[:1]), strict=True
        )
    )
    other = particle_tree(**ENOUGH)(paired(sharp, blurred)).policy.search(SEEN[:2], DONE[:1])
    assert not np.array_equal(other.weights, whole.search(SEEN[:2], DONE[:1]).weights)


def test_a_budget_in_seconds():
    world = walk.at(blur=BLUR)
    hasty = particle_tree(**ENOUGH | {"seconds": 0.0})(world).policy
    assert hasty.act(SEEN[:1], []).sum() == 1
    assert hasty.statistics["simulations"] == 64
    patient = particle_tree(**ENOUGH | {"seconds": 1e6})(world).policy
    assert patient.act(SEEN[:1], []).sum() == 1
    assert patient.statistics["simulations"] == 400
    whole = particle_tree(**ENOUGH)(world).policy.search(SEEN[:1], [])
    assert all(
        np.array_equal(a, b) for a, b in zip(patient.search(SEEN[:1], []), whole, strict=True)
    )


@pytest.mark.slow
def test_values_of_plans_are_estimated():
    """Five standard errors of 60 returns: false-alarm rate 6e-6 (Student's t).

    Planted bug: the value of random actions is detected.
    """
    world = models.load("tiger", horizon=3)
    plan = particle_tree(**ENOUGH, episodes=60)(world)
    assert not plan.certified
    assert plan.planner == "particle_tree"
    assert plan.statistics["low"] <= plan.value <= plan.statistics["high"]
    exact = evaluate(plan.policy, world.pomdp)
    assert abs(plan.value - exact) < 5 * plan.statistics["standard error"]
    assert (
        abs(plan.value - evaluate(uniform_policy(world), world.pomdp))
        > 5 * plan.statistics["standard error"]
    )
    assert plan.statistics["simulations"] > 0
    assert "not certified" in repr(plan)
    nothing = particle_tree(**ENOUGH)(world)
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.statistics["low"])
    assert nothing.statistics["searches"] == 0
    assert particle_tree(**ENOUGH, episodes=60)(world.pomdp).value == plan.value


def test_invalid_options_raise_planning_errors():
    with raises(PlanningError, "simulations", "seed", "seconds"):
        particle_tree(0, -1.0, seed=-1, widening=(1.0, -1.0))
    with raises(ParameterError, "heuristic"):
        particle_tree(heuristic=3)
    with raises(ParameterError, "widening"):
        particle_tree(widening=3)
    with raises(PlanningError, "simulations"):
        particle_tree(10**9)(walk.at(blur=BLUR))
    with raises(PlanningError, "particles"):
        particle_tree(particles=10**9)(walk.at(blur=BLUR))
    with raises(PlanningError, "world"):
        particle_tree()(walk)


@pytest.mark.parametrize(
    ("seen", "done", "where"),
    [
        ([0.1, 0.2], [], "history"),
        ([0.1] * 6, [0] * 5, "history"),
        ([0.1, math.nan], [0], "observations[step 2]"),
        ([0.1, 0.2], [2], "actions[0]"),
    ],
)
def test_invalid_histories_raise_policy_errors(seen, done, where):
    with raises(PolicyError, where):
        particle_tree(**ENOUGH)(walk.at(blur=BLUR)).policy.act(seen, done)
