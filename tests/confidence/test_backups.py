"""Optimistic backups against rational arithmetic, values computed by hand, and brute force."""

import math
from fractions import Fraction
from itertools import product

import jax
import numpy as np
import pytest
from scipy.special import ndtr

from homdp_ppl import (
    POMDP,
    Counts,
    InferenceError,
    ParameterError,
    PlanningError,
    posterior,
    tabular,
    x64,
)
from homdp_ppl.confidence import (
    backup_moments,
    draw_backup,
    has_moments,
    moment_backup,
    moments,
    one_step,
    start_variance,
    upper_quantile,
)
from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Sampling
from tests.chances import ALARM
from tests.confidence.exact import (
    CLOSED_FORM,
    STORED,
    WRITTEN,
    Cell,
    Written,
    backup_polynomial,
    concentrations,
    declare,
    declared,
    mean_and_variance,
    mixed,
    row,
    some_counts,
    start_polynomial,
    times,
)
from tests.raising import raises


def sizes(name):
    X, Y, A, _ = declared(name).spaces.sizes
    return X, Y, A


def some_alpha(name, generator):
    """Multiples of 1/8: floating-point numbers that rational arithmetic can start from."""
    X, Y, A = sizes(name)
    return generator.integers(0, 25, (A, Y, X)) / 8


def exactly(name, counts, alpha):
    """Exact mean and variance of every backup, and of the start, as floating-point numbers."""
    X, _, A = sizes(name)
    written, believed = WRITTEN[name], concentrations(WRITTEN[name], counts)
    values = [
        mean_and_variance(backup_polynomial(written, alpha, x, a), believed)
        for x in range(X)
        for a in range(A)
    ]
    mean, variance = (np.array([float(v[k]) for v in values]).reshape(X, A) for k in range(2))
    return (
        mean,
        variance,
        float(mean_and_variance(start_polynomial(written, alpha[0]), believed)[1]),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", WRITTEN)
def test_mean_and_variance_are_exact(name, seed):
    generator = np.random.default_rng(seed)
    model, counts, alpha = (
        declared(name),
        some_counts(WRITTEN[name], generator),
        some_alpha(name, generator),
    )
    believed = moments(model, counts)
    assert has_moments(model)
    mean, variance, start = exactly(name, counts, alpha)
    got_mean, got_variance = backup_moments(model)(believed, alpha)
    np.testing.assert_allclose(got_mean, mean, rtol=1e-13)
    np.testing.assert_allclose(got_variance, variance, rtol=1e-11, atol=1e-30)
    np.testing.assert_allclose(
        start_variance(model)(believed, alpha[0]), start, rtol=1e-11, atol=1e-30
    )


@pytest.mark.parametrize("name", ["pooled", "tiger"])
def test_pooled_rows_are_not_independent(name):
    """The formula for independent rows, sum E[T^2] Var(g), is wrong if rows share a Dirichlet row.

    The test above would detect it.
    """
    generator = np.random.default_rng(0)
    counts, alpha = some_counts(WRITTEN[name], generator), some_alpha(name, generator)
    together = WRITTEN[name]
    apart = together._replace(  # independent rows of O
        emission=[
            [
                cell._replace(row=f"{cell.row} {z}") if isinstance(cell, Cell) else cell
                for cell in observed
            ]
            for z, observed in enumerate(together.emission)
        ]
    )
    believed = concentrations(together, counts)
    believed |= {
        f"{owner} {z}": pool for owner, pool in believed.items() for z in range(len(apart.emission))
    }

    def variances(written):
        backups = [backup_polynomial(written, alpha, x, a) for x in range(2) for a in range(2)]
        return np.array([float(mean_and_variance(backup, believed)[1]) for backup in backups])

    assert np.abs(variances(apart) / variances(together) - 1).max() > 0.2


def test_traced_moments_equal_numpy():
    generator = np.random.default_rng(1)
    model, counts, alpha = (
        declared("pooled"),
        some_counts(WRITTEN["pooled"], generator),
        some_alpha("pooled", generator),
    )
    evaluate, start = backup_moments(model), start_variance(model)

    def everything(counts, alpha):
        believed = moments(model, counts)
        return evaluate(believed, alpha), start(believed, alpha[0])

    with x64():
        traced = jax.jit(everything)(counts, alpha)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(traced))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), traced, everything(counts, alpha)
    )


