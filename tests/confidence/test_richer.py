"""Radii, bonuses and backups of step- and action-dependent tables and of unknown starts.

The reference is the same model with the step and the last action in the state. It has one
transition and one emission table, so that the formulas of the paper apply to it directly.
"""

import itertools
import math

import jax
import numpy as np
import pytest

from homdp_ppl import POMDP, Counts, rollout, uniform_policy
from homdp_ppl.confidence import (
    Radii,
    backup_moments,
    bonuses,
    centred_bonus,
    dirichlet_radii,
    empirical,
    hop_b_bonus,
    hop_b_class_radii,
    hop_b_radii,
    moments,
    one_step,
    quantile_radii,
    start_bonus,
    start_variance,
    weissman,
    weissman_radii,
)
from homdp_ppl.confidence.posteriors import row_level
from homdp_ppl.confidence.rows import unknown_rows
from homdp_ppl.explorers import hop_b, tight
from homdp_ppl.explorers._rooted import planned_moves
from homdp_ppl.learning.learner import Learner
from homdp_ppl.planners import history_tree, remaining_steps
from homdp_ppl.posteriors import posterior
from tests.richer import RICHER, SIZES, richer

H, X, A, K = 3, 2, 2, 50
TABLES = ("answers", "tables", "steps")


def data(name, episodes=40, seed=0):
    world = richer(name)
    keys = jax.random.split(jax.random.key(seed), episodes)
    return world.homdp.counts(rollout(keys, world, uniform_policy(world)))


def encoded(model: POMDP, radii: Radii) -> tuple[POMDP, Radii]:
    """The model and its radii with the step and the last action in the state."""
    places = list(itertools.product(range(H), range(A + 1), range(X)))
    index = {place: k for k, place in enumerate(places)}
    N, Y = len(places), model.sizes[1]
    initial, T, O = np.zeros(N), np.zeros((N, A, N)), np.zeros((N, Y))  # noqa: E741
    reward, eps_T, eps_O = np.zeros((H, N, A)), np.zeros((N, A)), np.zeros(N)
    for (h, last, x), k in index.items():
        O[k] = model.emission[min(h, len(model.emission) - 1), last % model.emission.shape[1], x]
        full = radii.emission.reshape(model.emission.shape[:3])
        eps_O[k] = full[min(h, len(full) - 1), last % full.shape[1], x]
        reward[:, k] = model.rewards(h)[x, 0]
        for a in range(A):
            moves = radii.transition.reshape(model.transition.shape[:3])
            eps_T[k, a] = moves[min(h, len(moves) - 1), x, a]
            for z in range(X):
                T[k, a, index[min(h + 1, H - 1), a, z]] += model.moves(h)[x, a, z]
    for x in range(X):
        initial[index[0, A, x]] = model.initial[x]
    return POMDP.of(initial, T, O, reward), Radii(eps_T, eps_O, radii.initial)


def tight_value(model: POMDP, radii: Radii) -> float:
    bonus = centred_bonus(radii, planned_moves(model), H)
    plan = history_tree(caps=remaining_steps)(model.with_bonus(bonus))
    return min(float(plan.upper + start_bonus(radii, model.initial, H)), H)


def hop_b_value(model: POMDP, radii: Radii) -> float:
    return float(
        history_tree()(model.with_bonus(hop_b_bonus(radii, H, planned_moves(model)))).value
    )


def random_radii(homdp, seed) -> Radii:
    """Small radii, so that no value is clipped at the cap; rows that are never used have large
    ones, which nothing may read.
    """
    generator = np.random.default_rng(seed)
    moves, shows = homdp.form.steps(H)
    emission = np.where(shows > 0, generator.uniform(0, 0.1, shows.shape), 1.9)
    return Radii(generator.uniform(0, 0.1, moves.shape), emission, 0.02)


@pytest.mark.parametrize("name", TABLES)
def test_bonuses_equal_those_of_the_encoded_model(name):
    model, radii = empirical(richer(name).homdp, data(name)), random_radii(RICHER[name], 1)
    for value in (tight_value, hop_b_value):
        found = value(model, radii)
        assert found == pytest.approx(value(*encoded(model, radii)), abs=1e-9)
        assert found > history_tree()(model).value + 1e-3


