"""The particle planner: against exact planning, against a Kalman filter, and against its own tree computed again."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from homdp_ppl import Kernels, PlanningError, PolicyError, Real, evaluate, homdp, models, x64
from homdp_ppl.planners import history_tree, particle_belief, particle_game, particle_search, particle_tree
from tests.planners.exact import random_pomdp

ENOUGH = {"simulations": 400, "particles": 4000, "tree_particles": 256}
WIDENING = (4.0, 0.35)
MOVES = np.array([-1.0, 1.0])
DRIFT, BLUR = 0.5, 0.8  # standard deviations of a step and of an observation
SEEN, DONE = [0.3, -0.9, 0.4, -0.2], [0, 1, 0]
TIGER, RANDOM = models.load("tiger", horizon=3).pomdp, random_pomdp(5, 3, 3, 3, 3)


@homdp(states=Real(1), observations=Real(1), actions=("left", "right"), horizon=5, reward=lambda x, a: jnp.exp(-(x**2)))
def walk():
    """Steps of noise, seen with noise: x' = x + a + noise, y = x + noise."""
    blur = numpyro.sample("blur", dist.LogNormal(0.0, 1.0))
    return Kernels(
        initial=dist.Normal(0.0, 2.0),
        transition=lambda x, a: dist.Normal(x + jnp.asarray(MOVES)[a], DRIFT),
        emission=lambda x: dist.Normal(x, blur),
    )


@homdp(states=Real(2), observations=Real(2), actions=("stay", "turn"), horizon=3, reward=lambda x, a: jnp.exp(-jnp.sum(x**2)))
def spot():
    """A point in the plane, seen within a square around it: most numbers have density zero."""
    turns = jnp.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]]])
    return Kernels(
        initial=dist.Normal(jnp.ones(2), 1.0).to_event(1),
        transition=lambda x, a: dist.Normal(turns[a] @ x, 0.1).to_event(1),
        emission=lambda x: dist.Uniform(x - 1.0, x + 1.0).to_event(1),
    )


def loss(model, **options):
    """What the online policy's exact value is below the exact optimum."""
    return history_tree()(model).value - evaluate(particle_tree(**options)(model).policy, model)


@pytest.mark.parametrize("model", [TIGER, RANDOM], ids=["tiger", "random"])
def test_approaches_the_exact_optimum(model):
    few = [loss(model, simulations=3, particles=4000, tree_particles=256, seed=seed) for seed in range(3)]
    many = [loss(model, **ENOUGH, seed=seed) for seed in range(3)]
    assert max(many) < 0.02
    assert np.mean(many) < np.mean(few) / 4
    assert min(few + many) > -1e-12


def test_a_search_without_observation_weights_is_caught(monkeypatch):
    """Every history looks the same to it, so it has no reason to listen."""
    monkeypatch.setattr(particle_search, "normalised", lambda before, likelihood: (before, False))
    monkeypatch.setattr(particle_game, "_FINITE", {})
    assert loss(TIGER, **ENOUGH) > 0.02


def test_a_search_without_widening_is_caught():
    """One observation an action: it believes that it knows what it will hear."""
    assert max(loss(RANDOM, **ENOUGH, widening=(1.0, 0.0), seed=seed) for seed in range(3)) > 0.02


# Beliefs


def kalman(seen, done):
    """Mean and variance of the walker's place."""
    mean, variance = 0.0, 4.0
    for h, y in enumerate(seen):
        if h > 0:
            mean, variance = mean + MOVES[done[h - 1]], variance + DRIFT**2
        gain = variance / (variance + BLUR**2)
        mean, variance = mean + gain * (y - mean), (1 - gain) * variance
    return mean, variance


