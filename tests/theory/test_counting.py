"""The pigeonhole lemmas for every small sequence, a counterexample to the printed one, and the
elliptical potential on random features.
"""

import math
from itertools import product

import numpy as np
import pytest

from homdp_ppl import theory


def test_pigeonholes_hold_for_every_small_sequence_and_the_printed_one_does_not():
    broken = set()
    for S, H, K in [(1, 1, 6), (1, 3, 4), (2, 1, 6), (2, 2, 4), (3, 1, 5), (3, 2, 3)]:
        for cells in product(range(S), repeat=K * H):
            sides = theory.pigeonhole(np.reshape(cells, (K, H)), S)
            assert sides.root <= sides.root_bound
            assert sides.reciprocal <= sides.reciprocal_bound
            if sides.reciprocal > H * S * (1 + math.log(K)):
                broken.add((S, H, K))
    assert (1, 1, 6) in broken
    visits = theory.pigeonhole([[0], [0]], cells=1)  # H = X = A = 1, K = 2
    assert visits.reciprocal == 2 > 1 + math.log(2)
    assert visits == (2.0, 1 + 3 * math.sqrt(2), 2.0, 2 + math.log(2))


def test_pigeonholes_hold_for_every_sequence_of_counts_of_one_cell():
    """For one cell and all m_1..m_K in {0..H}, the sums are at most H + 3 sqrt(n_{K+1}) and H (2 +
    log K), which add up to the lemmas.
    """
    for H, K in [(1, 10), (2, 7), (3, 6), (4, 5), (9, 4)]:
        m = np.array(list(product(range(H + 1), repeat=K)))
        n = np.maximum(1, np.cumsum(m, 1) - m)
        assert ((m / np.sqrt(n)).sum(1) <= H + 3 * np.sqrt(m.sum(1)) + 1e-12).all()
        assert ((m / n).sum(1) <= H * (2 + math.log(K))).all()


def test_pigeonhole_counts_after_the_episode():
    sides = theory.pigeonhole([[0, 0, 1], [0, 1, 1], [0, 0, 0]], cells=2)  # n = 0 0 0; 2 1 1; 3 3 3
    assert sides.root == pytest.approx(3 + 1 / math.sqrt(2) + 2 + 3 / math.sqrt(3))
    assert sides.reciprocal == pytest.approx(3 + 1 / 2 + 2 + 1)
    assert sides.root_bound == 6 + 3 * math.sqrt(18)
    assert sides.reciprocal_bound == 6 * (2 + math.log(3))


@pytest.mark.parametrize("regulariser", [None, 0.01, 1.0, 5.0])
def test_elliptical_potential(regulariser):
    """Compare with inverses computed at every step.

    Without the minimum with 1 the lemma fails, so the check can fail.
    """
    generator = np.random.default_rng(0)
    for d, K in [(1, 1), (1, 50), (2, 30), (5, 40), (5, 3)]:
        phi = generator.normal(size=(K, d))
        phi *= (generator.uniform(size=K) ** 0.2 / np.linalg.norm(phi, axis=1))[:, None]
        sides = theory.elliptical_potential(phi, regulariser)
        ridge = regulariser or 1 / d
        norms = [
            phi[k] @ np.linalg.inv(ridge * np.eye(d) + phi[:k].T @ phi[:k]) @ phi[k]
            for k in range(K)
        ]
        assert sides.potential == pytest.approx(np.minimum(1, norms).sum())
        assert sides.bound == pytest.approx(2 * d * math.log(1 + K / (d * ridge)))
        assert sides.potential <= sides.bound
        if regulariser == 0.01:
            assert sum(norms) > sides.bound
