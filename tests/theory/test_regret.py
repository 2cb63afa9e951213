"""Regret bounds and sample sizes against hand computation."""

import math

import numpy as np
import pytest

from homdp_ppl import ParameterError, models, theory
from homdp_ppl.theory.samples import smallest

E = math.e


def test_regret_of_hop_b_by_hand():
    """X, Y, A, H, K = 2, 3, 4, 5, 100 and delta = 1/20, so iota = log 960,000."""
    bound = theory.hop_b_bound(2, 3, 4, 5, 100, delta=0.05)
    iota = math.log(960_000)
    terms = [
        48 * 21 * E * math.sqrt(15_625 * 100 * math.log(40)),  # H^6, not the printed H^5
        3 * 21 * E * math.sqrt(8 * 3 * 2 * 3125 * 100 * iota),
        3 * 21 * E * math.sqrt(4 * 2 * 4 * 625 * 100 * iota),
        21 * E * 625 * 4 * 4 * iota * (2 + math.log(100)),  # 2 + log K, not the printed 1 + log K
        21 * E * 25 * math.sqrt(8 * 3 * iota) * 5 * 2,
        21 * E * math.sqrt(4 * 125 * iota) * 5 * 2 * 4,
    ]
    np.testing.assert_allclose(bound[:-1], terms, rtol=1e-12)
    assert bound.total == pytest.approx(sum(terms), rel=1e-12)
    assert bound.probability == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("sizes", "twice_c"), [((2, 3, 4, 5), 5), ((3, 2, 2, 1), 2), ((1, 1, 1, 2), 2)]
)
def test_regret_of_hop_b_equals_its_penultimate_display(sizes, twice_c):
    """C e times the sums of both radii and of tilde-epsilon(c), c = max(1, H/2), each bounded by
    its pigeonhole lemma.
    """
    X, Y, A, H = sizes
    iota = math.log(2 * X * X * Y * A * 70 * H / 0.1)
    sums = H**2 * math.sqrt(8 * Y * iota) * theory.root_pigeonhole(X, H, 70)
    sums += math.sqrt(4 * H**3 * iota) * theory.root_pigeonhole(X * A, H, 70)
    sums += H**2 * twice_c * X * iota * theory.reciprocal_pigeonhole(X * A, H, 70)
    bound = theory.hop_b_bound(*sizes, 70)
    assert bound.total - bound.concentration == pytest.approx(21 * E * sums, rel=1e-12)


def test_regret_with_an_emission_class_by_hand():
    """X, A, H, K = 2, 3, 5, 100, delta = 1/20, seven tables: iota = log 240,000."""
    bound = theory.hop_b_class_bound(2, 3, 5, 100, size=7, delta=0.05)
    iota = math.log(240_000)
    terms = [
        64 * math.sqrt(15_625 * 100 * math.log(40)),
        16 * 25 * math.sqrt(8 * (math.log(7) + iota)) * 3 * math.sqrt(5 * 2 * 100),
        16 * 25 * math.sqrt(8 * 2 * iota) * 3 * math.sqrt(5 * 2 * 3 * 100),
        16 * 25 * math.sqrt(8 * (math.log(7) + iota)) * 5 * 2,
        16 * 25 * math.sqrt(8 * 2 * iota) * 5 * 2 * 3,
    ]
    np.testing.assert_allclose(bound[:-1], terms, rtol=1e-12)
    assert bound.total == pytest.approx(sum(terms), rel=1e-12)
    assert bound.probability == pytest.approx(0.85)


def test_regret_of_hop_v_by_hand():
    """A, H, K = 2, 3, 20: six epochs; 7 transition and 5 emission tables, rank 2, delta = 1/20."""
    bound = theory.hop_v_bound(2, 3, 20, transitions=7, emissions=5, rank=2, delta=0.05)
    parts = [1, 2 * math.log(6 * 7 * 20), 2 * math.log(6 * 5 * 20), math.log(6 * 3 * 35 * 20)]
    assert bound[:5] == (6, *(pytest.approx(part) for part in parts))
    assert bound.potential == pytest.approx(4 * math.log(7))
    assert bound.total == pytest.approx(9 * math.sqrt(64 * sum(parts) * 2 * 6 * 4 * math.log(7)))
    assert bound.probability == pytest.approx(0.85)
    assert theory.hop_v_bound(2, 3, 18, 7, 5, 2, 0.05) == bound  # an incomplete epoch is not played
    huge = theory.hop_v_bound(2, 3, 20, transitions=10**4000, emissions=5, rank=2, delta=0.05)
    assert huge.transition == pytest.approx(2 * (4000 * math.log(10) + math.log(120)))