def _wrong_action(radii, transition):
    return RIGHT(radii[..., ::-1, :] if radii.ndim > 1 else radii, transition)


def _wrong_step(radii, transition):
    if radii.ndim < 3:
        return RIGHT(radii, transition)
    return RIGHT(np.concatenate([radii[:1], radii[:-1]]), transition)


RIGHT = bonuses._next_emission


@pytest.mark.parametrize(
    ("bug", "name"), [(_wrong_action, "answers"), (_wrong_action, "tables"), (_wrong_step, "steps")]
)
def test_planted_emission_bonuses_of_a_wrong_row_are_found(bug, name, monkeypatch):
    model, radii = empirical(richer(name).homdp, data(name)), random_radii(RICHER[name], 1)
    right = tight_value(*encoded(model, radii))
    monkeypatch.setattr(bonuses, "_next_emission", bug)
    assert abs(tight_value(model, radii) - right) > 1e-6


def test_the_start_radius_adds_its_constant_to_the_optimistic_value():
    model, counts = richer("start").homdp, data("start")
    estimate, known = empirical(model, counts), random_radii(model, 1)._replace(initial=0.0)
    unknown = known._replace(initial=np.array(0.1))
    assert tight_value(estimate, unknown) - tight_value(estimate, known) == pytest.approx(
        H / 2 * 0.1, abs=1e-12
    )
    assert hop_b_value(estimate, unknown) - hop_b_value(estimate, known) == pytest.approx(
        H * 0.1, abs=1e-12
    )


# rows of T and O that can be used, times the steps at which they can be
CELLS = {
    "answers": (X * A * H, X * (A * (H - 1) + 1)),
    "tables": (H * X * A, X * (A * (H - 1) + 1)),
    "steps": (H * X * A, H * X),
    "start": (X * A * H, X * H),
    "everything": (H * X * A, X * (A * (H - 1) + 1)),
}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("known", [True, False])
def test_radii_by_hand(name, known):
    """Every row by its formula, with the rows and visits of the union bound written out."""
    model, counts, delta = richer(name).homdp, data(name), 0.1
    moves, shows = CELLS[name]
    start = name in ("start", "everything")
    level = delta / ((moves + shows + start) * K)
    found = {
        "weissman": weissman_radii(model, counts, K, delta, known),
        "hop_b": hop_b_radii(model, counts, K, delta, 1.0, known),
        "class": hop_b_class_radii(model, counts, K, 5, delta, 1.0, known),
    }
    unknown = unknown_rows(model, known)
    used = model.form.steps(H)[1] > 0
    rows = int(used.sum())
    for which, radii in found.items():
        for part, n, mask in (
            ("transition", counts.state_action, unknown.transition),
            ("emission", counts.visits, unknown.emission & used),
        ):
            table = getattr(radii, part)
            for row in np.ndindex(table.shape):
                by_hand = _by_hand(which, part, n[row], level, (moves, shows, rows), delta)
                assert table[row] == pytest.approx(by_hand if mask[row] else 0.0, rel=1e-12)
        if not start:
            assert radii.initial == 0
        elif which == "weissman":
            assert radii.initial == pytest.approx(float(weissman(40, X, level)), rel=1e-12)
        else:
            assert radii.initial == pytest.approx(
                min(2, math.sqrt(8 * X * math.log(X * K / delta) / 40)), rel=1e-12
            )


def _by_hand(which, part, n, level, cells, delta):
    moves, shows, rows = cells
    cap = 2 * H if (which, part) == ("hop_b", "transition") else 2
    if n == 0:
        return cap
    square = {
        ("weissman", "transition"): 2 * math.log(2 / level),
        ("weissman", "emission"): 2 * math.log(2 / level),
        ("hop_b", "transition"): 4 * H**3 * math.log(2 * moves * K / delta),
        ("hop_b", "emission"): 16 * math.log(2 * shows * K / delta),
        ("class", "transition"): 8 * X * math.log(X * moves * K),
        ("class", "emission"): 8 * math.log(5 * rows * K / delta),
    }[which, part]
    return min(cap, math.sqrt(square / n))


