"""The total-variation bound of HOP-B: its terms, and each step of its proof."""

import math
from itertools import product

import jax
import numpy as np
import pytest

from homdp_ppl import POMDP, Counts, GraphPolicy, evaluation, models, rollout, theory
from homdp_ppl import uniform_policy as uniform
from homdp_ppl.confidence import empirical, hop_b_bonus, hop_b_radii
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.planners import history_tree


def test_terms_by_hand():
    """X, Y, A, H, K = 2, 3, 4, 5, 100 and delta = 1/20."""
    bound = theory.hop_b_tv_bound(2, 3, 4, 5, 100, delta=0.05)
    emission = math.sqrt(8 * 3 * math.log(3 * 2 * 500 * 20))
    bonus = math.sqrt(4 * 125 * math.log(3 * 2 * 4 * 500 * 20))
    transition = math.sqrt(2 * math.log(2 * 8 * 500 * 20))
    terms = [
        1350 * math.sqrt(50 * math.log(20)),
        67.5 * emission * 2 * math.sqrt(1000),
        62.5 * transition * 2 * math.sqrt(4000),
        bonus * 2 * math.sqrt(4000),
        67.5 * emission * 10,
        (62.5 * transition + bonus) * 40,
    ]
    np.testing.assert_allclose(bound[:-1], terms, rtol=1e-12)
    assert bound.total == pytest.approx(sum(terms), rel=1e-12)
    assert bound.probability == pytest.approx(0.8)


def test_one_state_has_no_transition_error():
    bound = theory.hop_b_tv_bound(1, 2, 2, 3, 10)
    assert bound.transition == 0
    assert bound.transition_residual > 0  # the bonuses of Algorithm 1


def test_orders():
    """For K to infinity, the terms grow as stated: X^2 A H^5 K and X Y H^5 K, up to logarithms."""
    small, large = (theory.hop_b_tv_bound(64, 4, 3, 8, K) for K in (10**12, 4 * 10**12))
    for term in ("concentration", "emission", "transition", "bonus"):
        assert getattr(large, term) / getattr(small, term) == pytest.approx(2, rel=0.02)
    wide = theory.hop_b_tv_bound(512, 4, 3, 8, 10**12)
    assert wide.transition / small.transition == pytest.approx(8, rel=0.25)


def sides(policy, truth, learned):
    """v-hat - v, and E_pi of the sum of step 3 with distances in the place of radii."""
    H = truth.horizon
    visits = evaluation.occupancy(policy, truth)  # (H, X, A)
    O = np.abs(truth.shows(0) - learned.shows(0)).sum(-1)  # noqa: E741
    T = np.abs(truth.moves(0) - learned.moves(0)).sum(-1)
    bonus = (learned.reward - truth.reward)[:, :, 0]
    left = policy_value(policy, learned) - policy_value(policy, truth)
    distance = (visits.sum(2) @ O).sum() + (visits[:-1] * T).sum()
    return left, distance, (visits * bonus).sum(), H


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 6), marks=pytest.mark.slow)])
def test_one_round_on_simulated_counts(seeds):
    """Step 3 for the policy of the round, with the actual distances, in random worlds."""
    for seed in seeds:
        world = models.load("random", states=2, observations=2, actions=2, horizon=3, seed=seed)
        for n in (1, 5, 50):
            keys = jax.random.split(jax.random.key(seed), n)
            counts = Counts.of(rollout(keys, world, uniform(world)), world)
            radii = hop_b_radii(world.homdp, counts, 100, known=False)
            estimate = empirical(world.homdp, counts, False)
            learned = estimate.with_bonus(hop_b_bonus(radii, 3))
            assert learned.reward.max() <= 5 * 3
            policy = history_tree()(learned).policy
            left, distance, bonus, H = sides(policy, world.pomdp, learned)
            assert left <= 2.5 * H**2 * distance + bonus + 1e-9


def test_the_factor_cannot_be_smaller():
    """One state, opposite emissions, and rewards 0 and 5 H at H = 1: step 3 is an equality."""
    truth = POMDP.of([1.0], [[[1.0], [1.0]]], [[1.0, 0.0]], [[0.0, 0.0]], horizon=1)
    learned = truth.with_tables(emission=np.array([[0.0, 1.0]]))
    learned = learned._replace(reward=np.array([0.0, 5.0]).reshape(1, 1, 1, 2))
    policy = GraphPolicy(np.array([0, 1]), np.eye(2), np.zeros((2, 1, 2), dtype=int))
    left, distance, _, _ = sides(policy, truth, learned)
    assert left == pytest.approx(5)
    assert left == pytest.approx(2.5 * distance)


def test_the_pigeonhole_lemma_on_all_short_sequences():
    """H S + 2 sqrt(H S K), sharper than the paper's factor 3; factor 1/2 would be false."""
    worst = 0.0
    for S, H, K in ((1, 1, 8), (1, 3, 5), (2, 1, 8), (2, 2, 4)):
        for flat in product(range(S), repeat=H * K):
            found = theory.pigeonhole(np.reshape(flat, (K, H)), S).root
            assert found <= H * S + 2 * math.sqrt(H * S * K)
            worst = max(worst, (found - H * S) / math.sqrt(H * S * K))
    assert worst > 0.5


def test_weissman_events_by_simulation():
    """The distance of frequencies exceeds the radius of E_1 in at most a share delta of 2,000 runs
    of one row, over all numbers of draws (false-alarm rate below 1e-6). Planted bug: a radius
    smaller by a factor 3 fails.
    """
    generator, delta, draws = np.random.default_rng(0), 0.1, 200
    row = np.array([0.2, 0.3, 0.5])
    seen = generator.choice(3, (2000, draws), p=row)
    n = np.arange(1, draws + 1)
    frequency = np.eye(3)[seen].cumsum(1) / n[:, None]
    distance = np.abs(frequency - row).sum(-1)
    radius = np.sqrt(2 * np.log(6 * draws / delta) / n)
    limit = delta + 4.75 * math.sqrt(delta * (1 - delta) / 2000)
    assert (distance > radius).any(1).mean() <= limit
    assert (distance > radius / 3).any(1).mean() > limit


def test_the_printed_emission_radius_is_enough():
    """X K H (2^Y - 2) (delta / (Y X K H))^(4Y) is at most 0.008 delta, so E_O has probability
    1 - delta and optimism 1 - 2 delta; the same for the class, whose radius has no delta.
    """
    for X, Y, K, H in product((1, 2, 5, 20), (2, 3, 10), (1, 10, 1000), (1, 3, 10)):
        for delta in (1e-3, 0.1, 0.5, 1.0):
            draws = X * K * H
            log_failure = math.log(draws * (2**Y - 2)) + 4 * Y * math.log(delta / (Y * draws))
            assert log_failure <= math.log(0.008 * delta)
    smallest = 2 * 3 * 1000 * 4 * 2 * (4 * 3 * 1000 * 4.0) ** -8
    assert smallest == pytest.approx(1.7e-33, rel=0.05)
