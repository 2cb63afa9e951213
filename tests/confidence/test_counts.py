"""Radii and bonuses against the paper's formulas; tests must fail if any constant changes."""

import inspect
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Counts, DataError, Kernels, ParameterError, homdp, tabular, x64
from homdp_ppl.confidence.bonuses import centred_bonus, hop_b_bonus, hop_b_class_bonus, start_bonus
from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.confidence.inequalities import bernstein, hoeffding, weissman
from homdp_ppl.confidence.radii import Radii, hop_b_class_radii, hop_b_radii, weissman_radii
from tests.raising import raises

X, Y, A, H = 3, 5, 2, 7  # all different, so that sizes cannot be confused
K, DELTA, SIZE = 11, 0.2, 13
REWARD = np.linspace(0, 1, X * A).reshape(X, A)
START = np.array([0.2, 0.3, 0.5])

FLAT = {"T": dist.Dirichlet(np.ones((X, A, X))), "O": dist.Dirichlet(np.ones((X, Y)))}
FREE = tabular(**FLAT, initial=START, reward=REWARD, horizon=H)


@homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
def partly():
    """A model with known rows T(. | x0, a0), which is x1 for certain, and O(. | x2).

    T(. | x0, a1) has two outcomes, O(. | x1) has three. All other rows are free.
    """
    two = numpyro.sample("two", dist.Beta(1, 1))
    three = numpyro.sample("three", dist.Dirichlet(np.ones(3)))
    rest = numpyro.sample("rest", dist.Dirichlet(np.ones((2, A, X))).to_event(2))
    all_five = numpyro.sample("all_five", dist.Dirichlet(np.ones(Y)))
    first = jnp.array([[0.0, 1.0, 0.0], [two, 0.0, 1 - two]])
    fixed = jnp.array([0.1, 0.2, 0.3, 0.4, 0.0])
    return Kernels(
        START,
        jnp.concatenate([first[None], rest]),
        jnp.stack([all_five, jnp.append(three, jnp.zeros(2)), fixed]),
    )


def some_counts():
    """Rows with no visits, few visits (capped) and many visits.

    All rows differ, so that a wrong axis is detected.
    """
    transition = np.arange(1, 1 + X * A * X).reshape(X, A, X) * 9_000
    transition[1, 1] = 0
    transition[2, 0] = [1, 0, 2]
    emission = np.arange(1, 1 + X * Y).reshape(X, Y) * 500
    emission[1] = [3, 0, 1, 0, 0]
    return Counts(transition, emission)


COUNTS = some_counts()
ROWS_T = [[COUNTS.transition[x, a].sum().item() for a in range(A)] for x in range(X)]
ROWS_O = [COUNTS.emission[x].sum().item() for x in range(X)]


def by_hand(root_transition, cap_transition, root_emission, cap_emission):
    """Radii of all rows from the formulas for sqrt(numerator / n) and the caps."""
    transition = [
        [min(root_transition(n), cap_transition) if n else cap_transition for n in row]
        for row in ROWS_T
    ]
    emission = [min(root_emission(n), cap_emission) if n else cap_emission for n in ROWS_O]
    return Radii(np.array(transition), np.array(emission))


def hop_b(
    c_t=4,
    h_power=3,
    y_t=1,
    x_t=1,
    a_t=1,
    h_t=1,
    k_t=1,
    d_t=1,
    cap_t=2 * H,
    c_o=8,
    y_factor=1,
    y_o=1,
    x_o=1,
    k_o=1,
    h_o=1,
    d_o=1,
    cap_o=2,
):
    """Algorithm 1; every constant and exponent is an argument."""
    beta_1 = c_t * H**h_power * math.log(Y**y_t * X**x_t * A**a_t * H**h_t * K**k_t / DELTA**d_t)
    beta_2 = c_o * Y**y_factor * math.log(Y**y_o * X**x_o * K**k_o * H**h_o / DELTA**d_o)
    return by_hand(lambda n: math.sqrt(beta_1 / n), cap_t, lambda n: math.sqrt(beta_2 / n), cap_o)