def test_rows_that_are_never_used_are_in_no_union_bound():
    """Also if they have parameters of their own, as in a table that is given as an array."""
    model = RICHER["tables"]
    assert row_level(model, 0.1) == pytest.approx(0.1 / (H * X * A + X * (1 + A * (H - 1))))
    assert row_level(RICHER["start"], 0.1) == pytest.approx(0.1 / (X * A + X + 1))
    for radii in (
        dirichlet_radii(model, Counts.zero(model)),
        quantile_radii(posterior(model, Counts.zero(model)), jax.random.key(0)),
    ):
        assert np.array_equal(radii.emission > 0, model.form.steps(H)[1] > 0)


def test_the_quantile_of_an_unknown_start_is_that_of_its_dirichlet():
    model, counts = richer("start").homdp, data("start")
    radii = quantile_radii(posterior(model, counts), jax.random.key(0))
    alpha = 1 + counts.initial
    draws = np.random.default_rng(0).dirichlet(alpha, 200_000)
    exact = np.quantile(np.abs(draws - alpha / alpha.sum()).sum(-1), 1 - row_level(model, 0.1))
    assert radii.initial == pytest.approx(exact, rel=0.15)
    assert dirichlet_radii(model, counts).initial >= radii.initial


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TABLES, "start"])
def test_moments_agree_with_draws(name):
    """The mean and variance of backups and of the start, against 40,000 draws."""
    model, counts = richer(name).homdp, data(name, 12)
    alpha = np.random.default_rng(3).uniform(0, 2, (A, 2, X))
    draws = posterior(model, counts).draws(jax.random.key(4), 40_000)
    believed = moments(model, counts)
    for h in (1, 2):
        mean, variance = backup_moments(model)(believed, alpha, h)
        values = np.zeros((len(draws.initial), X, A))
        for a, x, z, y in itertools.product(range(A), range(X), range(X), range(2)):
            shown = draws.shows(h, a)[:, z, y]
            values[:, x, a] += draws.moves(h - 1)[:, x, a, z] * shown * alpha[a, y, z]
        np.testing.assert_allclose(mean, values.mean(0), atol=0.02)
        np.testing.assert_allclose(variance, values.var(0), rtol=0.06)
        step = one_step(posterior(model, counts), alpha, step=h)
        np.testing.assert_allclose(step.mean, mean)
    first = alpha[0]
    values = np.einsum("sx,sxy,yx->s", draws.initial, draws.shows(0), first)
    assert float(start_variance(model)(believed, first)) == pytest.approx(values.var(), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name", RICHER)
def test_optimism(name):
    """The optimistic value is at least the optimum in 8 worlds.

    Both rules fail in a world with probability at most 0.1 and 0.4 (1 - 4 delta), and far less in
    fact. This test cannot see bonuses that are too large; the formulas above can.
    """
    failures = 0
    for seed in range(8):
        world = RICHER[name].draw(jax.random.key(seed))
        keys = jax.random.split(jax.random.key(100 + seed), 400)
        counts = world.homdp.counts(rollout(keys, world, uniform_policy(world)))
        radii = weissman_radii(world.homdp, counts, 400, 0.1)
        optimum = history_tree()(world.pomdp).value
        estimate = empirical(world.homdp, counts)
        failures += tight_value(estimate, radii) < optimum - 1e-9
        failures += hop_b_value(estimate, hop_b_radii(world.homdp, counts, 400, 0.1)) < optimum
    assert failures == 0


@pytest.mark.parametrize("rule", [tight(), hop_b()], ids=["tight", "hop_b"])
def test_rules_use_these_values(rule):
    learner = Learner(RICHER["start"], rule, history_tree(), 400, seed=0)
    state = learner.init()
    world = richer("start")
    for k in range(8):
        episode = rollout(jax.random.key(k), world, uniform_policy(world))
        state = learner.update(state, episode)
    found = float(learner.decide(8, state).optimistic)
    kind, value = {"tight": (weissman_radii, tight_value), "hop_b": (hop_b_radii, hop_b_value)}[
        rule.about.name
    ]
    counts = state.counts
    assert counts.initial.sum() == 8
    expected = value(empirical(RICHER["start"], counts), kind(RICHER["start"], counts, 400))
    assert found == pytest.approx(expected, abs=1e-9)
    assert SIZES["horizon"] == H