def kalman_errors(world, seeds=24):
    """How many standard errors the particles' mean and variance are off after each step, over independent filters."""
    policies = [particle_tree(**ENOUGH, seed=seed)(world).policy for seed in range(seeds)]
    errors = []
    for h in range(1, len(SEEN) + 1):
        beliefs = [policy.belief(SEEN[:h], DONE[: h - 1]) for policy in policies]
        means = np.array([b.weights @ b.particles for b in beliefs])
        variances = np.array([b.weights @ b.particles**2 for b in beliefs]) - means**2
        for found, exact in zip((means, variances), kalman(SEEN[:h], DONE[: h - 1]), strict=True):
            errors.append(abs(found.mean() - exact) / (found.std(ddof=1) / math.sqrt(seeds)))
    return errors


def test_beliefs_agree_with_a_kalman_filter(monkeypatch):
    """Eight t-tests at 1e-6 over 24 seeds; the bias of 4000 particles is a fiftieth of the standard error of one filter."""
    limit = student.isf(0.5e-6, 23)
    assert max(kalman_errors(walk.at(blur=BLUR))) < limit
    assert max(kalman_errors(walk.at(blur=1.1 * BLUR))) > limit  # a wrong sensor
    monkeypatch.setattr(particle_belief, "normalised", lambda before, likelihood: (before, False))
    assert max(kalman_errors(walk.with_horizon(5).at(blur=BLUR))) > limit  # no weights


def test_systematic_resampling_keeps_shares():
    """Each index as often as its share of n, rounded down or up; never one of weight zero."""
    with x64():
        for seed in range(20):
            weights = np.random.default_rng(seed).dirichlet(np.full(9, 0.3))
            weights[seed % 9] = 0.0
            weights /= weights.sum()
            key = jax.random.key(seed)
            counts = np.bincount(np.asarray(particle_belief.systematic(key, jnp.asarray(weights), 50)), minlength=9)
            assert (np.abs(counts - 50 * weights) < 1 + 1e-9).all()
            assert counts[seed % 9] == 0


# The tree, computed again


def tree_errors(tree, h, horizon, widening, density, reward, finite):
    """Everything in a tree that is not what its definition says, by a walk from the root in NumPy."""
    wrong, ahead, beliefs = set(), [(0, h)], 0
    while ahead:
        b, h = ahead.pop()
        beliefs += 1
        particles = tree.particles[tree.origin[b]]
        if not np.allclose(tree.reward[b], tree.weights[b] @ reward(h, particles)):
            wrong.add("reward")
        taken = np.flatnonzero(tree.branch[b] >= 0)
        if h == horizon - 1 and (taken.size or tree.value[b] != tree.reward[b].max()):
            wrong.add("last step")
        if taken.size and not np.isclose(tree.value[b], tree.quality[b, taken].max()):
            wrong.add("maximum")
        for a in taken:
            e = tree.branch[b, a]
            there = np.flatnonzero(tree.share[e] > 0)
            likelihood = np.array([density(y, tree.particles[e]) for y in tree.seen[e, there]])
            share = likelihood.mean(1) if finite else np.ones(len(there))
            children = tree.child[e, there]
            if not np.allclose(tree.weights[children], likelihood / likelihood.sum(1, keepdims=True)):
                wrong.add("weights")
            if not np.isclose(tree.quality[b, a], tree.reward[b, a] + share @ tree.value[children] / share.sum()):
                wrong.add("mean")
            if tree.visits[b, a] != tree.went[e].sum():
                wrong.add("visits")
            if len(there) > math.ceil(widening[0] * tree.visits[b, a] ** widening[1]):
                wrong.add("too many observations")
            if not finite and len(there) < widened(tree.visits[b, a], *widening):
                wrong.add("too few observations")
            ahead += [(child, h + 1) for child in children]
    return wrong, beliefs


def widened(visits, k, alpha):
    """How many observations there are after so many visits, each of which adds one where there is room."""
    count = 0
    for n in range(1, int(visits) + 1):
        count += count < k * n**alpha
    return count


def walk_errors(tree, widening=WIDENING):
    def reward(h, x):
        return np.exp(-(x**2))[:, None].repeat(2, 1)

    return tree_errors(tree, 1, 5, widening, lambda y, x: norm.pdf(y, x, BLUR), reward, finite=False)


