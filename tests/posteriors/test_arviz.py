"""Posteriors in ArviZ: groups and coordinates, LOO against exact leave-one-out, predictions.

The tests run with ArviZ 0.23 and 1.x, which differ in some names. Both use deprecated functions of
other packages; these warnings are ignored.
"""

from functools import cache

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.special import gammaln
from scipy.stats import beta, dirichlet, norm

from homdp_ppl import (
    Counts,
    DataError,
    Episodes,
    InferenceError,
    Kernels,
    Real,
    explorers,
    homdp,
    learn,
    posterior,
    rollout,
    tabular,
    uniform_policy,
)
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Sampling
from homdp_ppl.posteriors.arviz_versions import load_arviz
from homdp_ppl.posteriors.tracking import Tracked
from tests.posteriors import programs
from tests.richer import RICHER, richer
from tests.worlds import Parity, world

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
]
arviz = load_arviz()
IS_OLD = arviz.__version__.startswith("0.")
Z = 5.0  # standard errors: for 1,000 numbers the false-alarm rate is below 0.001
EPISODE_GROUPS = {"observed_data", "constant_data", "log_likelihood", "posterior_predictive"}
DRAW_GROUPS = {"posterior", "prior", "sample_stats"}


def groups_of(data):
    """The Datasets by name, in both versions."""
    names = data.groups() if IS_OLD else data.children
    return {name: data[name] if IS_OLD else data[name].to_dataset() for name in names}


def loo(data):
    """The exact name of the pointwise results differs."""
    found = arviz.loo(data, pointwise=True)
    return found, np.asarray(found.loo_i if IS_OLD else found.elpd_i)


def played(model, n=80, seed=0, policy=None):
    """Episodes of a world."""
    keys = jax.random.split(jax.random.key(seed), n)
    return rollout(keys, model, policy or uniform_policy(model))


@cache
def flat():
    """Episodes of a table with Dirichlet rows, and their posterior."""
    model = programs.tables()
    log = played(model.draw(jax.random.key(4)))
    return model, log, posterior(model, log)


@cache
def flat_data():
    return flat()[2].to_arviz()


@homdp(
    states=("well", "ill", "gone"),
    observations=("quiet", "cough"),
    actions=("wait", "treat"),
    horizon=4,
    reward=np.zeros((3, 2)),
    terminal=("gone",),
)
def clinic():
    """Episodes end early; treated people get well for certain, so some episodes are known."""
    leave = numpyro.sample("leave", dist.Beta(2, 3))
    stay = jnp.array([1.0, 0.0, 0.0])
    wait = jnp.array([0.0, 1 - leave, leave])
    rows = jnp.stack([jnp.stack([stay, stay]), jnp.stack([wait, stay]), np.eye(3)[[2, 2]]])
    return Kernels([0.5, 0.5, 0.0], rows, np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]))


@homdp(states=2, observations=Real(2), actions=2, horizon=2, reward=np.zeros((2, 2)))
def pulses():
    """Vectors of observations."""
    level = numpyro.sample("level", dist.Normal(0, 1).expand([2]).to_event(1))
    return Kernels(
        [0.5, 0.5],
        np.full((2, 2, 2), 0.5),
        lambda x: dist.Normal(level + x, 0.5).to_event(1),
    )


# Log likelihoods


def by_hand(pomdp, episode, states=None):
    """The log probability of an episode, also with other states, with plain loops."""
    x = episode.states if states is None else states
    y, a = episode.observations, episode.actions
    A = pomdp.transition.shape[-2]
    total = np.log(pomdp.initial[x[0]])
    for h in range(len(a)):
        T = pomdp.transition[min(h, len(pomdp.transition) - 1)]
        O = pomdp.emission[min(h, len(pomdp.emission) - 1)]  # noqa: E741
        before = A if h == 0 else a[h - 1]
        total += np.log(O[min(before, len(O) - 1), x[h], y[h]]) + np.log(T[x[h], a[h], x[h + 1]])
    return total


def short(model, truth):
    """Twelve episodes, and their posterior for ArviZ."""
    log = played(truth, 12)
    return log, posterior(model, log, sampling=Sampling(2, 100, 100), force=True).to_arviz()


