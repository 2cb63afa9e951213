"""Flat tables: their default prior is sparse, so that rules visit rows that were never visited."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from homdp_ppl import (
    Counts,
    ParameterError,
    evaluate,
    explorers,
    learn,
    models,
    uniform_policy,
)
from homdp_ppl.confidence import backup_moments, moment_backup, moments
from homdp_ppl.explorers.quantile_backup import FLAT, NORMAL, is_flat
from homdp_ppl.models.flat import flat_table, sparse_concentration
from homdp_ppl.planners import history_tree
from tests.raising import raises
from tests.richer import richer

FIXTURE = Path(__file__).parents[2] / "benchmarks" / "carried_screening.py"
STATE, DRUG = 13, 3  # early, type A, after a biopsy; the right drug


def fixture():
    spec = importlib.util.spec_from_file_location("carried_screening", FIXTURE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_default_prior_counts_as_one_to_two_observations():
    for outcomes in (2, 3, 5, 18, 1000):
        total = outcomes * sparse_concentration(outcomes)
        assert 1 < total <= 2
    assert sparse_concentration(1) == sparse_concentration(2) == 1
    made = flat_table(models.load("lock"))
    X, Y, *_ = made.spaces.sizes
    prior = made.homdp.structure.conjugate.concentration
    assert set(np.round(prior, 12)) == {round(1 / (X - 1), 12), round(1 / (Y - 1), 12)}
    flat = flat_table(models.load("lock"), 1.0, 1.0)
    assert set(flat.homdp.structure.conjugate.concentration) == {1.0}


def test_why_a_flat_prior_gets_stuck():
    """An unvisited row with total concentration a has the deviation sd(g) / sqrt(a + 1) and the
    average of all states as its mean. With the flat prior the rule values the right drug, before it
    was ever tried, below its true value, so it is not optimistic and prefers what it knows. With
    the sparse prior it is optimistic, at z = 1.645 but not at z = 1.
    """
    made = fixture()
    _, T, _, reward = made.arrays()
    sparse = sparse_concentration(18)
    for concentration, z, stuck in (
        (1.0, 1.645, True),
        (sparse, 1.645, False),
        (sparse, 1.0, True),
    ):
        world = made.world(concentration, sparse_concentration(6))
        last = np.broadcast_to(reward[:, 0], (5, 6, 18))  # wait at the last step
        believed = moments(world.homdp, Counts.zero(world))
        mean, variance = backup_moments(world.homdp)(believed, last)
        total = 18 * concentration
        assert mean[STATE, DRUG] == pytest.approx(reward[:, 0].mean())
        deviation = reward[:, 0].std() / np.sqrt(total + 1)
        assert np.sqrt(variance[STATE, DRUG]) == pytest.approx(deviation)
        valued = mean[STATE, DRUG] + z * deviation
        assert (valued < T[STATE, DRUG] @ reward[:, 0]) == stuck


def test_more_deviations_for_unvisited_rows():
    """After n visits, z + (u - z) (a + 1) / (a + n + 1) deviations; u = z changes nothing."""
    made = fixture()
    world = made.world(sparse_concentration(18), sparse_concentration(6))
    _, _, _, reward = made.arrays()
    last = np.broadcast_to(reward[:, 0], (5, 6, 18))
    counts = Counts.zero(world)
    counts.transition[STATE, DRUG, 0] = 9
    believed = moments(world.homdp, counts)
    mean, variance = backup_moments(world.homdp)(believed, last)
    found = moment_backup(world.homdp, 0.7, 2.5)(believed, 2, last)
    total = 18 / 17
    for action, n in ((DRUG, 9), (0, 0)):
        deviations = 0.7 + 1.8 * (total + 1) / (total + n + 1)
        wanted = mean[STATE, action] + deviations * np.sqrt(variance[STATE, action])
        assert found[STATE, action] == pytest.approx(min(wanted, 1.0))
    same, plain = (moment_backup(world.homdp, 0.7, u)(believed, 2, last) for u in (0.7, None))
    np.testing.assert_allclose(same, plain, rtol=1e-14)


def test_unvisited_rows_in_both_loops():
    """The compiled loop takes the same decisions; posteriors without closed form are refused."""
    world = flat_table(models.load("random", states=3, observations=2, horizon=2))
    rule = explorers.quantile_backup(0.7, unvisited=2.5)
    assert rule == explorers.quantile_backup(0.7, unvisited=2.5)
    assert rule.name == "quantile_backup(z=0.7, unvisited=2.5)"
    one, two = (learn(world, rule, history_tree(), 12, compiled=c) for c in (True, False))
    np.testing.assert_allclose(one.optimistic, two.optimistic, atol=1e-9)
    np.testing.assert_array_equal(one.episodes.actions, two.episodes.actions)
    plain = learn(world, explorers.quantile_backup(0.7), history_tree(), 1)
    assert one.optimistic[0] > plain.optimistic[0] + 0.01
    checkup = models.load("checkup", horizon=2)
    with raises(ParameterError, "unvisited"):
        learn(checkup, rule, history_tree(), 2)


# The default of quantile_backup


def test_which_declarations_are_flat_tables():
    for name in ("tiger_table", "lock_table", "random"):
        assert is_flat(models.load(name).homdp)
    for name in ("tiger", "lock", "checkup", "diagnosis"):
        world = models.load(name)
        assert not is_flat(world.homdp)
        assert is_flat(flat_table(world).homdp)
    assert is_flat(richer("ends").homdp)  # rows of terminal states are known
    assert not is_flat(richer("answers").homdp)  # one parameter in two rows


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (lambda: models.load("random", states=3, horizon=2), FLAT),
        (lambda: models.load("tiger", horizon=2), (NORMAL,)),
    ],
    ids=["flat", "structured"],
)
def test_the_default_depends_on_the_declaration(made, options):
    rule = explorers.quantile_backup()
    assert rule.name == "quantile_backup"
    runs = [
        learn(made(), each, history_tree(), 15, compiled=False)
        for each in (rule, explorers.quantile_backup(*options), explorers.quantile_backup(1.2))
    ]
    np.testing.assert_array_equal(runs[0].optimistic, runs[1].optimistic)
    np.testing.assert_array_equal(runs[0].episodes.actions, runs[1].episodes.actions)
    assert (runs[0].optimistic != runs[2].optimistic).any()


def last_far(world, episodes, seeds):
    """The last episode of each seed with a loss above 5 % of the range, counted from 1."""
    runs = learn(world, explorers.quantile_backup(), history_tree(), episodes, seed=range(seeds))
    spread = runs[0].optimum - evaluate(uniform_policy(world), world.pomdp)
    far = [np.flatnonzero(run.gaps > 0.05 * spread) for run in runs]
    return [1 + int(some[-1]) if len(some) else 0 for some in far]


SMALL = {"tiger": {"horizon": 3}, "random": {"horizon": 3}}
LARGE = {
    "lock": {},
    "meta_learning": {"horizon": 3},
    "fast_control": {"horizon": 3},
    "imitation": {"horizon": 3},
    "sim_to_real": {"horizon": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_the_default_comes_close_for_good(name):
    """Within 5 % of the range between the uniform policy and the optimum, in every seed."""
    world = flat_table(models.load(name, **SMALL[name]))
    assert max(last_far(world, 1500, 3)) < 1000


# on `checkup` and `screening`, some seeds still try other policies after 5,000
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_the_default_comes_close_for_good_everywhere(name):
    world = flat_table(models.load(name, **(SMALL | LARGE)[name]))
    assert max(last_far(world, 6000, 3)) < 5000
