"""Rules are compared by what they lost in the episodes played; intervals, tests and Holm."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import false_discovery_control, permutation_test
from scipy.stats import t as student

from homdp_ppl import DataError, evaluate, evaluation, explorers, learn, models, study
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.learning.record import Record
from homdp_ppl.planners import history_tree
from homdp_ppl.report import comparison_table, draw_regret
from homdp_ppl.study.differences import holm
from tests.chances import believable
from tests.raising import raises

EPISODES = 41  # of horizon 2: HOP-V plays 20 epochs and leaves out the last episode


@pytest.fixture(scope="module")
def versions():
    """HOP-V with a class that has only the truth: all its policies are optimal."""
    world = models.load("tiger", horizon=2)
    rules = {"greedy": explorers.greedy(), "hop_v": explorers.hop_v([world], [world])}
    runs = {
        name: learn(world, rule, history_tree(), EPISODES, seed=[0, 1])
        for name, rule in rules.items()
    }
    return world, runs


def test_hop_v_against_greedy(versions):
    """HOP-V loses more: its policies are optimal, but it plays them with uniform actions.

    The loss of an epoch is that of pi o_h Unif(A), h = 1, 2, from the exact evaluator. Regret over
    policies would have the opposite sign: it is 0 for HOP-V, and positive for greedy.
    """
    world, runs = versions
    (best,) = {run.optimum for several in runs.values() for run in several}
    policy = runs["hop_v"][0].policy
    epoch = sum(best - evaluate(evaluation.uniform_at(policy, h, 2), world.pomdp) for h in (1, 2))
    assert epoch > 0.5
    _, hop_v = study.summarise(runs)
    assert hop_v.regret == pytest.approx(20 * epoch, abs=1e-9)
    assert hop_v.per_policy == pytest.approx(0.0, abs=1e-12)
    assert hop_v.per_episode == pytest.approx(epoch / 2, abs=1e-9)
    first = [run.gaps[:40].sum() for run in runs["greedy"]]  # over the same 40 episodes
    assert np.mean(first) > 0.001
    assert hop_v.less == pytest.approx(20 * epoch - np.mean(first), abs=1e-9)
    assert hop_v.less > 10
    mean, _ = study.paired_difference(runs["greedy"], runs["hop_v"])
    assert mean == pytest.approx(-hop_v.less, abs=1e-12)
    (pair,) = study.pairwise_differences(runs)
    assert (pair.rule, pair.other, pair.mean) == ("hop_v", "greedy", hop_v.less)


def test_tables_and_figures_of_hop_v(versions):
    _, runs = versions
    rows = study.summarise(runs)
    table = comparison_table(rows)
    cells = {str(column.header): list(column.cells) for column in table.columns}
    assert cells["rule"] == ["greedy", "hop_v *"]
    assert cells["per policy"][1] == "0"
    assert cells["per episode"][1] == f"{rows[1].per_episode:.3g}"
    end = draw_regret(runs).lines[1].get_xydata()[-1]
    assert end == pytest.approx([40, rows[1].regret])
    run = runs["hop_v"][0]
    assert f"{run.lost[-1]:.4g} lost in 40 episodes" in repr(run)
    np.testing.assert_array_equal(run.lost_by_round, run.lost[1::2])


def test_loss_of_other_rules_and_with_foresight():
    """For other rules the loss is the regret; so it is with foresight, where ``played`` is the
    value of a collector that sees the state, above the optimum.
    """
    world = models.load("tiger", horizon=2)
    run = learn(world, explorers.epsilon_greedy(0.3), history_tree(), 20, compiled=False)
    np.testing.assert_allclose(run.lost, run.regret, rtol=0, atol=1e-12)
    seeing = learn(world, explorers.greedy(), history_tree(), 20, foresight=True)
    assert (seeing.played > seeing.optimum).all()
    np.testing.assert_array_equal(seeing.lost, seeing.regret)


def test_the_sign_flip_test_against_scipy():
    """All flips of ten differences, and random flips of twenty; scipy flips the signs too."""
    generator = np.random.default_rng(3)
    for n, tolerance in ((10, 1e-12), (20, 0.012)):  # 0.012: 3 standard errors of 2^14 flips
        for shift in (0.0, 0.4):
            first, second = generator.normal(size=(2, n))
            (found,) = study.pairwise_differences({"one": fake(second), "two": fake(first + shift)})
            wanted = permutation_test(
                (first + shift, second),
                lambda a, b, axis: (a - b).mean(axis),
                permutation_type="samples",
                vectorized=True,
                n_resamples=np.inf if n == 10 else 99_999,
                random_state=0,
            )
            assert found.p_value == pytest.approx(wanted.pvalue, abs=tolerance)


def test_sign_flip_tests_are_valid_for_two_values():
    """Two exchangeable rules with losses 0 or 100: at level 0.05 at most 5% of 1,000 tests reject
    (false-alarm rate 1e-6). Tests of three pairs at 0.05 reject one of them more often; with Holm's
    correction they do not.
    """
    generator = np.random.default_rng(1)
    single = any_of_three = corrected = 0
    for _ in range(1000):
        three = 100.0 * (generator.random((3, 10)) < 0.3)
        runs = {name: fake(losses) for name, losses in zip("abc", three, strict=True)}
        found = study.pairwise_differences(runs)
        single += found[0].p_value <= 0.05
        any_of_three += min(one.p_value for one in found) <= 0.05
        corrected += min(one.adjusted for one in found) <= 0.05
    limit = 1000 * 0.05 + 4.75 * np.sqrt(1000 * 0.05 * 0.95)
    assert single <= limit
    assert corrected <= limit
    assert any_of_three > single


def test_holm_by_hand():
    """Against the definition: the smallest level at which Holm's procedure rejects."""
    generator = np.random.default_rng(2)
    for p in (generator.random(5) ** 3, np.array([0.02, 0.02, 0.5]), np.array([0.01])):
        found = np.array(holm([float(value) for value in p]))
        for level in np.linspace(0.001, 0.999, 500):
            rejected = np.zeros(len(p), dtype=bool)
            for rank, k in enumerate(np.argsort(p, kind="stable")):
                if p[k] > level / (len(p) - rank):
                    break
                rejected[k] = True
            np.testing.assert_array_equal(found <= level, rejected)
        assert (found >= false_discovery_control(p) - 1e-12).all()  # stricter than Benjamini's
    assert holm([0.03, float("nan")])[0] == 0.03
    with raises(DataError, "p_values"):
        holm([1.5])


