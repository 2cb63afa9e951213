"""Certified choice: safe improvement over random worlds, baselines, candidates and planners."""

import jax
import numpy as np
import pytest
from scipy.stats import binom

from homdp_ppl import (
    DataError,
    Episodes,
    GraphPolicy,
    ParameterError,
    PolicyError,
    evaluate,
    models,
    offline,
    rollout,
    uniform_policy,
)
from homdp_ppl.confidence import confidence_sets, interval
from homdp_ppl.offline import search, tree
from homdp_ppl.planners import history_tree, particle_tree
from tests.gaps import with_gaps
from tests.offline.simulated import declaration, following, random_world, seeing, simulate
from tests.raising import raises
from tests.richer import limited, once
from tests.worlds import random_policy

ALARM, DELTA = 1e-4, 0.1
RANGE = 3.0  # of returns in three steps


def improvements(seeds):
    """For each world: the values of the behaviour, of greedy on the log, and of the choice."""
    homdp, rows = declaration(), []
    for seed in seeds:
        world = random_world(homdp, seed)
        if seed % 3 == 2:
            table = np.random.default_rng(seed).dirichlet([1, 1], 2)
            log = simulate(world.pomdp, seeing(table), 1000, seed, saw_states=True)
            more = simulate(world.pomdp, seeing(table), 50_000, seed + 1, saw_states=True)
            present = float(world.returns(more).mean())
        else:
            other = history_tree()(random_world(homdp, seed + 10_000).pomdp).policy
            share = 1.0 if seed % 3 == 0 else 0.3
            acting = GraphPolicy(
                other.start, (1 - share) * other.probabilities + share / 2, other.successor
            )
            log = simulate(world.pomdp, following(acting), 1000, seed)
            present = evaluate(acting, world.pomdp)
        greedy = history_tree()(confidence_sets(homdp, homdp.counts(log)).centre).policy
        choice = offline.choose(homdp, log)
        value = present if choice.kept else evaluate(choice.policy, world.pomdp)
        rows.append((present, evaluate(greedy, world.pomdp), value))
    return np.array(rows)


def safe_and_useful(rows):
    """At most delta are worse (false-alarm rate 1e-4), and half of the clear cases are better."""
    present, greedy, chosen = rows.T
    worse = (chosen < present - 1e-3).sum()  # some present values are estimated
    assert worse <= binom.isf(ALARM, len(rows), DELTA)
    clear = greedy > present + 0.05 * RANGE
    assert clear.any()
    assert (chosen > present)[clear].mean() >= 0.5


def test_safe_improvement():
    safe_and_useful(improvements(range(20)))


@pytest.mark.slow
@pytest.mark.long
def test_safe_improvement_over_many_worlds():
    safe_and_useful(improvements(range(200)))


def test_lock_from_a_log_of_someone_who_often_errs():
    """300 episodes of the best policy with half of the actions at random."""
    lock = models.load("lock")
    best = history_tree()(lock.pomdp).policy
    for seed in range(2):
        log = simulate(lock.pomdp, following(best, 0.5), 300, seed)
        choice = offline.choose(lock.homdp, log)
        value = evaluate(choice.policy, lock.pomdp)
        assert value >= 0.7
        assert choice.chosen.low <= value <= choice.chosen.high
        assert choice.chosen.low > choice.baseline.high


def test_lock_from_a_uniform_log_keeps_bounds_sound():
    """Whatever is chosen: with 300 uniform episodes, the last dial was tried only a few times."""
    lock = models.load("lock")
    log = rollout(jax.random.split(jax.random.key(1), 300), lock, uniform_policy(lock))
    choice = offline.choose(lock.homdp, log, baseline=None)
    for one in choice.candidates:
        assert one.low - 1e-9 <= evaluate(one.policy, lock.pomdp) <= one.high + 1e-9
    lows = [one.low for one in choice.candidates]
    assert choice.chosen.low == max(lows)


TIGER = models.load("tiger", horizon=3)
LOG = rollout(jax.random.split(jax.random.key(0), 300), TIGER, uniform_policy(TIGER))


def test_candidates_have_the_certified_intervals():
    mine = {f"random {k}": random_policy(TIGER.spaces, k) for k in range(3)}
    choice = offline.choose(TIGER.homdp, LOG, mine, baseline=None, search=False)
    assert choice.baseline is None
    for one in choice.candidates:
        low, high = interval(TIGER.homdp, LOG, mine[one.name])
        assert (one.low, one.high) == (pytest.approx(float(low)), pytest.approx(float(high)))
    best = max(choice.candidates, key=lambda one: one.low)
    assert choice.chosen is best
    assert choice.policy.names is not None
    assert offline.choose(TIGER.homdp, LOG, list(mine.values()), None).chosen.low >= best.low