def test_the_tree_is_what_its_definition_says():
    policy = particle_tree(**ENOUGH)(walk.at(blur=BLUR)).policy
    tree = policy.search(SEEN[:2], DONE[:1])
    wrong, beliefs = walk_errors(tree)
    assert not wrong
    assert beliefs == 401 - (tree.visits[0].sum() - 400)  # one a simulation, all before the last step is reached again
    other = particle_tree(**ENOUGH, widening=(1.0, 0.0))(walk.at(blur=BLUR)).policy.search(SEEN[:2], DONE[:1])
    assert walk_errors(other)[0] == {"too few observations"}
    assert walk_errors(other, (1.0, 0.0))[0] == set()
    assert walk_errors(tree, (2.0, 0.35))[0] == {"too many observations"}
    assert walk_errors(tree._replace(weights=np.full_like(tree.weights, 1 / 256)))[0] >= {"weights"}
    assert walk_errors(tree._replace(value=tree.value * 1.01))[0] >= {"mean", "maximum"}


def test_the_tree_of_a_finite_model():
    tree = particle_tree(**ENOUGH)(RANDOM).policy.search([1], [])
    given = 0, 3, WIDENING, lambda y, x: RANDOM.emission[x, y], lambda h, x: RANDOM.reward[h, x], True
    wrong, beliefs = tree_errors(tree, *given)
    assert not wrong
    assert beliefs == 1 + 9 + 81  # all of them
    assert tree.visits[0].sum() == 400


def test_a_heuristic_values_new_beliefs():
    policy = particle_tree(**ENOUGH, heuristic=lambda h, x: h + jnp.cos(x))(walk.at(blur=BLUR)).policy
    tree = policy.search(SEEN[:1], [])
    new = [b for b in range(1, 401) if tree.visits[b].sum() == 0 and tree.weights[b].sum() > 0]
    hoped = {h: [tree.weights[b] @ (h + np.cos(tree.particles[tree.origin[b]])) for b in new] for h in (1, 2, 3)}
    told = [any(np.isclose(tree.value[b], hoped[h][i]) for h in hoped) for i, b in enumerate(new)]
    assert sum(told) > 20
    assert all(told[i] or tree.value[b] == tree.reward[b].max() for i, b in enumerate(new))


# Acting


def test_the_same_seed_and_history_give_the_same_action_in_any_order():
    world = walk.at(blur=BLUR)
    step_by_step, at_once, other = (particle_tree(**ENOUGH, seed=seed)(world).policy for seed in (1, 1, 2))
    for h in range(1, 5):
        step_by_step.act(SEEN[:h], DONE[: h - 1])
    first, again, third = (policy.search(SEEN, DONE) for policy in (step_by_step, at_once, other))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.particles, third.particles)
    assert np.array_equal(step_by_step.act(SEEN, DONE), at_once.act(SEEN, DONE))
    assert step_by_step.statistics["simulations"] == 5 * 400


def test_the_last_action_is_the_best_for_the_belief():
    policy = particle_tree(**ENOUGH)(RANDOM).policy
    belief = policy.belief([0, 1, 2], [0, 1])
    assert policy.act([0, 1, 2], [0, 1]).argmax() == (belief.weights @ RANDOM.reward[2, belief.particles]).argmax()
    assert policy.statistics["searches"] == 0


def test_impossible_observations_are_counted_and_leave_the_prediction():
    """Frequencies of 4000 particles within 0.05, six standard deviations and more."""
    impossible = np.concatenate([RANDOM.emission[:, :2] + RANDOM.emission[:, 2:] / 2, np.zeros((3, 1))], axis=1)
    model = RANDOM._replace(emission=impossible)
    policy = particle_tree(**ENOUGH)(model).policy
    before = model.initial * impossible[:, 0]
    belief = policy.belief([0, 2], [1])
    frequencies = np.bincount(belief.particles, belief.weights, minlength=3)
    assert frequencies == pytest.approx(before @ model.transition[:, 1] / before.sum(), abs=0.05)
    assert belief.depleted
    assert policy.statistics["depletions"] == 1
    assert policy.act([0, 2, 0], [1, 0]).sum() == 1
    assert policy.statistics["depletions"] == 1
    for seen in np.ndindex(3, 3, 3):
        assert policy.act(seen, [0, 0]).sum() == 1
    assert policy.act([2], []).sum() == 1


