"""The quantities of the lower bound by hand, and on the tree by enumeration."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from homdp_ppl import ParameterError, evaluate, models, theory
from homdp_ppl.planners import history_tree
from tests.raising import raises
from tests.worlds import random_policy


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 16, 24, 40, 48])
def test_packing_is_large_and_separated(length):
    """At least e^(D/8) vectors; ||u - u'||_1 >= D/2, which is X'Y'/8 for D = X'Y'/4."""
    u = theory.packing(length, seed=length).astype(float)
    assert len(u) >= math.exp(length / 8)
    assert set(np.unique(u)) <= {-1.0, 1.0}
    distance = length - u @ u.T  # ||u - u'||_1
    assert (distance + length * np.eye(len(u))).min() >= length / 2


def test_lower_bound_by_hand():
    """127 states have 64 leaves; 11 observations are reduced to 10, of which 8 are for leaves."""
    bound = theory.lower_bound(127, 11, 0.25)
    assert bound == (64, 8, 16, 1 / 32, 1 / 2, 8, 1 / 128)
    assert theory.lower_bound(130, 10, 0.25) == bound  # the next power of two below 131
    assert theory.lower_bound(126, 10, 0.25).leaves == 32
    fano = 0.25 / 16 * (1 - (bound.episodes * bound.divergence + math.log(2)) / bound.instances)
    assert fano >= bound.gap
    assert theory.unavoidable_gap(127, 10, 8) == bound.gap
    assert theory.unavoidable_gap(127, 10, 1) == 1 / 64
    assert theory.unavoidable_gap(127, 10, 800) == pytest.approx(bound.gap / 10)
    for sizes in ((87, 10), (127, 5)):
        with raises(ParameterError, "sizes"):
            theory.lower_bound(*sizes, 0.25)


EPSILON = 0.4


@pytest.fixture(scope="module")
def trees():
    """Instances of the lower-bound tree with 4 leaves and 4 last observations, from a packing of 4
    signs and one more vector.
    """
    signs = [*theory.packing(4), np.array([1, 1, 1, -1])]
    options = {"depth": 3, "observations": 6, "epsilon": EPSILON}
    worlds = [models.load("lower_bound_tree", u=u.reshape(2, 2), **options) for u in signs]
    return [
        (u, w.pomdp, history_tree()(w.pomdp).policy) for u, w in zip(signs, worlds, strict=True)
    ]


def disagreements(policy, other):
    """The number of decisions at the last step in which two policies differ.

    The first observation is "up", the second is the parent, the third comes from a leaf.
    """
    histories = [(0, parent, y) for parent in (0, 1) for y in range(2, 6)]
    act = lambda p, y: p.act(np.array(y), np.array([0, 0])).argmax()  # noqa: E731
    return sum(act(policy, y) != act(other, y) for y in histories)


def test_separation_on_the_tree(trees):
    """The gap of pi*_{u'} in u is 2 epsilon N / (X'Y'), and no policy is within epsilon/16 of the
    optimum on two instances of a packing.
    """
    for (u, model, best), (v, _, others_best) in product(trees, trees):
        N = disagreements(best, others_best)
        loss = evaluate(best, model) - evaluate(others_best, model)
        assert loss == pytest.approx(2 * EPSILON * N / 16, abs=1e-12)
        assert theory.separation(u, v, EPSILON) == pytest.approx(loss, abs=1e-12)
    (_, model, best), (_, other, others_best) = trees[:2]
    for seed in range(10):
        policy = random_policy(model.spaces, seed)
        errors = (
            evaluate(best, model)
            - evaluate(policy, model)
            + evaluate(others_best, other)
            - evaluate(policy, other)
        )
        assert errors >= EPSILON / 8


def log_probabilities(pomdp):
    """Every possible trajectory with latent states under the uniform policy, and its
    log-probability.
    """
    paths = [
        ((x, y), p * q)
        for x, p in enumerate(pomdp.initial)
        for y, q in enumerate(pomdp.shows(0)[x])
        if p * q
    ]
    for _ in range(pomdp.horizon - 1):
        paths = [
            ((*path, a, x, y), weight / 2 * p * q)
            for path, weight in paths
            for a in range(2)
            for x, p in enumerate(pomdp.moves(0)[path[-2], a])
            for y, q in enumerate(pomdp.shows(0)[x])
            if p * q
        ]
    return {path: math.log(weight) for path, weight in paths}


def test_divergence_on_the_tree(trees):
    logs = [log_probabilities(model) for _, model, _ in trees]
    for (j, (u, *_)), (k, (v, *_)) in combinations(enumerate(trees), 2):
        exact = sum(math.exp(p) * (p - logs[k][path]) for path, p in logs[j].items())
        assert theory.divergence(u, v, EPSILON) == pytest.approx(exact)
        assert exact <= 8 * EPSILON**2
