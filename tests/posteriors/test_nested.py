"""Rows that show sums of Dirichlet outcomes: nested closed forms.

The references sum over the hidden outcomes behind each sum (a mixture of Dirichlets), integrate
numerically, or sample.
"""

from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy import stats
from scipy.integrate import dblquad
from scipy.special import gammaln, softmax

from homdp_ppl import (
    Counts,
    Kernels,
    confidence,
    explorers,
    homdp,
    learn,
    posterior,
    rollout,
    uniform_policy,
    x64,
)
from homdp_ppl.confidence import dirichlet_radii, quantile_radii
from homdp_ppl.confidence.row_moments import has_moments
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import Rows, log_likelihood_of_gaps
from homdp_ppl.declare import matching
from homdp_ppl.errors import InferenceError
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors.density import log_likelihood
from homdp_ppl.posteriors.dirichlet import ClosedForm, closed_form
from homdp_ppl.posteriors.tables import tables_at
from homdp_ppl.posteriors.tracking import Tracked
from tests.chances import ALARM
from tests.gaps import with_gaps
from tests.posteriors.programs import declare
from tests.raising import raises

KEY = jax.random.key(0)
SLOW = pytest.mark.slow
ALPHA = np.array([1.0, 2.0, 0.5, 3.0])
# the outcomes that each column of an emission row shows; the rest of a row is known
SHOWN = (
    ((0,), (1,), (2,), (3,)),
    ((0,), (1, 2), (3,)),
    ((3,), (0, 1, 2)),
    ((3,), (0,), (2, 1)),
)
MASS = (1.0, 0.5, 0.25, 1.0)
COUNTS = np.array([[3, 1, 0, 2, 0], [1, 4, 2, 9, 0], [2, 5, 7, 0, 0], [1, 0, 3, 0, 0]])


def rows_of(p, shown, mass, width):
    """Table rows from a Dirichlet row, with the known part in the next column."""
    rows = []
    for parts, m in zip(shown, mass, strict=True):
        row = jnp.zeros(width)
        for column, part in enumerate(parts):
            row = row.at[column].set(m * p[jnp.array(part)].sum())
        rows.append(row.at[len(parts)].add(1 - m))
    return jnp.stack(rows)


@cache
def nested():
    """Emission rows that show sums {1, 2} and {0, 1, 2} of four outcomes."""

    def nested():
        p = numpyro.sample("p", dist.Dirichlet(ALPHA))
        return Kernels(np.full(4, 0.25), np.eye(4)[:, None], rows_of(p, SHOWN, MASS, 5))

    return declare(nested, states=4, observations=5, actions=1)


def data():
    return Counts(np.zeros((4, 1, 4), int), COUNTS, initial=np.zeros(4, int))


def mixture(alpha, shown, counts):
    """The posterior as a mixture: weights and concentrations for all hidden outcomes."""
    free = [
        (part, int(n))
        for parts, row in zip(shown, counts, strict=True)
        for part, n in zip(parts, row, strict=False)
        if n
    ]
    splits = []
    for part, n in free:
        ways = [way for way in product(range(n + 1), repeat=len(part)) if sum(way) == n]
        splits.append([(part, way) for way in ways])
    logs, concentrations = [], []
    for choice in product(*splits):
        after, log = alpha.copy(), 0.0
        for part, way in choice:
            after[list(part)] += way
            log += gammaln(sum(way) + 1) - sum(gammaln(k + 1) for k in way)
        logs.append(log + gammaln(after).sum() - gammaln(after.sum()))
        concentrations.append(after)
    unique, place = np.unique(np.array(concentrations), axis=0, return_inverse=True)
    return np.bincount(place.ravel(), softmax(logs)), unique


def moments(part, weights, concentrations):
    """Mean and variance of a sum of outcomes under a mixture of Dirichlets."""
    total = concentrations.sum(-1)
    a = concentrations[:, list(part)].sum(-1)
    mean = weights @ (a / total)
    return mean, weights @ (a * (a + 1) / (total * (total + 1))) - mean**2


