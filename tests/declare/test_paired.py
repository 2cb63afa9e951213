"""The transitions of one world with the emissions of another."""

import jax
import numpy as np
import pytest

from homdp_ppl import DeclarationError
from homdp_ppl.continuous.tabulation import emission_table
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.paired import paired
from tests.continuous.programs import hearing


def test_pairs_take_transitions_and_emissions_apart():
    """And share what is compiled: all pairs of two declarations are one model."""
    one, other = (
        hearing("means").draw(jax.random.key(0)),
        hearing("variances").draw(jax.random.key(1)),
    )
    made, again = paired(one, other), paired(hearing("means").draw(jax.random.key(5)), other)
    assert made.homdp is again.homdp
    np.testing.assert_array_equal(latent_tables(made)[1], latent_tables(one)[1])
    np.testing.assert_array_equal(emission_table(made, [0.0]), emission_table(other, [0.0]))
    with pytest.raises(DeclarationError, match="Pair worlds"):
        made.with_horizon(5)
