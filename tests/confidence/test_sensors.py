"""Radii and backups of several sensors: by hand, by enumeration, and in simulations."""

import jax
import numpy as np
import pytest

from homdp_ppl import Counts, posterior
from homdp_ppl.confidence import (
    dirichlet_radii,
    emission_event,
    empirical,
    hop_b_radii,
    quantile_radii,
    weissman,
    weissman_radii,
)
from homdp_ppl.confidence.backups import one_step_values
from homdp_ppl.confidence.posteriors import one_step
from homdp_ppl.confidence.row_moments import backup_moments, has_moments, moments
from tests.sensors import data, declared, worlds

K, DELTA = 100, 0.1


def counts_of(kind="plain", episodes=40):
    return declared(kind).counts(data(kind, episodes))


def test_the_estimate_is_the_product_of_frequencies():
    counts = counts_of()
    joint = counts.emission.reshape(2, 2, 3)
    n = joint.sum((1, 2), keepdims=True)
    product = joint.sum(2, keepdims=True) * joint.sum(1, keepdims=True) / n**2
    assert np.allclose(empirical(declared("plain"), counts).shows(0), product.reshape(2, 6))
    verbatim = empirical(declared("plain"), counts, known=False).shows(0)
    assert np.allclose(verbatim, (joint / n).reshape(2, 6))
    ended = empirical(declared("ended"), counts_of("ended")).shows(0)
    assert ended[1].tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert np.allclose(ended.sum(-1), 1)


@pytest.mark.parametrize("kind", ["plain", "answers", "steps"])
def test_radii_by_hand(kind):
    """The smaller of the joint bound and the sum of the bounds of both sensors."""
    counts, model = counts_of(kind), declared(kind)
    moves, shows = (int(steps.sum()) for steps in model.form.steps(3))
    found = {
        "tight": weissman_radii(model, counts, K, DELTA).emission,
        "hop_b": hop_b_radii(model, counts, K, DELTA).emission,
    }

    def tight(n, d, parts):
        return weissman(n, d, DELTA / ((moves + shows) * K) / parts)

    def hop_b(n, d, parts):
        return min(2.0, np.sqrt(8 * d * np.log(d * shows * K * parts / DELTA) / n)) if n else 2.0

    rules = {"tight": tight, "hop_b": hop_b}
    used = model.form.steps(3)[1] > 0
    for index in map(tuple, np.argwhere(used)):
        x, n = index[-1], counts.visits[index]
        if kind == "plain":
            ear = eye = n
        elif kind == "answers":
            ear, eye = n, counts.visits[:, x].sum()
        else:
            h, a, _ = index
            ear, eye = counts.visits[:, a, x].sum(), counts.visits[h, :, x].sum()
        for name, bound in rules.items():
            if kind == "answers" and index[0] == 2:  # the first outcome of the ear is known
                expected = bound(eye, 3, 2)
            else:
                expected = bound(ear, 2, 2) + bound(eye, 3, 2)
            if kind == "plain":
                expected = min(expected, bound(n, 6, 1))
            assert found[name][index] == pytest.approx(expected, abs=1e-12)
    assert not found["tight"][~used].any()


def test_no_radius_is_larger_than_that_of_the_joint_declaration():
    counts = counts_of()
    mine, theirs = (
        [
            rule(model, Counts(counts.transition, counts.emission), K, DELTA).emission
            for rule in (weissman_radii, hop_b_radii)
        ]
        for model in (declared("plain"), declared("plain", joint=True))
    )
    assert all((a <= b).all() for a, b in zip(mine, theirs, strict=True))


def misses(radius_of, n=30, replicas=4000, seed=0):
    """How often the product of frequencies is farther from the truth than the radius."""
    generator = np.random.default_rng(seed)
    ear, eye = np.array([0.5, 0.5]), np.array([0.4, 0.3, 0.3])
    a = generator.multinomial(n, ear, replicas) / n
    b = generator.multinomial(n, eye, replicas) / n
    joint = np.einsum("ri,rj->rij", a, b)
    distance = np.abs(joint - np.outer(ear, eye)).sum((1, 2))
    return (distance > radius_of(n)).mean()


def test_both_bounds_cover_the_product_of_frequencies():
    """Level 0.2; a binomial with 4,000 trials exceeds 0.23 with probability below 1e-5."""
    level = 0.2
    assert misses(lambda n: weissman(n, 6, level)) < level + 0.03
    assert misses(lambda n: weissman(n, 2, level / 2) + weissman(n, 3, level / 2)) < level + 0.03
    # planted bugs: the radius of one sensor alone, and that of a row with 100 times the visits
    assert misses(lambda n: float(weissman(n, 2, level)) / 2) > level + 0.03
    assert misses(lambda n: weissman(100 * n, 6, level)) > level + 0.03


def test_the_event_of_hop_b_uses_the_same_radii():
    world = worlds("plain")[0]
    counts = counts_of()
    event = emission_event(world, counts, K, DELTA)
    errors = np.abs(empirical(world.homdp, counts).shows(0) - world.pomdp.shows(0)).sum(-1)
    slack = hop_b_radii(world.homdp, counts, K, DELTA).emission - errors
    assert event.holds
    assert event.slack == pytest.approx(slack.min(), abs=1e-12)


@pytest.mark.parametrize("kind", ["plain", "shared", "nested", "answers", "ended"])
def test_posterior_radii_cover_the_posterior(kind):
    """Quantiles of 10,000 other draws, within 15%; the bound without draws is larger."""
    model, counts, delta = declared(kind), counts_of(kind, 10), 0.02
    belief = posterior(model, counts)
    radii = quantile_radii(belief, jax.random.key(0), delta)
    bounds = dirichlet_radii(model, counts, delta).emission
    draws = belief.draws(jax.random.key(1), 10_000)
    emission = model.form.short(draws.transition, draws.emission)[1]
    mean = model.form.short(belief.mean.transition, belief.mean.emission)[1]
    distance = np.abs(emission - mean).sum(-1)
    unknown = (model.form.steps(3)[1] > 0) & ~model.structure.known.emission
    quantiles = np.quantile(distance, 1 - delta / unknown.sum(), axis=0)
    assert np.allclose(radii.emission[unknown], quantiles[unknown], rtol=0.15)
    assert (bounds[unknown] >= quantiles[unknown]).all()
    assert (bounds[unknown] < 2 + 1e-12).all()
    assert not radii.emission[~unknown].any()
    kept = quantile_radii(belief, jax.random.key(2), delta, (belief, radii))
    assert np.array_equal(kept.emission, radii.emission)  # no new data


@pytest.mark.parametrize("kind", ["plain", "answers", "steps", "ended"])
def test_the_variance_of_backups_is_that_of_draws(kind):
    """10,000 draws: standard errors of variances of about 2%; tolerance 12%."""
    model, counts = declared(kind), counts_of(kind, 10)
    assert has_moments(model)
    Y = len(model.observations)
    alpha = np.random.default_rng(0).random((2, Y, 2))
    mean, variance = backup_moments(model)(moments(model, counts), alpha, 1)
    draws = posterior(model, counts).draws(jax.random.key(0), 10_000)
    values = one_step_values(draws, 1, alpha)
    assert np.abs(values.mean(0) - mean).max() < 0.01
    assert np.allclose(values.var(0), variance, rtol=0.12, atol=1e-7)


def test_shared_rows_are_drawn():
    assert not has_moments(declared("shared"))
    assert not has_moments(declared("nested"))
    found = one_step(posterior(declared("shared"), counts_of("shared")), np.ones((2, 6, 2)))
    assert np.allclose(found.mean, 1)
