"""Known rows of continuous declarations, and their initial distribution, which must be known."""

import numpyro
import numpyro.distributions as dist

from homdp_ppl import DeclarationError, Kernels, Real, explorers, homdp, learn, models
from homdp_ppl.declare.known import known_rows, refuse_unknown_start
from homdp_ppl.planners import particle_tree
from tests.continuous.programs import hearing, walk
from tests.raising import raises


def test_known_rows_of_a_declaration():
    moving = known_rows(hearing("moves too"))
    assert not moving.transition.any()
    assert moving.emission.tolist() == [False, False, False]
    ears = known_rows(models.load("gaussian_tiger", horizon=3).homdp)
    assert ears.transition.all()
    assert not ears.emission.any()
    refuse_unknown_start(walk())


def test_unknown_initial_distribution_raises_an_error():
    @homdp(states=Real(1), observations=Real(1), actions=2, horizon=2, reward=lambda x, a: 0.5)
    def started():
        where = numpyro.sample("where", dist.Normal(0.0, 1.0))
        return Kernels(
            dist.Normal(where, 1.0), lambda x, a: dist.Normal(x, 1.0), lambda x: dist.Normal(x, 1.0)
        )

    made = started.at(where=0.0)
    with raises(DeclarationError, "initial"):
        learn(made, explorers.hop_v([made], [made]), particle_tree(10), 2)
    learn(made, explorers.uniform(), particle_tree(10), 2)
