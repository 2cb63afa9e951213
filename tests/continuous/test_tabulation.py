"""Tables of worlds with observations in Real(1): masses of cells against SciPy, the latent part
against tables made by hand.
"""

from functools import cache

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from homdp_ppl import HOMDP, Kernels, PlanningError, Real, models
from homdp_ppl.continuous.quadrature import log_densities, panels
from homdp_ppl.continuous.tabulation import emission_table, quantised_pomdp
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.paired import paired
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.declare.world import World
from tests.raising import raises

REWARDS = Rewards(None, lambda h, x, y, a: x * 1.0, lambda x, a: x * 1.0, ("x", "a"))


def placed(model, **parameters):
    """A world of a program whose parameters are not sites."""
    return World(model, {name: np.asarray(value) for name, value in parameters.items()})


def world(emission, observations=1, states=("a", "b"), **kernels):
    """A world without the checks of a declaration, which other tests cover."""
    domain = Spaces(states, Real(observations), ("go",), 2)
    given = {"initial": [0.5, 0.5], "transition": np.full((2, 1, 2), 0.5)} | kernels
    return HOMDP("world", domain, REWARDS, lambda: Kernels(**given, emission=emission), ()).at()


@cache
def mixtures():
    """Two normal parts, one of which may be narrow; compiled once for all weights and scales."""

    def program():
        weight = numpyro.sample("weight", dist.Beta(1.0, 1.0))
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        mixing = dist.Categorical(probs=jnp.array([weight, 1 - weight]))
        parts = jnp.array([1.2345, 1.0]), jnp.array([scale, 1.0])

        def emission(x):
            return dist.MixtureSameFamily(mixing, dist.Normal(parts[0] * (2 * x - 1), parts[1]))

        return Kernels([0.5, 0.5], np.full((2, 1, 2), 0.5), emission)

    return HOMDP("mixtures", Spaces(("a", "b"), Real(1), ("go",), 2), REWARDS, program, ())


FAMILIES = {
    "normal": (
        lambda x: dist.Normal(2.0 * x - 1, 0.5 + x),
        [stats.norm(-1, 0.5), stats.norm(1, 1.5)],
    ),
    "a pole at the end": (lambda x: dist.Gamma(0.5 + x, 1.0), [stats.gamma(0.5), stats.gamma(1.5)]),
    "jumps": (
        lambda x: dist.Uniform(0.25 * x, 1.0 + x),
        [stats.uniform(0, 1), stats.uniform(0.25, 1.75)],
    ),
    "a transformed law": (
        lambda x: dist.TransformedDistribution(
            dist.Normal(x, 1.0), dist.transforms.SigmoidTransform()
        ),
        [stats.johnsonsb(0, 1), stats.johnsonsb(-1, 1)],
    ),
    "heavy tails": (lambda x: dist.Cauchy(x, 1.0), [stats.cauchy(0), stats.cauchy(1)]),
}
EDGES = np.array([-30.0, -0.7, 0.0, 0.1, 0.25, 1.0, 1.7, 2.0, 50.0])


@pytest.mark.parametrize("family", FAMILIES)
def test_masses_of_cells(family):
    emission, exact = FAMILIES[family]
    here = world(emission)
    cumulative = np.array([[0.0, *law.cdf(EDGES), 1.0] for law in exact])
    assert emission_table(here, EDGES) == pytest.approx(np.diff(cumulative), abs=2e-12)
    assert panels(here).error < 1e-11
    places = np.array(
        [-0.5, 0.1, 0.9, 3.0]
    )  # the density is zero outside the support, although NumPyro computes a number
    assert np.exp(log_densities(here, places)) == pytest.approx(
        np.array([law.pdf(places) for law in exact]).T, rel=1e-12
    )


def test_masses_of_a_mixture_with_a_narrow_part():
    table = emission_table(placed(mixtures(), weight=0.3, scale=0.01), EDGES)
    for sign, row in zip((-1, 1), table, strict=True):
        cumulative = 0.3 * stats.norm(1.2345 * sign, 0.01).cdf(EDGES) + 0.7 * stats.norm(
            sign, 1
        ).cdf(EDGES)
        assert row == pytest.approx(np.diff([0.0, *cumulative, 1.0]), abs=2e-12)


