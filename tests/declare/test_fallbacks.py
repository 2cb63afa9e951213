"""Rows without a closed form: the records, and what a declaration and a posterior say."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Counts, Kernels, homdp, posterior
from tests.random_rewards import native

STATES, SEEN = ("left", "middle", "right"), ("dark", "dim", "light")


def declare(rows):
    @homdp(states=STATES, observations=SEEN, actions=("go",), horizon=2, reward=np.zeros((3, 1)))
    def hall():
        return Kernels([1, 0, 0], np.eye(3)[:, None], jnp.stack([jnp.asarray(r) for r in rows()]))

    return hall


def beta(name):
    return numpyro.sample(name, dist.Beta(2, 2))


def simplex(name="p"):
    return numpyro.sample(name, dist.Dirichlet(np.ones(3)))


KNOWN = jnp.array([0.0, 0.0, 1.0])


def two_sites():
    s, t = beta("s"), beta("t")
    return [jnp.array([(s + t) / 2, 1 - (s + t) / 2, 0]), KNOWN, KNOWN]


def a_product():
    s, t = beta("s"), beta("t")
    return [jnp.array([s * t, 1 - s * t, 0]), KNOWN, KNOWN]


def not_dirichlet():
    s = numpyro.sample("s", dist.Uniform(0, 1))
    return [jnp.array([s, 1 - s, 0]), KNOWN, KNOWN]


def dependent_prior():
    strength = numpyro.sample("strength", dist.Gamma(2.0, 1.0))
    s = numpyro.sample("s", dist.Beta(strength, 1.0))
    return [jnp.array([s, 1 - s, 0]), KNOWN, KNOWN]


def overlapping():
    p = simplex()
    return [jnp.array([p[0] + p[1], p[2], 0]), jnp.array([p[0], p[1] + p[2], 0]), KNOWN]


def squared():
    s = beta("s")
    return [jnp.array([s**2, 1 - s**2, 0]), KNOWN, KNOWN]


def nudged():
    p = simplex()
    numpyro.factor("nudge", 3.0 * p[0] ** 2)
    return [p, KNOWN, KNOWN]


REASONS = {
    two_sites: ("depends on 2 sites: s, t", [[0]]),
    a_product: ("an entry is a product of the sites s and t", [[0]]),
    not_dirichlet: ("the prior of s is not Dirichlet or Beta", [[0]]),
    dependent_prior: ("the prior of s depends on another site", [[0]]),
    overlapping: ("merged outcomes of p overlap without nesting", [[0], [1]]),
    squared: ("an entry is not a sum of outcomes of s", [[0]]),
    nudged: ("p is in a factor, or in an observed, scaled or dependent site", [[0]]),
}


@pytest.mark.parametrize("rows", REASONS, ids=lambda rows: rows.__name__)
def test_reasons(rows):
    model = declare(rows)
    (found,) = model.structure.fallbacks
    reason, places = REASONS[rows]
    assert (found.table, found.rows.tolist(), found.reason) == ("emission", places, reason)
    assert repr(model).endswith(f": {reason}")
    assert f"{len(places)} row{'s' * (len(places) > 1)} of O (left" in repr(model)


def test_a_row_that_fits_says_which_site_is_elsewhere():
    def rows():
        s = beta("s")
        fits = jnp.array([s, 1 - s, 0])
        return [jnp.array([s**2, 1 - s**2, 0]), fits, fits]

    model = declare(rows)
    reasons = {some.reason: some.rows[:, 0].tolist() for some in model.structure.fallbacks}
    assert reasons == {
        "an entry is not a sum of outcomes of s": [0],
        "s is also in rows without a closed form": [1, 2],
    }
    assert "no closed form for 2 rows of O (middle; right): s is also in rows" in repr(model)


def test_only_the_first_rows_are_named():
    @homdp(states=5, observations=2, actions=("go",), horizon=2, reward=np.zeros((5, 1)))
    def long():
        s = numpyro.sample("s", dist.Uniform(0, 1))
        moves = jnp.broadcast_to(jnp.append(jnp.array([s, 1 - s]), jnp.zeros(3)), (5, 5))
        start = jnp.append(jnp.array([1 - s, s]), jnp.zeros(3))
        return Kernels(start, moves[:, None], np.full((5, 2), 0.5))

    assert repr(long).split("\n  ")[2:] == [
        "no closed form for 5 rows of T (x0, go; x1, go; x2, go; ...): "
        "the prior of s is not Dirichlet or Beta",
        "no closed form for initial: the prior of s is not Dirichlet or Beta",
    ]


def test_laws_of_rewards_with_densities_are_named():
    (found,) = native("beta").structure.fallbacks
    assert (found.table, found.sites, len(found.rows)) == ("reward", ("p",), 4)
    assert "4 rows of reward (bad, stay; bad, go; good, stay; ...): the law has a density" in repr(
        native("beta")
    )
    for law in ("bernoulli", "points"):
        assert native(law, reward_range=(-1.0, 3.0)).structure.fallbacks == ()


def test_closed_forms_have_no_reasons():
    model = declare(lambda: [simplex(), KNOWN, KNOWN])
    assert model.structure.fallbacks == ()
    assert "no closed form" not in repr(model)


def test_posteriors_say_why_they_sample():
    model = declare(not_dirichlet)
    text = repr(posterior(model, Counts.zero(model)))
    assert text.endswith(
        "no closed form for 1 row of O (left): the prior of s is not Dirichlet or Beta"
    )
    closed = declare(lambda: [simplex(), KNOWN, KNOWN])
    assert "no closed form" not in repr(posterior(closed, Counts.zero(closed)))
