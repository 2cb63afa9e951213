"""Radii from posteriors: exact quantiles, coverage of models drawn from the prior, reuse of radii,
and errors.
"""

import math
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.stats import beta, binom

from homdp_ppl import Counts, InferenceError, ParameterError, posterior, x64
from homdp_ppl.confidence import Radii, dirichlet_radii, posteriors, quantile_radii, upper_quantile
from homdp_ppl.posteriors import Sampling
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.laplace import Calibration
from tests.chances import ALARM, believable, enough
from tests.confidence.exact import (
    STORED,
    WRITTEN,
    Cell,
    concentrations,
    declared,
    mixed,
    some_counts,
)
from tests.raising import raises
from tests.worlds import world

KEY = jax.random.key(0)


def owners(name):
    """The index at which each Dirichlet row is first used, rows of T before rows of O."""
    rows = [r for at_state in WRITTEN[name].transition for r in at_state] + WRITTEN[name].emission
    names = [next((cell.row for cell in r if isinstance(cell, Cell)), None) for r in rows]
    return {owner: names.index(owner) for owner in WRITTEN[name].prior}


def in_a_line(radii):
    return np.append(radii.transition, radii.emission)


def keys(n, seed=0):
    return [jax.random.key(1000 * seed + k) for k in range(n)]


# Quantiles


def place(level):
    """The number S of draws and the rank of the quantile among them, from the definition."""
    S = math.ceil(10 / level)
    return S, math.ceil(round((1 - level) * (S + 1), 9))


def beta_chance(a, b, radius):
    """P(2|p - mean| <= radius) for p ~ Beta(a, b), the distance of a row with two outcomes."""
    mean = a / (a + b)
    return beta.cdf(mean + radius / 2, a, b) - beta.cdf(mean - radius / 2, a, b)


def beta_levels(repeats=150):
    """The distribution function of 2|p - mean| at the radii of six Beta rows at level 0.1, for many
    keys.
    """
    model = declared("independent")
    counts = some_counts(WRITTEN["independent"], np.random.default_rng(0))
    belief = posterior(model, counts)
    alpha = np.array(
        list(concentrations(WRITTEN["independent"], counts).values())
    )  # rows in the order of the tables
    return beta_chance(
        *alpha.T,
        np.array([in_a_line(quantile_radii(belief, key, delta=0.6)) for key in keys(repeats)]),
    )


def test_radii_of_beta_rows_are_the_order_statistic(monkeypatch):
    """The distribution function at the k-th smallest of S draws has a Beta(k, S + 1 - k)
    distribution, and is below its median with probability 1/2.

    False-alarm rate 2e-6 (binomial tails, and the extremes of all). Using the ceil(level S)-th draw
    instead is detected.
    """
    S, k = place(0.1)
    median = beta.median(k, S + 1 - k)
    alike = quantile_radii(
        posterior(declared("independent"), Counts.zero(declared("independent"))), KEY
    ).transition
    assert len(np.unique(alike)) == 4  # equal rows have their own draws
    levels = beta_levels()
    assert believable(levels < median, 0.5)
    assert beta.ppf(ALARM / 2 / levels.size, k, S + 1 - k) < levels.min()
    assert levels.max() < beta.isf(ALARM / 2 / levels.size, k, S + 1 - k)
    monkeypatch.setattr(
        "homdp_ppl.confidence.dirichlet.upper_quantile",
        lambda v, level: np.sort(v, axis=0)[math.ceil(level * len(v)) - 1],
    )
    planted = beta_levels()
    assert not believable(planted < median, 0.5)


def test_radii_of_a_flat_row_and_of_half_a_row():
    """On the triangle, P(||p - 1/3||_1 <= t) = 3/2 t^2 up to t = 2/3: a hexagon of area 3/4 t^2 in
    a triangle of area 1/2.

    A row that is half known has half the distance of its Beta(2, 3). False-alarm rate 2e-6.
    """
    belief = posterior(declared("known transition"), Counts.zero(declared("known transition")))
    radii = [quantile_radii(belief, key, delta=0.9) for key in keys(400)]
    S, k = place(0.45)
    median = beta.median(k, S + 1 - k)
    flat, half = np.array([r.emission for r in radii]).T
    assert all((r.transition == 0).all() for r in radii)
    assert believable(1.5 * flat**2 < median, 0.5)
    assert believable(beta_chance(2, 3, 2 * half) < median, 0.5)


# Coverage of models drawn from the prior


