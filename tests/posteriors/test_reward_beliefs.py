"""Posteriors of reward laws: densities, calibration with planted bugs, and NumPyro's own MCMC."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import potential_energy
from scipy.stats import beta, kstest

from homdp_ppl import Counts, DataError, Episodes, posterior, rollout, uniform_policy, x64
from homdp_ppl.core.reward_form import RewardForm
from homdp_ppl.posteriors import predictive_check
from homdp_ppl.posteriors.data import plain
from homdp_ppl.posteriors.density import Density
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.nuts import Sampling
from homdp_ppl.posteriors.tracking import Tracked
from tests.raising import raises
from tests.random_rewards import CHANCES, native

WORLDS = 150
KEYS = jax.random.split(jax.random.key(5), 8)


@pytest.fixture(scope="module")
def simulated():
    """Worlds drawn from the prior of a declaration with Bernoulli rewards, with some episodes."""
    model = native(horizon=3)
    policy = uniform_policy(model)
    worlds = [model.draw(key) for key in jax.random.split(jax.random.key(0), WORLDS)]
    keys = jax.random.split(jax.random.key(1), (WORLDS, 6))
    return model, [
        (world, rollout(own, world, policy)) for world, own in zip(worlds, keys, strict=True)
    ]


def ranks(model, pairs):
    """The posterior probability of values below the true ones: uniform if all is right."""
    form, found = closed_form(model), []
    for world, played in pairs:
        alpha = form.concentration(model.counts(played))
        entries = dict(zip(form.conjugate.sites, np.split(alpha, [2]), strict=True))
        a, b = entries["p"].reshape(-1, 2).T
        found.append(beta.cdf(np.ravel(world.parameters["p"]), a, b))
    return np.concatenate(found)


def test_closed_form_is_calibrated(simulated):
    """600 ranks: a false alarm has probability 1e-3, which the fixed seed excludes."""
    assert kstest(ranks(*simulated), "uniform").pvalue > 1e-3


def test_rewards_of_the_wrong_step_are_found(simulated):
    model, pairs = simulated
    late = [(world, _with(played, np.roll(played.rewards, 1, axis=1))) for world, played in pairs]
    assert kstest(ranks(model, late), "uniform").pvalue < 1e-6


def test_a_wrong_action_index_is_found(simulated, monkeypatch):
    right = RewardForm.index
    monkeypatch.setattr(RewardForm, "index", lambda self, h, x, y, a: right(self, h, x, y, 1 - a))
    assert kstest(ranks(*simulated), "uniform").pvalue < 1e-6


def _with(played, rewards):
    return Episodes(played.observations, played.actions, played.states, rewards=rewards)


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_the_fast_density_is_that_of_the_program(law):
    """Differences of log densities between points, for all sites sampled."""
    model = native(law)
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(KEYS, world, uniform_policy(world))
    fast, program = Density(model, ()), model.hindsight(played)
    with x64():
        data = plain(model.counts(played))
        at = [
            {"p": jnp.full((2, 2), 0.3 * k), "accuracy": jnp.asarray(-0.5 * k)} for k in range(3)
        ]  # unconstrained
        one = jax.jit(lambda point: fast.potential(data, point))
        other = jax.jit(lambda point: potential_energy(program, (), {}, point))
        ours, theirs = ([float(each(point)) for point in at] for each in (one, other))
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-9)


@pytest.mark.slow
def test_reweighting_agrees_with_a_new_fit_of_the_density():
    """Rewards with a density: weights of the draws are ratios of the program's densities."""
    model = native("beta", horizon=2)
    world = model.at(p=CHANCES, accuracy=0.8)
    tracked = Tracked.of(
        posterior(model, Counts.zero(model), sampling=Sampling(chains=2, warmup=50, draws=50))
    )
    played = rollout(KEYS[:1], world, uniform_policy(world))
    weights = tracked._log_weights(model.counts(played))
    rewards, x, a = (part[0] for part in (played.rewards, played.states[:, :-1], played.actions))
    p = np.asarray(tracked.atoms.values["p"])[:, x, a]
    expected = beta.logpdf(rewards, 5 * p, 5 * (1 - p)).sum(-1)
    np.testing.assert_allclose(weights - weights[0], expected - expected[0], atol=1e-8)


def test_predictive_check_uses_recorded_rewards():
    model = native()
    world = model.at(p=CHANCES, accuracy=0.8)
    policy = uniform_policy(world)
    played = rollout(jax.random.split(jax.random.key(7), 60), world, policy)
    belief = posterior(model, played)
    check = predictive_check(jax.random.key(1), belief, played, policy)
    assert not check.unusual
    other = predictive_check(
        jax.random.key(1), belief, _with(played, np.ones_like(played.rewards)), policy
    )
    assert any("return" in finding for finding in map(str, other.unusual))


def test_sums_alone_are_not_enough_for_densities():
    model = native("beta")
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(KEYS, world, uniform_policy(world))
    counts = model.counts(played)
    lost = replace(counts.rewards, single=np.zeros((0, 2)))
    with raises(DataError, "counts.rewards"):
        posterior(model, replace(counts, rewards=lost))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["bernoulli", "beta"])
def test_mcmc_on_the_program_agrees(law):
    """5 standard errors, 10 numbers: false alarms below 1e-5."""
    model = native(law, horizon=2)
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(jax.random.split(jax.random.key(2), 40), world, uniform_policy(world))
    belief = posterior(model, played)
    with x64():
        mcmc = MCMC(
            NUTS(model.hindsight(played)), num_warmup=300, num_samples=1000, progress_bar=False
        )
        mcmc.run(jax.random.key(0))
        samples = {name: np.asarray(v) for name, v in mcmc.get_samples().items()}
    ours = belief.parameters(jax.random.key(3), 2000)
    for name, theirs in samples.items():
        error = theirs.std(0) * np.sqrt(1 / 400 + 1 / 1000)  # cautious effective numbers
        assert (np.abs(theirs.mean(0) - ours[name].mean(0)) < 5 * error).all()
        assert (np.abs(theirs.std(0) / ours[name].std(0) - 1) < 0.25).all()
