"""The transitions of one world with the emissions of another."""

import jax
import numpy as np

from homdp_ppl import ParameterError, models
from homdp_ppl.continuous.tabulation import emission_table
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.paired import paired
from tests.continuous.programs import hearing, walk
from tests.raising import raises


def test_pairs_combine_transitions_and_emissions():
    """All pairs of worlds of two declarations are worlds of one model and share its cache."""
    one, other = (
        hearing("means").draw(jax.random.key(0)),
        hearing("variances").draw(jax.random.key(1)),
    )
    made, again = paired(one, other), paired(hearing("means").draw(jax.random.key(5)), other)
    assert made.homdp is again.homdp
    np.testing.assert_array_equal(latent_tables(made)[1], latent_tables(one)[1])
    np.testing.assert_array_equal(emission_table(made, [0.0]), emission_table(other, [0.0]))
    assert made.with_horizon(5).spaces.horizon == 5
    assert [site.name for site in made.homdp.sites] == [
        *(f"T/{site.name}" for site in one.homdp.sites),
        *(f"O/{site.name}" for site in other.homdp.sites),
    ]


def test_a_pair_has_a_declaration():
    """Its program combines the two programs, so ``draw`` and ``at`` work."""
    one = hearing("means").draw(jax.random.key(0))
    made = paired(one, hearing("variances").draw(jax.random.key(1)))
    again = made.homdp.at(**made.parameters)
    assert all((again.parameters[name] == value).all() for name, value in made.parameters.items())
    assert made.homdp.draw(jax.random.key(2)).parameters.keys() == made.parameters.keys()


def test_other_spaces_raise_an_error():
    one = hearing("means").draw(jax.random.key(0))
    for other in (walk().at(noise=0.5), models.load("tiger")):
        with raises(ParameterError, "spaces"):
            paired(other, one)
