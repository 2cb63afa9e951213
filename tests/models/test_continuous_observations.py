"""Models of the zoo with real-valued observations: rollouts, hindsight, posteriors, and plans
compared with fine grids.
"""

from functools import cache

import jax
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy import stats

from homdp_ppl import POMDP, DeclarationError, Episodes, posterior, rollout, uniform_policy, x64
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.models import gaussian_screening, gaussian_tiger, low_rank
from homdp_ppl.planners import history_tree, quantised
from homdp_ppl.posteriors import Sampling
from tests.raising import raises

MODELS = {
    model.__name__.split(".")[-1]: model for model in (gaussian_tiger, gaussian_screening, low_rank)
}
EPISODES, DRAWS = 60, 1000
SAMPLING = Sampling(chains=4, warmup=150, draws=250)


@cache
def world(name):
    return MODELS[name].structured(horizon=2)


@cache
def drawn(name):
    """A world drawn from the prior, and episodes of it."""
    here = world(name).homdp.draw(jax.random.key(3))
    return here, rollout(jax.random.split(jax.random.key(4), EPISODES), here, uniform_policy(here))


def emissions(name, parameters):
    """The normal distributions of all states according to the model's story, (X,)."""
    if name == "gaussian_tiger":
        return stats.norm(parameters["mean"], parameters["precision"] ** -0.5)
    if name == "gaussian_screening":
        stage = np.array([0, 1, 2, 0, 1, 2, 0, 0])
        return stats.norm(
            parameters["rise"] * stage, parameters["noise"] * np.array([3, 3, 3, 1, 1, 1, 1, 1])
        )
    return stats.norm([0, 0, 0, 0, 1, 1, 1, 2, 2, 2], parameters["scale"])


def log_prior(name, parameters):
    """The prior according to the model's story."""
    if name == "gaussian_tiger":
        precision = parameters["precision"]
        mean = stats.norm([-1, 1], precision**-0.5).logpdf(parameters["mean"])
        return stats.gamma(2, scale=1 / 2).logpdf(precision).sum() + mean.sum()
    if name == "gaussian_screening":
        rates = stats.beta([2, 2], [6, 2]).logpdf(parameters["rates"]).sum()
        return (
            rates
            + stats.norm(1.5, 1).logpdf(parameters["rise"])
            + stats.gamma(4, scale=1 / 4).logpdf(parameters["noise"])
        )
    return stats.beta(2, 2).logpdf(parameters["rate"]).sum() + stats.gamma(4, scale=1 / 8).logpdf(
        parameters["scale"]
    )


@pytest.mark.parametrize(
    "name",
    [
        name if name == "gaussian_tiger" else pytest.param(name, marks=pytest.mark.slow)
        for name in MODELS
    ],
)
def test_hindsight_is_the_program_given_states_and_numbers(name):
    """The density by hand: prior, initial states and transitions from the tables, observations by
    SciPy, uniform actions.
    """
    here, episodes = drawn(name)
    rho, T, r = latent_tables(here)
    x, a, y = episodes.states, episodes.actions, episodes.observations
    by_hand = (
        log_prior(name, here.parameters)
        + np.log(rho[x[:, 0]]).sum()
        + np.log(T[x[:, :-1], a, x[:, 1:]]).sum()
    )
    law = emissions(name, here.parameters)
    by_hand += stats.norm(law.mean()[x[:, :-1]], law.std()[x[:, :-1]]).logpdf(
        y
    ).sum() - a.size * np.log(T.shape[1])
    latent = set()

    def density(parameters):
        total, trace = log_density(here.homdp.hindsight(episodes), (), {}, parameters)
        latent.update(
            site
            for site, found in trace.items()
            if found["type"] == "sample" and not found["is_observed"]
        )
        return total

    with x64():
        assert float(jax.jit(density)(dict(here.parameters))) == pytest.approx(by_hand, rel=1e-9)
    assert latent == set(here.parameters)
    assert here.homdp.returns(episodes) == pytest.approx(r[0][x[:, :-1], a].sum(1), abs=1e-12)


