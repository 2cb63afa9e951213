"""Posteriors of episodes with missing states: Gibbs sampling, NUTS, enumeration, hindsight."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy import stats

from homdp_ppl import (
    Counts,
    DataError,
    Episodes,
    Kernels,
    homdp,
    models,
    posterior,
    x64,
)
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import Rows, log_likelihood_of_gaps
from homdp_ppl.core.gaps import GapTree
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.posteriors import Gate, Sampling, gibbs
from homdp_ppl.posteriors.density import log_likelihood
from tests.declare.test_terminal import native
from tests.gaps import enumerated, paths, tables_of, with_gaps
from tests.raising import raises
from tests.richer import RICHER, richer

COPIES = 100_000
BUGS = ("last", "first", "observation", "transition")


def world_of(name):
    return native().draw(jax.random.key(3)) if name == "terminal" else richer(name)


def expected_counts(world, episodes, k):
    """Expected counts of the steps that involve hidden states, by enumeration."""
    form, spaces = world.homdp.form, world.homdp.spaces
    found = {name: np.zeros(getattr(form, name)) for name in Tables._fields}
    total = sum(p for _, p in paths(world, episodes, k))
    L, y, a = int(episodes.length[k]), episodes.observations[k], episodes.actions[k]
    known = episodes.revealed[k]
    for x, p in paths(world, episodes, k):
        share = p / total
        found["initial"][x[0]] += share * (not known[0])
        for h in range(L):
            before = a[h - 1] if h else len(spaces.actions)
            if not known[h]:
                found["emission"][form.emission_index(h, before, x[h], y[h])] += share
            inside = h + 1 < L or known[h + 1] or episodes.ended[k] == "terminal"
            if not (known[h] and known[h + 1]) and inside:
                found["transition"][form.transition_index(h, x[h], a[h], x[h + 1])] += share
    return found


def sampled_counts(world, episodes, k):
    """The mean counts of many copies of one episode, for two chains with the same tables."""
    copies = Episodes.concatenate([episodes[[k]]])
    gaps = Evidence.of(copies, world.homdp).gaps
    gaps = gaps._replace(number=gaps.number * COPIES)
    tables = Tables(*(np.stack([table] * 2) for table in tables_of(world)))
    return gibbs.hidden_counts(np.random.default_rng(k), tables, world.homdp, gaps)


def sampled_one_by_one(world, episodes, k):
    """As above, for one episode in many chains: few equal gaps are drawn one by one."""
    gaps = Evidence.of(episodes[[k]], world.homdp).gaps
    assert (gaps.number <= gibbs.FEW).all()
    tables = Tables(*(np.stack([table] * COPIES) for table in tables_of(world)))
    generator = np.random.default_rng(k)
    found = gibbs.hidden_tables(generator, tables, world.homdp, GapTree.of(gaps))
    summed = {name: table.sum(0) for name, table in found.items()}
    return [gibbs.as_counts(summed, world.homdp.form)]


def worst(world, sampled=sampled_counts):
    """The largest distance of sampled from expected counts, in standard errors."""
    episodes = with_gaps(world, 6, 0.3, seed=5)
    scores = [0.0]
    for k in range(len(episodes)):
        expected = expected_counts(world, episodes, k)
        for counts in sampled(world, episodes, k):
            for name, mean in expected.items():
                # a count is a sum of at most H + 1 indicators, so its variance is bounded
                error = (mean.shape[0] + 3) * np.sqrt((mean + 1e-6) / COPIES)
                scores.append(np.max(np.abs(getattr(counts, name) / COPIES - mean) / error))
    return max(scores)


@pytest.mark.parametrize("name", [*RICHER, "terminal"])
def test_hidden_states_have_their_exact_distribution(name):
    """False-alarm rate below 1e-6: the limit is at least five standard errors."""
    assert worst(world_of(name)) < 1.0


@pytest.mark.parametrize("bug", [False, True])
def test_single_draws_have_the_same_distribution(bug, monkeypatch):
    """False-alarm rate as above; draws that ignore the weights are caught."""
    if bug:
        drawn = gibbs._drawn
        monkeypatch.setattr(gibbs, "_drawn", lambda g, n, weights: drawn(g, n, 0 * weights + 1))
    score = worst(world_of("start"), sampled_one_by_one)
    assert score > 2.0 if bug else score < 1.0


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_in_counting_are_caught(bug, monkeypatch):
    monkeypatch.setattr(gibbs._Counted, bug, lambda *arguments: None)
    assert worst(world_of("start")) > 2.0


def grid_posterior(model, episodes):
    """Mean and standard deviation of tiger's accuracy on a fine grid."""
    evidence = Evidence.of(episodes, model)
    grid = np.linspace(0.001, 0.999, 1999)
    log = np.empty_like(grid)
    for k, p in enumerate(grid):
        tables = Tables(np.full(2, 0.5), np.asarray(model.structure.reference.transition), flip(p))
        gaps = log_likelihood_of_gaps(Rows(*tables, model.form), evidence.gaps)
        log[k] = log_likelihood(tables, evidence.counts) + gaps + stats.beta(8, 2).logpdf(p)
    weights = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    mean = weights @ grid
    return mean, np.sqrt(weights @ (grid - mean) ** 2)


