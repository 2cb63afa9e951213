"""The report says which statements are informative. Invalid arguments raise an error with all
problems.
"""

import math

import numpy as np
import pytest

from homdp_ppl import Counts, ParameterError, Spaces, theory, uniform_policy
from homdp_ppl.evaluation.lemma import simulation_lemma
from homdp_ppl.planners import history_tree
from tests.encodings import encoded, ending_pomdp, world_of
from tests.raising import raises
from tests.random_rewards import CHANCES, native
from tests.richer import richer
from tests.worlds import random_policy, world


def test_report_says_when_statements_are_informative():
    rows = {row.name: row for row in theory.report(world("tiger"), 1000)}
    first = rows["regret of HOP-B"]
    assert first.value == theory.hop_b_bound(2, 2, 3, 4, 1000).total
    assert first.trivial == 4000
    assert not first.informative
    K = int(first.since)
    better = {row.name: row for row in theory.report(world("tiger"), K)}["regret of HOP-B"]
    assert better.informative
    assert not {row.name: row for row in theory.report(world("tiger"), K - 1)}[
        "regret of HOP-B"
    ].informative
    classed = rows["regret of HOP-B, emission class"]
    assert classed.value == theory.hop_b_class_bound(2, 3, 4, 1000, 1000**2).total
    epochs = rows["regret of HOP-V"]
    assert epochs.value == theory.hop_v_bound(3, 4, 1000, 1000**6, 1000**2, 2).total
    assert epochs.trivial == 1000
    assert (
        rows["episodes for a gap of 0.4, HOP-B"].value
        == theory.hop_b_samples(2, 2, 3, 4, 0.4).episodes
    )
    assert not rows["gap that no algorithm avoids"].informative
    assert rows["sum of 1 / n(x, a)"].informative
    assert rows["elliptical potential"].value == pytest.approx(4 * math.log(251))
    assert {
        row.name for row in theory.report(world("tiger"), 3)
    } == rows.keys()  # fewer episodes than steps: no epoch
    assert not any(
        row.informative for row in theory.report(world("tiger"), 10**30, delta=0.4)[:1]
    )  # 1 - 5 delta < 0


def test_report_of_a_large_model_has_a_lower_bound():
    names = [tuple(map(str, range(n))) for n in (127, 10, 2)]
    rows = {row.name: row for row in theory.report(Spaces(*names, 7), 800, accuracy=0.01)}
    assert rows["gap that no algorithm avoids"].value == pytest.approx(1 / 1280)
    assert rows["episodes no algorithm avoids for a gap of 0.01"].value == pytest.approx(
        512 / (1024 * 0.32**2)
    )
    assert all(rows[name].informative for name in rows if "no algorithm" in name)