def agrees(belief, weights, concentrations):
    """Whether all means and variances of the emission table are those of the mixture."""
    for x, parts in enumerate(SHOWN):
        for y, part in enumerate(parts):
            mean, variance = moments(part, weights, concentrations)
            if not np.isclose(belief.mean.shows(0)[x, y], MASS[x] * mean, rtol=1e-10):
                return False
            if not np.isclose(belief.variance.emission[x, y], MASS[x] ** 2 * variance, rtol=1e-8):
                return False
    return True


def test_moments_are_those_of_the_mixture_over_hidden_outcomes():
    belief = posterior(nested(), data())
    assert belief.method == "conjugate"
    weights, concentrations = mixture(ALPHA, SHOWN, COUNTS)
    assert agrees(belief, weights, concentrations)
    for k in range(4):
        mean, _ = moments((k,), weights, concentrations)
        assert belief.site_means["p"][k] == pytest.approx(mean, rel=1e-10)
    known = belief.mean.shows(0)[1, 3], belief.variance.emission[1, 3]
    assert known == (0.5, 0.0)


class LeafOnly(ClosedForm):
    """Planted bug: a count of a node does not count for the nodes above it."""

    def concentration(self, counts):  # noqa: D102
        after = self.conjugate.concentration.copy()
        source = self.conjugate.sources["emission"]
        np.add.at(after, source[source >= 0], counts.emission[source >= 0])
        return after


class Halved(ClosedForm):
    """Planted bug: counts of sums are divided among their outcomes."""

    def concentration(self, counts):  # noqa: D102
        after = self.conjugate.concentration.copy()
        for x, parts in enumerate(SHOWN):
            for y, part in enumerate(parts):
                after[list(part)] += counts.emission[x, y] / len(part)
        for node in range(4, len(after)):
            after[node] = after[:4][(self.paths[:4] == node).any(-1)].sum()
        return after


@pytest.mark.parametrize("bug", [LeafOnly, Halved])
def test_planted_updates_are_detected(bug, monkeypatch):
    model = nested()
    monkeypatch.setattr(model.cache, "get", lambda name, make: make())
    monkeypatch.setattr("homdp_ppl.posteriors.from_counts.closed_form", lambda homdp: bug(homdp))
    assert not agrees(posterior(model, data()), *mixture(ALPHA, SHOWN, COUNTS))


@cache
def wall():
    """A Dirichlet row of three outcomes; the second table row shows a sum."""

    def wall():
        p = numpyro.sample("p", dist.Dirichlet(np.array([2.0, 1.5, 3.0])))
        rows = jnp.stack([p, jnp.array([p[0] + p[1], p[2], 0.0])])
        return Kernels([0.5, 0.5], np.eye(2)[:, None], rows)

    return declare(wall, states=2, observations=3, actions=1)


def wall_data():
    seen = np.array([[2, 1, 3], [60, 2, 0]])
    return Counts(np.zeros((2, 1, 2), int), seen, initial=np.zeros(2, int))


def test_density_integrates_to_one_and_is_prior_times_likelihood():
    belief = posterior(wall(), wall_data())
    conjugate = closed_form(wall()).conjugate
    assert conjugate.nested

    def density(b, a):
        return np.exp(conjugate.log_density(belief.closed, np.array([a, b, 1 - a - b])))

    def moment(weigh):
        return dblquad(lambda b, a: weigh(a, b) * density(b, a), 0, 1, 0, lambda a: 1 - a)[0]

    assert moment(lambda a, b: 1.0) == pytest.approx(1, abs=1e-7)
    assert moment(lambda a, b: a) == pytest.approx(belief.site_means["p"][0], abs=1e-7)
    second = moment(lambda a, b: (a + b) ** 2) - moment(lambda a, b: a + b) ** 2
    assert second == pytest.approx(belief.variance.emission[1, 0], abs=1e-7)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    direct = stats.dirichlet([2.0, 1.5, 3.0]).logpdf(p.T) + np.log(p) @ wall_data().emission[0]
    direct += 60 * np.log(p[:, 0] + p[:, 1]) + 2 * np.log(p[:, 2])
    assert np.ptp(direct - conjugate.log_density(belief.closed, p)) < 1e-10


