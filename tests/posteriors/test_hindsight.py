"""Posteriors given labels, mechanisms and rewards of hidden states."""

import warnings

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from homdp_ppl import Episodes, Kernels, homdp, posterior
from homdp_ppl.core.clues import likelihoods
from homdp_ppl.declare.clue_likelihood import evidence_of
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.errors import HindsightWarning
from homdp_ppl.posteriors import Gate, Sampling, gibbs
from tests.gaps import tables_of
from tests.hindsight import MODELS, noisy, simulated, weighed_paths

COPIES = 40_000


def expected_counts(world, known, episodes):
    """Expected counts of labels and of marks of the hidden states of one episode."""
    form, spaces = world.homdp.form.hindsight, world.spaces
    found = {name: np.zeros(shape) for name, shape in form.tables.items()}
    L, y, a = int(episodes.length[0]), episodes.observations[0], episodes.actions[0]
    hidden, items = ~episodes.revealed[0], form.items(episodes)[0]
    total = sum(p for _, p in weighed_paths(world, known, episodes, 0))
    assert len(spaces.states) == form.tables.get("label", (len(spaces.states),))[0]
    for x, p in weighed_paths(world, known, episodes, 0):
        for h in np.flatnonzero(hidden[: L + 1]):
            if "label" in found and episodes.labels_known[0, h]:
                found["label"][x[h], int(episodes.labels[0, h])] += p / total
            if not form.by_state:
                continue
            if h < L:
                place = form.place(h, x[h], y[h], a[h])
                found["revealed"][(*place, int(items[h]))] += p / total
            else:
                found["revealed_last"][(*form.last_place(L, x[h]), int(items[h]))] += p / total
    return found


def worst(world, known):
    """The largest distance of sampled from expected counts, in standard errors."""
    scores = [0.0]
    for k in range(4):
        episodes = simulated(world, 5, seed=7)[[k]]
        evidence = evidence_of(world.homdp, episodes)
        gaps = evidence.gaps._replace(number=evidence.gaps.number * COPIES)
        tables = Tables(*(np.stack([table] * 2) for table in tables_of(world)))
        named = jax.tree.map(np.asarray, world.homdp.counted_tables(world.parameters))
        clues = likelihoods(gaps.clues, world.homdp.form, named)[:, None].repeat(2, axis=1)
        generator = np.random.default_rng(k)
        for counts in gibbs.hidden_counts(generator, tables, world.homdp, gaps, clues):
            for name, mean in expected_counts(world, known, episodes).items():
                error = 7 * np.sqrt((mean + 1e-6) / COPIES)  # at most four hidden states
                sampled = np.asarray((counts.hindsight or {}).get(name, np.zeros(mean.shape)))
                scores.append(np.max(np.abs(sampled / COPIES - mean) / error))
    return max(scores)


@pytest.mark.parametrize("name", ["noisy", "chosen", "ending"])
def test_labels_and_marks_have_their_exact_distribution(name):
    """False-alarm rate below 1e-5: the limit is at least five standard errors."""
    model, known = MODELS[name]
    assert worst(model.draw(jax.random.key(5)), known) < 1.0


def test_marks_that_are_not_counted_are_caught(monkeypatch):
    model, known = MODELS["chosen"]
    monkeypatch.setattr(gibbs._Counted, "clue", lambda *arguments: None)
    assert worst(model.draw(jax.random.key(5)), known) > 2.0


SHORT = Sampling(chains=2, warmup=100, draws=300)