@pytest.mark.parametrize(
    ("call", "places"),
    [
        (lambda: theory.hop_b_bound(0, 2, 2.5, 2, 9, delta=2), ["states", "actions", "delta"]),  # type: ignore[arg-type]
        (lambda: theory.hop_b_class_bound(1, 2, 2, 9, size=0), ["size"]),
        (lambda: theory.hop_v_bound(2, 4, 3, 1, 1, 1), ["episodes"]),
        (lambda: theory.hop_b_samples(2, 2, 0, 2, accuracy=0.0), ["actions", "accuracy"]),
        (lambda: theory.lower_bound(127, 10, 0.5), ["epsilon"]),
        (lambda: theory.packing(97), ["length"]),
        (lambda: theory.separation([1, 1], [1], 0.1), ["others"]),
        (lambda: theory.pigeonhole([0, 1], 2), ["visited"]),
        (lambda: theory.pigeonhole([[0, 2]], 2), ["visited"]),
        (lambda: theory.pigeonhole([[0, 1]], 2.5), ["cells"]),  # type: ignore[arg-type]
        (lambda: theory.elliptical_potential([[1.0, 1.0]]), ["features"]),
        (lambda: theory.elliptical_potential([[1.0]], regulariser=0.0), ["regulariser"]),
        (lambda: theory.elliptical_potential([1.0]), ["features"]),
        (lambda: theory.report(world("tiger"), 0, delta="x"), ["episodes", "delta"]),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments(call, places):
    with raises(ParameterError, *places):
        call()


@pytest.mark.parametrize("number", [np.int32, np.int64])
def test_numpy_numbers_do_not_overflow(number):
    """Products of sizes exceed 64 bits, although the formulas are still meaningful."""
    big = (500, 500, 50, 100, 10**9)
    assert theory.hop_b_bound(*map(number, big)) == theory.hop_b_bound(*big)
    assert theory.hop_b_class_bound(*map(number, big)) == theory.hop_b_class_bound(*big)
    assert theory.hop_v_bound(
        *map(number, (50, 100, 10**9, 10**9, 10**9, 500))
    ) == theory.hop_v_bound(50, 100, 10**9, 10**9, 10**9, 500)
    assert theory.hop_b_samples(*map(number, big[:4]), 0.1) == theory.hop_b_samples(*big[:4], 0.1)
    assert theory.root_pigeonhole(*map(number, big[2:])) == theory.root_pigeonhole(*big[2:])
    assert theory.lower_bound(number(127), number(10), 0.1) == theory.lower_bound(127, 10, 0.1)
    assert theory.unavoidable_gap(number(127), number(10), number(50)) == theory.unavoidable_gap(
        127, 10, 50
    )
    assert theory.report(world("tiger"), number(10**9)) == theory.report(world("tiger"), 10**9)


def test_the_simulation_lemma_is_also_listed_here():
    assert theory.simulation_lemma is simulation_lemma


@pytest.mark.parametrize(
    ("kinds", "where"),
    [("t", {"transition"}), ("a", {"emission"}), ("toy", {"transition", "emission"})],
)
def test_statements_that_are_not_known_raise(kinds, where):
    """The paper has one table for all steps; rewards of observations and ends are covered."""
    pomdp = ending_pomdp(0, kinds=kinds)
    made = world_of(pomdp)
    policy, counts = uniform_policy(pomdp), Counts.zero(pomdp.spaces)
    for attempt in (
        lambda: theory.report(pomdp, 100),
        lambda: theory.report(made, 100),
        lambda: theory.report(made.homdp, 100),
        lambda: theory.hop_b_optimism(policy, made, counts, 100),
        lambda: theory.hop_b_class_optimism([policy], made, counts, np.ones((1, 3, 3)) / 3, 100),
    ):
        with raises(ParameterError, *where):
            attempt()
    covered = ending_pomdp(0, kinds="y")
    assert theory.report(covered, 100) == theory.report(covered.spaces, 100)
    encoding = theory.report(encoded(pomdp), 100)
    assert encoding[0].value > theory.report(pomdp.spaces, 100)[0].value


def test_what_has_to_be_learned_is_known_in_the_paper():
    """An unknown start has no regret bound; unknown rewards have neither bound nor lemma."""
    start, paid = richer("start"), native().at(p=CHANCES, accuracy=0.8)
    for model in (start, start.homdp):
        with raises(ParameterError, "initial"):
            theory.report(model, 100)
    with raises(ParameterError, "reward"):
        theory.report(paid, 100)
    policy = uniform_policy(paid)
    with raises(ParameterError, "reward"):
        theory.hop_b_optimism(policy, paid, Counts.zero(paid), 100)
    assert theory.report(start.spaces, 100) == theory.report(start.pomdp, 100)
    alphas = theory.hop_b_optimism(uniform_policy(start), start, Counts.zero(start), 100)
    assert alphas.slack >= 0  # the lemma is about alpha-vectors, which have no start


def test_remedies_name_the_number_of_emission_rows():
    with raises(ParameterError, "emission") as caught:
        theory.report(richer("answers"), 100)
    assert "= 6 states" in caught.value.problems[0].remedy


@pytest.mark.parametrize("kinds", ["t", "a", "toy", ""])
def test_the_simulation_lemma_with_full_ranks(kinds):
    """Differences and distances equal those of the encoded models, and the bound holds."""
    for seed in range(3):
        one, other = (ending_pomdp(k, kinds=kinds) for k in (seed, seed + 9))
        other = other._replace(reward=one.reward, initial=one.initial)
        policy = random_policy(one.spaces, seed)
        found = simulation_lemma(policy, one, other)
        expected = simulation_lemma(policy, encoded(one), encoded(other))
        assert found.difference == pytest.approx(expected.difference, abs=1e-12)
        assert found.distance == pytest.approx(expected.distance, abs=1e-12)
        assert found.distance <= found.bound + 1e-12
        assert expected.bound <= found.bound + 1e-12


def test_plans_are_no_models():
    """A plan has spaces, but no tables."""
    with raises(ParameterError, "model"):
        theory.report(history_tree()(world("tiger").pomdp), 10)