@pytest.mark.parametrize("name", ["independent", "pooled"])
def test_known_rows_have_no_variance(name):
    """E[g^2] - E[g]^2 would have a rounding error of 1e-7 after the square root, more than the
    tolerance for ties.
    """
    X, Y, A = sizes(name)
    generator = np.random.default_rng(2)
    for _ in range(20):
        believed = moments(declared(name), some_counts(WRITTEN[name], generator))
        constant = np.full((A, Y, X), generator.uniform(0, 30))
        assert np.sqrt(backup_moments(declared(name))(believed, constant)[1]).max() < 1e-13
        assert np.sqrt(start_variance(declared(name))(believed, constant[0])) < 1e-13


def test_without_unknown_rows_there_is_no_variance():
    known = tabular(
        T=np.full((2, 2, 2), 0.5), O=np.eye(2), initial=[0.5, 0.5], reward=np.eye(2), horizon=2
    )
    assert has_moments(known)
    mean, variance = backup_moments(known)(
        moments(known, Counts.zero(known)), np.arange(8.0).reshape(2, 2, 2)
    )
    np.testing.assert_array_equal(
        mean, [[1.5, 5.5], [1.5, 5.5]]
    )  # states 0 and 1 are observed: (0 + 3) / 2, (4 + 7) / 2
    np.testing.assert_array_equal(variance, np.zeros((2, 2)))


def test_a_row_that_both_tables_share_has_no_moments():
    half = Fraction(1, 2)
    both = declare(
        Written(
            {"w": [1, 2]},
            [[row("w", 0, 1)], [row("w", 1, 0)]],
            [row("w", 0, 1), row("", half, half)],
            [half, half],
        )
    )
    assert both.structure.conjugate.sites
    assert not has_moments(both)
    with raises(InferenceError, "sites"):
        moments(both, Counts.zero(both))


def test_a_site_without_a_closed_form_has_no_moments():
    model = mixed()[0]
    assert not has_moments(model)
    with raises(InferenceError, "sites"):
        moments(model, Counts.zero(model))


def bernstein_error(variance, n):
    """A bound that the error of the mean of n independent values, each within 1 of its expectation,
    exceeds with probability at most ``ALARM``.
    """
    log = math.log(2 / ALARM)
    return log / (3 * n) + math.sqrt((log / (3 * n)) ** 2 + 2 * log * variance / n)


def test_one_step_by_draws_agrees_with_rational_arithmetic():
    """Bernstein's inequality with exact moments: false-alarm rate at most 4e-6.

    Independent draws of the rows of O are detected.
    """
    alpha = np.array([[[1.0, 0.0], [0.125, 1.0]]])
    apart = CLOSED_FORM._replace(
        prior=CLOSED_FORM.prior | {"other": [2, 1]},
        emission=[CLOSED_FORM.emission[0], row("other", 1, 0)],
    )
    got = one_step(mixed()[1], alpha, jax.random.key(3), draws=STORED)
    drawn = mixed()[1].draws(jax.random.key(3), STORED).stationary()
    g = (drawn.emission * alpha[0].T).sum(-1)
    for x in range(2):
        assert got.mean[x, 0] == pytest.approx(
            np.mean((drawn.transition[:, x, 0] * g).sum(-1)), abs=1e-14
        )
    for x in range(2):
        polynomial = backup_polynomial(CLOSED_FORM, alpha, x, 0)
        mean, variance = mean_and_variance(polynomial, CLOSED_FORM.prior)
        centred = polynomial | {(): polynomial.get((), 0) - mean}
        error = bernstein_error(float(variance), STORED)
        error_of_square = bernstein_error(
            float(mean_and_variance(times(centred, centred), CLOSED_FORM.prior)[1]), STORED
        )
        allowed = error_of_square + error**2 + 1 / STORED
        assert abs(got.mean[x, 0] - float(mean)) <= error
        assert abs(got.deviation[x, 0] ** 2 - float(variance)) <= allowed
        planted = float(mean_and_variance(backup_polynomial(apart, alpha, x, 0), apart.prior)[1])
        assert abs(got.deviation[x, 0] ** 2 - planted) > allowed