def partly_jumping(other):
    """A mixture of parts of two families, 0.4 of the given one."""
    mixing = np.array([0.4, 0.6])
    return lambda x: dist.MixtureGeneral(
        dist.Categorical(probs=mixing),
        [other, dist.Normal(x * 1.0, 1.0)],
        support=dist.constraints.real,
    )


def test_masses_of_a_mixture_with_jumps():
    table = emission_table(world(partly_jumping(dist.Uniform(0.3, 1.2))), EDGES)
    for x, row in enumerate(table):
        cumulative = 0.4 * stats.uniform(0.3, 0.9).cdf(EDGES) + 0.6 * stats.norm(x).cdf(EDGES)
        assert row == pytest.approx(np.diff([0.0, *cumulative, 1.0]), abs=2e-12)


def test_missing_mass_raises_an_error_that_names_the_state():
    with raises(PlanningError, "emission[a]", "emission[b]"):
        emission_table(placed(mixtures(), weight=0.001, scale=1e-9), [0.0])
    with raises(PlanningError, "emission[b]"):
        emission_table(world(lambda x: dist.Normal(0.0, 1.0 - 2 * x)), [0.0])
    with raises(PlanningError, "emission"):
        emission_table(world(lambda x: dist.Delta(0.0 * x)), [0.0])
    with raises(PlanningError, "emission"):
        emission_table(world(partly_jumping(dist.Delta(0.0))), [0.0])


def test_latent_tables_are_those_of_the_program():
    moves = world(
        lambda x: dist.Normal(x, 1.0),
        initial=dist.Bernoulli(0.3),
        transition=lambda x, a: dist.Bernoulli(0.2 + 0.8 * x),
    )
    initial, transition, reward = latent_tables(moves)
    assert initial == pytest.approx([0.7, 0.3], abs=1e-14)
    assert transition[:, 0] == pytest.approx(np.array([[0.8, 0.2], [0.0, 1.0]]), abs=1e-14)
    assert transition[1, 0, 0] == 0  # exactly, for planners that prune
    assert reward.tolist() == [[[0.0], [1.0]]] * 2
    assert quantised_pomdp(moves, []).shows(0).tolist() == [[1.0], [1.0]]


def test_a_pair_has_the_latent_tables_of_one_world_and_the_emissions_of_the_other():
    def program():
        stays = numpyro.sample("stays", dist.Beta(1.0, 1.0))
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        return Kernels(
            [0.5, 0.5],
            lambda x, a: dist.Bernoulli(jnp.where(x == 1, stays, 1 - stays)),
            lambda x: dist.Normal(x, scale),
        )

    model = HOMDP("moves", Spaces(("a", "b"), Real(1), ("go",), 2), REWARDS, program, ())
    calm, wild = (placed(model, stays=a, scale=b) for a, b in ((0.9, 0.5), (0.6, 2.0)))
    mixed = placed(mixtures(), weight=0.3, scale=0.5)
    for moves, shows in ((calm, wild), (wild, calm), (calm, mixed)):
        pair = paired(moves, shows)
        for part, expected in zip(latent_tables(pair), latent_tables(moves), strict=True):
            assert part.tolist() == expected.tolist()
        assert emission_table(pair, EDGES).tolist() == emission_table(shows, EDGES).tolist()
    assert latent_tables(paired(calm, wild))[1][1, 0, 1] == pytest.approx(0.9, abs=1e-14)
    assert emission_table(paired(calm, wild), [0.0])[1, 0] == pytest.approx(
        stats.norm.cdf(-0.5), abs=1e-12
    )


def test_worlds_without_tables_raise_an_error_that_names_a_planner():
    plane = world(lambda x: dist.Normal(jnp.zeros(2) + x, 1.0).to_event(1), observations=2)
    moving = world(lambda x: dist.Normal(x, 1.0), states=Real(1))
    for other in (plane, moving):
        with pytest.raises(PlanningError) as caught:
            emission_table(other, [0.0])
        assert "particle_tree" in caught.value.problems[0].remedy
    with raises(PlanningError, "world"):
        latent_tables(models.load("tiger"))
    with raises(PlanningError, "world"):
        latent_tables(plane.homdp)
    for edges in ([1.0, 1.0], [[0.0]], [np.inf]):
        with raises(PlanningError, "edges"):
            emission_table(world(lambda x: dist.Normal(x, 1.0)), edges)