def test_everything_revealed_is_the_closed_form():
    """With all states and labels known, rows are counted, also those of labels and of a coin."""
    model = MODELS["coin"][0]
    world = model.draw(jax.random.key(2))
    played = simulated(world, 20)
    states = np.where(played.revealed, played.states, 0)
    complete = Episodes(played.observations, played.actions, states)
    belief = posterior(model, complete)
    plain = homdp(states=2, observations=2, actions=2, horizon=3, reward=np.full((2, 2), 0.5))(
        lambda: MODELS["coin"][0].function()._replace(revealed=None)
    )
    assert belief.method == "conjugate"
    assert np.array_equal(
        belief.site_means["shows"], posterior(plain, complete).site_means["shows"]
    )
    assert np.isclose(belief.site_means["q"], (2 + 80) / (4 + 80))
    labels = np.random.default_rng(0).integers(0, 3, (20, 4))
    labelled = Episodes(played.observations, played.actions, states, labels=labels)
    found = posterior(noisy, labelled)
    counts = np.array([[6.0, 2, 1], [1, 2, 6]])
    np.add.at(counts, (states, labels), 1)
    assert found.method == "conjugate"
    assert np.allclose(found.site_means["confusion"], counts / counts.sum(1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["nuts", "laplace"])
def test_methods_agree_on_noisy_labels(method):
    """Means agree within four Monte Carlo errors; Laplace's approximation within its error."""
    world = noisy.draw(jax.random.key(4))
    episodes = simulated(world, 60)
    loose = Gate(r_hat=1.1, ess=50)
    exact = posterior(noisy, episodes, sampling=SHORT, gate=loose)
    other = posterior(noisy, episodes, method=method, sampling=SHORT, gate=loose)
    assert (exact.method, other.method) == ("gibbs", method)
    assert "labels" in repr(exact)
    for site, mean in exact.site_means.items():
        spread = exact.atoms.values[site].std(0)
        slack = 0.35 if method == "nuts" else 0.6
        assert np.all(np.abs(other.site_means[site] - mean) < slack * spread + 1e-3), site


MOVES = np.array([[[0.9, 0.1]], [[0.1, 0.9]]])


def declared(mechanism):
    """The tiger that listens, revealed with 0.6 after a right growl and 0.1 after a wrong one."""

    @homdp(states=2, observations=2, actions=1, horizon=4, reward=[[1.0], [0.0]])
    def tiger():
        p = numpyro.sample("accuracy", dist.Beta(8, 2))
        how = (lambda x, y, a: 0.1 + 0.5 * (x == (x if y is None else y))) if mechanism else None
        return Kernels([0.5, 0.5], MOVES, _flip(p), revealed=how)

    return tiger


def _flip(p):
    return jax.numpy.array([[p, 1 - p], [1 - p, p]])


def test_missing_not_at_random():
    """The declared mechanism covers the truth, 0.85; ignoring it does not, and it is reported."""
    world = declared(True).at(accuracy=0.85)
    episodes = simulated(world, 2000)
    right, ignoring = declared(True), declared(False)
    sampling, loose = Sampling(chains=2, warmup=100, draws=300), Gate(r_hat=1.1, ess=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = posterior(right, episodes, sampling=sampling, gate=loose)
    with pytest.warns(HindsightWarning):
        bad = posterior(ignoring, episodes, sampling=sampling, gate=loose)
    low, high = np.quantile(good.atoms.values["accuracy"], [0.005, 0.995])
    assert low < 0.85 < high
    low, _ = np.quantile(bad.atoms.values["accuracy"], [0.005, 0.995])
    assert low > 0.85 + 0.01
    assert good.method == bad.method == "gibbs"
    assert "what was revealed" in repr(good)


def test_a_declared_coin_that_is_none_is_reported():
    """Reveals that depend on what was seen contradict a coin."""
    world = MODELS["coin"][0].draw(jax.random.key(2))
    found = simulated(world, 200)
    chosen = found.observations == 0
    revealed = np.concatenate([chosen, np.ones((200, 1), bool)], axis=1) & found.revealed
    biased = Episodes(found.observations, found.actions, found.states, revealed=revealed)
    short = Sampling(chains=1, warmup=5, draws=5)
    with pytest.warns(HindsightWarning):
        posterior(MODELS["coin"][0], biased, sampling=short, force=True)


def ranks_of(name, method, replicas, episodes):
    """Ranks of the true parameters among posterior draws."""
    model, _ = MODELS[name]
    gate, ranks = Gate(r_hat=np.inf, ess=0.0), []
    sampling = Sampling(chains=1, warmup=60 if method == "auto" else 150, draws=62)
    for r in range(replicas):
        world = model.draw(jax.random.key(r))
        belief = posterior(
            model,
            simulated(world, episodes, seed=r),
            method=method,
            sampling=sampling,
            gate=gate,
            key=jax.random.key(10_000 + r),
            force=True,
        )
        row = []
        for site, true in world.parameters.items():
            true = np.asarray(true)
            first = (0,) * true.ndim
            row.append(np.mean(belief.atoms.values[site][::2][(slice(None), *first)] < true[first]))
        ranks.append(row)
    return np.array(ranks)


def smallest_p_value(ranks):
    """Kolmogorov-Smirnov tests of ranks, and of their distances from the middle."""
    jitter = np.random.default_rng(0).uniform(size=ranks.shape)
    uniform = (ranks * 31 + jitter) / 32
    columns = [*uniform.T, *np.abs(2 * uniform - 1).T]
    return min(stats.kstest(column, "uniform").pvalue for column in columns) * len(columns)


CASES = [
    ("noisy", "auto"),
    ("coarse", "auto"),
    ("chosen", "auto"),
    ("noisy", "nuts"),
    ("later", "nuts"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), CASES[:2])
def test_gibbs_is_calibrated(name, method):
    """Simulation-based calibration in 50 replicas; false-alarm rate 1e-4 per case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HindsightWarning)
        assert smallest_p_value(ranks_of(name, method, 50, 12)) > 1e-4


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("name", "method"), CASES)
def test_calibration_in_many_replicas(name, method):
    """The same in 500 replicas; false-alarm rate 1e-4 per case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HindsightWarning)
        assert smallest_p_value(ranks_of(name, method, 500, 25)) > 1e-4
