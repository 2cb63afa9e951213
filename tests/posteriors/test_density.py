"""The likelihood of counts against NumPyro's density of the program given the episodes."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.infer.util import log_density, potential_energy
from scipy.special import gammaln
from scipy.stats import binomtest

from homdp_ppl import Counts, x64
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.posteriors import log_likelihood
from homdp_ppl.posteriors.data import plain
from homdp_ppl.posteriors.density import Density
from homdp_ppl.posteriors.dirichlet import closed_form
from tests.chances import ALARM
from tests.posteriors import programs
from tests.worlds import world

POINTS = 4


def tiger():
    return world("tiger").homdp


def checkup():
    return world("checkup").homdp


ALL = (*programs.PROGRAMS, tiger, checkup)


def uniform_actions(model, batch):
    """The other term of the reference: actions of the uniform policy."""
    return -batch.actions.size * np.log(len(model.actions))


@cache
def reference(program):
    """Values of the sites, their tables, and NumPyro's log density with and without episodes."""
    model, batch = program(), programs.episodes(program)
    with x64():
        conditioned = model.hindsight(batch)

        def look(point):
            densities = [log_density(f, (), {}, point)[0] for f in (conditioned, model.function)]
            return point, Tables(*model.tables(point).stationary()[:3]), *densities

        found = jax.jit(jax.vmap(look, axis_size=POINTS))(points(model))
        return jax.tree.map(np.asarray, found)


def points(model):
    """Values of the sites that differ from those of the episodes."""
    return programs.values(model, POINTS, 7)


def check_likelihood(program):
    """Without prior and actions, the reference is the likelihood of the counts."""
    model, batch = program(), programs.episodes(program)
    _, tables, joint, prior = reference(program)
    likelihood = log_likelihood(tables, model.counts(batch))
    possible = np.isfinite(likelihood)
    expected = joint - prior - uniform_actions(model, batch)
    assert possible.any()
    assert np.allclose(likelihood[possible], expected[possible], rtol=1e-12, atol=1e-9)
    assert (
        expected[~possible] < -300
    ).all()  # NumPyro uses the smallest positive number for impossible outcomes


def check_density(program):
    """Our potential and NumPyro's, at every configuration of the discrete sites."""
    model, batch = program(), programs.episodes(program)
    with x64():
        density, conditioned = Density(model, ()), model.hindsight(batch)
        counts = plain(model.counts(batch))
        configurations = jax.tree.map(jnp.asarray, density.configurations)

        def both(point):
            with (
                handlers.trace() as trace,
                handlers.seed(rng_seed=0),
                handlers.substitute(data=point),
            ):
                model.function()
            position = {
                name: biject_to(trace[name]["fn"].support).inv(point[name]) for name in density.free
            }

            def theirs(discrete):
                fixed = handlers.substitute(
                    conditioned, data={name: v for name, v in discrete.items() if name}
                )
                return -potential_energy(fixed, (), {}, position)

            return density.log_joint(counts, position), jax.vmap(theirs)(configurations)

        ours, theirs = (np.asarray(x) for x in jax.jit(jax.vmap(both))(points(model)))
    possible = np.isfinite(ours)
    assert possible.any()
    assert np.ptp(ours[possible] - theirs[possible]) < 1e-8
    assert (theirs[~possible] < -300).all()


QUICK = (
    programs.tables,
    programs.hierarchy,
    programs.picks,
    programs.weighed,
    programs.nothing_unknown,
)
SLOW = tuple(program for program in ALL if program not in QUICK)


def called(program):
    return str(program.__name__)


@pytest.mark.parametrize("program", QUICK, ids=called)
def test_likelihood_of_counts_equals_that_of_the_episodes(program):
    check_likelihood(program)


@pytest.mark.parametrize("program", [programs.hierarchy, programs.weighed], ids=called)
def test_unconstrained_density_is_the_reference_up_to_a_constant(program):
    check_density(program)


@pytest.mark.slow
@pytest.mark.parametrize("program", [programs.tables, programs.picks, *SLOW], ids=called)
def test_other_programs(program):
    check_likelihood(program)
    check_density(program)


