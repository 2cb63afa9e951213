"""Radii of mean rewards: golden values, coverage of single rows, and optimism."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import beta

from homdp_ppl import (
    Counts,
    Kernels,
    explorers,
    homdp,
    learn,
    posterior,
    rollout,
    uniform_policy,
)
from homdp_ppl.confidence import (
    dirichlet_radii,
    empirical,
    hop_b_radii,
    quantile_radii,
    weissman_radii,
)
from homdp_ppl.confidence.reward_beliefs import reward_deviation
from homdp_ppl.errors import ParameterError
from homdp_ppl.explorers import _rooted
from homdp_ppl.planners import history_tree
from tests.random_rewards import CHANCES, MOVES, PRIOR, SPACES, native

MODEL = native()
WORLD = MODEL.at(p=CHANCES, accuracy=0.8)
PLAYED = rollout(jax.random.split(jax.random.key(0), 200), WORLD, uniform_policy(WORLD))
COUNTS = MODEL.counts(PLAYED)
NUMBER = COUNTS.rewards.number[0, :, 0]  # (X, A)


def test_golden_radii():
    """X = A = 2, H = 3: 12 cells of rewards, 12 of transitions and 6 of emissions; K = 100."""
    hop_b = hop_b_radii(MODEL, COUNTS, episodes=100, delta=0.1)
    tight = weissman_radii(MODEL, COUNTS, episodes=100, delta=0.1)
    expected = np.sqrt(np.log(2 * 12 * 100 / 0.1) / (2 * NUMBER))
    np.testing.assert_allclose(hop_b.reward[0, :, 0], expected, rtol=1e-12)
    expected = np.sqrt(np.log(2 * 30 * 100 / 0.1) / (2 * NUMBER))
    np.testing.assert_allclose(tight.reward[0, :, 0], expected, rtol=1e-12)
    smaller = hop_b_radii(MODEL, COUNTS, episodes=100, delta=0.1, scale=0.5)
    np.testing.assert_allclose(smaller.reward, hop_b.reward / 2)
    nothing = Counts.zero(MODEL)
    assert (hop_b_radii(MODEL, nothing, episodes=100, scale=0.1).reward == 1).all()


def test_estimates_are_averages_in_the_users_units():
    model = native("points", reward_range=(-1.0, 4.0))
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(jax.random.split(jax.random.key(0), 50), world, uniform_policy(world))
    estimate = empirical(model, model.counts(played))
    for x, a in np.ndindex(2, 2):
        some = played.rewards[(played.states[:, :-1] == x) & (played.actions == a)]
        assert abs(estimate.to_user(estimate.reward, 1)[0, x, 0, a] - some.mean()) < 1e-12


def test_rows_without_sites_are_exact():
    model = native("beta")
    radii = weissman_radii(model, Counts.zero(model), episodes=10)
    assert (radii.reward == 1).all()
    fixed = native("bernoulli").at(p=CHANCES, accuracy=0.8).homdp
    assert (weissman_radii(fixed, Counts.zero(fixed), 10, known=False).reward == 1).all()


def test_posterior_radii_of_rewards():
    belief = posterior(MODEL, COUNTS)
    radii = quantile_radii(belief, jax.random.key(1), delta=0.1)
    bounds = dirichlet_radii(MODEL, COUNTS, delta=0.1)
    level = 0.1 / 6  # two rows of O and four mean rewards
    ones = COUNTS.rewards.outcomes[0, :, 0, :, 1]
    a, b = PRIOR[0] + ones, PRIOR[1] + NUMBER - ones
    expected = np.sqrt(np.log(2 / level) / (2 * (a + b + 1)))
    np.testing.assert_allclose(bounds.reward[0, :, 0], expected, rtol=1e-12)
    assert (radii.reward <= bounds.reward).all()
    inside = radii.reward[0, :, 0]
    mass = beta.cdf(a / (a + b) + inside, a, b) - beta.cdf(a / (a + b) - inside, a, b)
    assert (np.abs(mass - (1 - level)) < 0.02).all()  # about 600 draws, 4 standard errors
    np.testing.assert_allclose(reward_deviation(MODEL, COUNTS)[0, :, 0], beta.std(a, b), rtol=1e-9)


@pytest.mark.parametrize("law", ["bernoulli", "beta"])
@pytest.mark.parametrize(
    "rule", [explorers.hop_b(), explorers.tight(), explorers.hop_b_class([WORLD])]
)
def test_rules_with_counts_are_optimistic(law, rule):
    """False alarms: at most 4 delta = 0.04 per run, which the fixed seed excludes."""
    model = native(law, horizon=2)
    world = model.at(p=CHANCES, accuracy=0.8)
    if rule.about.name == "hop_b_class":
        rule = explorers.hop_b_class([world], delta=0.01)
    else:
        rule = getattr(explorers, rule.about.name)(delta=0.01)
    run = learn(world, rule, history_tree(), episodes=60, compiled=False)
    assert run.was_optimistic.all()


def test_a_forgotten_radius_is_not_optimistic(monkeypatch):
    monkeypatch.setattr(_rooted, "with_optimistic_rewards", lambda model, radius: model)
    run = learn(certain(), explorers.tight(), history_tree(), episodes=40, compiled=False)
    assert not run.was_optimistic.all()


def certain():
    """A world in which only rewards are unknown."""

    @homdp(**SPACES, horizon=1, reward_range=(0.0, 1.0))
    def model():
        p = numpyro.sample("p", dist.Beta(1.0, 1.0))
        return Kernels([0.5, 0.5], MOVES, np.eye(2), reward=lambda x, a: dist.Bernoulli(p))

    return model.at(p=0.9)


def test_the_reward_radius_alone_is_enough():
    run = learn(certain(), explorers.tight(), history_tree(), episodes=40, compiled=False)
    assert run.was_optimistic.all()


@pytest.mark.parametrize("name", ["hop_b", "tight"])
def test_laws_that_leave_the_range_are_refused(name):
    model = native("normal", reward_range=(-1.0, 2.0))
    rule = getattr(explorers, name)()
    with pytest.raises(ParameterError) as error:
        rule.init(model, 100)
    assert error.value.problems[0].where == "reward"
    with pytest.raises(ParameterError):
        weissman_radii(model, Counts.zero(model), episodes=10)
    assert explorers.greedy().init(model, 100).counts.rewards is not None