def site_values(group, model, draw):
    """The values of the sites at a draw of the first chain."""
    return {site.name: group[site.name].values[0, draw] for site in model.sites}


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    ["tables", "clinic", *(pytest.param(n, marks=SLOW) for n in ("answers", "steps", "start"))],
)
def test_log_likelihoods_equal_products_of_table_entries(name):
    """Also with step- and action-dependent tables, an unknown start and early ends."""
    model = clinic if name == "clinic" else RICHER[name]
    log, data = short(model, clinic.at(leave=0.9) if name == "clinic" else richer(name))
    assert name != "clinic" or not log.full_length
    data = groups_of(data)
    for draw in (0, 7):
        pomdp = model.tables(site_values(data["posterior"], model, draw))
        expected = [by_hand(pomdp, episode) for episode in log]
        found = data["log_likelihood"].episodes.values[0, draw]
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
def test_log_likelihoods_of_real_observations():
    model = world("gaussian_tiger")
    log = played(model, 12)
    data = groups_of(posterior(model.homdp, log).to_arviz())
    values = site_values(data["posterior"], model.homdp, 3)
    T, first = (np.exp(part) for part in latent_logs(model))
    for k, episode in enumerate(log):
        x, a, y = episode.states, episode.actions, episode.observations
        scale = values["precision"] ** -0.5
        expected = norm.logpdf(y, values["mean"][x[:-1]], scale[x[:-1]]).sum()
        expected += np.log(first[x[0]]) + np.log(T[x[:-1], a, x[1:]]).sum()
        assert data["log_likelihood"].episodes.values[0, 3, k] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["tables", "clinic"])
def test_log_likelihoods_sum_over_missing_states(name):
    """Against a sum over all completions; also if the terminal state was not recorded."""
    model = clinic if name == "clinic" else RICHER[name]
    log, _ = short(model, clinic.at(leave=0.9) if name == "clinic" else richer(name))
    hidden = np.random.default_rng(0).uniform(size=log.states.shape) < 0.5
    present = np.arange(log.horizon + 1) <= log.length[:, None]
    gaps = Episodes(
        log.observations,
        log.actions,
        log.states,
        revealed=present & ~hidden,
        length=log.length,
        ended=log.ended,
    )
    belief = posterior(model, gaps, sampling=Sampling(2, 50, 100), force=True)
    groups = groups_of(belief.to_arviz())
    assert set(groups) == (DRAW_GROUPS | EPISODE_GROUPS) - {"posterior_predictive"}
    assert np.array_equal(np.isnan(groups["observed_data"].state), ~(present & ~hidden))
    found = groups["log_likelihood"].episodes.values[0, 3]
    pomdp = model.tables(site_values(groups["posterior"], model, 3))
    X, ends = len(model.states), model.spaces.ends
    for k, episode in enumerate(log):
        L, total = len(episode.actions), 0.0
        for states in np.ndindex(*[X] * (L + 1)):
            matches = np.all(
                np.array(states)[~hidden[k, : L + 1]] == episode.states[~hidden[k, : L + 1]]
            )
            ended = log.ended[k] != "terminal" or ends[states[-1]]
            if matches and ended and not ends[list(states[:-1])].any():
                with np.errstate(divide="ignore"):
                    total += np.exp(by_hand(pomdp, episode, states))
        assert found[k] == pytest.approx(np.log(total), rel=1e-7)
    whole = groups["log_likelihood"].episodes.values.sum(-1)
    differences = groups["sample_stats"].lp.values - whole  # the log prior
    values = groups["posterior"]
    if name == "clinic":
        assert differences == pytest.approx(beta(2, 3).logpdf(values.leave.values), abs=1e-6)
    else:
        assert differences == pytest.approx(differences[0, 0])  # a flat prior
    assert set(groups_of(belief.to_arviz(gaps[:2]))["log_likelihood"].episode.values) == {1, 2}


def latent_logs(model):
    """Log transitions and log initial distribution, which are known."""
    X, A = 2, len(model.spaces.actions)
    numbers, dynamics = model.numbers, model.dynamics
    moves = [
        [[float(dynamics.log_transition(numbers, x, a, 0, z)) for z in range(X)] for a in range(A)]
        for x in range(X)
    ]
    return np.array(moves), np.array([float(dynamics.log_initial(numbers, x)) for x in range(X)])