def hop_b_class(
    c_t=8,
    x_factor=1,
    x_t=2,
    a_t=1,
    k_t=1,
    h_t=1,
    d_t=0,
    cap_t=2,
    c_o=8,
    size_o=1,
    x_o=1,
    k_o=1,
    h_o=0,
    d_o=1,
    cap_o=2,
):
    """The display of appendix C.6; its first logarithm has no delta, its second no H."""
    numerator_t = c_t * X**x_factor * math.log(X**x_t * A**a_t * K**k_t * H**h_t / DELTA**d_t)
    numerator_o = c_o * math.log(SIZE**size_o * X**x_o * K**k_o * H**h_o / DELTA**d_o)
    return by_hand(
        lambda n: math.sqrt(numerator_t / n), cap_t, lambda n: math.sqrt(numerator_o / n), cap_o
    )


def tight(two=2, base=2, minus=2, d_t=X, d_o=Y, rows=X + X * A, k=1, h=1, d=1, cap_t=2, cap_o=2):
    """Weissman for every row: sqrt(2 log((2^d - 2) (X + XA) K H / delta) / n)."""
    union = rows * K**k * H**h / DELTA**d
    return by_hand(
        lambda n: math.sqrt(two * math.log((base**d_t - minus) * union) / n),
        cap_t,
        lambda n: math.sqrt(two * math.log((base**d_o - minus) * union) / n),
        cap_o,
    )


def mutations(formula):
    """Each constant of a formula changed by one."""
    return [
        {name: given.default + 1} for name, given in inspect.signature(formula).parameters.items()
    ]


RULES = {
    hop_b: lambda model, **options: hop_b_radii(model, COUNTS, K, DELTA, **options),
    hop_b_class: lambda model, **options: hop_b_class_radii(
        model, COUNTS, K, SIZE, DELTA, **options
    ),
    tight: lambda model, **options: weissman_radii(model, COUNTS, K, DELTA, **options),
}


def same(radii, others, rtol=1e-13):
    return all(np.allclose(a, b, rtol=rtol, atol=0) for a, b in zip(radii, others, strict=True))


@pytest.mark.parametrize("formula", RULES, ids=lambda f: f.__name__)
def test_golden_radii(formula):
    radii = RULES[formula](FREE)
    assert (radii.transition.shape, radii.emission.shape) == ((X, A), (X,))
    assert radii.transition.dtype == radii.emission.dtype == np.float64
    assert same(radii, formula())


@pytest.mark.parametrize(
    ("formula", "mutation"),
    [(formula, mutation) for formula in RULES for mutation in mutations(formula)],
    ids=lambda v: v.__name__ if callable(v) else next(iter(v)),
)
def test_golden_radii_detect_any_changed_constant(formula, mutation):
    """The golden test fails if any constant, exponent or cap changes by one."""
    assert not same(RULES[formula](FREE), formula(**mutation), rtol=1e-4)


def test_some_golden_numbers_by_hand():
    """The same with numbers.

    YXAHK/delta = 11550, YXKH/delta = 5775, X^2AKH = 1386, |Theta|XK/delta = 2145.
    """
    radii = hop_b_radii(FREE, COUNTS, K, DELTA)
    assert radii.transition[0, 0] == pytest.approx(
        math.sqrt(4 * 343 * math.log(11550) / 54_000), rel=1e-12
    )
    assert radii.emission[0] == pytest.approx(math.sqrt(8 * 5 * math.log(5775) / 7_500), rel=1e-12)
    assert radii.transition[1, 1] == 14  # never visited
    assert radii.transition[2, 0] == 14  # 3 visits
    assert radii.emission[1] == 2  # 4 visits
    radii = hop_b_class_radii(FREE, COUNTS, K, SIZE, DELTA)
    assert radii.transition[0, 0] == pytest.approx(
        math.sqrt(24 * math.log(1386) / 54_000), rel=1e-12
    )
    assert radii.emission[0] == pytest.approx(math.sqrt(8 * math.log(2145) / 7_500), rel=1e-12)
    radii = weissman_radii(
        FREE, COUNTS, K, DELTA
    )  # (2^3 - 2) 9 * 77 / 0.2 = 20790, (2^5 - 2) 9 * 77 / 0.2 = 103950
    assert radii.transition[0, 0] == pytest.approx(
        math.sqrt(2 * math.log(20790) / 54_000), rel=1e-12
    )
    assert radii.emission[0] == pytest.approx(math.sqrt(2 * math.log(103950) / 7_500), rel=1e-12)


