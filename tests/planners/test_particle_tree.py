"""particle_tree against exact planning, a Kalman filter, and an independent computation of its
tree.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from homdp_ppl import evaluate, models, x64
from homdp_ppl.declare.dynamics import table_dynamics
from homdp_ppl.planners import (
    _particle_belief as particle_belief,
)
from homdp_ppl.planners import (
    _particle_search as particle_search,
)
from homdp_ppl.planners import (
    history_tree,
    particle_tree,
)
from tests.planners.exact import random_pomdp
from tests.planners.particles import (
    BLUR,
    DONE,
    DRIFT,
    ENOUGH,
    MOVES,
    RANDOM,
    SEEN,
    TIGER,
    WIDENING,
    peeking,
    walk,
)


def loss(model, **options):
    """The optimum minus the exact value of the online policy."""
    return history_tree()(model).value - evaluate(particle_tree(**options)(model).policy, model)


@pytest.mark.slow
@pytest.mark.parametrize("model", [TIGER, RANDOM], ids=["tiger", "random"])
def test_approaches_the_exact_optimum(model):
    few = [
        loss(model, simulations=3, particles=4000, tree_particles=256, seed=seed)
        for seed in range(3)
    ]
    many = [loss(model, **ENOUGH, seed=seed) for seed in range(3)]
    assert max(many) < 0.02
    assert np.mean(many) < np.mean(few) / 4
    assert min(few + many) > -1e-12


@pytest.mark.slow
def test_a_search_without_observation_weights_is_detected(monkeypatch):
    """Planted bug: observations do not change beliefs, so the search does not pay for peeking.

    By hand, the value is 1.25 with peeking and 1 without.
    """
    assert loss(peeking(), **ENOUGH) == pytest.approx(0, abs=1e-12)
    monkeypatch.setattr(particle_search, "normalised", lambda before, likelihood: (before, False))
    table_dynamics.cache_clear()  # forget functions that were compiled with weights
    assert loss(peeking(), **ENOUGH) == pytest.approx(0.25, abs=1e-12)
    table_dynamics.cache_clear()


@pytest.mark.slow
def test_a_search_without_widening_is_detected():
    """With one observation per action, the search treats observations as known in advance."""
    assert max(loss(RANDOM, **ENOUGH, widening=(1.0, 0.0), seed=seed) for seed in range(3)) > 0.02


# Beliefs


def kalman(seen, done):
    """Mean and variance of the position of the walk."""
    mean, variance = 0.0, 4.0
    for h, y in enumerate(seen):
        if h > 0:
            mean, variance = mean + MOVES[done[h - 1]], variance + DRIFT**2
        gain = variance / (variance + BLUR**2)
        mean, variance = mean + gain * (y - mean), (1 - gain) * variance
    return mean, variance


def kalman_errors(world, seeds=24):
    """Errors of mean and variance of the particles after each step, in standard errors over
    independent filters.
    """
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
    """Eight t-tests at level 1e-6 over 24 seeds.

    The bias of 4000 particles is a fiftieth of the standard error of one filter.
    """
    limit = student.isf(0.5e-6, 23)
    assert max(kalman_errors(walk.at(blur=BLUR))) < limit
    assert max(kalman_errors(walk.at(blur=1.1 * BLUR))) > limit  # a wrong sensor
    monkeypatch.setattr(particle_belief, "normalised", lambda before, likelihood: (before, False))
    assert max(kalman_errors(walk.with_horizon(5).at(blur=BLUR))) > limit  # no weights


def test_systematic_resampling_keeps_shares():
    """Each index occurs n times its weight, rounded down or up; never with weight zero."""
    with x64():
        for seed in range(20):
            weights = np.random.default_rng(seed).dirichlet(np.full(9, 0.3))
            weights[seed % 9] = 0.0
            weights /= weights.sum()
            key = jax.random.key(seed)
            counts = np.bincount(
                np.asarray(particle_belief.systematic(key, jnp.asarray(weights), 50)), minlength=9
            )
            assert (np.abs(counts - 50 * weights) < 1 + 1e-9).all()
            assert counts[seed % 9] == 0


# Independent computation of the tree


def tree_errors(tree, h, horizon, widening, density, reward, finite):
    """All parts of a tree that differ from their definition, computed from the root in NumPy."""
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
            if not np.allclose(
                tree.weights[children], likelihood / likelihood.sum(1, keepdims=True)
            ):
                wrong.add("weights")
            if not np.isclose(
                tree.quality[b, a], tree.reward[b, a] + share @ tree.value[children] / share.sum()
            ):
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
    """The number of observations after some visits, each of which adds one if there is room."""
    count = 0
    for n in range(1, int(visits) + 1):
        count += count < k * n**alpha
    return count


def walk_errors(tree, widening=WIDENING):
    def reward(h, x):
        return np.exp(-(x**2))[:, None].repeat(2, 1)

    return tree_errors(
        tree, 1, 5, widening, lambda y, x: norm.pdf(y, x, BLUR), reward, finite=False
    )


@pytest.mark.slow
def test_the_tree_satisfies_its_definition():
    policy = particle_tree(**ENOUGH)(walk.at(blur=BLUR)).policy
    tree = policy.search(SEEN[:2], DONE[:1])
    wrong, beliefs = walk_errors(tree)
    assert not wrong
    # one belief per simulation, as long as no simulation reaches the last step again
    assert beliefs == 401 - (tree.visits[0].sum() - 400)
    other = particle_tree(**ENOUGH, widening=(1.0, 0.0))(walk.at(blur=BLUR)).policy.search(
        SEEN[:2], DONE[:1]
    )
    assert walk_errors(other)[0] == {"too few observations"}
    assert walk_errors(other, (1.0, 0.0))[0] == set()
    assert walk_errors(tree, (2.0, 0.35))[0] == {"too many observations"}
    assert walk_errors(tree._replace(weights=np.full_like(tree.weights, 1 / 256)))[0] >= {"weights"}
    assert walk_errors(tree._replace(value=tree.value * 1.01))[0] >= {"mean", "maximum"}


def test_the_tree_of_a_finite_model():
    tree = particle_tree(**ENOUGH | {"simulations": 1024})(RANDOM).policy.search([1], [])
    given = (
        0,
        3,
        WIDENING,
        lambda y, x: RANDOM.shows(0)[x, y],
        lambda h, x: RANDOM.reward[h, x, 0],
        True,
    )
    wrong, beliefs = tree_errors(tree, *given)
    assert not wrong
    # all beliefs, except rare ones after actions that are rarely tried
    assert 1 + 9 + 72 < beliefs <= 1 + 9 + 81
    assert (tree.share[tree.branch[0]] > 0).all()
    assert tree.visits[0].sum() == 1024
    # planted bug: equal weights of observations
    assert "mean" in tree_errors(tree, *given[:-1], False)[0]


@pytest.mark.slow
def test_the_heuristic_evaluates_new_beliefs():
    policy = particle_tree(**ENOUGH, heuristic=lambda h, x: h + jnp.cos(x))(
        walk.at(blur=BLUR)
    ).policy
    tree = policy.search(SEEN[:1], [])
    new = [b for b in range(1, 401) if tree.visits[b].sum() == 0 and tree.weights[b].sum() > 0]
    expected = {
        h: [tree.weights[b] @ (h + np.cos(tree.particles[tree.origin[b]])) for b in new]
        for h in (1, 2, 3)
    }
    found = [
        any(np.isclose(tree.value[b], values[i]) for values in expected.values())
        for i, b in enumerate(new)
    ]
    assert sum(found) > 20
    assert all(found[i] or tree.value[b] == tree.reward[b].max() for i, b in enumerate(new))


@pytest.mark.slow
@pytest.mark.long
def test_the_loss_decreases_with_the_budget():
    """On tiger and random models, with budgets and particles that increase together; means over
    models and seeds.
    """
    tasks = [models.load("tiger").pomdp, *(random_pomdp(seed, 3, 3, 2, 4) for seed in range(3))]
    losses = [
        np.mean(
            [
                loss(m, simulations=n, particles=8 * n, tree_particles=n // 2, seed=s)
                for m in tasks
                for s in range(3)
            ]
        )
        for n in (16, 128, 1024)
    ]
    assert losses[0] > 2 * losses[1] > 4 * losses[2]
    assert losses[2] < 0.005