def log_evidence(counts):
    """The log marginal likelihood of counts under independent Dirichlet rows, in closed form."""
    total = 0.0
    for alpha, n in ((programs.ALPHA_T, counts.transition), (programs.ALPHA_O, counts.emission)):
        rows = alpha.reshape(-1, alpha.shape[-1]), n.reshape(-1, n.shape[-1])
        for a, row in zip(*rows, strict=True):
            total += gammaln(a.sum()) - gammaln(a.sum() + row.sum())
            total += (gammaln(a + row) - gammaln(a)).sum()
    return total


def exact_loo():
    """The logarithms of p(episode | all other episodes) in closed form."""
    model, log, _ = flat()
    start = np.log([0.6, 0.3, 0.1])
    everything = log_evidence(Counts.of(log, model))
    others = [
        log_evidence(Counts.of(log[np.arange(len(log)) != k], model)) for k in range(len(log))
    ]
    return everything - np.array(others) + start[log.states[:, 0]]


def distances(data, expected):
    """Errors of the pointwise LOO in standard errors of importance sampling."""
    log = groups_of(data)["log_likelihood"].episodes.values.reshape(-1, len(expected))
    ratio = np.exp(-(log - log.mean(0)))
    errors = ratio.std(0) / ratio.mean(0) / np.sqrt(len(log))
    return (loo(data)[1] - expected) / errors


def test_loo_equals_exact_leave_one_out():
    """80 numbers within 5 standard errors; the false-alarm rate is below 0.0001."""
    expected = exact_loo()
    found, each = loo(flat_data())
    assert np.max(np.abs(distances(flat_data(), expected))) < Z
    assert each.sum() == pytest.approx(expected.sum(), abs=0.5)
    assert float(found["elpd_loo"] if IS_OLD else found.elpd) == pytest.approx(each.sum())
    assert np.max(np.asarray(found.pareto_k)) < 0.7


@pytest.mark.parametrize("bug", ["last transition", "all episodes at once"])
def test_wrong_log_likelihoods_are_detected(bug):
    """Planted bugs: the last transition is missing; episodes are not left out."""
    _, log, belief = flat()
    data, expected = belief.to_arviz(), exact_loo()
    values = groups_of(data)["log_likelihood"].episodes.values
    if bug == "last transition":
        T = groups_of(data)["posterior"]["T"].values
        wrong = values - np.log(T[..., log.states[:, -2], log.actions[:, -1], log.states[:, -1]])
        data["log_likelihood"]["episodes"].values[:] = wrong
        assert np.max(np.abs(distances(data, expected))) > 2 * Z
    else:
        within = np.log(np.exp(values).mean((0, 1)))
        assert abs(within.sum() - expected.sum()) > 2


def test_the_log_density_is_that_of_the_closed_form():
    """The joint density divided by the posterior density is the evidence, at every draw."""
    model, log, _ = flat()
    data = groups_of(flat_data())
    counts = Counts.of(log, model)
    alphas = {"T": programs.ALPHA_T + counts.transition, "O": programs.ALPHA_O + counts.emission}
    for draw in (0, 1, 2):
        density = sum(
            dirichlet.logpdf(row, a)
            for site, alpha in alphas.items()
            for a, row in zip(
                alpha.reshape(-1, alpha.shape[-1]),
                data["posterior"][site].values[1, draw].reshape(-1, alpha.shape[-1]),
                strict=True,
            )
        )
        start = np.log([0.6, 0.3, 0.1])[log.states[:, 0]].sum()
        expected = density + log_evidence(counts) + start
        assert data["sample_stats"].lp.values[1, draw] == pytest.approx(expected, rel=1e-7)


def test_the_prior_group_has_the_prior():
    group = groups_of(world_data("tiger"))["prior"]
    quantiles = np.quantile(group.accuracy, [0.1, 0.5, 0.9])
    assert beta(8, 2).cdf(quantiles) == pytest.approx([0.1, 0.5, 0.9], abs=Z * 0.5 / 2000**0.5)