def flip(p):
    return np.array([[p, 1 - p], [1 - p, p]])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "nuts"])
def test_tiger_with_thirty_percent_revealed(method):
    """Mean and spread agree with the grid; each limit is about four Monte Carlo errors."""
    world = models.load("tiger")
    episodes = with_gaps(world, 100, 0.3)
    mean, spread = grid_posterior(world.homdp, episodes)
    belief = posterior(world.homdp, episodes, method=method)
    drawn = belief.atoms.values["accuracy"]
    assert belief.method == {"auto": "gibbs", "nuts": "nuts"}[method]
    assert abs(drawn.mean() - mean) < 4 * spread / np.sqrt(belief.diagnostics.ess["accuracy"])
    assert abs(drawn.std() / spread - 1) < 0.12


def test_nothing_missing_is_the_closed_form():
    world = models.load("tiger")
    complete = with_gaps(world, 30, 1.0)
    assert posterior(world.homdp, complete).method == "conjugate"


@pytest.mark.parametrize("name", ["start", "everything", "terminal"])
def test_hindsight_has_the_marginal_density(name):
    """Differences of log densities between parameters equal those found by enumeration."""
    world = world_of(name)
    model = world.homdp
    other = model.draw(jax.random.key(99))
    episodes = with_gaps(world, 12, 0.4)
    found = []
    with x64():
        conditioned = model.hindsight(episodes)
        prior = model.hindsight(episodes[:0])
        for each in (world, other):
            log, trace = log_density(conditioned, (), {}, dict(each.parameters))
            before, _ = log_density(prior, (), {}, dict(each.parameters))
            found.append(float(log) - float(before) - enumerated(each, episodes))
    latent = {
        name for name, site in trace.items() if site["type"] == "sample" and not site["is_observed"]
    }
    assert latent == set(world.parameters)
    assert np.allclose(found[0], found[1], atol=1e-9)


def test_discrete_sites_are_summed_over_exactly():
    @homdp(states=2, observations=2, actions=1, horizon=2, reward=[[1.0], [0.0]])
    def noisy():
        sharp = numpyro.sample("sharp", dist.Bernoulli(0.3))
        p = 0.6 + 0.3 * sharp
        return Kernels(
            [0.5, 0.5],
            [[[0.9, 0.1]], [[0.2, 0.8]]],
            lambda x: dist.Bernoulli((1 - x) * (1 - p) + x * p),
        )

    truth = noisy.at(sharp=1)
    episodes = with_gaps(truth, 20, 0.3)
    logs = np.array(
        [enumerated(noisy.at(sharp=k), episodes) + np.log([0.7, 0.3][k]) for k in (0, 1)]
    )
    exact = 1 / (1 + np.exp(logs[0] - logs[1]))
    belief = posterior(noisy, episodes)
    assert belief.method == "enumerated"
    assert np.isclose(belief.site_means["sharp"], exact, atol=1e-10)