def replicates(name, delta, repeats, seed):
    """For models from the prior, the radii after 3 visits to every row, and the distances of all
    rows from the posterior mean.

    Also two planted errors: the distances from the relative frequencies, and the radii before any
    data.
    """
    written, model, generator = WRITTEN[name], declared(name), np.random.default_rng(seed)
    X, Y, A, _ = model.spaces.sizes
    before = in_a_line(quantile_radii(posterior(model, Counts.zero(model)), KEY, delta))
    found = []
    for key in keys(repeats, seed):
        p = {owner: generator.dirichlet(alpha) for owner, alpha in written.prior.items()}
        flat = np.array(
            [
                float(c.mass) * p[c.row][c.entry] if isinstance(c, Cell) else float(c)
                for c in written.cells
            ]
        )
        tables = flat[: X * A * X].reshape(X, A, X), flat[X * A * X :].reshape(X, Y)
        counts = Counts(*(generator.multinomial(3, table) for table in tables))
        belief = posterior(model, counts)
        centres = (belief.mean.stationary()[1:3], (counts.transition / 3, counts.emission / 3))
        distances = [
            np.concatenate([np.abs(t - c).sum(-1).ravel() for t, c in zip(tables, m, strict=True)])
            for m in centres
        ]
        found.append((in_a_line(quantile_radii(belief, key, delta)), *distances, before))
    return np.swapaxes(
        np.array(found), 0, 1
    )  # radii, distance, distance from frequencies, stale radii; (repeats, rows) each


@pytest.mark.parametrize("name", ["single", "pooled"])
def test_every_row_is_covered_at_the_exact_level(name):
    """P(||row - mean||_1 <= radius) = ceil((1 - delta')(S + 1)) / (S + 1); rows that share a
    Dirichlet row are counted once.

    False-alarm rate 1e-6. Relative frequencies instead of the mean, and radii from before the data,
    are detected.
    """
    delta, model = 0.7, declared(name)
    known = model.structure.known
    S, k = place(delta / (np.sum(~known.transition) + np.sum(~known.emission)))
    once = list(owners(name).values())
    radii, distance, from_frequencies, stale = replicates(name, delta, 500, seed=1)[:, :, once]
    assert believable(distance <= radii, k / (S + 1))
    assert not believable(from_frequencies <= radii, k / (S + 1))
    assert not believable(distance <= stale, k / (S + 1))


def test_all_rows_are_covered_together(monkeypatch):
    """Six independent rows: (k / (S + 1))^6 >= 1 - delta.

    False-alarm rate 1e-6; a delta that is not divided among the rows is detected.
    """
    delta, repeats = 0.1, 400
    S, k = place(delta / 6)
    assert (k / (S + 1)) ** 6 >= 1 - delta
    radii, distance, *_ = replicates("single", delta, repeats, seed=2)
    assert believable(
        (distance <= radii + 1e-12).all(1), (k / (S + 1)) ** 6
    )  # known rows: rounding and 0
    monkeypatch.setattr(posteriors, "row_level", lambda homdp, delta: delta)
    radii, distance, *_ = replicates("single", delta, repeats, seed=2)
    assert not enough((distance <= radii + 1e-12).all(1), 1 - delta)


def test_quantile_sets_have_the_exact_coverage():
    """20,000 Dirichlet(1/2, 1, 1, 2) rows after five visits. False-alarm rate 1e-6 for each level.

    Sets around the relative frequencies, or from draws of the prior instead of the posterior, are
    detected.
    """
    generator, N, S = np.random.default_rng(3), 20_000, 37
    prior = np.array([0.5, 1.0, 1.0, 2.0])
    truth = generator.dirichlet(prior, N)
    counts = generator.multinomial(5, truth)

    def draws(alpha):
        weights = generator.gamma(alpha, size=(S, N, 4))
        return weights / weights.sum(-1, keepdims=True)

    def inside(centre, drawn, level):
        return np.abs(truth - centre).sum(-1) <= upper_quantile(np.abs(drawn - mean).sum(-1), level)

    mean = (prior + counts) / (prior + counts).sum(-1, keepdims=True)
    right, wrong = draws(prior + counts), draws(prior)
    for level in (0.5, 0.8, 0.95):
        chance = math.ceil(level * (S + 1)) / (S + 1)
        assert believable(inside(mean, right, level), chance)
        assert not believable(inside(counts / 5, right, level), chance)
        assert not believable(inside(mean, wrong, level), chance)


# Radii that are kept, and radii that are computed again