@cache
def world_data(name):
    return posterior(world(name).homdp, played(world(name), 40)).to_arviz()


def test_episodes_whose_likelihood_is_known_have_an_exact_loo():
    """PSIS cannot fit the tail of equal importance ratios, so noise of 1e-9 is added."""
    log = played(clinic.at(leave=0.4), 60)
    found, each = loo(posterior(clinic, log).to_arviz())
    known = [k for k, e in enumerate(log) if not np.any((e.states[:-1] == 1) & (e.actions == 0))]
    assert len(known) > 5
    pomdp = clinic.tables({"leave": 0.9})  # any value
    assert each[known] == pytest.approx([by_hand(pomdp, log[k]) for k in known], rel=1e-7)
    assert np.all(np.asarray(found.pareto_k)[known] < 0.7)


def test_declarations_are_compared_by_loo():
    """A table whose emissions do not depend on the state loses; the difference is exact."""
    log = played(world("tiger"), 60)
    tiger = world("tiger").homdp
    names = {"states": tiger.states, "observations": tiger.observations, "actions": tiger.actions}
    deaf = homdp(**names, horizon=4, reward=tiger.reward[0])(lambda: _deaf(tiger))
    data = {m.name: posterior(m, log).to_arviz() for m in (tiger, deaf)}
    table = arviz.compare(data)
    assert table.index[0] == "tiger"
    seen = log.observations == log.states[:, :-1]
    right, total = seen.sum(), seen.size
    one, other = (loo(each)[1].sum() for each in data.values())
    # leave-one-out predictive probabilities under Beta priors, step by step within an episode
    expected = sum(
        _beta_binomial(8 + right - s.sum(), 2 + total - right - (~s).sum(), s) for s in seen
    )
    first = (log.observations == 0).sum()
    expected -= sum(
        _beta_binomial(1 + first - s.sum(), 1 + total - first - (~s).sum(), s)
        for s in log.observations == 0
    )
    assert one - other == pytest.approx(expected, abs=0.5)


def _deaf(tiger):
    p = numpyro.sample("p", dist.Dirichlet(np.ones(2)))
    reference = tiger.structure.reference
    return Kernels(reference.initial, reference.transition, jnp.stack([p, p]))


def _beta_binomial(a, b, hits):
    """Log probability of one sequence of hits and misses under a Beta(a, b) prior."""
    k, n = hits.sum(), hits.size
    ends = gammaln(a + k) + gammaln(b + n - k) - gammaln(a + b + n)
    return ends - gammaln(a) - gammaln(b) + gammaln(a + b)


# Predictions


def test_replications_have_the_posterior_mean_frequencies():
    """Successors of each recorded (x, a), and observations in each recorded x.

    At every draw the frequency is computed; their mean over independent draws is compared with the
    exact posterior mean.
    """
    _, log, belief = flat()
    made = groups_of(flat_data())["posterior_predictive"]
    mean = belief.mean
    before, a = log.states[:, :-1], log.actions
    after = made.state.values.reshape(-1, *log.states.shape)[:, :, 1:]
    seen = made.observation.values.reshape(-1, *log.observations.shape)
    for x in range(3):
        checks = [(seen[:, before == x], mean.emission[0, 0, x])]
        checks += [(after[:, (before == x) & (a == u)], mean.transition[0, x, u]) for u in (0, 1)]
        for drawn, row in checks:
            shares = (drawn[..., None] == np.arange(len(row))).mean(1)  # (draws, outcomes)
            error = shares.std(0) / len(shares) ** 0.5
            assert np.all(np.abs(shares.mean(0) - row) < Z * error + 1e-12)
    first = (made.state.values[..., 0, None] == np.arange(3)).mean((0, 1, 2))
    assert first == pytest.approx([0.6, 0.3, 0.1], abs=Z * 0.5 / (2000 * len(log)) ** 0.5)


