"""Priors with values at which the rows of a program are not probabilities."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Counts, DeclarationError, InferenceError, Kernels, Real, homdp, posterior
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