def test_rows_without_new_data_keep_their_radii():
    """New data at O(.|x1) also change O(.|x3), which uses the same Dirichlet row.

    Data at a known row change nothing.
    """
    model, written = declared("pooled"), WRITTEN["pooled"]
    old = posterior(model, some_counts(written, np.random.default_rng(4)))
    radii = quantile_radii(old, jax.random.key(1))
    more = Counts(np.zeros((5, 2, 5), int), np.zeros((5, 3), int))
    more.transition[2, 0, 3] = more.transition[1, 1, 2] = more.emission[4, 1] = (
        5  # a row of t1, and two known rows
    )
    more.emission[1, 0] = 40  # a row of o1
    new = old.update(more)
    kept, fresh = (quantile_radii(new, jax.random.key(2), previous=p) for p in ((old, radii), None))
    changed = Radii(np.zeros((5, 2), bool), np.array([False, True, False, True, False]))
    changed.transition[2] = True
    for now, then, new_radii, moved in zip(
        *(r[:2] for r in (kept, radii, fresh, changed)), strict=True
    ):
        np.testing.assert_array_equal(now, np.where(moved, new_radii, then))
        assert (now[moved] != then[moved]).all()
    assert (
        kept.emission[[1, 3]] < 0.8 * radii.emission[[1, 3]]
    ).all()  # stale radii would be too wide
    assert kept.emission[1] / kept.emission[3] == pytest.approx(
        (2 / 3) / (4 / 5)
    )  # the masses that the rows leave unknown
    np.testing.assert_array_equal(in_a_line(kept) == 0, np.append(*model.structure.known[1:]))


# Sites without a closed form


def test_radii_of_a_mixed_posterior():
    """Four unknown rows: the level is 0.0025, S = 4000.

    False-alarm rate about 2e-6: `stay` is centred at the mean of its draws.
    """
    belief = mixed()[1]
    radii = quantile_radii(belief, jax.random.key(4), delta=0.01)
    S, k = place(0.0025)
    assert S == STORED
    assert radii.transition[0] == radii.transition[1]
    assert radii.emission[0] == radii.emission[1]
    centre, r = belief.mean.moves(0)[0, 0, 0], radii.transition[0, 0] / 2
    of_stay = min(centre + r, 1) - max(centre - r, 0)
    for chance in (of_stay, beta_chance(2, 1, radii.emission[0])):
        assert beta.ppf(ALARM / 2, k, S + 1 - k) <= chance <= beta.isf(ALARM / 2, k, S + 1 - k)
    again = quantile_radii(belief, jax.random.key(5), delta=0.01, previous=(belief, radii))
    np.testing.assert_array_equal(again.emission, radii.emission)  # no new data


def test_too_few_stored_draws_raise_an_error_with_the_required_number():
    """S >= 1 / delta' - 1: 4000 draws are enough for delta' = 1/4001, which uses the largest
    distance, but not for 1/4002.
    """
    belief = mixed()[1]
    few = replace(belief, atoms=Atoms({"stay": belief.atoms.values["stay"][:20]}, chains=2))
    with raises(InferenceError, "draws"):
        quantile_radii(few, KEY, delta=0.1)
    with raises(InferenceError, "draws"):
        quantile_radii(belief, KEY, delta=4 / 4002)
    radii = quantile_radii(belief, KEY, delta=4 / 4001 * (1 + 1e-9))
    largest = 2 * np.abs(belief.atoms.values["stay"] - belief.mean.moves(0)[0, 0, 0]).max()
    np.testing.assert_allclose(radii.transition[:, 0], largest, rtol=1e-12)


def test_quantiles_of_a_poor_approximation_raise_an_error():
    with raises(InferenceError, "laplace"):
        quantile_radii(replace(mixed()[1], calibration=Calibration(0.9, 0.2, 0.05)), KEY)


def test_radii_of_values_with_weights():
    """A posterior on three values is exact, so it is accepted.

    Nearly all of 4000 draws are the first value. False-alarm rate 1e-16.
    """
    belief = mixed()[1]
    few = replace(
        belief,
        atoms=Atoms({"stay": np.array([0.9, 0.6, 0.5])}, weights=np.array([1 - 2e-5, 1e-5, 1e-5])),
    )
    S, k = place(0.0025)
    assert binom.sf(S - k, S, 2e-5) < 1e-16
    mean = 0.9 - 1e-5 * (0.3 + 0.4)
    np.testing.assert_allclose(
        quantile_radii(few, KEY, delta=0.01).transition, 2 * (0.9 - mean), rtol=1e-9
    )


# A bound without draws


@pytest.mark.parametrize("name", ["independent", "pooled"])
def test_dirichlet_radii_bound_the_quantiles(name):
    """After few and many visits. Half of the bound is not a bound."""
    generator, written, model = np.random.default_rng(7), WRITTEN[name], declared(name)
    for scale in (0, 1, 10, 100):
        counts = some_counts(written, generator)
        counts = Counts(scale * counts.transition, scale * counts.emission)
        bound, exact = (
            in_a_line(dirichlet_radii(model, counts)),
            in_a_line(quantile_radii(posterior(model, counts), KEY)),
        )
        assert ((exact < bound) | (exact == 0)).all()
        assert ((bound == 0) == (exact == 0)).all()
        assert (exact > bound / 2).any()


