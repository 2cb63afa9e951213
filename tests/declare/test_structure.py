"""The structure of declarations: known rows, supports, dependence, certified conjugacy."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpyro.distributions import biject_to
from numpyro.infer.util import log_density
from scipy.special import gammaln

from homdp_ppl import Kernels, homdp, rollout, tabular, uniform_policy, x64
from homdp_ppl.declare.kernels import SNAP
from homdp_ppl.declare.probing import WIDTH
from tests.worlds import world

EYE = np.eye(3)


def structure(program, states=3, observations=3, actions=2):
    reward = np.zeros((states, actions))
    return homdp(
        states=states, observations=observations, actions=actions, horizon=2, reward=reward
    )(program).structure


def kernels(transition=None, emission=None, initial=EYE[0]):
    stay = np.repeat(EYE[:, None, :], 2, axis=1)
    return Kernels(
        initial, stay if transition is None else transition, EYE if emission is None else emission
    )


def simplex(name, shape):
    return numpyro.sample(name, dist.Dirichlet(np.ones(shape)).to_event(len(shape) - 1))


def test_rows_survive_casts_lambdas_and_stacking():
    def program():
        p = [simplex(f"p{k}", (3,)) for k in range(3)]
        stacked = jnp.stack([p[0], p[1][::-1], p[2].astype(jnp.float64)])
        return kernels(emission=lambda x: dist.Categorical(probs=stacked[x]))

    found = structure(program)
    assert found.conjugate.sites == ("p0", "p1", "p2")
    assert np.array_equal(found.conjugate.sources["emission"], [[0, 1, 2], [5, 4, 3], [6, 7, 8]])
    assert found.summary()["O"] == "Dirichlet, conjugate"


def test_a_row_partly_known_is_conjugate():
    def program():
        rest = simplex("rest", (2,))
        return kernels(emission=jnp.stack([jnp.append(0.7 * rest, 0.3), EYE[1], EYE[2]]))

    found = structure(program)
    assert found.conjugate.sites == ("rest",)
    assert np.array_equal(found.conjugate.sources["emission"][0], [0, 1, -1])
    assert found.known.emission.tolist() == [False, True, True]
    assert found.summary()["O"] == "2 of 3 rows known, 1 row Dirichlet, conjugate"


def not_conjugate():
    """Programs whose sites look like Dirichlet or Beta but have no such posterior, each for a
    different reason.
    """

    def hierarchy():
        strength = numpyro.sample("strength", dist.Gamma(2.0, 1.0))
        p = numpyro.sample("p", dist.Dirichlet(strength * jnp.ones(3)))
        return kernels(emission=jnp.stack([p, EYE[1], EYE[2]]))

    def overlapping():  # of the sums p0 + p1 and p1 + p2, none contains the other
        p = simplex("p", (3,))
        rows = [[p[0] + p[1], p[2], 0.0], [p[0], p[1] + p[2], 0.0]]
        return kernels(emission=jnp.stack([*map(jnp.array, rows), EYE[2]]))

    def squared():
        b = numpyro.sample("b", dist.Beta(2, 2))
        return kernels(emission=jnp.array([[b**2, 1 - b**2, 0], [0, 1, 0], [0, 0, 1]]))

    def also_elsewhere():
        p = simplex("p", (3,))
        mixed = 0.5 * p + 0.5 / 3
        return kernels(emission=jnp.stack([p, mixed, EYE[2]]))

    def factor():  # the rows match; only the certificate detects this
        p = simplex("p", (3,))
        numpyro.factor("nudge", 3.0 * p[0] ** 2)
        return kernels(emission=jnp.stack([p, EYE[1], EYE[2]]))

    def observed():  # the same, through other data that the user conditions on
        p = simplex("p", (3,))
        numpyro.sample("survey", dist.Normal(p[0], 0.1), obs=0.4)
        return kernels(emission=jnp.stack([p, EYE[1], EYE[2]]))

    def scaled():  # the prior counts twice
        with numpyro.handlers.scale(scale=2.0):
            p = numpyro.sample("p", dist.Dirichlet(np.full(3, 2.0)))
        return kernels(emission=jnp.stack([p, EYE[1], EYE[2]]))

    def tail():  # only beyond 0.9
        p = numpyro.sample("p", dist.Beta(1, 1))
        numpyro.factor("nudge", jnp.where(p > 0.9, 50 * (p - 0.9), 0.0))
        return kernels(emission=jnp.array([[p, 1 - p, 0], [0, 1, 0], [0, 0, 1]]))

    def parent():  # another site depends on it
        p = simplex("p", (3,))
        q = numpyro.sample("q", dist.Beta(1 + 9 * p[0], 1.0))
        return kernels(emission=jnp.array([p, jnp.array([q, 1 - q, 0]), EYE[2]]))

    def one_side():  # a factor that acts at one value of another site
        z = numpyro.sample("z", dist.Bernoulli(0.5))
        p = simplex("p", (3,))
        numpyro.factor("nudge", jnp.where(z == 1, 3.0 * p[0] ** 2, 0.0))
        return kernels(emission=jnp.stack([p, EYE[1], jnp.where(z == 1, EYE[1], EYE[2])]))

    def half_line():  # the same with a continuous site
        t = numpyro.sample("t", dist.Normal())
        p = simplex("p", (3,))
        numpyro.factor("nudge", jnp.where(t > 0, 3.0 * p[0] ** 2, 0.0))
        q = jax.nn.sigmoid(t)
        return kernels(emission=jnp.stack([p, jnp.array([0.0, q, 1 - q]), EYE[2]]))

    def replaced():  # at one of forty values of another site, the row is known
        z = numpyro.sample("z", dist.DiscreteUniform(0, 39))
        p = simplex("p", (3,))
        return kernels(emission=jnp.stack([jnp.where(z == 33, jnp.ones(3) / 3, p), EYE[1], EYE[2]]))

    def concentrated():  # at one of forty values, the prior is different
        z = numpyro.sample("z", dist.DiscreteUniform(0, 39))
        p = numpyro.sample("p", dist.Dirichlet(jnp.where(z == 33, 9.0, 1.0) * jnp.ones(3)))
        return kernels(emission=jnp.stack([p, EYE[1], EYE[2]]))

    rare = [one_side, half_line, replaced, concentrated]
    return [
        hierarchy,
        overlapping,
        squared,
        also_elsewhere,
        factor,
        observed,
        scaled,
        tail,
        parent,
        *rare,
    ]


@pytest.mark.parametrize("program", not_conjugate(), ids=lambda p: p.__name__)
def test_sites_that_only_look_conjugate_are_rejected(program):
    assert structure(program).conjugate.sites == ()


def test_a_site_of_the_initial_distribution_is_conjugate():
    """It may also appear in other rows: first states, too, are counted."""

    def program():
        p = simplex("p", (3,))
        return kernels(emission=jnp.stack([p, EYE[1], EYE[2]]), initial=p)

    found = structure(program)
    assert found.conjugate.sites == ("p",)
    assert found.conjugate.sources["initial"].tolist() == [0, 1, 2]
    assert found.conjugate.sources["emission"][0].tolist() == [0, 1, 2]
    assert found.summary()["initial"].endswith("(p), conjugate")


def test_mixed_programs_keep_their_conjugate_part():
    found = world("checkup").homdp.structure
    assert found.conjugate.sites == ("sensitivity", "specificity")
    assert not found.depends["pace"]["transition"].any()  # it acts through logit_rates only
    assert found.depends["logit_rates"]["transition"].sum() == 18


def test_rare_values_of_a_discrete_site_are_found():
    def program():
        broken = numpyro.sample("broken", dist.Bernoulli(1e-4))
        return kernels(emission=jnp.where(broken == 1, jnp.ones((3, 3)) / 3, EYE))

    found = structure(program)
    assert found.support.emission.all()
    assert not found.known.emission.any()


def far_away():
    """Programs that change only where their prior has mass, away from the middle of the
    unconstrained scale, or at single values.
    """

    def centred():
        centre = numpyro.sample("centre", dist.Normal(100.0, 1.0))
        return jax.nn.softmax(-20 * (jnp.array([99.0, 100.0, 101.0]) - centre) ** 2)

    def threshold():
        k = numpyro.sample("k", dist.Normal(10.0, 0.1))
        return jnp.where(k > 10, jnp.array([0.9, 0.1, 0.0]), jnp.array([0.1, 0.8, 0.1]))

    def relu():
        q = jnp.maximum(numpyro.sample("p", dist.Beta(1, 1)) - 0.9, 0)
        return jnp.array([1 - q, q / 2, q / 2])

    def one_of_forty():
        z = numpyro.sample("z", dist.DiscreteUniform(0, 39))
        return jnp.where(z == 33, jnp.array([0.0, 0.5, 0.5]), jnp.array([1.0, 0.0, 0.0]))

    def heavy():
        scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
        return jnp.array([jnp.exp(-scale), 1 - jnp.exp(-scale), 0.0])

    return [centred, threshold, relu, one_of_forty, heavy]


@pytest.mark.parametrize("row", far_away(), ids=lambda p: p.__name__)
def test_priors_are_probed_where_they_have_mass(row):
    found = structure(lambda: kernels(emission=jnp.stack([row(), EYE[1], EYE[2]])))
    assert found.known.emission.tolist() == [False, True, True]
    assert found.conjugate.sites == ()
    assert found.support.emission[0].sum() == (2 if row.__name__ == "heavy" else 3)


def test_all_outcomes_of_long_rows_are_possible():
    """With a stick-breaking transform, the last of a thousand outcomes would have probability zero
    and count as impossible.
    """
    model = tabular(
        T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 1000))), initial=[1], reward=[[1]], horizon=1
    )
    assert model.structure.support.emission.all()
    assert model.structure.conjugate.sites == ("O",)
    assert model.at(O=np.full((1, 1000), 1e-3)).pomdp.shows(0)[0, -1] == 1e-3
    fn = dist.Dirichlet(np.ones(1000))
    with x64():
        broken = np.asarray(
            biject_to(fn.support)(WIDTH * jax.random.logistic(jax.random.key(0), (16, 999)))
        )
    assert (broken.max(0) <= SNAP).any()


def test_parameters_are_counted_by_their_values():
    def program():
        with numpyro.plate("rows", 3):
            p = numpyro.sample("p", dist.Uniform(0, 1))
        return kernels(emission=lambda x: dist.Categorical(probs=jnp.array([p[x], 1 - p[x], 0])))

    assert structure(program).summary()["O"] == "3 parameters (p)"
    assert structure(program).hyperparameters() == []
    assert "affects no row directly: pace" in repr(world("checkup").homdp)
    assert "2 shared parameters (logit_rates)" in repr(world("checkup").homdp)


def test_claimed_posterior_is_the_posterior():
    """Compare the claimed density with NumPyro's density of the conditioned program.

    This test does not use the certificate.
    """
    for name in ("tiger", "random"):
        made = world(name)
        model, found = made.homdp, made.homdp.structure.conjugate
        episodes = rollout(jax.random.split(jax.random.key(0), 20), made, uniform_policy(made))
        counts = model.counts(episodes)
        posterior = found.concentration.copy()
        np.add.at(
            posterior,
            found.sources["transition"][found.sources["transition"] >= 0],
            counts.transition[found.sources["transition"] >= 0],
        )
        np.add.at(
            posterior,
            found.sources["emission"][found.sources["emission"] >= 0],
            counts.emission[found.sources["emission"] >= 0],
        )
        assert posterior.sum() > found.concentration.sum()
        differences = []
        with x64():
            conditioned = model.hindsight(episodes)
            density = jax.jit(
                lambda p, conditioned=conditioned: log_density(conditioned, (), {}, p)[0]
            )
            for k in range(3):
                values = model.draw(jax.random.key(k)).parameters
                rows = [
                    np.stack([v, 1 - v], -1) if name != "random" else v
                    for v in (values[s] for s in found.sites)
                ]
                entries = np.concatenate([r.ravel() for r in rows])
                sums = np.bincount(found.row, posterior)
                claimed = (
                    ((posterior - 1) * np.log(entries)).sum()
                    + gammaln(sums).sum()
                    - gammaln(posterior).sum()
                )
                differences.append(float(density(dict(values))) - claimed)
        assert np.ptp(differences) < 1e-9, name


ROWS = st.lists(st.sampled_from(["known", "own", "shared", "logistic"]), min_size=4, max_size=4)


@settings(max_examples=6)
@given(ROWS, st.integers(0, 2**16))
def test_the_structure_of_mixed_rows_is_found(kinds, seed):
    check_mixture(kinds, seed)


@pytest.mark.slow
@settings(max_examples=60)
@given(ROWS, st.integers(0, 2**16))
def test_the_structure_of_many_mixed_rows_is_found(kinds, seed):
    check_mixture(kinds, seed)


def check_mixture(kinds, seed):
    """Declare rows of every kind in any order, with random known zeros, and find their kinds."""
    generator = np.random.default_rng(seed)
    zero = np.zeros((4, 4), bool)
    zero[np.arange(4), generator.integers(0, 4, 4)] = True  # one impossible outcome per row
    places = [np.flatnonzero(~z) for z in zero]

    def program():
        shared = simplex("shared", (3,))
        slope = numpyro.sample("slope", dist.Normal())
        rows = []
        for k, kind in enumerate(kinds):
            p = {
                "known": lambda k=k: jnp.array([0.2, 0.3, 0.5]),
                "own": lambda k=k: simplex(f"own{k}", (3,)),
                "shared": lambda: shared,
                "logistic": lambda k=k: jax.nn.softmax(slope * jnp.array([0.0, 1.0, 2.0 + k])),
            }[kind]()
            rows.append(jnp.zeros(4).at[places[k]].set(p))
        return Kernels(np.eye(4)[0], jnp.stack(rows)[:, None, :], np.eye(4))

    found = homdp(states=4, observations=4, actions=1, horizon=1, reward=np.zeros((4, 1)))(
        program
    ).structure
    assert np.array_equal(found.support.transition[:, 0], ~zero)
    assert [k == "known" for k in kinds] == found.known.transition[:, 0].tolist()
    assert [k in ("own", "shared") for k in kinds] == (
        found.conjugate.sources["transition"][:, 0] >= 0
    ).any(-1).tolist()
    assert [k == "shared" for k in kinds] == found.depends["shared"]["transition"][:, 0].tolist()
    assert [k == "logistic" for k in kinds] == found.depends["slope"]["transition"][:, 0].tolist()
