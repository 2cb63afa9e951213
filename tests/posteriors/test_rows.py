"""Priors with values at which a program's rows or densities are not distributions."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Counts,
    DeclarationError,
    Episode,
    InferenceError,
    Kernels,
    Real,
    homdp,
    posterior,
    rollout,
    uniform_policy,
)
from homdp_ppl.declare.parameters import bad_draw
from homdp_ppl.posteriors import Sampling

FEW = Sampling(chains=1, warmup=50, draws=100)


def lamp(make, observations=("dark", "light")):
    @homdp(
        states=("off", "on"),
        observations=observations,
        actions=("wait",),
        horizon=2,
        reward=[[0.0], [1.0]],
    )
    def declared():
        p = make()
        rows = jnp.array([[p, 1 - p], [1 - p, p]])
        if isinstance(observations, Real):
            return Kernels([0.5, 0.5], rows[:, None], lambda x: dist.Normal(x * 1.0, 1.0))
        return Kernels([0.5, 0.5], np.eye(2)[:, None], rows)

    return declared


def normal(spread):
    return lambda: numpyro.sample("p", dist.Normal(0.5, spread))


def switch():
    """1.3 at about one draw in 150, and at no trial draw of a declaration."""
    q = numpyro.sample("q", dist.Normal(0.0, 1.0))
    return jnp.where(jnp.abs(q - 0.5) < 0.01, 1.3, jax.nn.sigmoid(q))


def test_a_wide_prior_raises_at_its_declaration():
    with pytest.raises(DeclarationError) as caught:
        lamp(normal(0.5))
    problem = caught.value.problems[0]
    assert problem.where == "emission"
    assert "p=" in problem.remedy


def test_draws_of_the_prior():
    model = lamp(switch)
    with pytest.raises(InferenceError) as caught:
        posterior(model, Counts.zero(model))
    problem = caught.value.problems[0]
    assert (problem.where, problem.at) == ("emission", "off, light")
    assert "q=" in problem.remedy


def test_draws_given_data():
    """The likelihood of an invalid row prefers values outside [0, 1]."""
    model = lamp(normal(0.1))
    seen = Counts(np.array([[[900, 0]], [[0, 900]]]), np.array([[900, 0], [0, 900]]))
    with pytest.raises(InferenceError) as caught:
        posterior(model, seen, method="laplace", sampling=FEW)
    assert caught.value.problems[0].where == "emission"


@pytest.mark.slow
def test_draws_of_chains():
    model = lamp(normal(0.1))
    seen = Counts(np.array([[[900, 0]], [[0, 900]]]), np.array([[900, 0], [0, 900]]))
    with pytest.raises(InferenceError) as caught:
        posterior(model, seen, sampling=FEW, force=True)
    assert caught.value.problems[0].where == "emission"


def test_states_next_to_densities():
    model = lamp(switch, observations=Real(1))
    with pytest.raises(InferenceError) as caught:
        posterior(model, [])
    assert caught.value.problems[0].where == "transition"
    assert "q=" in caught.value.problems[0].remedy


def test_valid_posteriors_are_returned():
    model = lamp(lambda: numpyro.sample("p", dist.Uniform(0.5, 1.0)))
    belief = posterior(model, Counts.zero(model), sampling=FEW)
    assert (np.abs(belief.mean.emission.sum(-1) - 1) < 1e-12).all()


def test_the_first_bad_draw_is_named():
    tables = {"emission": np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.4], [0.5, np.nan]]])}
    spaces = lamp(normal(0.05)).spaces
    problems = bad_draw(tables, {"p": np.array([0.1, 0.7]), "v": np.ones((2, 9))}, spaces)
    assert [(p.where, p.at) for p in problems] == [("emission", "on"), ("emission", "off")]
    assert all("p=0.7" in problem.remedy for problem in problems)


# Real-valued states: a site is 1, and -0.2 at about one draw in 150 but at no trial draw


NUMBER = Real(1)


def rare():
    q = numpyro.sample("q", dist.Normal(0.0, 1.0))
    return jnp.where(jnp.abs(q - 0.5) < 0.01, -0.2, 1.0)


def walk(kernels, observations=NUMBER, states=NUMBER, prior=rare):
    @homdp(
        states=states,
        observations=observations,
        actions=("stay", "go"),
        horizon=2,
        reward=lambda x, a: 0.5,
    )
    def declared():
        return kernels(prior())

    return declared


def normal_step(x, a):
    return dist.Normal(0.5 * x, 1.0)


def vector_step(x, a):
    return dist.Normal(0.5 * x, 1.0).to_event(1)


def sight(x):
    return dist.Normal(x, 1.0)


START, STARTS = dist.Normal(0.0, 1.0), dist.Normal(jnp.zeros(2), 1.0).to_event(1)

# which kernel is invalid, and the declaration
DENSITIES = {
    "a negative initial scale": (
        "initial",
        lambda: walk(lambda s: Kernels(dist.Normal(0.0, s), normal_step, sight)),
    ),
    "a negative transition scale": (
        "transition",
        lambda: walk(lambda s: Kernels(START, lambda x, a: dist.Normal(x, s), sight)),
    ),
    "a negative scale after one action": (
        "transition",
        lambda: walk(
            lambda s: Kernels(
                START, lambda x, a: dist.Normal(0.5 * x, jnp.where(a == 1, s, 1.0)), sight
            )
        ),
    ),
    "a negative emission scale": (
        "emission",
        lambda: walk(lambda s: Kernels(START, normal_step, lambda x: dist.Normal(x, s))),
    ),
    "an emission scale of nan": (
        "emission",
        lambda: walk(lambda s: Kernels(START, normal_step, lambda x: dist.Normal(x, jnp.sqrt(s)))),
    ),
    "a negative concentration, with a finite log density": (
        "emission",
        lambda: walk(lambda s: Kernels(START, normal_step, lambda x: dist.Gamma(s, 1.0))),
    ),
    "a matrix that is not positive definite": (
        "transition",
        lambda: walk(
            lambda s: Kernels(
                STARTS,
                lambda x, a: dist.MultivariateNormal(x, s * jnp.eye(2)),
                lambda x: dist.Normal(x[0], 1.0),
            ),
            states=Real(2),
        ),
    ),
    "a negative scale inside of to_event": (
        "emission",
        lambda: walk(
            lambda s: Kernels(STARTS, vector_step, lambda x: dist.Normal(x, s).to_event(1)),
            states=Real(2),
            observations=Real(2),
        ),
    ),
    "a negative scale in a mixture": (
        "emission",
        lambda: walk(
            lambda s: Kernels(
                START,
                normal_step,
                lambda x: dist.MixtureSameFamily(
                    dist.Categorical(probs=jnp.array([0.5, 0.5])),
                    dist.Normal(jnp.array([x, -x]), jnp.stack([s, 1.0])),
                ),
            )
        ),
    ),
    "an interval whose ends are swapped": (
        "program",
        lambda: walk(lambda s: Kernels(START, normal_step, lambda x: dist.Uniform(x, x + s))),
    ),
    "finite observations with a negative probability": (
        "emission",
        lambda: walk(
            lambda s: Kernels(START, normal_step, lambda x: dist.Bernoulli(probs=0.5 * s)),
            observations=2,
        ),
    ),
    "a scale in one of two states": (
        "emission",
        lambda: walk(
            lambda s: Kernels(
                [1.0, 0.0],
                jnp.tile(jnp.eye(2)[:, None], (1, 2, 1)),
                lambda x: dist.Normal(0.0, jnp.where(x == 1, s, 1.0)),
            ),
            states=2,
        ),
    ),
}


QUICK = {  # the others take too long for the default suite
    "a negative scale after one action",
    "a negative concentration, with a finite log density",
    "a scale in one of two states",
}


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, marks=[] if attack in QUICK else pytest.mark.slow)
        for attack in DENSITIES
    ],
)
def test_densities_at_draws_of_the_prior(attack):
    where, declare = DENSITIES[attack]
    model = declare()
    with pytest.raises(InferenceError) as caught:
        posterior(model, [])
    problem = caught.value.problems[0]
    assert problem.where == where
    assert "q=0.49" in problem.remedy or "q=0.50" in problem.remedy


@pytest.mark.slow
def test_densities_at_draws_of_chains():
    """The data say nothing about the action that was never taken."""
    model = walk(
        lambda s: Kernels(
            START, lambda x, a: dist.Normal(0.5 * x, jnp.where(a == 1, s, 1.0)), sight
        ),
        prior=lambda: numpyro.sample("p", dist.Normal(0.5, 0.15)),
    )
    seen = Episode.of([0.1, 0.2], ["stay", "stay"], [0.0, 0.1, 0.2], model)
    with pytest.raises(InferenceError) as caught:
        posterior(model, [seen], sampling=Sampling(2, 200, 2000), force=True)
    assert caught.value.problems[0].where == "transition"
    assert "p=-" in caught.value.problems[0].remedy


@pytest.mark.slow
def test_valid_densities_are_returned():
    model = walk(
        lambda s: Kernels(START, normal_step, lambda x: dist.Normal(x, s)),
        prior=lambda: numpyro.sample("s", dist.LogNormal(0.0, 0.3)),
    )
    assert posterior(model, [], sampling=FEW).method == "prior"
    world = model.at(s=1.0)
    keys = jax.random.split(jax.random.key(0), 5)
    belief = posterior(model, rollout(keys, world, uniform_policy(world)), sampling=FEW, force=True)
    assert belief.method == "nuts"


def test_closed_forms_refuse_precisions_of_zero():
    """Of Gamma(0.01, 0.01), about one draw in a thousand is zero in float64."""

    def kernels(_):
        precision = numpyro.sample("precision", dist.Gamma(0.01, 0.01))
        centre = numpyro.sample("centre", dist.Normal(0.0, 1 / jnp.sqrt(precision)))
        return Kernels(
            [0.5, 0.5],
            np.full((2, 2, 2), 0.5),
            lambda x: dist.Normal(centre, 1 / jnp.sqrt(precision)),
        )

    model = walk(kernels, states=2, prior=lambda: None)
    belief = posterior(model, [])
    assert belief.method == "conjugate"
    with pytest.raises(InferenceError) as caught:
        belief.parameters(jax.random.key(0), 20_000)
    assert caught.value.problems[0].where == "site 'precision'"
    data = rollout(
        jax.random.split(jax.random.key(0), 5),
        model.at(precision=1.0, centre=0.0),
        uniform_policy(model),
    )
    drawn = posterior(model, data).parameters(jax.random.key(0), 20_000)
    assert all(np.isfinite(value).all() for value in drawn.values())