def outside(name, episodes, parameters):
    """Entries of the parameters outside the range of all draws of the posterior."""
    belief = posterior(world(name).homdp, episodes, sampling=SAMPLING)
    assert belief.method == ("conjugate" if name == "gaussian_tiger" else "nuts")
    draws = belief.parameters(jax.random.key(0), DRAWS)
    return [
        f"{site}[{k}]"
        for site, values in draws.items()
        for k, (entry, truth) in enumerate(
            zip(values.reshape(DRAWS, -1).T, np.ravel(parameters[site]), strict=True)
        )
        if not entry.min() < truth < entry.max()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_posteriors_cover_a_truth_drawn_from_the_prior(name):
    """Among n independent draws of the posterior, the truth is the smallest or the largest with
    probability 2 / (n + 1).

    With 1,000 draws, an effective sample size of at least 400 and at most ten entries, the
    false-alarm rate is below 5 %.
    """
    here, episodes = drawn(name)
    assert outside(name, episodes, here.parameters) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_posteriors_given_shifted_observations_do_not_cover_the_truth(name):
    """The planted bug: all observations are too large by 1."""
    here, episodes = drawn(name)
    wrong = Episodes(episodes.observations + 1.0, episodes.actions, episodes.states)
    assert outside(name, wrong, here.parameters) != []


def on_a_grid(name, parameters, edges, cells=200):
    """The model on equal cells that cover the line up to 1e-6, with additional cuts at the edges,
    by SciPy's normal distribution.
    """
    law = emissions(name, parameters)
    grid = np.union1d(np.linspace(law.ppf(1e-6).min(), law.ppf(1 - 1e-6).max(), cells - 1), edges)
    ends = np.array([-np.inf, *grid, np.inf])
    rho, T, r = latent_tables(world(name))
    return POMDP.of(rho, T, np.diff(law.cdf(ends[:, None]).T), r)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "gaussian_tiger" else pytest.param(name, marks=pytest.mark.slow)
        for name in MODELS
    ],
)
def test_the_optimum_on_a_fine_grid_lies_in_the_bracket(name):
    """The grid contains all edges of the plan, so its optimum is at least the plan's value, and the
    bracket must contain it up to rounding.

    The optimum of a grid for half the noise is outside.
    """
    plan = quantised(5e-3)(world(name))
    assert plan.gap <= 5e-3
    fine = history_tree()(on_a_grid(name, world(name).parameters, plan.policy.edges)).value
    assert plan.value - 1e-9 <= fine <= plan.upper + 1e-9
    clearer = {"precision": np.array([4.0, 4.0]), "noise": 0.5, "scale": 0.25}
    parameters = {site: clearer.get(site, value) for site, value in world(name).parameters.items()}
    assert (
        history_tree()(on_a_grid(name, parameters, plan.policy.edges, 40)).value > plan.upper + 1e-3
    )


def test_screening_follows_its_story():
    _, T, r = latent_tables(world("gaussian_screening"))
    assert T[0, 0].tolist() == pytest.approx([0.85, 0.15, 0, 0, 0, 0, 0, 0])
    assert T[1, 1].tolist() == pytest.approx([0, 0, 0, 0, 0.5, 0.5, 0, 0])
    assert T[[3, 4, 5], 2].argmax(-1).tolist() == [0, 6, 7]
    assert (r >= 0).all()
    assert (r <= 1).all()


@pytest.mark.parametrize("states", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_low_rank_has_its_rank_for_all_numbers_of_places(states):
    here = low_rank.structured(states=states, horizon=2)
    _, T, _ = latent_tables(here)
    for a in range(3):
        assert np.linalg.matrix_rank(T[:, a]) == 3
    region = np.arange(states) * 3 // states
    first = T[0, 1] @ np.eye(3)[region]  # the first place belongs to its region only
    assert first == pytest.approx([0.1, 0.9, 0.0], abs=1e-12)
    last = (region == 0).sum() - 1
    late = 0.5 * (
        3 * last / states
    )  # share of the second region, where actions work with rate 0.75
    mixed = [0.1 * (1 - late), 0.9 * (1 - late) + 0.25 * late, 0.75 * late]
    assert T[last, 1] @ np.eye(3)[region] == pytest.approx(mixed, abs=1e-12)
    assert T[-1, 2] @ np.eye(3)[region] == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)


def test_places_of_a_region_are_equivalent_on_average():
    """Observations depend on the region only, and a new place is drawn at every step.

    So regions are sufficient as states.
    """
    whole = on_a_grid("low_rank", world("low_rank").parameters, [], 40).stationary()
    region = np.arange(10) * 3 // 10
    psi = np.eye(3)[region] / np.bincount(region)[region][:, None]  # (X, regions)
    moves = np.einsum("xz,xay,yw->zaw", psi, whole.transition, np.eye(3)[region])
    small = POMDP.of(
        np.full(3, 1 / 3),
        moves,
        psi.T @ whole.emission,
        np.einsum("xz,hxa->hza", psi, whole.reward),
    )
    assert history_tree()(small).value == pytest.approx(
        history_tree()(whole.pomdp).value, abs=1e-10
    )


@pytest.mark.slow
def test_the_family_is_one_class_for_all_numbers_of_places():
    few, many = low_rank.family(5, seed=1, states=10), low_rank.family(5, seed=1, states=1000)
    for one, other in zip(few, many, strict=True):
        for site in ("rate", "scale"):
            assert np.array_equal(one.parameters[site], other.parameters[site])
    assert len({float(member.parameters["scale"]) for member in few}) == 5
    assert few[-1].parameters["scale"] == 0.5
    played = rollout(jax.random.split(jax.random.key(0), 4), many[-1], uniform_policy(many[-1]))
    assert played.states.max() > 333
    with raises(DeclarationError, "blocks"):
        low_rank.structured(states=3, blocks=4)