def test_bounds_increase_with_every_size_and_decrease_per_episode():
    bounds = {
        theory.hop_b_bound: (3, 4, 2, 5, 50),
        theory.hop_b_class_bound: (3, 2, 5, 50, 9),
        theory.hop_v_bound: (2, 5, 50, 9, 8, 3),
    }
    for bound, sizes in bounds.items():
        plain = bound(*sizes).total
        place = (
            2 if bound is theory.hop_v_bound else 4 if bound is theory.hop_b_bound else 3
        )  # index of the number of episodes
        for k in range(len(sizes)):
            bigger = [n * (2 if k == j else 1) for j, n in enumerate(sizes)]
            if bound is theory.hop_v_bound and k == 1:
                bigger[place] *= 2  # the same number of epochs with a longer horizon
            assert bound(*bigger).total > plain
        assert bound(*sizes, 0.05).total > plain
        bigger = [n * (2 if place == j else 1) for j, n in enumerate(sizes)]
        assert bound(*bigger).total < 2 * plain


def test_sample_sizes_are_the_smallest_and_show_the_leading_order():
    for accuracy in (1e7, 1e6, 10.0):
        size = theory.hop_b_samples(2, 3, 2, 3, accuracy)
        holds = [
            theory.hop_b_bound(2, 3, 2, 3, K).total / K <= accuracy
            for K in (size.episodes - 1, size.episodes)
            if K
        ]
        assert holds == [False, True][-len(holds) :]
    scan = next(K for K in range(1, 1000) if theory.hop_b_bound(2, 3, 2, 3, K).total / K <= 3e5)
    assert theory.hop_b_samples(2, 3, 2, 3, 3e5).episodes == scan > 1
    scan = next(
        K for K in range(1, 1000) if theory.hop_b_class_bound(2, 2, 3, K, 9).total / K <= 1e4
    )
    assert theory.hop_b_class_samples(2, 2, 3, 9, 1e4).episodes == scan > 1
    scan = next(
        K for K in range(1, 1000) if theory.hop_v_bound(2, 3, 3 * K, 9, 8, 2).total / K <= 500
    )
    assert theory.hop_v_samples(2, 3, 9, 8, 2, 500.0).episodes == 3 * scan > 3
    assert theory.hop_b_samples(2, 3, 2, 3, 0.5).leading == (2 * 3 * 243 + 2 * 2 * 81) / 0.25
    assert theory.hop_b_class_samples(2, 2, 3, 9, 0.5).leading == pytest.approx(
        243 * (2 * math.log(9) + 8) / 0.25
    )
    assert theory.hop_v_samples(2, 3, 9, 8, 2, 0.5).leading == pytest.approx(
        2 * 243 * 2 * math.log(720) / 0.25
    )
    assert [smallest(lambda k, n=n: k >= n) for n in (1, 2, 3, 5, 8, 1000)] == [1, 2, 3, 5, 8, 1000]


@pytest.mark.parametrize("accuracy", [1e300, 1e155, 0.0, math.nan])
def test_accuracies_out_of_range(accuracy):
    for call in (
        lambda: theory.hop_b_samples(2, 3, 2, 3, accuracy),
        lambda: theory.hop_b_class_samples(2, 2, 3, 9, accuracy),
        lambda: theory.hop_v_samples(2, 3, 9, 8, 2, accuracy),
        lambda: theory.report(models.load("tiger"), 10, accuracy=accuracy),
    ):
        with pytest.raises(ParameterError) as caught:
            call()
        assert [problem.where for problem in caught.value.problems] == ["accuracy"]