def test_numbers_of_density_zero():
    policy = particle_tree(**ENOUGH)(spot.at()).policy
    assert policy.act([[1e6, 1e6]], []).sum() == 1
    assert policy.statistics["depletions"] == 1
    tree = policy.search([[1e6, 1e6], [0.5, 1.0]], [1])
    assert all(np.isfinite(part).all() for part in tree)
    assert policy.statistics["depletions"] == 1
    assert policy.statistics["effective particles"] < 4000


def test_a_budget_in_seconds():
    world = walk.at(blur=BLUR)
    hasty = particle_tree(**ENOUGH | {"seconds": 0.0})(world).policy
    assert hasty.act(SEEN[:1], []).sum() == 1
    assert hasty.statistics["simulations"] == 64
    patient = particle_tree(**ENOUGH | {"seconds": 1e6})(world).policy
    assert patient.act(SEEN[:1], []).sum() == 1
    assert patient.statistics["simulations"] == 400
    whole = particle_tree(**ENOUGH)(world).policy.search(SEEN[:1], [])
    assert all(np.array_equal(a, b) for a, b in zip(patient.search(SEEN[:1], []), whole, strict=True))


def test_plans_say_that_they_are_estimated():
    world = models.load("tiger", horizon=3)
    plan = particle_tree(**ENOUGH, episodes=60)(world)
    assert plan.estimated
    assert plan.planner == "particle_tree"
    assert plan.interval[0] <= plan.value <= plan.interval[1]
    exact = evaluate(plan.policy, world.pomdp)
    assert abs(plan.value - exact) < 5 * plan.standard_error
    assert plan.statistics["simulations"] > 0
    assert "not certified" in repr(plan)
    nothing = particle_tree(**ENOUGH)(world)
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.interval[0])
    assert nothing.statistics["searches"] == 0
    assert particle_tree(**ENOUGH, episodes=60)(world.pomdp).value == plan.value


def test_nonsense_is_refused():
    with pytest.raises(PlanningError, match=r"simulations: got 0(.|\n)*seed: got -1(.|\n)*seconds(.|\n)*alpha(.|\n)*heuristic"):
        particle_tree(0, -1.0, seed=-1, widening=(1.0, -1.0), heuristic=3)
    with pytest.raises(PlanningError, match="widening"):
        particle_tree(widening=3)
    with pytest.raises(PlanningError, match="GB"):
        particle_tree(10**9)(walk.at(blur=BLUR))
    with pytest.raises(PlanningError, match=r"a ContinuousHOMDP; expected a World"):
        particle_tree()(walk)


@pytest.mark.parametrize(
    ("seen", "done", "told"),
    [
        ([0.1, 0.2], [], "h - 1 actions"),
        ([0.1] * 6, [0] * 5, "h at most 5"),
        ([0.1, math.nan], [0], r"observations\[step 2\]"),
        ([0.1, 0.2], [2], r"actions\[0\]"),
    ],
)
def test_histories_are_checked(seen, done, told):
    with pytest.raises(PolicyError, match=told):
        particle_tree(**ENOUGH)(walk.at(blur=BLUR)).policy.act(seen, done)


@pytest.mark.slow
def test_the_loss_falls_as_the_budget_grows():
    """On tiger and random models, with budgets and particles growing together; means over models and seeds."""
    tasks = [models.load("tiger").pomdp, *(random_pomdp(seed, 3, 3, 2, 4) for seed in range(3))]
    losses = [
        np.mean([loss(m, simulations=n, particles=8 * n, tree_particles=n // 2, seed=s) for m in tasks for s in range(3)])
        for n in (16, 128, 1024)
    ]
    assert losses[0] > 2 * losses[1] > 4 * losses[2]
    assert losses[2] < 0.005