def test_the_bound_holds_in_higher_dimensions():
    """100 rows each with 2 to 8 outcomes, with concentrations from 0.05 to 500, at the levels 0.1
    and 0.01. Half of the bound is not a bound.
    """
    generator = np.random.default_rng(12)
    for d in range(2, 9):
        alpha = (
            np.exp(generator.uniform(np.log(0.05), np.log(500), (100, 1)))
            * generator.dirichlet(np.ones(d), 100)
            * d
        )
        weights = generator.gamma(alpha, size=(1000, 100, d)) + 1e-300
        distance = np.abs(
            weights / weights.sum(-1, keepdims=True) - alpha / alpha.sum(-1, keepdims=True)
        ).sum(-1)
        for level in (0.1, 0.01):
            bound = np.sqrt(2 * math.log((2**d - 2) / level) / (alpha.sum(-1) + 1))
            quantile = upper_quantile(distance, 1 - level)
            assert (quantile < bound).all()
            assert (quantile > bound / 2).any()


def test_dirichlet_radii_of_beta_rows_have_their_level():
    """The probability outside the bound, by the distribution function, is at most delta' = delta /
    6, for rows with 0 to 600 visits.
    """
    generator = np.random.default_rng(8)
    for delta in (0.9, 0.1, 1e-4):
        for scale in (0, 1, 5, 100):
            counts = some_counts(WRITTEN["independent"], generator)
            counts = Counts(scale * counts.transition, scale * counts.emission)
            alpha = np.array(list(concentrations(WRITTEN["independent"], counts).values()))
            radii = in_a_line(dirichlet_radii(declared("independent"), counts, delta))
            assert (beta_chance(*alpha.T, radii) >= 1 - delta / 6).all()


def test_dirichlet_radii_by_hand():
    """Tiger with Beta(8, 2) and 12 growls; delta is divided among two rows.

    The radius is sqrt(2 log(2 / (delta / 2)) / (10 + 12 + 1)).
    """
    tiger = declared("tiger")
    counts = Counts(np.zeros((2, 3, 2), int), np.array([[4, 1], [2, 5]]))
    radii = dirichlet_radii(tiger, counts, delta=0.2)
    np.testing.assert_allclose(radii.emission, [math.sqrt(2 * math.log(20) / 23)] * 2, rtol=1e-12)
    np.testing.assert_array_equal(radii.transition, np.zeros((2, 3)))
    half = dirichlet_radii(
        declared("known transition"), Counts.zero(declared("known transition")), delta=0.2
    )
    hand = [math.sqrt(2 * math.log(6 / 0.1) / 4), math.sqrt(2 * math.log(2 / 0.1) / 6) / 2]
    np.testing.assert_allclose(half.emission, hand, rtol=1e-12)
    with x64():
        traced = jax.jit(lambda c: dirichlet_radii(tiger, c, 0.2))(counts)
    np.testing.assert_allclose(traced.emission, radii.emission, rtol=1e-14)
    np.testing.assert_array_equal(traced.transition, radii.transition)


def test_dirichlet_radii_need_closed_forms():
    """A radius of 0 for unknown rows would be wrong."""
    with raises(InferenceError, "rows"):
        dirichlet_radii(mixed()[0], Counts.zero(mixed()[0]))


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5, float("nan")])
def test_delta_is_a_probability(delta):
    """1.5 divided among six rows would look like a probability."""
    model = declared("independent")
    with raises(ParameterError, "delta"):
        dirichlet_radii(model, Counts.zero(model), delta)
    with raises(ParameterError, "delta"):
        quantile_radii(posterior(model, Counts.zero(model)), KEY, delta)


@pytest.mark.slow
def test_radii_of_a_checkup():
    """A model of the zoo: 18 rows of T without a closed form, 3 rows of O with one, others known.

    Fewer than 209 draws raise an error.
    """
    model = world("checkup").homdp
    belief = posterior(model, Counts.zero(model))
    radii = quantile_radii(belief, KEY)
    known = model.structure.known
    np.testing.assert_array_equal(radii.transition == 0, known.transition)
    np.testing.assert_array_equal(radii.emission == 0, known.emission)
    S, k = place(0.1 / 21)
    for x, (a, b) in zip((3, 4, 5), ((9, 1), (6, 4), (9, 1)), strict=True):
        chance = beta_chance(a, b, radii.emission[x])
        assert beta.ppf(ALARM / 2, k, S + 1 - k) <= chance <= beta.isf(ALARM / 2, k, S + 1 - k)
    few = posterior(model, Counts.zero(model), sampling=Sampling(chains=2, draws=100))
    with raises(InferenceError, "draws") as caught:
        quantile_radii(few, KEY)
    (problem,) = caught.value.problems
    assert problem.got == "200"
    assert "209" in problem.expected
    assert "Sampling(draws=105)" in problem.remedy