def test_draws_have_the_distribution_of_the_mixture():
    """Kolmogorov-Smirnov test of single outcomes and sums, ALARM each; planted: prior draws."""
    belief, n = posterior(nested(), data()), 20_000
    weights, concentrations = mixture(ALPHA, SHOWN, COUNTS)
    p = belief.parameters(KEY, n)["p"]
    prior = posterior(nested(), Counts.zero(nested())).parameters(KEY, n)["p"]
    grid = np.sin(np.linspace(0, np.pi / 2, 801)) ** 2  # dense at both ends
    for part in ((0,), (1,), (2,), (3,), (1, 2), (0, 2)):
        a = concentrations[:, list(part)].sum(-1)
        b = concentrations.sum(-1) - a
        cdf = partial(np.interp, xp=grid, fp=stats.beta.cdf(grid[:, None], a, b) @ weights)
        assert stats.kstest(p[:, list(part)].sum(-1), cdf).pvalue > ALARM
        assert stats.kstest(prior[:, list(part)].sum(-1), cdf).pvalue < ALARM
    tables = belief.draws(KEY, 100).shows(0)
    assert np.allclose(tables[:, 1, 1], 0.5 * (tables[:, 0, 1] + tables[:, 0, 2]))
    assert np.allclose(tables.sum(-1), 1)


@pytest.mark.slow
def test_nuts_on_the_program_agrees():
    """Within 5 standard errors; planted bug: the counts of the sum are left out."""
    exact, sampled = (posterior(wall(), wall_data(), method=m) for m in ("auto", "nuts"))
    assert (exact.method, sampled.method) == ("conjugate", "nuts")
    error = np.sqrt(exact.variance.emission / sampled.diagnostics.ess["p"])
    part = wall_data()
    part.emission[1] = 0
    without = posterior(wall(), part)
    assert (np.abs(without.mean.shows(0) - sampled.mean.shows(0)) > 5 * error + 1e-12).any()
    assert (np.abs(exact.mean.shows(0) - sampled.mean.shows(0)) <= 5 * error + 1e-12).all()
    assert np.allclose(exact.variance.emission, sampled.variance.emission, rtol=0.3)


def test_radii_are_quantiles_and_the_bound_is_larger():
    """Draws of the mixture are inside with the claimed probability; rows of one cut are equal.

    False-alarm rate 1e-6 by the normal approximation.
    """
    belief, delta = posterior(nested(), data()), 0.4
    radii = quantile_radii(belief, KEY, delta).emission
    bound = dirichlet_radii(nested(), data(), delta).emission
    assert (bound > radii).all()
    assert (radii > 0).all()
    with x64():
        traced = jax.jit(lambda counts: dirichlet_radii(nested(), counts, delta).emission)(data())
    assert np.allclose(traced, bound, rtol=1e-12)
    weights, concentrations = mixture(ALPHA, SHOWN, COUNTS)
    generator, n = np.random.default_rng(1), 20_000
    chosen = generator.choice(len(weights), n, p=weights)
    p = np.array([generator.dirichlet(concentrations[k]) for k in chosen])
    for x, parts in enumerate(SHOWN):
        cut = np.stack([p[:, list(part)].sum(-1) for part in parts], -1)
        centre = belief.mean.shows(0)[x, : len(parts)]
        inside = np.mean(np.abs(MASS[x] * cut - centre).sum(-1) <= radii[x])
        # a quantile from 10 / level draws has a standard deviation of about level / sqrt(10)
        level = delta / 4
        assert abs(inside - (1 - level)) < 5 * (level / np.sqrt(10) + np.sqrt(level / n))