@pytest.mark.parametrize("rule", [hop_b, hop_b_class], ids=lambda f: f.__name__)
def test_the_scale_multiplies_roots_but_not_caps(rule):
    c_t, c_o = (inspect.signature(rule).parameters[name].default for name in ("c_t", "c_o"))
    assert same(RULES[rule](FREE, scale=0.3), rule(c_t=c_t * 0.3**2, c_o=c_o * 0.3**2))
    nothing, cap = RULES[rule](FREE, scale=0.0), 2 * H if rule is hop_b else 2
    assert nothing.transition.tolist() == [
        [0, 0],
        [0, cap],
        [0, 0],
    ]  # an unvisited row keeps its cap
    assert nothing.emission.tolist() == [0, 0, 0]
    unseen = Counts(COUNTS.transition * 0, COUNTS.emission * 0)
    assert (hop_b_radii(FREE, unseen, K, scale=0).emission == 2).all()


@pytest.mark.parametrize("formula", RULES, ids=lambda f: f.__name__)
def test_known_rows_have_radius_zero_unless_known_is_false(formula):
    radii = RULES[formula](partly)
    exact = Radii(
        np.array([[True, False], [False, False], [False, False]]),
        np.array([False, False, True]),
        True,
        True,
    )
    assert all(
        np.array_equal(radius == 0, known) for radius, known in zip(radii, exact, strict=True)
    )
    assert same(
        RULES[formula](partly, known=False), formula()
    )  # nothing from the declaration remains
    if formula is not tight:
        assert same([np.where(k, 0, r) for k, r in zip(exact, formula(), strict=True)], radii)


def test_weissman_counts_the_outcomes_of_the_declared_support():
    """T(. | x0, a1) has 2 outcomes, O(. | x1) has 3, T(. | x0, a0) has 1."""
    counts = Counts(COUNTS.transition, COUNTS.emission * 100)
    radii = weissman_radii(partly, counts, K, DELTA)
    union = (X + X * A) * K * H / DELTA
    assert radii.transition[0, 1] == pytest.approx(
        math.sqrt(2 * math.log(2 * union) / ROWS_T[0][1]), rel=1e-12
    )
    assert radii.emission[1] == pytest.approx(math.sqrt(2 * math.log(6 * union) / 400), rel=1e-12)
    assert radii.transition[0, 0] == 0
    assert radii.transition[1, 1] == 2
    verbatim = weissman_radii(partly, counts, K, DELTA, known=False)
    assert verbatim.emission[1] == pytest.approx(
        math.sqrt(2 * math.log(30 * union) / 400), rel=1e-12
    )


def test_a_support_of_one_outcome_has_radius_zero():
    """Dimension 1 gives 0, with and without visits, with and without known rows."""
    alone = tabular(
        T=np.ones((1, 1, 1)),
        O=dist.Dirichlet(np.ones((1, 2))),
        initial=[1.0],
        reward=[[1.0]],
        horizon=2,
    )
    for known in (True, False):
        for n in (0, 5):
            radii = weissman_radii(
                alone, Counts(np.full((1, 1, 1), n), np.full((1, 2), n)), 10, known=known
            )
            assert (radii.transition.item() == 0) & (radii.emission.item() > 0)


def weissman_by_hand(two=2, base=2, minus=2, level=1):
    return [math.sqrt(two * math.log((base**4 - minus) / 0.05**level) / n) for n in (40, 900)]


def hoeffding_by_hand(span=1, tails=2, level=1, half=2):
    return [3.0**span * math.sqrt(math.log(tails / 0.05**level) / (half * n)) for n in (40, 900)]


def bernstein_by_hand(two=2, seven=7, three=3, span=1, four=4, level=1, less=1):
    log = math.log(four / 0.05**level)
    both = ((400, 0.5), (900, 0.2))
    return [
        math.sqrt(two * v * log / n) + seven * 3.0**span * log / (three * (n - less))
        for n, v in both
    ]