@pytest.mark.parametrize("name", ["single", "pooled"])
def test_one_step_in_closed_form(name):
    generator = np.random.default_rng(6)
    model, counts = declared(name), some_counts(WRITTEN[name], generator)
    alpha = generator.uniform(0, 3, (2, 3, model.spaces.sizes[0]))
    mean, variance = backup_moments(model)(moments(model, counts), alpha)
    got = one_step(posterior(model, counts), alpha)
    np.testing.assert_array_equal(got.mean, mean)
    np.testing.assert_array_equal(got.deviation, np.sqrt(variance))


@pytest.mark.slow
def test_one_step_by_nuts_agrees_with_the_closed_form():
    """Within five standard errors, computed from the effective sample size of the chains.

    False-alarm rate about 1e-6 for each of two numbers: the backup is linear in the accuracy, so
    that the errors of all its entries are proportional.
    """
    tiger, generator = declared("tiger"), np.random.default_rng(11)
    counts = some_counts(WRITTEN["tiger"], generator)
    alpha = generator.uniform(0, 3, (3, 2, 2))
    sampled = posterior(tiger, counts, method="nuts", sampling=Sampling(draws=2000))
    exact, got = one_step(posterior(tiger, counts), alpha), one_step(sampled, alpha, draws=8000)
    errors = 5 / np.sqrt(sampled.diagnostics.ess["accuracy"])
    assert (np.abs(got.mean - exact.mean) <= errors * exact.deviation).all()
    assert (np.abs(got.deviation / exact.deviation - 1) <= errors).all()


# Two states, two observations, two actions, r = [[1, 0], [1/4, 1]]; T(.|x,a) ~ Dirichlet(1, 1),
# O(x|x) ~ Beta(3, 1), rho = 1/2.  At the last step the belief is (3/4, 1/4) after y = 0, for which
# a = 0 is best, and (1/4, 3/4) after y = 1, for which a = 1 is: alpha(y=0) = (1, 1/4), alpha(y=1) =
# (0, 1). So g(0) = O(0|0) with mean 3/4 and variance 3/80, and g(1) = 1/4 + 3/4 O(1|1) with mean
# 13/16 and variance 9/16 3/80. One step before, for all x and a:
MU = (3 / 4 + 13 / 16) / 2
SIGMA = math.sqrt(
    (13 / 16 - 3 / 4) ** 2 / 12 + (1 + 9 / 16) * 3 / 80 / 3
)  # Var T = 1/12, E[T^2] = 1/3
# The actions of the first step are those of the last step, so its expected reward is MU too.


def believed(horizon):
    """The posterior of "independent" without data, for this horizon."""
    return moments(
        declared("independent").with_horizon(horizon), Counts.zero(declared("independent"))
    )


def planned(backup, parameters, model):
    return history_tree(backup=backup)(model, parameters)