def test_only_rows_with_new_data_have_new_radii():
    """A count of the sum {0, 1, 2} changes one branching, which all rows use; nothing changes
    without data.
    """
    belief = posterior(nested(), data())
    before = quantile_radii(belief, KEY)
    previous, other = (belief, before), jax.random.key(5)
    same = quantile_radii(belief.update(Counts.zero(nested())), other, previous=previous)
    assert np.array_equal(same.emission, before.emission)
    one = Counts.zero(nested())
    one.emission[2, 1] = 1
    after = quantile_radii(belief.update(one), other, previous=previous)
    assert (after.emission != before.emission).all()


def test_mixed_posteriors_track_the_nested_part():
    def mixed():
        p = numpyro.sample("p", dist.Dirichlet(ALPHA))
        slip = numpyro.sample("slip", dist.Categorical(probs=np.full(3, 1 / 3)))
        stay = 0.5 + 0.1 * slip
        moves = stay * np.eye(4) + (1 - stay) * np.eye(4)[::-1]
        return Kernels(np.full(4, 0.25), moves[:, None], rows_of(p, SHOWN, MASS, 5))

    model = declare(mixed, states=4, observations=5, actions=1)
    tracked = Tracked.start(model)
    moved = np.zeros((4, 1, 4), int)
    moved[0, 0, [0, 3]] = 5, 2
    tracked = tracked.update(Counts(moved, COUNTS, initial=np.zeros(4, int)), KEY)
    exact = posterior(model, Counts(moved, COUNTS, initial=np.zeros(4, int)))
    assert exact.method == "mixed"
    assert np.array_equal(tracked.belief.closed, exact.closed)
    assert np.allclose(tracked.mean().emission, exact.mean.emission, rtol=1e-12)
    assert agrees(exact, *mixture(ALPHA, SHOWN, COUNTS))


@cache
def corridor():
    """A corridor of four cells with a wall on the right: forward or stay, and slip back."""

    @homdp(states=4, observations=2, actions=("go", "wait"), horizon=3, reward=np.eye(4)[:, [3, 0]])
    def corridor():
        p = numpyro.sample("p", dist.Dirichlet(np.array([1.0, 2.0, 4.0])))  # back, stay, forward
        rows = jnp.zeros((4, 4)).at[jnp.arange(4), (jnp.arange(4) - 1) % 4].add(p[0])
        rows = rows.at[jnp.arange(4), jnp.arange(4)].add(p[1])
        rows = rows.at[jnp.arange(4), jnp.minimum(jnp.arange(4) + 1, 3)].add(p[2])
        return Kernels(np.eye(4)[0], jnp.stack([rows, jnp.eye(4)], 1), np.eye(4)[:, :2] * 0 + 0.5)

    return corridor


def test_the_claimed_density_is_that_of_the_conditioned_program():
    """Up to a constant, NumPyro's density of the program given episodes.

    Planted bug: half of the episodes.
    """
    model = corridor()
    world = model.at(p=np.array([0.1, 0.3, 0.6]))
    batch = rollout(jax.random.split(KEY, 20), world, uniform_policy(world))
    form, claimed = closed_form(model), posterior(model, batch).closed
    points = np.random.default_rng(0).dirichlet(np.ones(3), 4)
    spread = []
    with x64():
        for episodes in (batch, batch[:10]):
            program = model.hindsight(episodes)
            evaluate = jax.vmap(lambda p, m=program: log_density(m, (), {}, {"p": p})[0])
            density = np.asarray(jax.jit(evaluate)(points))
            spread.append(np.ptp(density - form.conjugate.log_density(claimed, points)))
    assert spread[0] < 1e-9
    assert spread[1] > 1e-3