def test_search_improves_the_lower_bound_and_stops():
    sets = confidence_sets(TIGER.homdp, TIGER.homdp.counts(LOG))
    rule = tree.unroll(random_policy(TIGER.spaces, 0), sets)
    found = search.improve(sets, rule)
    assert found.lower > tree.worst_models(sets, rule).lower + 0.5
    assert search.improve(sets, found.rule, rounds=1).lower >= found.lower
    greedy = history_tree()(sets.centre).policy
    assert found.lower >= interval(TIGER.homdp, LOG, greedy).low - 0.05


def test_the_baseline_is_kept_unless_it_is_beaten():
    plan = history_tree()(TIGER.pomdp)
    kept = offline.choose(TIGER.homdp, LOG, baseline=plan.policy)
    assert kept.kept
    assert kept.policy is kept.chosen.policy is not None
    assert evaluate(kept.policy, TIGER.pomdp) == pytest.approx(plan.value)
    assert "keep" in kept.words
    poor = offline.choose(TIGER.homdp, LOG, baseline=uniform_policy(TIGER))
    assert not poor.kept
    gain = evaluate(poor.policy, TIGER.pomdp) - evaluate(uniform_policy(TIGER), TIGER.pomdp)
    assert 0 < poor.chosen.gain <= gain
    few = offline.choose(TIGER.homdp, LOG[:3])
    assert few.kept
    assert few.policy is None
    known = offline.choose(TIGER.homdp, LOG[:3], behaviour=uniform_policy(TIGER))
    assert known.baseline.high <= few.baseline.high
    assert not known.kept or known.policy is not None


def test_how_it_is_shown():
    choice = offline.choose(TIGER.homdp, LOG)
    for one in choice.candidates:
        assert one.name in repr(choice)
        assert one.name in choice._repr_html_()
    assert choice.to_table().row_count == len(choice.candidates) + 1
    assert "deploy" in choice.words


def test_missing_states_take_the_bayesian_route():
    log = with_gaps(TIGER, 300, 0.3)
    choice = offline.choose(TIGER.homdp, log)
    assert choice.guarantee == "Bayesian"
    assert not choice.kept
    assert choice.chosen.gain > 0
    assert evaluate(choice.policy, TIGER.pomdp) > evaluate(uniform_policy(TIGER), TIGER.pomdp)
    assert any("biased" in note for note in choice.notes)
    with raises(DataError, "states"):
        offline.bonus_plan(TIGER.homdp, log)


def test_forbidden_actions_are_never_chosen():
    world = limited.draw(jax.random.key(0))
    log = rollout(jax.random.split(jax.random.key(0), 200), world, uniform_policy(world, once))
    choice = offline.choose(world.homdp, log, baseline=None)
    H = world.spaces.horizon
    for one in choice.candidates:
        played = rollout(jax.random.split(jax.random.key(1), 200), world, one.policy)
        for y, a in zip(played.observations, played.actions, strict=True):
            assert all(once(y[: h + 1], a[:h])[a[h]] for h in range(H))


def test_pessimistic_planners_avoid_what_they_do_not_know():
    """A lamp room with a known small reward, and a row that was never tried."""
    homdp = declaration()
    world = random_world(homdp, 4)
    log = simulate(world.pomdp, following(uniform_policy(world)), 30, 0)
    only = Episodes(log.observations, np.zeros_like(log.actions), np.zeros_like(log.states))
    sets = confidence_sets(homdp, homdp.counts(only))
    greedy = interval(homdp, only, history_tree()(sets.centre).policy).low
    careful = interval(homdp, only, offline.bonus_plan(homdp, only).policy).low
    assert careful >= greedy - 1e-9
    for plan in (offline.value_quantile_plan, offline.quantile_backup_plan):
        low, high = (plan(homdp, log, q) for q in (0.05, 0.95))
        assert low.value < high.value
    mean = offline.quantile_backup_plan(homdp, log, 0.5)
    assert low.value < mean.value < high.value


def test_what_is_refused():
    with raises(ParameterError, "baseline"):
        offline.choose(TIGER.homdp, LOG, baseline="the present one")
    with raises(ParameterError, "candidates"):
        offline.choose(TIGER.homdp, LOG, [])
    with raises(ParameterError, "candidates"):
        offline.choose(TIGER.homdp, LOG, {"plan": history_tree()(TIGER.pomdp)})
    with raises(PolicyError, "policy"):
        offline.choose(TIGER.homdp, LOG, [particle_tree(simulations=10)(TIGER).policy])
    with raises(ParameterError, "delta"):
        offline.choose(TIGER.homdp, LOG, delta=1.0)
    with raises(DataError, "log"):
        offline.choose(TIGER.homdp, Episodes.of([], TIGER))
    with raises(ParameterError, "q"):
        offline.value_quantile_plan(TIGER.homdp, LOG, q=1.5)
    with raises(DataError, "returns"):
        offline.returns_interval(np.array([5.0]), 0.0, 4.0)
