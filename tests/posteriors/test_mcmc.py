"""NumPyro's own MCMC on the conditioned program agrees with the posterior, for each feature."""

from functools import cache

import jax
import numpy as np
import pytest
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

from homdp_ppl import Episodes, posterior, rollout, uniform_policy, x64
from tests.richer import FEATURES, richer

pytestmark = pytest.mark.slow
DRAWS, CHAINS = 500, 1
ALARM = 5.5  # standard errors; false alarm below 1e-6 for all 78 quantities together


@cache
def played(name: str) -> Episodes:
    """Revealed episodes of random allowed actions."""
    world = richer(name)
    policy = uniform_policy(world, world.homdp.allowed)
    return rollout(jax.random.split(jax.random.key(2), 25), world, policy)


@cache
def sampled(name: str) -> dict[str, np.ndarray]:
    """Draws of the sites, (chains, draws, ...), by NUTS on the program."""
    with x64():
        kernel = NUTS(FEATURES[name].hindsight(played(name)))
        chains = MCMC(
            kernel,
            num_warmup=150,
            num_samples=DRAWS,
            num_chains=CHAINS,
            chain_method="sequential",
            progress_bar=False,
        )
        chains.run(jax.random.key(0))
        return {site: np.asarray(v) for site, v in chains.get_samples(group_by_chain=True).items()}


def errors(name: str, episodes: Episodes) -> np.ndarray:
    """Differences between the means of both posteriors in standard errors, for every entry."""
    belief = posterior(FEATURES[name], episodes)
    assert belief.method == "conjugate"
    found = []
    for site, draws in sampled(name).items():
        mean = draws.mean((0, 1))
        effective = effective_sample_size(draws)
        assert np.min(effective) > 100
        error = draws.std((0, 1)) / np.sqrt(effective)
        found.append(np.ravel((mean - belief.site_means[site]) / error))
    return np.abs(np.concatenate(found))


@pytest.mark.parametrize("name", FEATURES)
def test_mcmc_on_the_program_agrees(name):
    assert errors(name, played(name)).max() < ALARM


def shifted(episodes: Episodes) -> Episodes:
    """Planted: each observation is that of the previous step."""
    return Episodes(
        np.roll(episodes.observations, 1, axis=1), episodes.actions, np.array(episodes.states)
    )


def other_actions(episodes: Episodes) -> Episodes:
    """Planted: each action is the other one."""
    return Episodes(episodes.observations, 1 - episodes.actions, np.array(episodes.states))


@pytest.mark.parametrize(
    ("name", "bug"),
    [("answers", other_actions), ("steps", shifted), ("start", other_actions), ("bets", shifted)],
)
def test_other_data_are_caught(name, bug):
    assert errors(name, bug(played(name))).max() > ALARM


def test_a_forgotten_end_is_caught():
    """Planted: the last transition of episodes that ended early is not counted."""
    episodes = played("ends")
    ended = np.asarray(episodes.ended) == "terminal"
    assert ended.any()
    assert errors("ends", episodes[~ended]).max() > ALARM