@pytest.mark.parametrize(
    "rule",
    [
        "quantile_bonus",
        *(pytest.param(rule, marks=SLOW) for rule in ("greedy", "quantile_backup")),
        pytest.param("value_quantile", marks=SLOW),
    ],
)
def test_explorers_use_the_closed_form(rule):
    world = corridor().at(p=np.array([0.1, 0.3, 0.6]))
    assert corridor().structure.conjugate.nested
    run = learn(world, getattr(explorers, rule)(), history_tree(), episodes=4, seed=1)
    assert run.posterior.method == "conjugate"
    counts = corridor().counts(run.episodes)
    assert np.array_equal(run.posterior.closed, posterior(corridor(), counts).closed)


@pytest.mark.parametrize("rule", ["posterior_sampling", pytest.param("greedy", marks=SLOW)])
def test_the_compiled_loop_takes_the_same_decisions(rule):
    world = corridor().at(p=np.array([0.1, 0.3, 0.6]))
    runs = [
        learn(world, getattr(explorers, rule)(), history_tree(), 6, seed=2, compiled=compiled)
        for compiled in (False, True)
    ]
    assert np.array_equal(runs[0].episodes.actions, runs[1].episodes.actions)
    assert np.array_equal(runs[0].episodes.states, runs[1].episodes.states)


@pytest.mark.slow
def test_missing_states_are_sampled_with_nested_rows():
    """Gibbs sampling against importance sampling from the prior, within 5 standard errors.

    Planted bug: without the data.
    """
    model = corridor()
    episodes = with_gaps(model.at(p=np.array([0.1, 0.3, 0.6])), 8, 0.5)
    belief = posterior(model, episodes)
    assert belief.method == "gibbs"
    evidence, n = Evidence.of(episodes, model), 800
    draws = posterior(model, Counts.zero(model)).parameters(KEY, n)
    tables = tables_at(model, draws, n)
    log = log_likelihood(tables, evidence.counts) + np.array(
        [
            log_likelihood_of_gaps(Rows(*(table[k] for table in tables), model.form), evidence.gaps)
            for k in range(n)
        ]
    )
    weights = softmax(log)
    mean = weights @ draws["p"]
    error = np.sqrt(weights**2 @ (draws["p"] - mean) ** 2)
    error += draws["p"].std(0) / np.sqrt(belief.diagnostics.ess["p"])
    assert (np.abs(belief.site_means["p"] - mean) < 5 * error).all()
    assert (np.abs(draws["p"].mean(0) - mean) > 5 * error).any()


def test_moments_of_backups_need_rows_without_nesting():
    assert not has_moments(corridor())
    with raises(InferenceError, "sites"):
        confidence.moments(corridor(), Counts.zero(corridor()))


def overlapping():
    p = numpyro.sample("p", dist.Dirichlet(np.ones(3)))
    rows = [jnp.array([p[0] + p[1], p[2]]), jnp.array([p[0], p[1] + p[2]])]
    return Kernels([0.5, 0.5], np.eye(2)[:, None], jnp.stack(rows))


def test_the_certificate_refuses_overlapping_sums(monkeypatch):
    """Planted bug: matching accepts sums that overlap without nesting."""
    assert declare(overlapping, 2, 2, 1).structure.conjugate.sites == ()
    monkeypatch.setattr(matching, "is_nested", lambda sums: True)
    assert declare(overlapping, 2, 2, 1).structure.conjugate.sites == ()