@pytest.mark.slow
def test_closed_forms_factor_out_of_a_checkup():
    check_factors(checkup)


@pytest.mark.parametrize("program", [programs.closed_switch, programs.picks], ids=called)
def test_closed_forms_factor_out(program):
    check_factors(program)


def check_factors(program):
    """Reference = density of the sampled sites x Dirichlet density of the others.

    The sampled sites are unconstrained.
    """
    model, batch = program(), programs.episodes(program)
    values, _, theirs, _ = reference(program)
    form, counts = closed_form(model), model.counts(batch)
    concentration = form.concentration(counts)
    pairs = [
        np.stack([values[site], 1 - values[site]], -1).reshape(POINTS, -1)
        for site in form.conjugate.sites
    ]
    sums = np.bincount(form.conjugate.row, concentration)
    claimed = (concentration - 1) * np.log(np.concatenate(pairs, axis=1))
    claimed = claimed.sum(1) + gammaln(sums).sum() - gammaln(concentration).sum()
    with x64():
        density = Density(model, form.conjugate.sites)
        position = {name: values[name] for name in density.free}
        joint = jax.jit(jax.vmap(lambda p: density.log_joint(plain(counts), p), axis_size=POINTS))(
            position
        )
    discrete = {name: v for name, v in density.configurations.items() if name}
    equal = [values[name][:, None] == v for name, v in discrete.items()]
    chosen = np.argmax(np.all(equal, axis=0), axis=1) if equal else np.zeros(POINTS, int)
    ours = np.asarray(joint)[np.arange(POINTS), chosen] + claimed
    possible = np.isfinite(ours)
    assert possible.sum() >= 2
    assert np.ptp(ours[possible] - theirs[possible]) < 1e-8


def test_a_lost_transition_is_caught():
    """Planted bug: the last transition of every episode is not counted."""
    model, batch = programs.tables(), programs.episodes(programs.tables)
    counts = model.counts(batch)
    lost = counts.transition.copy()
    np.subtract.at(lost, (batch.states[:, -2], batch.actions[:, -1], batch.states[:, -1]), 1)
    _, tables, joint, prior = reference(programs.tables)
    right, wrong = (log_likelihood(tables, c) for c in (counts, Counts(lost, counts.emission)))
    assert np.ptp(joint - prior - right) < 1e-9
    assert np.ptp(joint - prior - wrong) > 1


def test_the_likelihood_has_a_gradient_next_to_impossible_values():
    """The data are impossible under one value of the discrete site.

    The gradient is that of the other value, not NaN.
    """
    model = programs.picks()
    counts = programs.seen([[3, 2, 0], [0, 0, 0]])  # the second outcome needs side = 1
    with x64():
        density = Density(model, model.structure.conjugate.sites)
        slope = float(
            jax.jit(jax.grad(lambda z: density.potential(plain(counts), {"level": z})))(0.4)
        )
    p = 1 / (1 + np.exp(-0.4))
    assert slope == pytest.approx(
        0.4 - (3 * (1 - p) - 2 * p), rel=1e-12
    )  # d/dz of z^2 / 2 - 3 log p - 2 log(1 - p)


def test_discrete_sites_are_drawn_given_the_others():
    """P(side = 1 | level, data) by Bayes' rule at two levels; exact binomial test at 1e-6.

    Planted bug: the prior 0.3.
    """
    model = programs.picks()
    counts = programs.seen([[3, 0, 0], [2, 3, 4]])  # possible on both sides
    with x64():
        density = Density(model, model.structure.conjugate.sites)
        keys = jax.random.split(jax.random.key(0), 4000)
        drawn = jax.jit(
            jax.vmap(lambda key: density.constrain(key, plain(counts), {"level": jnp.asarray(0.4)}))
        )(keys)
    weights = np.array([0.7 * 0.5**2 * 0.3**3 * 0.2**4, 0.3 * 0.2**2 * 0.2**3 * 0.6**4])
    share = weights[1] / weights.sum()
    assert sorted(drawn) == ["level", "side"]
    found = int(np.asarray(drawn["side"]).sum())
    assert binomtest(found, 4000, share).pvalue > ALARM
    assert binomtest(found, 4000, 0.3).pvalue < ALARM