def test_replications_are_correct_for_policies_that_react():
    """Episodes of a known model under a policy that uses the whole history.

    The share of observations that agree with the state is that of a simulation, within 5 standard
    errors. Planted bug: replications of whole episodes given the recorded actions are detected.
    """
    truth = world("tiger").pomdp
    T, emission = truth.transition[0], truth.emission[0, 0]
    known = tabular(T=T, O=emission, initial=truth.initial, reward=np.zeros((2, 3)), horizon=4).at()
    log = played(known, 400, policy=Parity(3))
    made = groups_of(posterior(known.homdp, log).to_arviz())["posterior_predictive"]
    fresh = played(known, 400, seed=1, policy=Parity(3))
    expected = (fresh.observations == fresh.states[:, :-1]).mean()
    error = Z * (2 * 0.25 / 1600) ** 0.5
    assert abs((made.observation.values == log.states[:, :-1]).mean() - expected) < error
    states, uniforms = [log.states[:, 0]], np.random.default_rng(0).uniform(size=(400, 4))
    for h in range(3):
        states.append((uniforms[:, h] < T[states[-1], log.actions[:, h], 1]).astype(int))
    assert abs((np.stack(states, 1) == log.observations).mean() - expected) > error


# Groups, coordinates and functions of ArviZ


@pytest.mark.parametrize("name", ["tiger", "tables", "clinic", pytest.param("pulses", marks=SLOW)])
def test_every_dimension_has_coordinates(name):
    model = {"tiger": world("tiger").homdp, "clinic": clinic, "pulses": pulses}.get(name)
    model = model or RICHER[name]
    groups = groups_of(short(model, model.draw(jax.random.key(0)))[1])
    assert set(groups) == DRAW_GROUPS | EPISODE_GROUPS
    for group in groups.values():
        assert set(group.dims) == set(group.coords)
        assert group.attrs["model"] == model.name
    observed, made = groups["observed_data"], groups["posterior_predictive"]
    assert list(observed.step) == list(range(1, model.horizon + 1))
    assert list(observed.step_or_end) == list(range(1, model.horizon + 2))
    assert made.observation.dims[2:] == observed.observation.dims
    assert np.array_equal(np.isnan(made.state[0, 0]), np.isnan(observed.state))
    if name == "tables":
        shows = groups["posterior"].shows
        assert shows.dims[2:] == ("step", "previous_action", "state", "observation")
        assert list(shows.previous_action.values) == ["a0", "a1", "none"]
    if name == "tiger":
        assert list(observed.observation.attrs["names"]) == ["growl left", "growl right"]
    if name == "pulses":
        assert observed.observation.dims == ("episode", "step", "observation_axis")


def test_episodes_have_their_ids():
    model, log, _ = flat()
    named = Episodes(log.observations, log.actions, log.states, ids=[f"e{k}" for k in range(80)])
    group = groups_of(posterior(model, named).to_arviz())["log_likelihood"]
    assert list(group.episode.values[:2]) == ["e0", "e1"]
    assert list(groups_of(flat_data())["log_likelihood"].episode.values[:2]) == [1, 2]


@pytest.mark.parametrize("name", ["closed form", pytest.param("nuts", marks=SLOW)])
def test_functions_of_arviz(name):
    """Summaries, figures, LOO and comparisons, with the names of both versions."""
    data = flat_data() if name == "closed form" else sampled().to_arviz()
    site = "T" if name == "closed form" else "ear"
    summary = arviz.summary(data, var_names=[site])
    assert float(summary["r_hat"].astype(float).max()) < 1.03
    plot_ppc = arviz.plot_ppc if IS_OLD else arviz.plot_ppc_dist
    for plot in (arviz.plot_forest, arviz.plot_trace, arviz.plot_rank):
        plot(data, var_names=[site])
        assert any(axes.lines or axes.collections for axes in plt.gcf().axes), plot
        plt.close("all")
    plot_ppc(data, num_pp_samples=20) if IS_OLD else plot_ppc(data, num_samples=20)
    assert len(plt.gcf().axes) >= 2
    table = arviz.compare({"one": data, "same": data})
    assert list(table["rank"]) == [0, 1]


@cache
def sampled():
    log = played(programs.logistic().at(ear=1.0), 30)
    return posterior(programs.logistic(), log, sampling=Sampling(2, 300, 500))