def test_intervals_of_two_values_cover():
    """Losses 0 or 100: given that both values occur, 95% of the intervals contain the mean.

    Planted bug: Student's intervals alone cover less often. The false-alarm rate is 1e-6.
    """
    generator = np.random.default_rng(5)
    for n, p in product((8, 50), (0.5, 0.1)):
        covered, students = [], []
        while len(covered) < 1000:
            losses = 100.0 * (generator.random(n) < p) + generator.normal(size=n)
            if np.ptp(losses) < 50:
                continue
            mean, (low, high) = study.paired_difference(fake(losses), fake(np.zeros(n)))
            reach = student.ppf(0.975, n - 1) * losses.std(ddof=1) / np.sqrt(n)
            covered.append(low <= 100 * p <= high)
            students.append(abs(mean - 100 * p) <= reach)
        least = 0.95 - 4.75 * np.sqrt(0.95 * 0.05 / 1000)
        assert np.mean(covered) >= least
        assert np.mean(students) <= np.mean(covered)
        if (n, p) == (50, 0.1):
            assert np.mean(students) < least


def test_intervals_of_differences_cover():
    """95% of 2,000 intervals contain the true difference, with a false-alarm rate of 1e-6.

    Common random numbers make them narrow.

    Planted bugs: seeds that are not paired give wide intervals, and normal quantiles instead of
    Student's give too low a coverage.
    """
    generator = np.random.default_rng(0)
    common, own = generator.normal(size=(2000, 8)), generator.normal(scale=0.3, size=(2, 2000, 8))

    def intervals(shift=0):
        """Centres and half-widths; a shift pairs different seeds."""
        pairs = (
            (fake(common[k] + own[0, k]), fake(np.roll(common[k], shift) + own[1, k] + 1.0))
            for k in range(2000)
        )
        low, high = np.array([study.paired_difference(other, one)[1] for one, other in pairs]).T
        return (low + high) / 2, (high - low) / 2

    middle, half = intervals()
    narrow = 0.5 * 2.3 * np.sqrt(2 / 8)
    assert believable(np.abs(middle - 1.0) <= half, 0.95)
    assert half.mean() < narrow < intervals(shift=1)[1].mean()
    assert not believable(np.abs(middle - 1.0) <= half * 1.96 / student.ppf(0.975, 7), 0.95)


def fake(losses):
    """Runs that have only a final loss."""

    class Only(Measured):
        about = lost = None

        def __init__(self, seed, lost):
            self.about, self.lost = {"seed": seed, "soundness": "none"}, np.array([lost])
            self.record = Record(*[np.zeros(1)] * 9)

    return [Only(seed, lost) for seed, lost in enumerate(losses)]