def test_ended_episodes_keep_the_closed_form():
    """A corridor with an exit: episodes end there, and are counted up to the end."""

    @homdp(
        states=("left", "middle", "out"),
        observations=2,
        actions=("go",),
        horizon=5,
        reward=[[0], [0], [0]],
        terminal=("out",),
    )
    def corridor():
        p = numpyro.sample("p", dist.Dirichlet(np.array([1.0, 1.0, 2.0])))  # back, stay, forward
        rows = jnp.array([[p[0] + p[1], p[2], 0], [p[0], p[1], p[2]], [0, 0, 1]])
        return Kernels([1, 0, 0], rows[:, None], np.full((3, 2), 0.5))

    world = corridor.at(p=np.array([0.2, 0.3, 0.5]))
    batch = rollout(jax.random.split(KEY, 12), world, uniform_policy(world))
    assert set(batch.ended) == {"horizon", "terminal"}
    belief = posterior(corridor, batch)
    assert belief.method == "conjugate"
    by_hand = np.zeros((2, 3), int)
    for episode in batch:
        for x, following in zip(episode.states[:-1], episode.states[1:], strict=True):
            by_hand[x, following] += 1
    shown = (((0, 1), (2,)), ((0,), (1,), (2,)))
    weights, concentrations = mixture(np.array([1.0, 1, 2]), shown, by_hand)
    for k in range(3):
        assert belief.site_means["p"][k] == pytest.approx(
            moments((k,), weights, concentrations)[0], rel=1e-10
        )


def leaves_of(tree):
    return [tree] if isinstance(tree, int) else [leaf for b in tree for leaf in leaves_of(b)]


def random_cut(generator, tree, inner=False):
    """A random cut of a tree of nested lists: leaves, or whole branches."""
    if isinstance(tree, int) or (inner and generator.random() < 0.4):
        return [tuple(leaves_of(tree))]
    return [part for branch in tree for part in random_cut(generator, branch, inner=True)]


def random_tree(generator, leaves):
    if len(leaves) == 1:
        return leaves[0]
    groups = min(len(leaves), int(generator.integers(2, 4)))
    cuts = np.sort(generator.choice(np.arange(1, len(leaves)), groups - 1, replace=False))
    return [random_tree(generator, part.tolist()) for part in np.split(np.array(leaves), cuts)]


def random_declaration(seed):
    """Emission rows that are random cuts of a Dirichlet row, in random order and with random
    mass.
    """
    generator = np.random.default_rng(seed)
    d, X = int(generator.integers(3, 6)), 3
    alpha = generator.uniform(0.5, 4.0, d)
    tree = random_tree(generator, generator.permutation(d).tolist())
    shown = []
    for _ in range(X):
        parts = random_cut(generator, tree)
        shown.append(tuple(parts[k] for k in generator.permutation(len(parts))))
    mass = generator.choice([1.0, 0.7], X)

    def program():
        p = numpyro.sample("p", dist.Dirichlet(alpha))
        return Kernels(np.full(X, 1 / X), np.eye(X)[:, None], rows_of(p, shown, mass, d + 1))

    model = declare(program, states=X, observations=d + 1, actions=1)
    seen = np.zeros((X, d + 1), int)
    for x, parts in enumerate(shown):
        seen[x, : len(parts)] = generator.integers(0, 6, len(parts))
    return model, Counts(np.zeros((X, 1, X), int), seen, initial=np.zeros(X, int))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=SLOW) for k in range(2, 8))])
def test_random_declarations_agree_with_importance_sampling(seed):
    """Means of all table entries within 6 standard errors: false-alarm rate below 1e-6.

    Planted bug: data counted twice are detected in at least one entry.
    """
    model, counts = random_declaration(seed)
    belief = posterior(model, counts)
    assert belief.method in ("conjugate", "known")
    prior = posterior(model, Counts.zero(model)).parameters(KEY, 40_000)
    tables = tables_at(model, prior, 40_000)
    weights = softmax(log_likelihood(tables, counts))
    means = np.tensordot(weights, tables.emission, 1)
    error = np.sqrt(np.tensordot(weights**2, (tables.emission - means) ** 2, 1))
    assert (np.abs(belief.mean.shows(0) - means) <= 6 * error + 1e-12).all()
    assert np.allclose(
        np.tensordot(weights, tables.emission**2, 1) - means**2, belief.variance.emission, atol=0.01
    )
    twice = posterior(model, counts + counts)
    assert (np.abs(twice.mean.shows(0) - means) > 6 * error + 1e-12).any()