@pytest.mark.parametrize(
    ("z", "later"), [(0.0, MU), (1.0, MU + SIGMA), (1.5, MU + 1.5 * SIGMA), (1.645, 1.0)]
)
def test_moment_backup_by_hand(z, later):
    """At z = 1.645 the cap H - h = 1 is active; if h started at 0, it would not be."""
    assert MU + 1.5 * SIGMA < 1 < MU + 1.645 * SIGMA
    prior = believed(2)
    plan = planned(moment_backup(declared("independent"), z), prior, prior.model)
    assert plan.value == pytest.approx(MU + later, abs=1e-12)
    alpha = np.array([[1, 1 / 4], [0, 1]]) + later  # after each first observation
    assert start_variance(declared("independent"))(prior, alpha) == pytest.approx(
        (1 + 9 / 16) * 3 / 80 / 4, abs=1e-15
    )


def test_a_huge_z_is_capped_at_every_step():
    prior = believed(3)
    plan = planned(moment_backup(declared("independent"), 1e6), prior, prior.model)
    assert plan.value == pytest.approx(MU + 2, abs=1e-12)
    following = np.array([[[1, 1 / 4], [0, 1]]] * 2)
    for h in (1, 2, 3):
        np.testing.assert_array_equal(
            moment_backup(declared("independent"), 1e6)(prior, h, following),
            np.full((2, 2), 3.0 - h),
        )


@pytest.mark.parametrize("name", ["independent", "single", "pooled", "tiger"])
def test_without_optimism_backups_plan_for_the_mean_model(name):
    parameters = moments(declared(name), some_counts(WRITTEN[name], np.random.default_rng(3)))
    values = [
        planned(moment_backup(declared(name), z), parameters, parameters.model).value
        for z in (0.0, 0.5, 1e6)
    ]
    assert values[0] == pytest.approx(history_tree()(parameters.model).value, abs=1e-12)
    assert values[0] < values[1] < values[2] <= parameters.model.horizon


def accuracies(values):
    """Models of the golden problem that differ in O(x|x)."""
    prior = believed(2).model
    emission = np.array([[[p, 1 - p], [1 - p, p]] for p in values])
    return POMDP(*(np.repeat(part[None], len(values), axis=0) for part in prior)).with_tables(
        emission=emission
    )


@pytest.mark.parametrize(("z", "accuracy"), [(-1.0, 0.6), (0.0, 0.8), (0.5, 0.9), (3.0, 0.9)])
def test_draw_backup_by_hand(z, accuracy):
    """The ceil(4 Phi(z))-th smallest of 3 draws: Phi(-1) = 0.16, Phi(0) = 0.5, Phi(0.5) = 0.69.

    With T = 1/2, the backup of one draw is (g(0) + g(1)) / 2 = (p + 1/4 + 3/4 p) / 2.
    """
    plan = planned(draw_backup(z), accuracies([0.9, 0.6, 0.8]), believed(2).model)
    assert plan.value == pytest.approx(MU + (1 / 4 + 7 / 4 * accuracy) / 2, abs=1e-12)


def some_models(name, n, seed):
    """Random tables with the support of a declaration."""
    generator, model = np.random.default_rng(seed), declared(name)
    tables = [generator.exponential(size=(n, *s.shape)) * s for s in model.structure.support[1:]]
    T, O = (t / t.sum(-1, keepdims=True) for t in tables)  # noqa: E741
    return Stationary(
        np.repeat(model.structure.reference.initial[None], n, axis=0),
        T,
        O,
        np.repeat(model.reward[None], n, axis=0),
    ).pomdp


@pytest.mark.parametrize("z", [-0.7, 0.0, 1.3, 9.0])
def test_draw_backup_takes_the_quantile_of_each_state_and_action(z):
    batch, alpha = some_models("pooled", 7, 4), np.random.default_rng(5).uniform(0, 1.6, (2, 3, 5))
    place = min(math.ceil(8 * ndtr(z)), 7)
    for h in (1, 2):
        got = draw_backup(z)(batch, h, alpha)
        for x, a in product(range(5), range(2)):
            values = sorted(
                sum(T[x, a, k] * O[k, y] * alpha[a, y, k] for k in range(5) for y in range(3))
                for T, O in zip(batch.moves(0), batch.shows(0), strict=True)  # noqa: E741
            )
            assert got[x, a] == pytest.approx(min(values[place - 1], 3 - h), abs=1e-14)