def test_updates_join_the_data():
    """The order does not matter for the data, and complete episodes can follow incomplete ones."""
    world = models.load("tiger", horizon=2)
    short = Sampling(chains=2, warmup=50, draws=200)
    gaps, complete = with_gaps(world, 20, 0.4), with_gaps(world, 20, 1.0, seed=2)
    parts = [
        posterior(world.homdp, first, sampling=short, gate=Gate(r_hat=2, ess=1)).update(second)
        for first, second in ((gaps, complete), (complete, gaps))
    ]
    whole = Evidence.of(gaps + complete, world.homdp)
    for belief in parts:
        assert belief.method == "gibbs"
        assert np.array_equal(belief.data.counts.emission, whole.counts.emission)
        assert np.array_equal(belief.data.gaps.number, whole.gaps.number)
        assert "hidden states summed over" in repr(belief)
        with raises(DataError, "data"):
            belief.counts  # noqa: B018


def test_what_needs_all_states_refuses_gaps():
    world = models.load("tiger", horizon=2)
    gaps = with_gaps(world, 5, 0.3)
    with raises(DataError, "states"):
        world.homdp.counts(gaps)
    with raises(DataError, "states"):
        Counts.of(gaps, world.homdp)


def test_impossible_gaps_are_an_error():
    """A growl from an accuracy of exactly 1 contradicts the states around it."""

    @homdp(states=2, observations=2, actions=1, horizon=2, reward=[[1.0], [0.0]])
    def still():
        q = numpyro.sample("q", dist.Dirichlet(np.ones(2)))
        return Kernels(q, [[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0, 0.0], [0.0, 1.0]])

    wrong = Episodes([[0, 1]], [[0, 0]], [[None, None, None]])
    with pytest.raises(DataError):
        posterior(still, wrong)


def count_in_the_other_state(add):
    def wrong(counted, name, place, number):
        chain, x, *rest = place
        add(counted, name, (chain, 1 - x, *rest), number)

    return wrong


def count_five_times(add):
    return lambda counted, name, place, number: add(counted, name, place, 5 * number)


PLANTED = {"wrong state": count_in_the_other_state, "five times": count_five_times}


@pytest.mark.slow
@pytest.mark.parametrize("bug", [None, *PLANTED])
def test_gibbs_is_calibrated(bug, monkeypatch):
    """Simulation-based calibration with 40% of the states revealed.

    Ranks of 5 parameters in 100 replicas, and their distances from the middle, which detect wrong
    spreads; Kolmogorov-Smirnov tests at 1e-4 / 10 each, so the false-alarm rate is 1e-4. The same
    tests catch hidden steps that are counted in a wrong row or too often. Steps that are left out
    would not be caught: a posterior given fewer data is calibrated too.
    """
    if bug:
        monkeypatch.setattr(gibbs._Counted, "_add", PLANTED[bug](gibbs._Counted._add))
    model = RICHER["start"]
    sampling, gate = Sampling(chains=1, warmup=60, draws=62), Gate(r_hat=np.inf, ess=0.0)
    ranks = []
    for r in range(100):
        world = model.draw(jax.random.key(r))
        belief = posterior(
            model,
            with_gaps(world, 25, 0.4, seed=r),
            sampling=sampling,
            gate=gate,
            key=jax.random.key(10_000 + r),
        )
        drawn, true = belief.atoms.values, world.parameters
        ranks.append(
            [
                np.mean(drawn[site][::2, *place] < true[site][place])
                for site, place in (
                    ("rho", (0,)),
                    ("shows", (0, 0)),
                    ("shows", (1, 0)),
                    ("moves", (0, 0, 0)),
                    ("moves", (1, 1, 0)),
                )
            ]
        )
    jitter = np.random.default_rng(0).uniform(size=(100, 5))
    uniform = (np.array(ranks) * 31 + jitter) / 32
    columns = [*uniform.T, *np.abs(2 * uniform - 1).T]
    smallest = min(stats.kstest(column, "uniform").pvalue for column in columns)
    assert (smallest > 1e-4 / 10) == (bug is None)