SINGLE = {
    weissman_by_hand: lambda: weissman(np.array([40, 900]), 4, 0.05),
    hoeffding_by_hand: lambda: hoeffding(np.array([40, 900]), 3.0, 0.05),
    bernstein_by_hand: lambda: bernstein(np.array([400, 900]), np.array([0.5, 0.2]), 3.0, 0.05),
}


@pytest.mark.parametrize("formula", SINGLE, ids=lambda f: f.__name__)
def test_golden_rows(formula):
    code = SINGLE[formula]
    np.testing.assert_allclose(code(), formula(), rtol=1e-13)
    for mutation in mutations(formula):
        assert not np.allclose(code(), formula(**mutation), rtol=1e-5, atol=0), mutation


def test_rows_without_draws_have_the_cap():
    assert weissman(0, 5, 0.1) == 2
    assert weissman(1, 5, 1e-9) == 2
    assert weissman(0, 1, 0.1) == 0
    assert hoeffding(0, 3.0, 0.1) == 3
    assert hoeffding(1, 3.0, 1e-9) == 3
    assert bernstein(np.array([0, 1, 2]), 0.0, 3.0, 0.1).tolist() == [3, 3, 3]


def test_very_many_outcomes_do_not_overflow():
    """log(2^d - 2) at d = 2000 is 2000 log 2; small values are exact."""
    assert weissman(10_000, 2000, 0.1) == pytest.approx(
        math.sqrt(2 * (2000 * math.log(2) + math.log(10)) / 10_000), rel=1e-12
    )
    for d in range(2, 50):
        assert weissman(10_000, d, 0.1) == pytest.approx(
            math.sqrt(2 * math.log((2**d - 2) / 0.1) / 10_000), rel=1e-12
        )


def bonus_radii():
    generator = np.random.default_rng(0)
    return Radii(generator.uniform(0, 2, (X, A)), generator.uniform(0, 2, X)), generator.dirichlet(
        np.ones(X), (X, A)
    )


def test_golden_bonuses():
    radii, T = bonus_radii()
    plain, of_class, centred = (
        hop_b_bonus(radii, H),
        hop_b_class_bonus(radii, H),
        centred_bonus(radii, T, H),
    )
    assert centred.shape == (H, X, A)
    for x in range(X):
        for a in range(A):
            assert plain[x, a] == pytest.approx(
                7 * radii.emission[x] + radii.transition[x, a], rel=1e-14
            )
            assert of_class[x, a] == pytest.approx(
                3 * 7 * radii.transition[x, a] + 7 * radii.emission[x], rel=1e-14
            )
            expected = sum(T[x, a, after] * radii.emission[after] for after in range(X))
            for h in range(1, 8):
                by_formula = (7 - h) / 2 * (radii.transition[x, a] + expected)
                assert centred[h - 1, x, a] == pytest.approx(by_formula, rel=1e-13)
    assert (centred[-1] == 0).all()  # nothing follows the last action
    first = 7 / 2 * (0.2 * radii.emission[0] + 0.3 * radii.emission[1] + 0.5 * radii.emission[2])
    assert start_bonus(radii, START, H) == pytest.approx(first, rel=1e-14)


def test_empirical_tables():
    found = empirical(FREE, COUNTS).stationary()
    for x in range(X):
        for a in range(A):
            row = COUNTS.transition[x, a]
            expected = row / ROWS_T[x][a] if ROWS_T[x][a] else np.full(X, 1 / 3)
            np.testing.assert_allclose(found.transition[x, a], expected, rtol=1e-15)
        np.testing.assert_allclose(found.emission[x], COUNTS.emission[x] / ROWS_O[x], rtol=1e-15)
    assert np.array_equal(found.initial, START)
    assert np.array_equal(found.reward, FREE.reward)


