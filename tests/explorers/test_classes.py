"""Finite classes of tables: the low-rank family, validation and likelihoods."""

from itertools import product
from math import log, sqrt

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from homdp_ppl import ParameterError, explorers, x64
from homdp_ppl.explorers._classes import (
    CORNERS,
    _largest_image,
    check_tables,
    log_likelihoods,
    low_rank,
)
from tests.explorers.plain import sensor
from tests.raising import raises

PHI = np.array(
    [[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.3, 0.7]], [[0.6, 0.4], [0.0, 1.0]]]
)  # (X, A, d)
PSI = np.array(
    [[[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], [[1.0, 0.0, 0.0], [0.0, 0.1, 0.9]]]
)  # (N, d, X)


def problems(*arguments):
    with pytest.raises(ParameterError) as raised:
        low_rank(*arguments)
    return raised.value.problems


# Low rank


def test_low_rank_tables():
    """T(x'|x, a) = phi(x, a) . psi(x') for every entry; rows are probabilities; rank d."""
    T = low_rank(PHI, PSI)
    for n, x, a, z in product(range(2), range(3), range(2), range(3)):
        assert T[n, x, a, z] == pytest.approx(
            sum(PHI[x, a, i] * PSI[n, i, z] for i in range(2)), abs=1e-15
        )
    np.testing.assert_allclose(T.sum(-1), 1.0)
    assert [np.linalg.matrix_rank(member.reshape(6, 3)) for member in T] == [2, 2]


def test_features_that_are_too_long():
    """Norms are at most 1: psi cannot be scaled down for larger features."""
    (problem,) = problems(PHI * 1.5, PSI / 1.5)
    assert problem.where == "features"
    assert "1.5" in problem.got


def test_measures_that_are_too_large():
    """||psi g|| <= sqrt(d) for every g in {0, 1}^X; the paper states it for g = 1 only."""
    phi = np.full((2, 1, 1), 0.5)
    flat = np.array([[[2.0 * 0.3, 2.0 * 0.7]]])  # ||psi 1|| = 2 > 1
    (problem,) = problems(phi, flat)
    assert (problem.where, problem.at) == ("measures", "member 0")
    assert "norm of 2 " in problem.got
    signed = np.array([[[3.0, -2.0], [0.0, 0.0]]])  # ||psi 1|| = 1 but ||psi (1, 0)|| = 3
    assert "norm of 3 " in problems(np.array([[[0.5, 0.5]], [[0.5, 0.5]]]), signed)[0].got


def test_measures_need_not_be_small_for_signs():
    """The proof uses g = sup eps / 4 >= 0. This member is legal, although ||psi (1, -1)|| > 2."""
    phi = np.full((2, 1, 2), np.sqrt(0.5))
    psi = np.array([[1.0, -0.5], [np.sqrt(0.5) - 1.0, np.sqrt(0.5) + 0.5]])
    assert max(np.linalg.norm(psi @ g) for g in product((0, 1), repeat=2)) < sqrt(2)
    assert np.linalg.norm(psi @ [1, -1]) > 2
    np.testing.assert_allclose(low_rank(phi, psi[None]), 0.5)


@pytest.mark.parametrize("states", [CORNERS, CORNERS + 1])
def test_the_largest_image_of_signed_measures(states):
    """Against random functions g in [0, 1], and with a member that a bound for signs refuses."""
    generator = np.random.default_rng(1)
    psi = generator.normal(size=(2, states))
    size = _largest_image(psi)
    random = generator.random((500, states)) @ psi.T
    assert np.linalg.norm(random, axis=1).max() <= size
    if states <= CORNERS:  # attained at a corner
        corners = np.array(list(product((0, 1), repeat=10)))
        padded = np.concatenate([corners, np.zeros((len(corners), states - 10))], axis=1)
        assert np.linalg.norm(padded @ psi.T, axis=1).max() <= size
    assert size < np.linalg.norm(np.abs(psi).sum(1))


@pytest.mark.parametrize("states", [3, CORNERS, CORNERS + 4])
def test_the_largest_image(states):
    """Every member is checked for any number of states.

    The norm is exact, by trying all corners, or bounded if there are too many corners.
    """
    generator = np.random.default_rng(states)
    psi = generator.dirichlet(np.ones(states), (1, 2))
    phi = np.tile([1.0, 0.0], (states, 1, 1))
    assert low_rank(phi, psi).shape == (
        1,
        states,
        1,
        states,
    )  # ||psi g|| <= sqrt(2) for two distributions
    corners = [psi[0] @ g for g in generator.choice([-1, 1], (200, states))]
    assert max(map(np.linalg.norm, corners)) <= sqrt(2)
    assert len(problems(phi, 1.01 * psi)) == 1


def test_rows_that_are_not_probabilities():
    (problem,) = problems(PHI, PSI * 0.9)
    assert (problem.where, problem.at) == ("transitions", "0, 0, 0")
    negative = np.array([[[1.2, -0.2, 0.0], [0.3, 0.3, 0.4]]])
    assert problems(PHI, negative)[0].where in ("transitions", "measures")
    assert problems(PHI, PSI * np.nan)[0].where == "transitions"


@pytest.mark.parametrize(
    ("phi", "psi"),
    [(PHI[0], PSI), (PHI[:, :0], PSI), (PHI, PSI[0]), (PHI, PSI[:, :1]), (PHI, PSI[:, :, :2])],
)
def test_low_rank_shapes(phi, psi):
    assert problems(phi, psi)[0].where == "shapes"


def test_all_problems_are_reported_together():
    assert [p.where for p in problems(PHI * 2, PSI * 2)] == ["features", "measures", "measures"]


# Classes


def test_classes_are_validated():
    good = np.full((2, 3, 4), 0.25)
    np.testing.assert_array_equal(check_tables("rule", "emissions", good, (3,)), good)
    np.testing.assert_array_equal(check_tables("rule", "emissions", list(good), (3,)), good)
    for bad in (
        good[0],
        np.zeros((0, 3, 4)),
        [good[0], good[0, :2]],
        "tables",
        2 * good,
        -good,
        good * np.nan,
    ):
        with raises(ParameterError, "emissions"):
            check_tables("rule", "emissions", bad, (3,))
    for alone in (sensor(), sensor().at(ear=0.0, drift=0.0), [sensor()]):
        with raises(ParameterError, "emissions"):
            check_tables("rule", "emissions", alone, (3,))
    bad = good.copy()
    bad[1, 2] = [0.5, 0.5, 0.5, 0.0]
    with raises(ParameterError, "emissions[1, 2]"):
        explorers.hop_b_class(bad)


def test_classes_of_worlds():
    worlds = [sensor().at(ear=log(p / (1 - p)), drift=0.0) for p in (0.6, 0.85)]
    emissions = check_tables("rule", "emissions", worlds, (3,))
    np.testing.assert_allclose(emissions[1], [[0.85, 0.15], [0.15, 0.85]])
    transitions = check_tables(
        "rule", "transitions", [worlds[0], worlds[0].pomdp.moves(0)], (4,)
    )  # mixed, too
    np.testing.assert_array_equal(transitions[0], transitions[1])


# Likelihoods


def test_log_likelihoods():
    """Sums of logarithms; impossible observations give minus infinity. The same when traced."""
    tables = np.array(
        [[[0.5, 0.5], [0.1, 0.9]], [[1.0, 0.0], [0.3, 0.7]], [[0.0, 1.0], [0.5, 0.5]]]
    )
    counts = np.array([[4, 0], [1, 2]])
    by_hand = [4 * log(0.5) + log(0.1) + 2 * log(0.9), log(0.3) + 2 * log(0.7), -np.inf]
    np.testing.assert_allclose(log_likelihoods(tables, counts), by_hand, rtol=1e-14)
    np.testing.assert_array_equal(log_likelihoods(tables, 0 * counts), np.zeros(3))
    with x64():
        np.testing.assert_allclose(
            jax.jit(log_likelihoods)(jnp.asarray(tables), jnp.asarray(counts)), by_hand, rtol=1e-14
        )