@pytest.mark.slow
def test_statistics_of_nuts_are_kept():
    groups = groups_of(sampled().to_arviz())
    statistics = groups["sample_stats"]
    names = {"lp", "acceptance_rate", "diverging", "energy", "n_steps", "step_size"}
    assert set(statistics.data_vars) == names
    assert statistics.diverging.dtype == bool
    assert int(statistics.diverging.sum()) == sampled().diagnostics.divergences
    assert np.array_equal(groups["posterior"].ear, sampled().dataset.ear)
    assert 0.5 < float(statistics.acceptance_rate.mean()) <= 1
    # energy = kinetic - log density on the unconstrained scale, here that of the site itself
    kinetic = statistics.energy + statistics.lp
    assert float(kinetic.min()) > float(kinetic.mean()) - 2
    assert float(kinetic.var()) == pytest.approx(0.5, abs=0.4)  # half a chi-square of 1 degree


def test_files_keep_all_groups(tmp_path):
    pytest.importorskip("h5netcdf")
    pytest.importorskip("h5py")
    world_data("tiger").to_netcdf(str(tmp_path / "tiger.nc"))
    read = arviz.from_netcdf(str(tmp_path / "tiger.nc"))
    for name, group in groups_of(world_data("tiger")).items():
        assert groups_of(read)[name].equals(group)


# Which episodes


def test_counts_give_the_groups_of_draws_only_unless_episodes_are_given():
    model, log, belief = flat()
    counted = posterior(model, Counts.of(log, model))
    assert counted.episodes is None
    assert set(groups_of(counted.to_arviz())) == DRAW_GROUPS
    given = groups_of(counted.to_arviz(log))
    assert given["log_likelihood"].equals(groups_of(flat_data())["log_likelihood"])
    part = groups_of(belief.to_arviz(log[:10]))["log_likelihood"].episodes.values
    assert np.array_equal(part, given["log_likelihood"].episodes.values[..., :10])


def test_other_episodes_raise_an_error():
    model, _, belief = flat()
    other = played(model.draw(jax.random.key(9)), 300, seed=5)
    with pytest.raises(DataError) as error:
        belief.to_arviz(other)
    assert error.value.problems[0].where == "episodes"
    with pytest.raises(DataError):
        belief.to_arviz("episodes")
    gaussian = world("gaussian_tiger")
    few = played(gaussian, 3)
    with pytest.raises(DataError) as error:
        posterior(gaussian.homdp, few[:2]).to_arviz(few[2:])
    assert error.value.problems[0].where == "episodes"


def test_updates_keep_the_episodes():
    model, log, _ = flat()
    start = posterior(model, Counts.zero(model))
    assert len(start.episodes) == 0
    assert set(groups_of(start.to_arviz())) == DRAW_GROUPS
    grown = start.update(log[:30]).update(log[30]).update(log[31:])
    assert grown.episodes.same_as(log)
    assert grown.update(Counts.of(log, model)).episodes is None
    gaussian = world("gaussian_tiger")
    few = played(gaussian, 3)
    assert posterior(gaussian.homdp, few[:1]).update(few[1:]).episodes.same_as(few)


def test_reweighted_posteriors_do_not_claim_episodes():
    tracked = Tracked.start(programs.logistic())
    log = played(programs.logistic().at(ear=1.0), 1)
    after = tracked.update(Counts.of(log, programs.logistic()), jax.random.key(0))
    assert after.belief.episodes is None
    groups = groups_of(after.belief.to_arviz(log))
    assert set(groups["sample_stats"].data_vars) == {"lp"}
    assert groups["log_likelihood"].sizes["episode"] == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_runs(compiled):
    run = learn(world("tiger"), explorers.greedy(), history_tree(), 5, compiled=compiled)
    groups = groups_of(run.to_arviz())
    assert set(groups) == DRAW_GROUPS | EPISODE_GROUPS
    assert np.array_equal(groups["observed_data"].state, run.episodes.states)
    assert np.array_equal(groups["constant_data"].action, run.episodes.actions)


def test_memory_is_checked_first(monkeypatch):
    monkeypatch.setenv("HOMDP_MEMORY", "0.01")
    belief = flat()[2]
    with pytest.raises(InferenceError) as error:
        belief.to_arviz()
    assert error.value.problems[0].where == "episodes"