def test_draw_backup_of_equal_draws_plans_the_model():
    batch = POMDP(*(np.repeat(part, 5, axis=0) for part in some_models("pooled", 1, 6)))
    model = POMDP(*(part[0] for part in batch))
    assert planned(draw_backup(1.0), batch, model).value == pytest.approx(
        history_tree()(model).value, abs=1e-12
    )


@pytest.mark.parametrize(("name", "kind"), [("independent", "moments"), ("single", "draws")])
def test_compiled_trees_equal_numpy(name, kind):
    model = declared(name)
    parameters = moments(model, some_counts(WRITTEN[name], np.random.default_rng(7)))
    mean, backup = parameters.model, moment_backup(model, 0.8)
    if kind == "draws":
        parameters, backup = some_models(name, 9, 8), draw_backup(0.8)
    planner, support = history_tree(backup=backup), model.structure.support
    with x64():
        solved = jax.jit(planner.compile(support))(mean, parameters)
    plan = planner(mean, parameters, support)
    assert float(solved.value) == pytest.approx(plan.value, abs=1e-12)
    np.testing.assert_array_equal(solved.policy.probabilities, plan.policy.probabilities)
    assert plan.value > history_tree()(mean).value + 1e-3


@pytest.mark.parametrize("S", [1, 2, 9, 10, 19, 99, 100, 399])
def test_upper_quantile_is_the_order_statistic(S):
    """At levels k / (S + 1), which have rounding errors, and at both ends."""
    generator = np.random.default_rng(S)
    values = generator.permutation(S)[:, None] + np.array([1.0, 1001.0])
    for k in range(1, S + 1):
        np.testing.assert_array_equal(upper_quantile(values, k / (S + 1)), [k, 1000 + k])
        np.testing.assert_array_equal(upper_quantile(values, (k - 0.5) / (S + 1)), [k, 1000 + k])
    for level, place in ((0.0, 1), (1e-6, 1), (1 - 1e-6, S), (1.0, S)):
        assert upper_quantile(values, level)[0] == place
    for hundredth in range(1, 100):
        place = min(math.ceil(Fraction(hundredth, 100) * (S + 1)), S)
        assert (
            upper_quantile(values, hundredth / 100)[0]
            == upper_quantile(values, 1 - (100 - hundredth) / 100)[0]
            == place
        )


# Invalid models


INVALID = {
    "initial": lambda model: model.initial / 2,
    "emission": lambda model: model.emission * np.array([2.0, -1.0]),
    "transition": lambda model: model.transition * np.nan,
    "reward": lambda model: model.reward * np.nan,
}


@pytest.mark.parametrize("field", INVALID)
def test_backups_refuse_invalid_models(field):
    """Models are validated by the functions that these return, or once per plan."""
    homdp, given = declared("independent"), believed(2)
    X, Y, A, _ = homdp.spaces.sizes
    wrong = given._replace(model=given.model._replace(**{field: INVALID[field](given.model)}))
    draws = POMDP(*(np.stack([part, part]) for part in given.model))
    second = np.stack([getattr(given.model, field), INVALID[field](given.model)])
    bad = draws._replace(**{field: second})
    alpha, first = np.ones((A, Y, X)), np.ones((Y, X))
    for call in (
        lambda: planned(moment_backup(homdp, 1.0), wrong, given.model),
        lambda: backup_moments(homdp)(wrong, alpha),
        lambda: start_variance(homdp)(wrong, first),
        lambda: planned(draw_backup(1.0), bad, given.model),
    ):
        with pytest.raises(PlanningError) as caught:
            call()
        assert {problem.where for problem in caught.value.problems} == {field}


def test_backups_refuse_other_parameters():
    given, alpha = believed(2), np.ones((1, 2, 2))
    with pytest.raises(ParameterError):
        backup_moments(declared("independent"))(given.model, alpha)