def test_empirical_tables_use_the_known_rows_and_supports():
    nothing = Counts.zero(partly)
    for counts in (nothing, COUNTS):
        found = empirical(partly, counts).stationary()
        assert found.transition[0, 0].tolist() == [0, 1, 0]  # known, for all counts
        np.testing.assert_allclose(found.emission[2], [0.1, 0.2, 0.3, 0.4, 0.0], atol=1e-15)
    found = empirical(partly, nothing).stationary()
    assert found.transition[0, 1].tolist() == [0.5, 0, 0.5]  # uniform on the support
    np.testing.assert_allclose(found.emission[1], [1 / 3, 1 / 3, 1 / 3, 0, 0])
    verbatim = empirical(partly, nothing, known=False).stationary()
    np.testing.assert_allclose(verbatim.transition, 1 / 3)
    np.testing.assert_allclose(verbatim.emission, 1 / 5)
    counted = empirical(partly, COUNTS, known=False).stationary()
    np.testing.assert_allclose(counted.transition[0, 0], COUNTS.transition[0, 0] / ROWS_T[0][0])


def everything(model, counts, episodes, delta, scale):
    """All results that a rule may need, in one traceable function."""
    table = empirical(model, counts).stationary()
    plain = hop_b_radii(model, counts, episodes, delta, scale)
    of_class = hop_b_class_radii(model, counts, episodes, SIZE, delta, scale)
    tight_radii = weissman_radii(model, counts, episodes, delta)
    return (
        (table.transition, table.emission, plain, of_class, tight_radii),
        (
            hop_b_bonus(plain, H),
            hop_b_class_bonus(of_class, H),
            centred_bonus(tight_radii, table.transition, H),
        ),
        (start_bonus(tight_radii, table.initial, H), hoeffding(counts.visits, 2.0, delta)),
        bernstein(counts.visits, table.emission[:, 0], 1.0, delta),
    )


@pytest.mark.parametrize("model", [FREE, partly], ids=["free", "partly"])
def test_numpy_and_jit_give_the_same(model):
    eager = jax.tree.leaves(everything(model, COUNTS, K, DELTA, 0.5))
    with x64():
        traced = jax.tree.leaves(
            jax.jit(lambda *given: everything(model, *given))(COUNTS, K, DELTA, 0.5)
        )
    assert len(eager) == len(traced) == 20
    for here, there in zip(eager, traced, strict=True):
        assert isinstance(here, np.ndarray | float)
        assert isinstance(there, jax.Array)
        assert np.result_type(here) == there.dtype == np.float64
        np.testing.assert_allclose(here, there, rtol=1e-13)


@pytest.mark.parametrize(
    ("rule", "given", "names"),
    [
        (hop_b_radii, (FREE, COUNTS, 0, 1.0, -1), ["episodes", "delta", "scale"]),
        (hop_b_radii, (FREE, COUNTS, math.nan, 0), ["episodes", "delta"]),
        (hop_b_radii, (FREE, COUNTS, "many"), ["episodes"]),
        (hop_b_class_radii, (FREE, COUNTS, 1, 0, 2, math.inf), ["size", "delta", "scale"]),
        (weissman_radii, (FREE, COUNTS, -3, -0.1), ["episodes", "delta"]),
        (weissman, (3, 0, 1), ["outcomes", "level"]),
        (hoeffding, (3, -1, 0), ["span", "level"]),
        (bernstein, (3, 1, math.inf, 5), ["span", "level"]),
    ],
)
def test_invalid_arguments_are_reported_together(rule, given, names):
    with pytest.raises(ParameterError) as caught:
        rule(*given)
    assert [problem.where for problem in caught.value.problems] == names


@pytest.mark.parametrize(
    "rule",
    [
        empirical,
        lambda model, counts: hop_b_radii(model, counts, 3),
        lambda model, counts: hop_b_class_radii(model, counts, 3, 2),
        lambda model, counts: weissman_radii(model, counts, 3),
    ],
)
def test_counts_of_another_model_raise_an_error(rule):
    with raises(DataError, "counts.transition"):
        rule(FREE, Counts(np.ones((1, 1, 1)), np.ones((1, 1))))
    with raises(DataError, "counts.names"):
        rule(
            FREE,
            Counts(COUNTS.transition, COUNTS.emission, (("a", "b", "c"), ("v",) * Y, ("s", "t"))),
        )


def test_weissman_with_traced_outcomes():
    outcomes = np.array([1, 2, 5])
    expected = weissman(100, outcomes, 0.05)
    with x64():
        traced = jax.jit(lambda d: weissman(100, d, 0.05))(outcomes)
    np.testing.assert_allclose(traced, expected, rtol=1e-12)
